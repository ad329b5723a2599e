"""The reports on a crawl: what each stage brought, and what became of each seed. They read the store."""

from __future__ import annotations

from collections.abc import Iterator

import luigi

from tasks.files import StoreScan, Verify
from tasks.line import OpenRoots, open_line
from tasks.output import AssembleOutput, ProcessOutputs
from tasks.step import StageStep, Step
from warcmill import layout
from warcmill.launches.view import LaunchView, parts
from warcmill.reports import crawl, seeds


class GenerateCrawlLogReports(StageStep):
    """Count what a stage brought, from its stored logs.

    Requires: Verify.
    Output:   reports.crawl.{job}.{launch_id}.{stage}
    Changes:  nothing else.
    Re-run:   safe; the same logs give the same claim.
    """

    task_namespace = "reports"

    def requires(self) -> luigi.Task:
        return Verify(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: OpenRoots) -> None:
        line.state.publish(self.key, crawl.report(line.state, line.store, self.launch, self.part))


class ListDeadSeeds(Step):
    """List what became of each seed of an ended launch, from the stored logs of its stages.

    Requires: ProcessOutputs; then Verify of each stage, and of the stages before the checkpoint that it continues.
    Output:   reports.seeds.{job}.{launch_id}
    Changes:  nothing else.
    Re-run:   safe; the same logs give the same claim.
    """

    task_namespace = "reports"

    def requires(self) -> list[luigi.Task]:
        state, processed = open_line().state, ProcessOutputs(job=self.job, launch_id=self.launch_id)
        if not processed.complete():
            return [processed]
        stages = parts(state, self.launch)
        return [processed, *(Verify(job=one.job, launch_id=one.id, stage=str(stage)) for one, stage in stages)]

    def work(self, line: OpenRoots) -> None:
        line.state.publish(self.key, seeds.seeds(line.state, line.store, self.launch))


class ScanForReports(StoreScan):
    """Report on every launch of some days: what its stages brought, and what became of its seeds.

    Requires: GenerateCrawlLogReports of each stage that has its files.verified, and ListDeadSeeds of each launch that
              has its 04 marker, and the files.verified of every stage.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Stages that are not verified are left to files.ScanForOutputFiles.
    """

    task_namespace = "reports"

    def missing(self, line: OpenRoots, view: LaunchView) -> Iterator[luigi.Task]:
        launch = view.launch
        names = line.state.store.names(layout.state_folder(launch))
        assembled, verified, reported = (
            layout.stages_with(names, str(task.task_family), launch)
            for task in (AssembleOutput, Verify, GenerateCrawlLogReports)
        )
        for stage in sorted(verified - reported):
            yield GenerateCrawlLogReports(job=launch.job, launch_id=launch.id, stage=stage)
        # What the scan for files could not verify is not tried a second time.
        is_whole = layout.marker_name(layout.step("process", launch)) in names and assembled == verified
        if is_whole and not line.state.holds(layout.step(seeds.WORD, launch)):
            yield ListDeadSeeds(job=launch.job, launch_id=launch.id)
