"""The index: the CDXJ lines of every stored WARC, and the text of its documents."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache

import luigi
from luigi.task_register import Register

from tasks import logs, sinks  # with it, Luigi learns the keys of [index]
from tasks.config import chains, extractor
from tasks.config.settings import NO_INDEX, check_hardened, settings
from tasks.files import StoreScan, Verify, VirusScan, lacking
from tasks.line import OpenRoots, open_line
from tasks.params import JobParameter, LaunchesParameter, LaunchParameter
from tasks.step import StageStep, ToRun
from tasks.summary import ScanEnding
from warcmill import chain, layout
from warcmill.errors import BadConfig, Unavailable, Unsettled
from warcmill.extracts.extracts import Extracts
from warcmill.files.transfer import stages_without
from warcmill.index import cdx, sink_solr, verify_cdx, verify_text
from warcmill.index import columns as column_rows
from warcmill.index import text as texts
from warcmill.index.sink_cdx import follow
from warcmill.index.sink_solr import SolrTarget
from warcmill.launches.discovery import Whole, with_markers
from warcmill.launches.view import LaunchView
from warcmill.model import Launch
from warcmill.stores import LocalStore
from warcmill.stores.opening import open_folder
from warcmill.versions.cdx import Cdx
from warcmill.versions.dataset import DataSet
from warcmill.versions.fold import Folded, fold
from warcmill.versions.text import Text

log = logging.getLogger(__name__)
# In a scan, the steps run before the folds, and these before MakeColumns, also where one has failed. Below 0 has no
# effect: Luigi raises the priority of a required task to that of the task that requires it.
FIRST, FOLD = 2, 1


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
        making = extractor.making(line.settings, extracts)
        line.state.publish(self.key, cdx.cdx(line.state, making, extracts, self.launch, self.part))


class VerifyCdx(StageStep):
    """Ask the published CDX for the captures of every WARC of a stage. Count revisits whose original is elsewhere.

    `[index] cdx_server` is asked, too; the run in the marker names it, the claim does not.

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
        with sinks.of_cdx(line, index) as asked:
            claim = verify_cdx.verify(line.state, index, self.launch, self.part, asked)
        line.state.publish(self.key, claim, tools={sink.name: sink.place for sink in asked})


class SolrIndex(StageStep):
    """Make sure that the text of every stored document of a stage is in the index, and count its documents.

    Requires: Verify; VirusScan where `[viruses]` is on for the launch; `[warcmill] index`; resiliparse, pypdfium2.
    Output:   index.text.{job}.{launch_id}.{stage}
    Changes:  adds extracts to the index root.
    Re-run:   safe; takes the extracts that are there, and makes those again that are missing or damaged.
    """

    task_namespace = "index"
    priority = FIRST

    def requires(self) -> list[luigi.Task]:
        chains.check_text_installed()
        return _of_the_store(self)

    def work(self, line: OpenRoots) -> None:
        extracts: Extracts | None = line.extracts
        assert extracts is not None, "requires() has looked"
        making = extractor.making(line.settings, extracts)
        line.state.publish(self.key, texts.text(line.state, making, extracts, self.launch, self.part))


class VerifySolr(StageStep):
    """Ask the published text for the documents of every WARC of a stage: the current version, and Solr where it is set.

    Requires: SolrIndex of this stage.
    Output:   index.text-verified.{job}.{launch_id}.{stage}
    Changes:  nothing.
    Re-run:   safe; NotReady until a version lists the stage and Solr has it, which FoldText sees to.
    """

    task_namespace = "index"

    def requires(self) -> list[luigi.Task]:
        return [SolrIndex(job=self.job, launch_id=self.launch_id, stage=self.stage)]

    def work(self, line: OpenRoots) -> None:
        index, place = open_folder("index", line.settings.index), chains.solr()
        claim = verify_text.verify(line.state, index, place, self.launch, self.part)
        line.state.publish(self.key, claim, tools={"solr": place.name} if place else {})


