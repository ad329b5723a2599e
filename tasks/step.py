"""The base classes of all tasks: a Step leaves a marker, a Scan finds the steps that are missing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property

import luigi
from luigi.interface import PidLockAlreadyTakenExit  # makes Luigi exit with 10
from msgspec import Struct, field

from targets.marker import MarkerTarget
from tasks import logs
from tasks.config import command_line  # noqa: F401 its command line has our keys
from tasks.config.settings import check_hardened, settings
from tasks.line import MOST_TASKS, OpenRoots, open_line
from tasks.params import JobParameter, LaunchesParameter, LaunchParameter, StageParameter
from tasks.summary import ScanEnding, report_at_exit
from tasks.visualiser import Visualiser
from warcmill import errors, layout
from warcmill.base.progress import watched
from warcmill.clients.notice import Trouble
from warcmill.errors import BadInput, Unsettled, WarcmillError
from warcmill.launches import discovery
from warcmill.launches.empty_roots import Bare
from warcmill.launches.view import LaunchView
from warcmill.markers import locks
from warcmill.markers.attempts import Attempts
from warcmill.markers.state import MarkerStore
from warcmill.model import Key, Launch, Stage

log = logging.getLogger(__name__)


class JobStep(luigi.Task):
    """A step of one job. Its output is its marker; a subclass does its work in `work`."""

    job = JobParameter(description="the crawl's name")

    def __init__(self, *args: object, **kwargs: object) -> None:
        check_hardened()
        logs.configure()
        super().__init__(*args, **kwargs)

    @property
    def key(self) -> Key:
        raise NotImplementedError(f"{self.task_family} has no key")

    def output(self) -> MarkerTarget:
        return MarkerTarget(settings().open_state(), self.key)

    def run(self) -> None:
        """Do the work, unless another worker has done it; record how the attempt ended."""
        line = open_line()
        with logs.of_step(self.key), Attempts(line.state, self.key).attempt():
            if not self.is_done(line):
                line.state.sweep(layout.folder_of(self.key))
                log.info("begins")
                with self._shown() as scheduler:
                    self.work(line)
                log.info("done: %s", layout.marker_path(self.key))
                scheduler.show_refused(line.state, self.key)

    def is_done(self, line: OpenRoots) -> bool:
        """True if nothing is left to do: another worker may have been faster."""
        return line.state.read(self.key) is not None

    @contextmanager
    def _shown(self) -> Iterator[Visualiser]:
        """Report the progress of the work to the command that runs the scan, and on luigid's page."""
        scheduler = Visualiser(self)
        with watched(logs.watcher(short(self.key)), scheduler.show):
            yield scheduler

    def work(self, line: OpenRoots) -> None:
        """Read what the step needs, call one function of `warcmill`, publish the claim."""
        raise NotImplementedError(f"{self.task_family} has no work")


class Step(JobStep):
    """A step of one launch."""

    launch_id = LaunchParameter(description="14 digits, such as 20161019234428")

    @property
    def launch(self) -> Launch:
        return Launch(self.job, self.launch_id)

    @property
    def key(self) -> Key:
        return layout.key(self.task_family, self.launch)


class StageStep(Step):
    """A step of one stage of a launch."""

    stage = StageParameter(description="final, or a checkpoint such as cp00002-20161020204551")

    @property
    def key(self) -> Key:
        return layout.key(self.task_family, self.launch, stage=self.stage)

    @property
    def part(self) -> Stage:
        return Stage.parse(self.stage)


class ToRun(Struct):
    """The result of a scan: the launches of its days, the tasks to run, and why some launches could not be read."""

    launches: tuple[Launch, ...] = ()
    tasks: list[luigi.Task] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


class Scan(luigi.Task):
    """Find the steps that some days still lack, and require them. A scan leaves no marker.

    It lists once per process. A launch that cannot be read fails the scan at its end, after the others.
    """

    date_interval = luigi.DateIntervalParameter(
        description="days, by launch id: 2016, 2016-10, 2016-W43, 2016-10-19, or FIRST-END with the end not included"
    )
    done = False

    def __init__(self, *args: object, **kwargs: object) -> None:
        check_hardened()
        logs.configure()
        super().__init__(*args, **kwargs)

    def requires(self) -> list[luigi.Task]:
        return self.listed.tasks

    def run(self) -> None:
        if self.listed.troubles:
            raise Unsettled(str(self.task_family), self.listed.troubles)
        self.done = True

    def complete(self) -> bool:
        return self.done

    @cached_property
    def listed(self) -> ToRun:
        with report_at_exit(str(self.task_family), self.date_interval) as ending:
            return self._list(ending)

    def _list(self, ending: ScanEnding) -> ToRun:
        line = open_line()
        _ = line.wanted  # a broken switch stops the whole scan; else it would fail launch by launch
        _lock(line.state, str(self.task_family))
        listed = self.find(line, ending)
        if len(listed.launches) != 1:  # a single launch cannot be split
            _refuse_too_many(str(self.date_interval), listed.tasks)
        return listed

    def find(self, line: OpenRoots, ending: ScanEnding) -> ToRun:
        """The tasks that these days lack."""
        raise NotImplementedError(f"{self.task_family} scans for nothing")


