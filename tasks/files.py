"""The steps from a frozen list of files to the store: read, copy, verify, read back and, where allowed, retire.

Makers of extracts listen while Checksum reads a WARC, as the switches of the configuration have it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import luigi
from luigi.task_register import Register

from tasks.config.chains import scanner
from tasks.config.settings import settings
from tasks.line import OpenRoots
from tasks.output import AssembleOutput
from tasks.step import LaunchScan, StageStep, ToRun
from tasks.summary import ScanEnding
from warcmill import chain
from warcmill.clients.notice import Trouble
from warcmill.errors import BadConfig, Unavailable
from warcmill.extracts.cdx import CdxHearer
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.formats import FormatsHearer
from warcmill.files import checksum, copy, read_back, retire, verify, virus_scan
from warcmill.files.checksum import Listen, nobody
from warcmill.files.transfer import stages_without
from warcmill.formats.warc.hearers import Hearer
from warcmill.launches.view import LaunchView
from warcmill.model import FileRef, Launch
from warcmill.output import stage_report

log = logging.getLogger(__name__)


class Checksum(StageStep):
    """Read every file of a stage once: SHA-512, HDFS checksum, and the gate for WARCs.

    Requires: AssembleOutput of this stage.
    Output:   files.checksums.{job}.{launch_id}.{stage}
    Changes:  the hashes in {job}.{launch_id}.{stage}.info.json and in .package.json, from this stage on. Where
              `[index]` is on, the index root gets the CDXJ lines of every WARC, made in the same pass; where
              `[package]` is on, the formats of its payloads.
    Re-run:   safe; reads only files that no attempt has settled, or that have changed since.
    """

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        return AssembleOutput(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: OpenRoots) -> None:
        size, listen = line.settings.hdfs_block_size, listen_for(line, self.launch)
        claim = checksum.checksum(line.state, line.roots_of(self.job), self.launch, self.part, size, listen)
        line.state.publish(self.key, claim)
        stage_report.rewrite(line.state, line.roots_of(self.job), self.launch, self.part)


class Copy(StageStep):
    """Copy every file of a stage into the store, bit for bit. Salvage the whole records of an `.open` WARC.

    Requires: Checksum.
    Output:   files.copied.{job}.{launch_id}.{stage}
    Changes:  adds files to the store, each whole or not at all; never replaces one. Writes the reports again.
    Re-run:   safe; a file that is stored already is read and compared.
    """

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        return Checksum(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: OpenRoots) -> None:
        # Checksum may have been killed after its marker, and two workers' reports may have crossed.
        stage_report.rewrite(line.state, line.roots_of(self.job), self.launch, self.part)
        line.state.publish(self.key, copy.copy(line.state, line.roots_of(self.job), line.store, self.launch, self.part))


class Verify(StageStep):
    """Compare length and digest of every stored file of a stage, as the store reports them.

    Requires: Copy.
    Output:   files.verified.{job}.{launch_id}.{stage}
    Changes:  nothing else; a difference is named, never repaired.
    Re-run:   safe.
    """

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        return Copy(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: OpenRoots) -> None:
        line.state.publish(self.key, verify.verify(line.state, line.store, self.launch, self.part))


class VirusScan(StageStep):
    """Scan the payloads of every stored WARC of a stage for viruses, by clamd.

    Requires: Verify; and `[viruses] clamd`.
    Output:   files.scanned.{job}.{launch_id}.{stage}
    Changes:  nothing else; a hit is listed, and nothing stored is moved.
    Re-run:   safe; reads only files that no attempt has settled with the same virus database.
    """

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        scanner()
        return Verify(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: OpenRoots) -> None:
        by = scanner()
        scan = virus_scan.scan(line.state, line.store, by.clamd, by.limits, self.launch, self.part)
        line.state.publish(self.key, scan.claim, tools=scan.tools)


class ReadBack(StageStep):
    """Read every stored file of a stage back from disk: SHA-512, and the gate for WARCs.

    Requires: Verify.
    Output:   files.read-back.{job}.{launch_id}.{stage}
    Changes:  nothing else.
    Re-run:   safe; reads only files that no attempt has settled.
    """

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        return Verify(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: OpenRoots) -> None:
        line.state.publish(self.key, read_back.read_back(line.state, line.store, self.launch, self.part))


class Retire(StageStep):
    """Remove from the output root those WARCs of a stage that are proven safe in the store.

    Requires: ReadBack; and `[files] retire=true`, which is off by default.
    Output:   files.retired.{job}.{launch_id}.{stage}
    Changes:  removes WARCs from the output root; never a refused one, never the logs.
    Re-run:   safe, also after a kill: the attempt's file lists what was removed.
    """

    task_namespace = "files"

    def requires(self) -> luigi.Task:
        if not settings().retire:
            why = "is off: set 'retire=true' to have WARCs removed from the output root once they are read back"
            raise BadConfig("[files] retire", why)
        return ReadBack(job=self.job, launch_id=self.launch_id, stage=self.stage)

    def work(self, line: OpenRoots) -> None:
        line.state.publish(
            self.key, retire.retire(line.state, line.roots_of(self.job), line.store, self.launch, self.part)
        )


class StoreScan(LaunchScan):
    """A scan whose steps need the store. It names an unreachable store and fails, even when it has nothing to run."""

    def find(self, line: OpenRoots, ending: ScanEnding) -> ToRun:
        listed = super().find(line, ending)
        try:
            _ = line.store
        except Unavailable as error:
            log.error("%s", error)
            listed.troubles.append(str(error))
            ending.unreadable.append(Trouble("", "unreadable", error.what, str(error)))
        return listed


class StageScan(LaunchScan):
    """A scan of the stages that have their 03 marker; a subclass sets `upto`, the step it brings them to."""

    upto: type[StageStep]

    def missing(self, line: OpenRoots, view: LaunchView) -> Iterator[luigi.Task]:
        return lacking(line, view.launch, self.upto)


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

    Requires: Verify of each stage that has its 03 marker. Where `[files] retire=true`: Retire instead,
              or ReadBack if the launch is behind a symbolic link. And every switched-on step of this scan.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Stages that are not assembled are left to output.ScanForOutputs.
    """

    task_namespace = "files"

    def missing(self, line: OpenRoots, view: LaunchView) -> Iterator[luigi.Task]:
        launch = view.launch
        allowed = {str(task.task_family) for task in _allowed(line, launch)}
        wanted = line.wanted
        ours = [row for row in chain.ROWS if row.scan == self.task_family]
        asked = tuple(row for row in ours if chain.is_wanted(row, launch, wanted) or row.task in allowed)
        for row in chain.ends(asked):
            yield from lacking(line, launch, Register.get_task_cls(row.task))