class Columns(StageStep):
    """Write the captures of a stage as one Parquet file, and count its rows.

    Requires: CdxIndex, and SolrIndex where `[text]` is on for the launch; `[warcmill] index`; and the extra `columns`.
    Output:   index.columns.{job}.{launch_id}.{stage}
    Changes:  writes the file into the index root.
    Re-run:   safe; replaces the file if it has other bytes.
    """

    task_namespace = "index"
    priority = FIRST

    def requires(self) -> list[luigi.Task]:
        chains.check_columns_installed()
        wanted, step = settings().wanted(), {"job": self.job, "launch_id": self.launch_id, "stage": self.stage}
        with_text = chain.is_wanted(chain.by_word(chain.ROWS)["text"], self.launch, wanted)
        return [CdxIndex(**step), *([SolrIndex(**step)] if with_text else ())]

    def work(self, line: OpenRoots) -> None:
        index = open_folder("index", line.settings.index)
        line.state.publish(self.key, column_rows.columns(line.state, line.store, index, self.launch, self.part))


class FoldCdx(luigi.Task):
    """Publish all that is indexed and not in the current version of the CDX as one more version.

    Requires: nothing; it takes every launch that has its index.cdx, of any day. Then, of the launches of its days,
              VerifyCdx of each stage that has its index.cdx.
    Output:   none; a version is its list in the state, and its files in the index root.
    Changes:  adds a version, and moves the link to the current one; with nothing new it makes none. Makes extracts
              again that are missing or damaged. Then posts to `[index] cdx_server` what it has not acknowledged, and
              deletes there what the version no longer has.
    Re-run:   safe; ends what a killed fold began. Of two at once one wins; the other fails, or finds nothing to do.
    """

    task_namespace = "index"
    priority = FOLD
    date_interval = luigi.DateIntervalParameter(description="the days to verify; the fold is of all days")
    only = LaunchesParameter(default="", description="verify only these launches: JOB/LAUNCH,JOB/LAUNCH")
    whole = frozenset[Launch]()  # which the scan that asks for this has just found to lack nothing
    done = False

    def run(self) -> Iterator[list[luigi.Task]]:
        line = open_line()
        # Before the fold: with several workers, a stage may follow it.
        unverified: list[luigi.Task] = [*_unverified(self, line, VerifyCdx, "cdx")]
        troubles = [*publish(line).troubles, *sinks.bring_cdx(line, open_folder("index", line.settings.index))]
        yield unverified
        if troubles:
            raise Unsettled(str(self.task_family), troubles)
        self.done = True

    def complete(self) -> bool:
        return self.done


class FollowCrawl(luigi.Task):
    """Post what a running launch has crawled since the last time to the CDX server, as provisional captures.

    Requires: nothing; the crawl logs of a launch that is not indexed yet.
    Output:   none; up to where they were read is in the index root, below `follow/`.
    Changes:  adds captures at `[index] cdx_server`. FoldCdx deletes them once the launch is indexed.
    Re-run:   safe; posts what is new, and again what was lost in the index root.
    """

    task_namespace = "index"
    job = JobParameter(description="the crawl's name")
    launch_id = LaunchParameter(description="14 digits, such as 20161019234428")
    done = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        check_hardened()
        logs.configure()
        super().__init__(*args, **kwargs)

    def run(self) -> None:
        line, launch = open_line(), Launch.parse(self.job, self.launch_id)
        index = open_folder("index", line.settings.index)
        with sinks.of_cdx(line, index) as servers:
            for server in servers:
                sent = follow(line.state, index, line.roots_of(launch.job), server, launch)
                log.info("%s: %d provisional captures of %s", server.place, sent, launch)
        self.done = True

    def requires(self) -> list[luigi.Task]:
        sinks.check_configured()
        return []

    def complete(self) -> bool:
        return self.done


