"""The publications that curators look for, from stored WARCs."""

from __future__ import annotations

from collections.abc import Iterator

import luigi

from tasks.config import extractor
from tasks.config.settings import NO_INDEX, settings
from tasks.files import StoreScan, Verify, VirusScan
from tasks.line import OpenRoots
from tasks.step import StageStep
from warcmill import chain, layout
from warcmill.documents import extract, verify
from warcmill.errors import BadConfig
from warcmill.launches.view import LaunchView


class ExtractDocuments(StageStep):
    """Read the documents and pages in the stored WARCs of a stage, with all that they say of publications.

    Requires: Verify; VirusScan where `[viruses]` is on for the launch; `[warcmill] index`; resiliparse, pypdfium2.
    Output:   documents.extracted.{job}.{launch_id}.{stage}
    Changes:  adds extracts to the index root.
    Re-run:   safe; takes the extracts that are there, and makes those again that are missing or damaged.
    """

    task_namespace = "documents"

    def requires(self) -> list[luigi.Task]:
        if not settings().index:
            raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
        scan = chain.by_word(chain.ROWS)["viruses"]
        proofs = [Verify, VirusScan] if chain.is_wanted(scan, self.launch, settings().wanted()) else [Verify]
        return [proof(job=self.job, launch_id=self.launch_id, stage=self.stage) for proof in proofs]

    def work(self, line: OpenRoots) -> None:
        assert line.extracts is not None, "requires() has looked"
        making = extractor.making(line.settings, line.extracts)
        line.state.publish(self.key, extract.extract(line.state, making, line.extracts, self.launch, self.part))


class VerifyDocuments(StageStep):
    """Compare the extracts of a stage with its crawl logs: each line with the type of a document has its entry.

    Requires: ExtractDocuments of this stage, and of the launch's stages before.
    Output:   documents.verified.{job}.{launch_id}.{stage}
    Changes:  nothing.
    Re-run:   safe; the same logs and extracts give the same claim.
    """

    task_namespace = "documents"

    def requires(self) -> list[luigi.Task]:
        before = verify.earlier(settings().open_state(), self.launch, self.part)
        stages = [*map(str, before), self.stage]
        return [ExtractDocuments(job=self.job, launch_id=self.launch_id, stage=stage) for stage in stages]

    def work(self, line: OpenRoots) -> None:
        assert line.extracts is not None, "requires() of ExtractDocuments has looked"
        claim = verify.verify(line.state, line.store, line.extracts, self.launch, self.part)
        line.state.publish(self.key, claim)


class ScanForDocuments(StoreScan):
    """Look for publications in every verified stage of some days, where `[documents]` is on.

    Requires: VerifyDocuments of each stage that has its files.verified and no documents.verified.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Stages that are not verified are left to files.ScanForOutputFiles.
    """

    task_namespace = "documents"

    def missing(self, line: OpenRoots, view: LaunchView) -> Iterator[luigi.Task]:
        launch, row = view.launch, chain.by_word(chain.ROWS)["verify-documents"]
        if not chain.is_wanted(row, launch, line.wanted):
            return
        names = line.state.store.names(layout.state_folder(launch))
        stored, known = (layout.stages_with(names, str(task.task_family), launch) for task in (Verify, VerifyDocuments))
        for stage in sorted(stored - known):
            yield VerifyDocuments(job=launch.job, launch_id=launch.id, stage=stage)
