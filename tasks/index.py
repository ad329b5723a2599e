"""The index: the CDXJ lines of every stored WARC, and the text of its documents."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import luigi
from luigi.task_register import Register

from tasks.config import index as _section  # noqa: F401 - Luigi learns the keys of [index]
from tasks.config import text
from tasks.config.settings import NO_INDEX, settings
from tasks.files import StoreScan, Verify, VirusScan, lacking
from tasks.params import LaunchesParameter
from tasks.step import OpenRoots, StageStep, ToRun, open_line
from tasks.summary import Ending
from warcmill import chain, layout
from warcmill.errors import BadConfig, Unsettled
from warcmill.files.transfer import stages_without
from warcmill.index import cdx, verify_cdx
from warcmill.index import text as texts
from warcmill.launches.extracts import Extracts
from warcmill.launches.recorded import with_markers
from warcmill.launches.text_workers import Workers
from warcmill.model import Launch
from warcmill.stores import LocalStore
from warcmill.stores.opening import open_folder
from warcmill.versions.cdx import Cdx
from warcmill.versions.dataset import DataSet
from warcmill.versions.fold import Folded, fold
from warcmill.versions.text import Text

log = logging.getLogger(__name__)
# Before the folds of the same scan, which run even where one of these steps has failed. Below 0 has no effect:
# Luigi raises that of a required task to the priority of the task that requires it.
FIRST = 1


class CdxIndex(StageStep):
    """Make sure that the CDXJ lines of every stored WARC of a stage are in the index, and count its captures.

    Requires: Verify; VirusScan where `[viruses]` is on for the launch; and `[warcmill] index`.
    Output:   index.cdx.{job}.{launch_id}.{stage}
    Changes:  adds extracts to the index root, those that files.Checksum has not left there.
    Re-run:   safe; takes the extracts that are there, and makes those again that are missing or damaged.
    """

    task_namespace = "index"
    priority = FIRST

    def requires(self) -> list[luigi.Task]:
        return _of_the_store(self)

    def work(self, line: OpenRoots) -> None:
        extracts: Extracts | None = line.extracts
        assert extracts is not None, "requires() has looked"
        line.state.publish(self.key, cdx.cdx(line.state, line.store, extracts, self.launch, self.part))


class VerifyCdx(StageStep):
    """Ask the published CDX for the captures of every WARC of a stage. Count revisits whose original is elsewhere.

    Requires: CdxIndex of this stage, and of the launch's stages before.
    Output:   index.cdx-verified.{job}.{launch_id}.{stage}
    Changes:  adds an extract of these revisits to the index root.
    Re-run:   safe; NotReady until a version lists the stage, which FoldCdx publishes.
    """

    task_namespace = "index"

    def requires(self) -> list[luigi.Task]:
        before = verify_cdx.earlier(settings().open_state(), self.launch, self.part)
        stages = [*map(str, before), self.stage]
        return [CdxIndex(job=self.job, launch_id=self.launch_id, stage=stage) for stage in stages]

    def work(self, line: OpenRoots) -> None:
        index = open_folder("index", line.settings.index)
        line.state.publish(self.key, verify_cdx.verify(line.state, index, self.launch, self.part))


class SolrIndex(StageStep):
    """Make sure that the text of every stored document of a stage is in the index, and count its documents.

    Requires: Verify; VirusScan where `[viruses]` is on for the launch; `[warcmill] index`; and the extra `text`.
    Output:   index.text.{job}.{launch_id}.{stage}
    Changes:  adds extracts to the index root.
    Re-run:   safe; takes the extracts that are there, and makes those again that are missing or damaged.
    """

    task_namespace = "index"
    priority = FIRST

    def requires(self) -> list[luigi.Task]:
        text.check_installed()
        return _of_the_store(self)

    def work(self, line: OpenRoots) -> None:
        extracts: Extracts | None = line.extracts
        assert extracts is not None, "requires() has looked"
        with Workers() as workers:
            claim = texts.text(line.state, line.store, extracts, workers, self.launch, self.part)
        line.state.publish(self.key, claim)


class FoldCdx(luigi.Task):
    """Publish all that is indexed and not in the current version of the CDX as one more version.

    Requires: nothing; it takes every launch that has its index.cdx, of any day. Then, of the launches of its days,
              VerifyCdx of each stage that has its index.cdx.
    Output:   none; a version is its list in the state, and its files in the index root.
    Changes:  adds a version, and moves the link to the current one; with nothing new it makes none. Makes extracts
              again that are missing or damaged.
    Re-run:   safe; ends what a killed fold began. Of two at once one wins; the other fails, or finds nothing to do.
    """

    task_namespace = "index"
    date_interval = luigi.DateIntervalParameter(description="the days to verify; the fold is of all days")
    only = LaunchesParameter(default="", description="verify only these launches: JOB/LAUNCH,JOB/LAUNCH")
    done = False

    def run(self) -> Iterator[list[luigi.Task]]:
        line = open_line()
        unverified = list(self._unverified(line))  # before the fold: with several workers, a stage may follow it
        folded = publish(line)
        yield unverified
        if folded.troubles:
            raise Unsettled(str(self.task_family), list(folded.troubles))
        self.done = True

    def _unverified(self, line: OpenRoots) -> Iterator[luigi.Task]:
        """VerifyCdx of each stage that is indexed and not verified."""
        row, wanted = chain.by_word(chain.ROWS)["verify-cdx"], line.settings.wanted()
        for launch in sorted(with_markers(line.state, self.date_interval.date_a, self.date_interval.date_b)):
            if chain.is_wanted(row, launch, wanted) and (not self.only or str(launch) in self.only.split(",")):
                for stage in stages_without(line.state, launch, str(VerifyCdx.task_family)):
                    if line.state.holds(layout.step("cdx", launch, stage)):
                        yield VerifyCdx(job=launch.job, launch_id=launch.id, stage=str(stage))

    def complete(self) -> bool:
        return self.done


class FoldText(luigi.Task):
    """Publish all text that is extracted and not in the current version of the text index as one more version.

    Requires: nothing; it takes every launch that has its index.text, of any day.
    Output:   none; a version is its list in the state, and its files in the index root.
    Changes:  adds a version, and moves the link to the current one; with nothing new it makes none. Makes extracts
              again that are missing or damaged.
    Re-run:   safe; as FoldCdx.
    """

    task_namespace = "index"
    date_interval = luigi.DateIntervalParameter(description="the days of its scan; the fold is of all days")
    done = False

    def run(self) -> None:
        text.check_installed()
        folded = publish_text(open_line())
        if folded.troubles:
            raise Unsettled(str(self.task_family), list(folded.troubles))
        self.done = True

    def complete(self) -> bool:
        return self.done


def publish(line: OpenRoots) -> Folded:
    """One fold of the CDX."""
    index = open_folder("index", line.settings.index)
    return _fold(line, index, Cdx(line.state, line.store, index))


def publish_text(line: OpenRoots) -> Folded:
    """One fold of the text index."""
    index = open_folder("index", line.settings.index)
    with Workers() as workers:
        return _fold(line, index, Text(line.state, line.store, index, workers))


def _fold(line: OpenRoots, index: LocalStore, data: DataSet) -> Folded:
    folded = fold(line.state, index, data, line.settings.store_uri("warcs"))
    for trouble in folded.troubles:
        log.error("%s: %s", data.name, trouble)
    log.info("%s: version %d %s", data.name, folded.number, "is new" if folded.new else "has all: no new version")
    return folded


class ScanForIndexing(StoreScan):
    """Index every assembled stage of some days, where `[index]` or `[text]` is on, and publish what is new.

    Requires: CdxIndex of each stage that has its 03 marker and no index.cdx-verified, and SolrIndex, where they are on;
              then FoldCdx, which goes on, and FoldText.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Stages that are not assembled are left to output.ScanForOutputs.
    """

    task_namespace = "index"

    def find(self, line: OpenRoots, ending: Ending) -> ToRun:
        listed = super().find(line, ending)
        wanted = line.settings.wanted()
        if "index" in wanted:
            firsts = (first for task in listed.tasks for first in _before_the_fold(task) if not first.complete())
            fold_ = FoldCdx(date_interval=self.date_interval, only=self.only)
            listed.tasks = [*{first.task_id: first for first in firsts}.values(), fold_]
        if text.SWITCH in wanted:
            listed.tasks.append(FoldText(date_interval=self.date_interval))
        return listed

    def missing(self, line: OpenRoots, launch: Launch) -> Iterator[luigi.Task]:
        wanted = line.settings.wanted()
        ours = (row for row in chain.ROWS if row.scan == self.task_family)
        for row in chain.ends(tuple(row for row in ours if chain.is_wanted(row, launch, wanted))):
            yield from lacking(line, launch, Register.get_task_cls(row.task))


def _before_the_fold(task: luigi.Task) -> list[luigi.Task]:
    """What has to be done before FoldCdx: it runs VerifyCdx itself."""
    return list(task.requires()) if isinstance(task, VerifyCdx) else [task]


def _of_the_store(step: StageStep) -> list[luigi.Task]:
    """What proves the stored WARCs of a stage; BadConfig on a line without an index."""
    if not settings().index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    wanted = settings().wanted()
    scan = chain.by_word(chain.ROWS)["viruses"]
    proofs = [Verify, VirusScan] if chain.is_wanted(scan, step.launch, wanted) else [Verify]
    return [proof(job=step.job, launch_id=step.launch_id, stage=step.stage) for proof in proofs]