class LaunchScan(Scan):
    """A scan of the launches of some days; a subclass lists what one launch lacks."""

    only = LaunchesParameter(default="", description="only these launches: JOB/LAUNCH,JOB/LAUNCH")

    def missing(self, line: OpenRoots, view: LaunchView) -> Iterable[luigi.Task]:
        """The tasks that this launch lacks."""
        raise NotImplementedError(f"{self.task_family} scans for nothing")

    def find(self, line: OpenRoots, ending: ScanEnding) -> ToRun:
        dates = self.date_interval
        discovered = discovery.find(line.rootmap, dates.date_a, dates.date_b)
        asked = tuple(launch for launch in discovered.launches if not self.only or str(launch) in self.only.split(","))
        listed = ToRun(asked, [], [])
        ending.launches = discovered.launches
        for unexpected in discovered.unexpected:
            log.warning("%s; not taken for a launch", unexpected)
        for error in discovered.unreachable:
            log.error("%s; launches only there are left for another run", error)
            listed.troubles.append(str(error))
            ending.unreadable.append(Trouble("", "unreadable", error.what, str(error)))
        for bare in discovered.bare:
            _report_bare(bare, listed, ending)
        for launch in asked:
            self._list_one(line, launch, listed, ending)
        log.info("%s: %s, %d launches", self.task_family, span(dates), len(asked))
        return listed

    def _list_one(self, line: OpenRoots, launch: Launch, listed: ToRun, ending: ScanEnding) -> None:
        known = len(listed.tasks)
        try:
            listed.tasks.extend(self.missing(line, line.view(launch)))
        except WarcmillError as error:
            log.error("%s: %s", launch, error)
            _note(launch, str(error), listed, ending)
        except Exception as fault:  # a fault in Warcmill: one such launch must not hold up the others
            log.exception("%s", launch)
            _note(launch, errors.describe(fault), listed, ending)
        if len(listed.tasks) > known:
            ending.busy.add(launch.day)


def _note(launch: Launch, why: str, listed: ToRun, ending: ScanEnding) -> None:
    """Record a launch that could not be listed: it fails the scan at its end, and the notice names it."""
    listed.troubles.append(f"{launch}: {why}")
    ending.unreadable.append(Trouble(str(launch), "unreadable", str(launch), why))


@luigi.Task.event_handler(luigi.Event.START)
def _begins(task: luigi.Task) -> None:
    _report("begins", task)


@luigi.Task.event_handler(luigi.Event.SUCCESS)
def _done(task: luigi.Task) -> None:
    _report("done", task)


@luigi.Task.event_handler(luigi.Event.FAILURE)
def _failed(task: luigi.Task, _: Exception) -> None:
    """Report it; and name a task of no launch, such as a fold: it has no attempts, by which others are counted."""
    _report("failed", task)
    if not isinstance(task, JobStep | Scan):
        logs.note(str(task.task_family))


def _report(kind: str, task: luigi.Task) -> None:
    """Report a step; or a task of no launch, which leaves no marker: it is not counted among what is done."""
    family = str(task.task_family)
    if isinstance(task, JobStep):
        logs.event(kind, short(task.key), task=family)
    elif not isinstance(task, Scan):
        logs.event(kind, family.rpartition(".")[2])


def short(key: Key) -> str:
    """A step as its progress names it: `Checksum daily/20161019234428 final`."""
    params = dict(key.params)
    launch = params.get("launch_id") or params.get("due", "")
    return f"{key.task.rpartition('.')[2]} {params.get('job', '')}/{launch} {params.get('stage', '')}".rstrip()


def _report_bare(bare: Bare, listed: ToRun, ending: ScanEnding) -> None:
    """Report a root without launches. If launches are where none is looked for, fail: no scan would ever see them."""
    if not bare.misplaced:
        log.warning("%s", bare.text)
        return
    log.error("%s", bare.text)
    listed.troubles.append(bare.text)
    ending.unreadable.append(Trouble("", "unreadable", "launches", bare.text))


def span(dates: luigi.date_interval.DateInterval) -> str:
    """The first and the last day of an interval, as text."""
    note = f" ({dates.date_b} is not in it)" if isinstance(dates, luigi.date_interval.Custom) else ""
    return f"first day {dates.date_a}, last day {dates.date_b - timedelta(days=1)}{note}"


def _refuse_too_many(interval: str, asked: list[luigi.Task]) -> None:
    """BadInput if Luigi would have to run more than MOST_TASKS, with all that they require."""
    pending: set[str] = set()
    stack = list(asked)
    while stack and len(pending) <= MOST_TASKS:
        task = stack.pop()
        if task.task_id not in pending and not task.complete():
            pending.add(task.task_id)
            stack.extend(task.deps())
    if len(pending) > MOST_TASKS:
        logs.note(logs.TOO_MANY)
        why = f"more than {MOST_TASKS} tasks to run, too many for one scan: run 'warcmill backfill {interval}'"
        raise BadInput(interval, why)
    logs.event("pending", number=len(pending))


def _lock(state: MarkerStore, name: str) -> None:
    """Hold the scan's lock until the process ends. It only saves work: two scans at once are harmless."""
    if holder := locks.take(state, name):
        log.error("%s is already running: process %s; this one stops (exit 10)", name, holder)
        raise PidLockAlreadyTakenExit