class FoldText(luigi.Task):
    """Publish all text that is extracted and not in the current version of the text index as one more version.

    Requires: nothing; it takes every launch that has its index.text, of any day. Then, of the launches of its days,
              VerifySolr of each stage that is published.
    Output:   none; a version is its list in the state, and its files in the index root.
    Changes:  adds a version, and moves the link to the current one; with nothing new it makes none. Makes extracts
              again that are missing or damaged. Posts to Solr, where it is set, what that has not acknowledged, and
              deletes there what the version does not show.
    Re-run:   safe; as FoldCdx. Posts again what Solr has not acknowledged.
    """

    task_namespace = "index"
    priority = FOLD
    date_interval = luigi.DateIntervalParameter(description="the days to verify; the fold is of all days")
    only = LaunchesParameter(default="", description="verify only these launches: JOB/LAUNCH,JOB/LAUNCH")
    whole = frozenset[Launch]()  # which the scan that asks for this has just found to lack nothing
    done = False

    def run(self) -> Iterator[Sequence[luigi.Task]]:
        chains.check_text_installed()
        line, place = open_line(), chains.solr()
        index = open_folder("index", line.settings.index)
        folded = publish_text(line)
        unposted = sink_solr.post(line.state, index, place) if place else ()
        for trouble in unposted:
            log.error("text: %s", trouble)
        yield [*self._ready(line, index, place)]
        if troubles := [*folded.troubles, *unposted]:
            raise Unsettled(str(self.task_family), troubles)
        self.done = True

    def _ready(self, line: OpenRoots, index: LocalStore, place: SolrTarget | None) -> Iterator[StageStep]:
        """VerifySolr of each stage that is published and posted."""
        for step in _unverified(self, line, VerifySolr, "text"):
            if verify_text.is_ready(line.state, index, place, step.launch, step.part):
                yield step

    def complete(self) -> bool:
        return self.done


class MakeColumns(luigi.Task):
    """Write the Parquet files again that an index.columns stands for and that are not in the index root.

    Requires: nothing; a scan runs it after FoldText, which makes extracts of text again.
    Output:   none.
    Changes:  writes these files.
    Re-run:   safe; writes only what is missing.
    """

    task_namespace = "index"
    date_interval = luigi.DateIntervalParameter(description="the days of its scan; it looks at all days")
    done = False

    def run(self) -> None:
        line = open_line()
        index = open_folder("index", line.settings.index)
        if troubles := list(column_rows.make_missing(line.state, line.store, index)):
            raise Unsettled(str(self.task_family), troubles)
        self.done = True

    def complete(self) -> bool:
        return self.done


def _unverified(fold_: FoldCdx | FoldText, line: OpenRoots, verify: type[StageStep], word: str) -> Iterator[StageStep]:
    """The step that verifies, of each stage of its days that is indexed and not verified."""
    row, wanted = chain.by_task(chain.ROWS)[str(verify.task_family)], line.wanted
    recorded = with_markers(line.state, fold_.date_interval.date_a, fold_.date_interval.date_b)
    for launch in sorted(launch for launch in recorded if launch not in fold_.whole):
        if chain.is_wanted(row, launch, wanted) and (not fold_.only or str(launch) in fold_.only.split(",")):
            for stage in stages_without(line.state, launch, row.task):
                if line.state.holds(layout.step(word, launch, stage)):
                    yield verify(job=launch.job, launch_id=launch.id, stage=str(stage))


def publish(line: OpenRoots) -> Folded:
    """One fold of the CDX."""
    index = open_folder("index", line.settings.index)
    return fold_data(line, index, Cdx(line.state, extractor.making(line.settings, Extracts(index)), index))


def publish_text(line: OpenRoots) -> Folded:
    """One fold of the text index."""
    index = open_folder("index", line.settings.index)
    return fold_data(line, index, Text(line.state, extractor.making(line.settings, Extracts(index)), index))


def fold_data(line: OpenRoots, index: LocalStore, data: DataSet) -> Folded:
    """One fold of a data set; its troubles are logged."""
    folded = fold(line.state, lambda: line.store, index, data, line.settings.store_uri("warcs"))
    for trouble in folded.troubles:
        log.error("%s: %s", data.name, trouble)
    log.info("%s: version %d %s", data.name, folded.number, "is new" if folded.new else "has all: no new version")
    return folded


