"""The chain from an engine's output to a frozen list of files: stop, pack, assemble."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cached_property

import luigi

from tasks.settings import silent_after
from tasks.step import LaunchScan, Line, Listed, StageStep, Step, open_line
from tasks.summary import Ending
from warcmill import launches, layout, vitals
from warcmill.ending import ended, is_closed
from warcmill.launches import Listing
from warcmill.model import FINAL, Launch, Stage
from warcmill.notice import Trouble
from warcmill.steps import assemble, continued, pack_logs, process, stage_report, stopped

log = logging.getLogger(__name__)


class CheckJobStopped(Step):
    """Say that a launch has ended, and how that is known.

    Requires: nothing.
    Output:   01.jobs.{job}.{launch_id}.stopped
    Changes:  nothing else; reads job.log, and what StopJob or `warcmill close` left.
    Re-run:   safe; fails while the launch may still be running.
    """

    task_namespace = "output"

    def work(self, line: Line) -> None:
        line.state.publish(self.key, stopped.stopped(line.state, line.engines(self.job), self.launch))


class PackageLogs(StageStep):
    """Zip one stage's logs, and with the last stage the launch's own papers.

    Requires: CheckJobStopped, final stage only.
    Output:   02.logs.{job}.{launch_id}.{stage}.zip (the zip is the marker).
    Changes:  nothing else.
    Re-run:   safe; built in scratch, published whole or not at all.
    """

    task_namespace = "output"

    def requires(self) -> list[luigi.Task]:
        return [CheckJobStopped(job=self.job, launch_id=self.launch_id)] if self.part.is_final else []

    def work(self, line: Line) -> None:
        with line.state.scratch() as folder:
            claim, path = pack_logs.pack(line.state, line.engines(self.job), self.launch, self.part, folder)
            line.state.publish(self.key, claim, path)


class AssembleOutput(StageStep):
    """Freeze the list of a stage's files: what its crawl log names, found on disk.

    Requires: PackageLogs of this stage, AssembleOutput of the stage before: a resumed launch's first
              stage comes after the checkpoint that was resumed.
    Output:   03.outputs.{job}.{launch_id}.{stage}
    Changes:  {job}.{launch_id}.{stage}.info.json and .package.json, reports for people.
    Re-run:   safe; the same files give the same claim.
    """

    task_namespace = "output"

    def requires(self) -> list[luigi.Task]:
        line = open_line()
        before = assemble.stage_before(line.state, line.engines(self.job), self.launch, self.part)
        packed = PackageLogs(job=self.job, launch_id=self.launch_id, stage=self.stage)
        if before:
            return [packed, self.clone(stage=str(before))]
        resumed = continued.to_assemble(line.state, line.engines(self.job), self.launch)
        return [packed, *([self.clone(launch_id=resumed.launch.id, stage=str(resumed.checkpoint))] if resumed else [])]

    def work(self, line: Line) -> None:
        claim = assemble.assemble(line.state, line.engines(self.job), self.launch, self.part)
        stage_report.rewrite(line.state, line.engines(self.job), self.launch, claim)
        line.state.publish(self.key, claim)


class ProcessOutputs(Step):
    """Say that every stage of an ended launch is assembled: totals, and serials that are missing.

    Requires: AssembleOutput of the final stage.
    Output:   04.assembled.{job}.{launch_id}.complete
    Changes:  nothing else.
    Re-run:   safe.
    """

    task_namespace = "output"

    def requires(self) -> luigi.Task:
        return AssembleOutput(job=self.job, launch_id=self.launch_id, stage=str(FINAL))

    def work(self, line: Line) -> None:
        line.state.publish(self.key, process.process(line.state, line.engines(self.job), self.launch))


class ScanForOutputs(LaunchScan):
    """Bring every launch of some days up to date: the ended ones whole, the running ones to their newest checkpoint.

    Requires: ProcessOutputs of ended launches, AssembleOutput of the newest checkpoint of running ones.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Exits 0 while crawls run.
    """

    task_namespace = "output"

    @cached_property
    def silent(self) -> list[Trouble]:
        """The running launches that are silent, as they are found."""
        return []

    def find(self, line: Line, ending: Ending) -> Listed:
        listed = super().find(line, ending)
        ending.unreadable += self.silent
        return listed

    def missing(self, line: Line, launch: Launch) -> Iterable[luigi.Task]:
        done = line.state.holds(layout.step("process", launch))
        return [] if done else _unfinished(line, launch, self.silent)


def _unfinished(line: Line, launch: Launch, silent: list[Trouble]) -> Iterator[luigi.Task]:
    listing = launches.read(line.engines(launch.job), launch)  # one that cannot be read fails here, alone
    if ended(line.state, line.engines(launch.job), launch):
        yield ProcessOutputs(job=launch.job, launch_id=launch.id)
        return
    silent += _silence(line, launch, listing)
    newest = _newest_closed(line, launch, listing)
    if newest:
        task = AssembleOutput(job=launch.job, launch_id=launch.id, stage=str(newest))
        if not task.complete():
            yield task


def _silence(line: Line, launch: Launch, listing: Listing) -> Iterator[Trouble]:
    """A launch that runs, of which nothing was heard for long: somebody has to look, and to say so if it is dead."""
    most, now = silent_after(), datetime.now(UTC)
    signs = vitals.of(line.engines(launch.job), launch, listing)
    if most and signs.silence(now) > most:
        close = f"if its engine is gone: warcmill close {launch.job} {launch.id} --reason TEXT"
        log.warning("%s: silent: %s; %s", launch, signs.text(now), close)
        yield Trouble(str(launch), "silent", str(launch), f"{signs.text(now)}; {close}")


def _newest_closed(line: Line, launch: Launch, listing: Listing) -> Stage | None:
    checkpoints = [stage for stage in sorted(listing.logs) if not stage.is_final]
    closed = [one for one in checkpoints if is_closed(line.state, line.engines(launch.job), launch, one, listing)]
    return closed[-1] if closed else None
