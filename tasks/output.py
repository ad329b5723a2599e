"""The steps from an engine's output to a frozen list of files: stop, pack, assemble."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property

import luigi

from tasks.config.settings import silent_after
from tasks.line import OpenRoots, open_line
from tasks.step import LaunchScan, StageStep, Step, ToRun
from tasks.summary import ScanEnding
from warcmill.clients.notice import Trouble
from warcmill.launches.view import LaunchView
from warcmill.model import FINAL
from warcmill.output import assemble, gather, pack_logs, process, stage_report, stop

log = logging.getLogger(__name__)


class CheckJobStopped(Step):
    """Record that a launch has ended, and how that is known.

    Requires: nothing.
    Output:   01.jobs.{job}.{launch_id}.stopped
    Changes:  nothing else; reads job.log, and the markers of StopJob and `warcmill close`.
    Re-run:   safe; fails while the launch may still be running.
    """

    task_namespace = "output"

    def work(self, line: OpenRoots) -> None:
        line.state.publish(self.key, stop.stopped(line.state, line.roots_of(self.job), self.launch))


class PackageLogs(StageStep):
    """Zip one stage's logs and, with the last stage, the launch's reports and job files.

    Requires: CheckJobStopped, final stage only.
    Output:   02.logs.{job}.{launch_id}.{stage}.zip (the zip is the marker).
    Changes:  nothing else.
    Re-run:   safe; built in scratch, published whole or not at all.
    """

    task_namespace = "output"

    def requires(self) -> list[luigi.Task]:
        return [CheckJobStopped(job=self.job, launch_id=self.launch_id)] if self.part.is_final else []

    def work(self, line: OpenRoots) -> None:
        with line.state.scratch() as folder:
            claim, path = pack_logs.pack(line.state, line.roots_of(self.job), self.launch, self.part, folder)
            line.state.publish(self.key, claim, path)


class AssembleOutput(StageStep):
    """Freeze the list of a stage's files: the WARCs that its crawl log names, found on disk.

    Requires: PackageLogs of this stage, and AssembleOutput of the stage before. The first stage of a resumed
              launch comes after the checkpoint that it resumed.
    Output:   03.outputs.{job}.{launch_id}.{stage}
    Changes:  {job}.{launch_id}.{stage}.info.json and .package.json, reports for people.
    Re-run:   safe; the same files give the same claim.
    """

    task_namespace = "output"

    def requires(self) -> list[luigi.Task]:
        line = open_line()
        before = gather.stage_before(line.state, line.roots_of(self.job), self.launch, self.part)
        packed = PackageLogs(job=self.job, launch_id=self.launch_id, stage=self.stage)
        if before:
            return [packed, self.clone(stage=str(before))]
        resumed = line.view(self.launch).resumed_stage
        return [packed, *([self.clone(launch_id=resumed.launch.id, stage=str(resumed.checkpoint))] if resumed else [])]

    def work(self, line: OpenRoots) -> None:
        claim = assemble.assemble(line.state, line.roots_of(self.job), self.launch, self.part)
        line.state.publish(self.key, claim)
        stage_report.rewrite(line.state, line.roots_of(self.job), self.launch, self.part)


class ProcessOutputs(Step):
    """Record that every stage of an ended launch is assembled: totals, and missing serials.

    Requires: AssembleOutput of the final stage.
    Output:   04.assembled.{job}.{launch_id}.complete
    Changes:  nothing else.
    Re-run:   safe.
    """

    task_namespace = "output"

    def requires(self) -> luigi.Task:
        return AssembleOutput(job=self.job, launch_id=self.launch_id, stage=str(FINAL))

    def work(self, line: OpenRoots) -> None:
        line.state.publish(self.key, process.process(line.state, line.roots_of(self.job), self.launch))


class ScanForOutputs(LaunchScan):
    """Bring every launch of some days up to date: ended ones completely, running ones to their newest checkpoint.

    Requires: ProcessOutputs of ended launches, AssembleOutput of the newest checkpoint of running ones.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Exits 0 while crawls run.
    """

    task_namespace = "output"

    @cached_property
    def silent(self) -> list[Trouble]:
        """The running launches whose engine has been silent for too long."""
        return []

    def find(self, line: OpenRoots, ending: ScanEnding) -> ToRun:
        listed = super().find(line, ending)
        ending.unreadable += self.silent
        return listed

    def missing(self, _: OpenRoots, view: LaunchView) -> Iterator[luigi.Task]:
        if view.is_processed:
            return
        job, launch_id = view.launch.job, view.launch.id
        checkpoints = [stage for stage in sorted(view.listing.logs) if not stage.is_final]  # else only it fails
        if view.ended:
            yield ProcessOutputs(job=job, launch_id=launch_id)
            return
        self.silent += [] if view.roots.is_imported else _silence(view)
        sealed = [stage for stage in checkpoints if view.is_sealed(stage)]
        if sealed and not view.is_done("assemble", sealed[-1]):
            yield AssembleOutput(job=job, launch_id=launch_id, stage=str(sealed[-1]))


def _silence(view: LaunchView) -> Iterator[Trouble]:
    """Report a running launch whose engine is silent for too long: an operator has to look, and close it if dead."""
    most, now = silent_after(), datetime.now(UTC)
    signs = view.vitals
    if most and signs.silence(now) > most:
        end = f"if its engine is gone: {view.way_to_end}"
        log.warning("%s: silent: %s; %s", view.launch, signs.text(now), end)
        yield Trouble(str(view.launch), "silent", str(view.launch), f"{signs.text(now)}; {end}")