def _allowed(line: OpenRoots, launch: Launch) -> list[type[StageStep]]:
    """The steps that `[files] retire` allows. Nothing is retired through a symbolic link."""
    if not line.settings.retire:
        return []
    if line.settings.follow_links and line.roots_of(launch.job).is_linked(launch):
        log.warning("%s: is behind a symbolic link: its WARCs are read back, and not retired", launch)
        return [ReadBack]
    return [ReadBack, Retire]


def lacking(line: OpenRoots, launch: Launch, task: type[StageStep]) -> Iterator[luigi.Task]:
    """A step for each assembled stage of a launch that has no marker of it."""
    for stage in stages_without(line.state, launch, str(task.task_family)):
        yield task(job=launch.job, launch_id=launch.id, stage=str(stage))


def listen_for(line: OpenRoots, launch: Launch) -> Listen:
    """The hearers of a launch's WARCs: for an index its lines, not of viral WARCs; for packages the formats, of all.

    Nobody where nothing is switched on, or while the index root cannot be reached: the steps then read the store.
    """
    rows, wanted = chain.by_word(chain.ROWS), line.wanted
    has_index, has_packages = (chain.is_wanted(rows[word], launch, wanted) for word in ("cdx", "package"))
    extracts = _extracts(line, has_index, has_packages) if has_index or has_packages else None
    if extracts is None:
        return nobody
    roots = line.roots_of(launch.job)

    def makers(file: FileRef) -> Iterator[Hearer]:
        if has_index and roots.kind_of(file) != "viral":
            yield CdxHearer(extracts)
        if has_packages:
            yield FormatsHearer(extracts)

    return lambda file: tuple(makers(file))


def _extracts(line: OpenRoots, has_index: bool, has_packages: bool) -> Extracts | None:
    """The extracts, or None with a warning: without them nothing but indexes and packages has to wait."""
    try:
        return line.extracts
    except (Unavailable, BadConfig) as error:
        what = " and ".join(["indexed"] * has_index + ["packaged"] * has_packages)
        log.warning("%s; WARCs are read again from the store to be %s", error, what)
        return None
