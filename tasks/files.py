"""The chain from a frozen list of files to the store: read, copy, verify, read back, and, where allowed, retire."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import luigi
from luigi.task_register import Register

from tasks.output import AssembleOutput
from tasks.settings import settings
from tasks.step import LaunchScan, Line, Listed, StageStep
from tasks.summary import Ending
from warcmill import chain
from warcmill.errors import BadConfig, Unavailable
from warcmill.model import Launch
from warcmill.notice import Trouble
from warcmill.steps import checksum, copy, read_back, retire, stage_report, verify
from warcmill.steps.transfer import lacking

log = logging.getLogger(__name__)


class Checksum(StageStep):
    """Read every file of a stage once: SHA-512, HDFS checksum, and the gate for WARCs.

    Requires: AssembleOutput of this stage.
    Output:   files.checksums.{job}.{launch_id}.{stage}
    Changes:  the hashes in {job}.{launch_id}.{stage}.info.json and in .package.json from this stage on.
    Re-run:   safe; reads only files that no attempt has settled, or that have changed since.
    """

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        return AssembleOutput(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: Line) -> None:
        size = line.settings.hdfs_block_size
        claim = checksum.checksum(line.state, line.engines(self.job), self.launch, self.part, size)
        stage_report.rewrite(line.state, line.engines(self.job), self.launch, claim)
        line.state.publish(self.key, claim)
        # Again: a worker at another stage may have read the markers before ours was there, and written after us.
        stage_report.rewrite(line.state, line.engines(self.job), self.launch, claim)


class Copy(StageStep):
    """Copy every file of a stage into the store, bit for bit; salvage what is whole of an `.open` WARC.

    Requires: Checksum.
    Output:   files.copied.{job}.{launch_id}.{stage}
    Changes:  new files in the store, each whole or not at all; never one that is there.
    Re-run:   safe; a file that is there already is read and compared.
    """

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        return Checksum(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: Line) -> None:
        line.state.publish(self.key, copy.copy(line.state, line.engines(self.job), line.store, self.launch, self.part))


class Verify(StageStep):
    """Compare length and digest of every stored file of a stage, as the store tells them.

    Requires: Copy.
    Output:   files.verified.{job}.{launch_id}.{stage}
    Changes:  nothing else; what differs is named, never repaired.
    Re-run:   safe.
    """

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        return Copy(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: Line) -> None:
        line.state.publish(self.key, verify.verify(line.state, line.store, self.launch, self.part))


class ReadBack(StageStep):
    """Read every stored file of a stage from the disk itself: SHA-512, and the gate for WARCs.

    Requires: Verify.
    Output:   files.read-back.{job}.{launch_id}.{stage}
    Changes:  nothing else.
    Re-run:   safe; reads only what no attempt has settled.
    """

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        return Verify(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: Line) -> None:
        line.state.publish(self.key, read_back.read_back(line.state, line.store, self.launch, self.part))


class Retire(StageStep):
    """Remove a stage's WARCs from the output root: those, and only those, that are proven safe in the store.

    Requires: ReadBack; and `[files] retire=true`, which is off unless an operator sets it.
    Output:   files.retired.{job}.{launch_id}.{stage}
    Changes:  removes WARCs from the output root; never a refused one, never the logs.
    Re-run:   safe, also after a kill: what was removed is known from the attempt's own lines.
    """

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        if not settings().retire:
            why = "is off: set 'retire=true' to have WARCs removed from the output root once they are read back"
            raise BadConfig("[files] retire", why)
        return ReadBack(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: Line) -> None:
        line.state.publish(
            self.key, retire.retire(line.state, line.engines(self.job), line.store, self.launch, self.part)
        )


class StoreScan(LaunchScan):
    """A scan whose steps need the store: one that is away is named, and fails the scan even when nothing is to do."""

    def find(self, line: Line, ending: Ending) -> Listed:
        listed = super().find(line, ending)
        try:
            _ = line.store
        except Unavailable as error:
            log.error("%s", error)
            listed.troubles.append(str(error))
            ending.unreadable.append(Trouble("", "unreadable", error.what, str(error)))
        return listed


class StageScan(LaunchScan):
    """A scan of the stages of some days that have their 03 marker; a sub-class says how far it brings them."""

    upto: type[StageStep]

    def missing(self, line: Line, launch: Launch) -> Iterator[luigi.Task]:
        return _lacking(line, launch, self.upto)


class CalculateLocalChecksum(StageScan):
    """Checksum every assembled stage of some days.

    Requires: Checksum of each stage that has its 03 marker.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing.
    """

    task_namespace = "files"
    upto = Checksum


class CopyToHDFS(StageScan, StoreScan):
    """Copy every assembled stage of some days into the store, whatever kind of store it is.

    Requires: Copy of each stage that has its 03 marker.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing.
    """

    task_namespace = "files"
    upto = Copy


class VerifyOnHDFS(StageScan, StoreScan):
    """Verify every assembled stage of some days in the store.

    Requires: Verify of each stage that has its 03 marker.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing.
    """

    task_namespace = "files"
    upto = Verify


class ScanForOutputFiles(StoreScan):
    """Bring every assembled stage of some days all the way into the store.

    Requires: Verify of each stage that has its 03 marker; Retire instead, where `[files] retire=true`,
              or ReadBack, where the launch lies behind a symbolic link; and whatever else is due by this scan.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Stages that are not assembled are left to output.ScanForOutputs.
    """

    task_namespace = "files"

    def missing(self, line: Line, launch: Launch) -> Iterator[luigi.Task]:
        allowed = {str(one.task_family) for one in _allowed(line, launch)}
        wanted = line.settings.wanted()
        ours = [row for row in chain.ROWS if row.scan == self.task_family]
        asked = tuple(row for row in ours if chain.is_wanted(row, launch, wanted) or row.task in allowed)
        for row in chain.ends(asked):
            yield from _lacking(line, launch, Register.get_task_cls(row.task))


def _allowed(line: Line, launch: Launch) -> list[type[StageStep]]:
    """What is done only where `[files] retire` allows it: nothing is retired through a symbolic link."""
    if not line.settings.retire:
        return []
    if line.settings.follow_links and line.engines(launch.job).is_linked(launch):
        log.warning("%s: lies behind a symbolic link: its WARCs are read back, and not retired", launch)
        return [ReadBack]
    return [ReadBack, Retire]


def _lacking(line: Line, launch: Launch, task: type[StageStep]) -> Iterator[luigi.Task]:
    for stage in lacking(line.state, launch, str(task.task_family)):
        yield task(job=launch.job, launch_id=launch.id, stage=str(stage))
