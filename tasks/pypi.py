"""The distributions of a package index that a job mirrors: their facts, and dumps of them. They read the store."""

from __future__ import annotations

from collections.abc import Iterator

import luigi

from tasks.config import pypi as section
from tasks.config import scale
from tasks.config.settings import NO_INDEX, settings
from tasks.files import StoreScan, Verify, VirusScan
from tasks.output import AssembleOutput, ProcessOutputs
from tasks.step import OpenRoots, StageStep, Step, open_line
from warcmill import chain, layout
from warcmill.errors import BadConfig
from warcmill.launches.view import LaunchView, parts
from warcmill.pypi import dump, process, verify_dump


class ProcessDistributions(StageStep):
    """Read the facts of every distribution in the stored WARCs of a stage, and the pages of projects.

    Requires: Verify; VirusScan where `[viruses]` is on for the launch; and `[warcmill] index`.
    Output:   pypi.processed.{job}.{launch_id}.{stage}
    Changes:  adds extracts to the index root.
    Re-run:   safe; takes the extracts that are there, and makes those again that are missing or damaged.
    """

    task_namespace = "pypi"

    def requires(self) -> list[luigi.Task]:
        if not settings().index:
            raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
        scan = chain.by_word(chain.ROWS)["viruses"]
        proofs = [Verify, VirusScan] if chain.is_wanted(scan, self.launch, settings().wanted()) else [Verify]
        return [proof(job=self.job, launch_id=self.launch_id, stage=self.stage) for proof in proofs]

    def work(self, line: OpenRoots) -> None:
        assert line.extracts is not None, "requires() has looked"
        making = scale.making(line.settings, line.extracts)
        line.state.publish(self.key, process.process(line.state, making, line.extracts, self.launch, self.part))


class DumpDistributionData(Step):
    """Dump the rows of a launch's window of serials, if it ended with nothing left to fetch.

    Requires: ProcessOutputs; then ProcessDistributions of each stage, and of the stages that it continues.
    Output:   pypi.dumped.{job}.{launch_id}
    Changes:  adds files to the store, below `dumps/{job}/v{generation}/data_dumps/`.
    Re-run:   safe; files that are there with the same rows stay as they are.
    """

    task_namespace = "pypi"

    def requires(self) -> list[luigi.Task]:
        state, processed = open_line().state, ProcessOutputs(job=self.job, launch_id=self.launch_id)
        if not processed.complete():
            return [processed]
        steps = [
            ProcessDistributions(job=one.job, launch_id=one.id, stage=str(stage))
            for one, stage in parts(state, self.launch)
        ]
        return [processed, *steps]

    def work(self, line: OpenRoots) -> None:
        assert line.extracts is not None, "ProcessDistributions has looked"
        claim = dump.dump(line.state, line.store, line.extracts, self.launch, section.concurrency())
        line.state.publish(self.key, claim)


class VerifyDump(Step):
    """Read a dump back from the store, and compare it with its counts and with the pages of its projects.

    Requires: DumpDistributionData.
    Output:   pypi.dump-verified.{job}.{launch_id}
    Changes:  nothing else.
    Re-run:   safe; the same files give the same claim.
    """

    task_namespace = "pypi"

    def requires(self) -> luigi.Task:
        return DumpDistributionData(job=self.job, launch_id=self.launch_id)

    def work(self, line: OpenRoots) -> None:
        line.state.publish(self.key, verify_dump.verify(line.state, line.store, self.launch))


class ScanForDistributions(StoreScan):
    """Process the distributions of every launch of some days, where `[pypi]` is on, and dump the ended ones.

    Requires: ProcessDistributions of each stage that has its files.verified, and VerifyDump of each launch that has its
              04 marker, and the files.verified of every stage.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Stages that are not verified are left to files.ScanForOutputFiles.
    """

    task_namespace = "pypi"

    def missing(self, line: OpenRoots, view: LaunchView) -> Iterator[luigi.Task]:
        launch, row = view.launch, chain.by_word(chain.ROWS)["dump"]
        if not chain.is_wanted(row, launch, line.wanted):
            return
        names = line.state.store.names(layout.state_folder(launch))
        assembled, verified, processed = (
            layout.stages_with(names, str(task.task_family), launch)
            for task in (AssembleOutput, Verify, ProcessDistributions)
        )
        for stage in sorted(verified - processed):
            yield ProcessDistributions(job=launch.job, launch_id=launch.id, stage=stage)
        is_whole = layout.marker_name(layout.step("process", launch)) in names and assembled == verified
        if is_whole and not line.state.holds(layout.step("verify-dump", launch)):
            yield VerifyDump(job=launch.job, launch_id=launch.id)
