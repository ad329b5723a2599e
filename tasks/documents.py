"""The publications that curators look for, from stored WARCs."""

from __future__ import annotations

from collections.abc import Iterator

import luigi

from tasks import desk
from tasks.config import chains, extractor
from tasks.config.settings import NO_INDEX, settings
from tasks.files import StoreScan, Verify, VirusScan
from tasks.index import FIRST, FOLD, fold_data
from tasks.line import OpenRoots, open_line
from tasks.sinks import bring_documents
from tasks.step import StageStep, ToRun
from tasks.summary import ScanEnding
from warcmill import chain, layout
from warcmill.documents import extract, verify
from warcmill.errors import BadConfig, Unsettled
from warcmill.extracts.extracts import Extracts
from warcmill.launches.view import LaunchView
from warcmill.stores.opening import open_folder
from warcmill.versions.documents.dataset import Documents


class ExtractDocuments(StageStep):
    """Read the documents and pages in the stored WARCs of a stage, with all that they say of publications.

    Requires: Verify; VirusScan where `[viruses]` is on for the launch; `[warcmill] index`; resiliparse, pypdfium2.
    Output:   documents.extracted.{job}.{launch_id}.{stage}
    Changes:  adds extracts to the index root.
    Re-run:   safe; takes the extracts that are there, and makes those again that are missing or damaged.
    """

    task_namespace = "documents"
    priority = FIRST

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
    priority = FIRST

    def requires(self) -> list[luigi.Task]:
        before = verify.earlier(settings().open_state(), self.launch, self.part)
        stages = [*map(str, before), self.stage]
        return [ExtractDocuments(job=self.job, launch_id=self.launch_id, stage=stage) for stage in stages]

    def work(self, line: OpenRoots) -> None:
        assert line.extracts is not None, "requires() of ExtractDocuments has looked"
        claim = verify.verify(line.state, line.store, line.extracts, self.launch, self.part)
        line.state.publish(self.key, claim)


class UpdateDocuments(luigi.Task):
    """Publish all documents that are extracted and not in the current version of their list as one more version.

    Requires: nothing; it takes every launch that has its documents.extracted, of any day.
    Output:   none; a version is its list in the state, and its files in the index root.
    Changes:  adds a version, and moves the link to the current one; with nothing new it makes none. Makes extracts
              again that are missing or damaged. Brings the desk up to date, and then `[documents]` solr and w3act.
    Re-run:   safe; ends what a killed fold began. Of two at once one wins; the other fails, or finds nothing to do.
    """

    task_namespace = "documents"
    priority = FOLD
    date_interval = luigi.DateIntervalParameter(description="the days of its scan; it takes all days")
    done = False

    def run(self) -> None:
        chains.check_readers_installed(chains.DOCUMENTS)
        line = open_line()
        index = open_folder("index", line.settings.index)
        data = Documents(line.state, extractor.making(line.settings, Extracts(index)), index)
        troubles = fold_data(line, index, data).troubles
        with desk.opened(line) as found:  # up to date: with the version, the watched targets and the decisions
            troubles = (*troubles, *bring_documents(index, found))
        if troubles:
            raise Unsettled(str(self.task_family), list(troubles))
        self.done = True

    def complete(self) -> bool:
        return self.done


class ScanForDocuments(StoreScan):
    """Look for publications in every verified stage of some days, where `[documents]` is on, and publish their list.

    Requires: VerifyDocuments of each stage that has its files.verified and no documents.verified; then UpdateDocuments.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Stages that are not verified are left to files.ScanForOutputFiles.
    """

    task_namespace = "documents"

    def find(self, line: OpenRoots, ending: ScanEnding) -> ToRun:
        listed = super().find(line, ending)
        if chains.DOCUMENTS in line.wanted:
            listed.tasks.append(UpdateDocuments(date_interval=self.date_interval))
        return listed

    def missing(self, line: OpenRoots, view: LaunchView) -> Iterator[luigi.Task]:
        launch, row = view.launch, chain.by_word(chain.ROWS)["verify-documents"]
        if not chain.is_wanted(row, launch, line.wanted):
            return
        names = line.state.store.names(layout.state_folder(launch))
        stored, known = (layout.stages_with(names, str(task.task_family), launch) for task in (Verify, VerifyDocuments))
        for stage in sorted(stored - known):
            yield VerifyDocuments(job=launch.job, launch_id=launch.id, stage=stage)
