"""The distributions of a package index that a job mirrors: their facts, and dumps of them. They read the store."""

from __future__ import annotations

from collections.abc import Iterator

import luigi

from tasks import logs
from tasks.config import extractor
from tasks.config import pypi as section
from tasks.config.settings import NO_INDEX, check_hardened, settings
from tasks.files import StoreScan, Verify, VirusScan
from tasks.line import OpenRoots, open_line
from tasks.output import AssembleOutput, ProcessOutputs
from tasks.params import JobParameter, NumberParameter
from tasks.step import StageStep, Step, ToRun
from tasks.summary import ScanEnding
from warcmill import chain, layout
from warcmill.errors import BadConfig, NotReady, Unsettled
from warcmill.launches import full_dumps
from warcmill.launches.full_dumps import FullDump
from warcmill.launches.view import LaunchView, parts
from warcmill.markers import locks
from warcmill.model import Key
from warcmill.pypi import dump, dumps, full_dump, process, update_leveldb, verify_dump
from warcmill.pypi.update_leveldb import UpdateRoots
from warcmill.stores.opening import open_folder
from warcmill.versions import leveldb


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
        making = extractor.making(line.settings, line.extracts)
        line.state.publish(self.key, process.process(line.state, making, line.extracts, self.launch, self.part))


class DumpDistributionData(Step):
    """Dump the rows of a launch's window of serials, if it ended with nothing left to fetch.

    Requires: ProcessOutputs; then ProcessDistributions of each stage, and of the stages that it continues; and
              DumpFull, if one was decided of the whole dump that it follows.
    Output:   pypi.dumped.{job}.{launch_id}
    Changes:  adds files to the store, below `dumps/{job}/v{generation}/data_dumps/`; adds extracts to the index root
              where that has lost them.
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
        full = dumps.followed(state, self.launch)
        return [processed, *steps, *([DumpFull.of(full)] if full else [])]

    def work(self, line: OpenRoots) -> None:
        assert line.extracts is not None, "ProcessDistributions has looked"
        making = extractor.making(line.settings, line.extracts)
        claim = dump.dump(line.state, line.store, making, line.extracts, self.launch, section.concurrency())
        with locks.alone(line.state, dumps.lock(self.job)):
            dumps.refuse_outdated(line.state, self.launch, claim)
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


class DumpFull(Step):
    """Dump all that the launches of a package index have found, up to one of them, as a generation of its own.

    Requires: DumpDistributionData, and ProcessDistributions of each stage of the launches since the full crawl; and the
              decision that `warcmill pypi dump_full` makes, of the newest whole dump.
    Output:   pypi.full.{job}.{launch_id}.{number}
    Changes:  adds files to the store, below `dumps/{job}/v{generation}/data_dumps/`, and reads them back; adds extracts
              to the index root, where the rules of reading files have changed.
    Re-run:   safe; files that are there with the same rows stay as they are.
    """

    task_namespace = "pypi"

    number = NumberParameter(description="the generation, as decided")

    @classmethod
    def of(cls, full: FullDump) -> DumpFull:
        """The step of a full dump that was decided."""
        return cls(job=full.launch.job, launch_id=full.launch.id, number=full.generation)

    @property
    def full(self) -> FullDump:
        return FullDump(self.launch, self.number)

    @property
    def key(self) -> Key:
        return self.full.key

    def requires(self) -> list[luigi.Task]:
        state, dumped = open_line().state, DumpDistributionData(job=self.job, launch_id=self.launch_id)
        if not dumped.complete():
            return [dumped]
        launches = (layout.launch_of(marker.claim.key) for marker in full_dump.chain(state, self.launch))
        steps = [
            ProcessDistributions(job=one.job, launch_id=one.id, stage=str(stage))
            for one, stage in dict.fromkeys(part for launch in launches for part in parts(state, launch))
        ]
        return [dumped, *steps]

    def work(self, line: OpenRoots) -> None:
        if self.full not in full_dumps.all_decided(line.state, self.job):
            raise NotReady(
                layout.marker_path(self.key), f"nobody decided on it; run: warcmill pypi dump_full {self.job}"
            )
        assert line.extracts is not None, "ProcessDistributions has looked"
        making = extractor.making(line.settings, line.extracts)
        claim = full_dump.dump_full(line.state, line.store, making, line.extracts, self.full, section.concurrency())
        line.state.publish(self.key, claim)


class UpdateLevelDb(luigi.Task):
    """Publish all that is dumped and in no version of the data sets of a package index as one more version of each.

    Requires: VerifyDump and DumpFull of the launches that its scan dumps. It takes every whole dump of the job that was
              read back.
    Output:   none; a version is its list in the state, its LevelDB in the index root, and a copy in the store.
    Changes:  adds versions, and moves the links to the current ones; with nothing new it makes none. Adds files to the
              store, below `dumps/{job}/v{generation}/`: a database, and last the list of its dumps.
    Re-run:   safe; ends what a killed update began. Of two at once one wins; the other fails, or finds nothing to do.
    """

    task_namespace = "pypi"
    job = JobParameter(description="the crawl's name")
    dumps: tuple[luigi.Task, ...] = ()  # of the scan that asks for this
    done = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        check_hardened()
        logs.configure()
        super().__init__(*args, **kwargs)

    def requires(self) -> list[luigi.Task]:
        if not settings().index:
            raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
        leveldb.check_installed()
        return list(self.dumps)

    def run(self) -> None:
        line = open_line()
        index, place = open_folder("index", line.settings.index), line.settings.store_uri("dumps")
        roots = UpdateRoots(line.state, lambda: line.store, index, place)
        folded = update_leveldb.update(roots, self.job, update_leveldb.verified_dumps(line.state, self.job))
        if troubles := [trouble for one in folded for trouble in one.troubles]:
            raise Unsettled(str(self.task_family), troubles)
        self.done = True

    def complete(self) -> bool:
        return self.done


class ScanForDistributions(StoreScan):
    """Process the distributions of every launch of some days, where `[pypi]` is on; dump the ended ones, and publish.

    Requires: ProcessDistributions of each stage that has its files.verified, and VerifyDump of each launch that has its
              04 marker, and the files.verified of every stage; DumpFull that was decided of one; then UpdateLevelDb.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Stages that are not verified are left to files.ScanForOutputFiles.
    """

    task_namespace = "pypi"

    def find(self, line: OpenRoots, ending: ScanEnding) -> ToRun:
        listed = super().find(line, ending)
        for job in section.jobs():
            update = UpdateLevelDb(job=job)
            made = (task for task in listed.tasks if isinstance(task, VerifyDump | DumpFull))
            update.dumps = tuple(task for task in made if task.job == job)
            listed.tasks.append(update)
        return listed

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
        full = full_dumps.decided(line.state, launch)
        if full and not line.state.holds(full.key):
            yield DumpFull.of(full)