class ScanForIndexing(StoreScan):
    """Index every assembled stage of some days, where `[index]` or `[text]` is on, and publish what is new.

    Requires: CdxIndex of each stage that has its 03 marker and no index.cdx-verified, and SolrIndex of each that has no
              index.text-verified, where they are on; then FoldCdx and FoldText, which ask for the rest.
    Output:   none.
    Changes:  nothing itself.
    Re-run:   safe; does only what is missing. Stages that are not assembled are left to output.ScanForOutputs.
    """

    task_namespace = "index"
    _looked: Whole | None = None  # 'plan' asks for what is missing without it

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._whole = set[Launch]()
        self._due: dict[tuple[str, str], tuple[tuple[type[StageStep], ...], str]] = {}

    def find(self, line: OpenRoots, ending: ScanEnding) -> ToRun:
        with suppress(Unavailable):  # the folds, and every step, name an index root out of reach
            self._looked = Whole(line.state, open_folder("index", line.settings.index), str(self.task_family))
        listed = super().find(line, ending)
        if self._looked:
            self._looked.keep()
        wanted = line.wanted
        firsts = (first for task in listed.tasks for first in _before_the_fold(task) if not first.complete())
        listed.tasks = [*{first.task_id: first for first in firsts}.values()]
        if "index" in wanted:
            listed.tasks.append(self._fold(FoldCdx))
        if chains.TEXT in wanted:
            listed.tasks.append(self._fold(FoldText))
        if chains.COLUMNS in wanted:
            listed.tasks.append(MakeColumns(date_interval=self.date_interval))
        return listed

    def _fold(self, task: type[FoldCdx] | type[FoldText]) -> luigi.Task:
        fold_ = task(date_interval=self.date_interval, only=self.only)
        fold_.whole = frozenset(self._whole)
        return fold_

    def missing(self, line: OpenRoots, view: LaunchView) -> list[luigi.Task]:
        launch = view.launch
        ends, names = self._due.get((launch.job, launch.id[:8])) or self._due_of(line, launch)
        if not (self._looked and self._looked.has(launch, names)):
            if lacked := [step for task in ends for step in lacking(line, launch, task)]:
                return lacked
            if self._looked:
                self._looked.add(launch, names)
        self._whole.add(launch)
        return []

    def _due_of(self, line: OpenRoots, launch: Launch) -> tuple[tuple[type[StageStep], ...], str]:
        """The last steps that are due for all launches of a job on a day, and their names."""
        wanted = line.wanted
        ends = _ends(tuple(row for row in _rows(str(self.task_family)) if chain.is_wanted(row, launch, wanted)))
        due = ends, " ".join(str(task.task_family) for task in ends)
        self._due[launch.job, launch.id[:8]] = due
        return due


@cache
def _rows(scan: str) -> chain.Rows:
    """The steps of a scan."""
    return tuple(row for row in chain.ROWS if row.scan == scan)


@cache
def _ends(rows: chain.Rows) -> tuple[type[StageStep], ...]:
    """The tasks of the last ones of these steps. Found once: Luigi looks through all of its tasks for each."""
    return tuple(Register.get_task_cls(row.task) for row in chain.ends(rows))


def _before_the_fold(task: luigi.Task) -> list[luigi.Task]:
    """The steps that have to be done before the folds: they run the steps that verify themselves."""
    return list(task.requires()) if isinstance(task, VerifyCdx | VerifySolr) else [task]


def _of_the_store(step: StageStep) -> list[luigi.Task]:
    """The task that proves the stored WARCs of a stage; BadConfig on a line without an index."""
    if not settings().index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    wanted = settings().wanted()
    scan = chain.by_word(chain.ROWS)["viruses"]
    proofs = [Verify, VirusScan] if chain.is_wanted(scan, step.launch, wanted) else [Verify]
    return [proof(job=step.job, launch_id=step.launch_id, stage=step.stage) for proof in proofs]
