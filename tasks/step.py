"""What every task of the line is: a Step leaves a marker, a Scan finds the steps that are missing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

import luigi
from luigi.interface import PidLockAlreadyTakenExit  # Luigi ends with exit 10 for it

from targets.marker import MarkerTarget
from tasks import attended, logs
from tasks.params import JobParameter, LaunchesParameter, LaunchParameter, StageParameter
from tasks.settings import Settings, check_hardened, settings
from tasks.summary import Ending, told_at_the_end
from tasks.visualiser import Visualiser
from warcmill import errors, layout, locks, sites
from warcmill.errors import BadInput, Unsettled, WarcmillError
from warcmill.instead import Bare
from warcmill.launches import Engines
from warcmill.ledger import Ledger
from warcmill.model import Key, Launch, Stage
from warcmill.notice import Trouble
from warcmill.progress import watched
from warcmill.sites import Sites
from warcmill.state import State
from warcmill.stores import Store

log = logging.getLogger(__name__)
MOST_TASKS = 1_000  # Luigi's cost grows faster than the number of its pending tasks


@dataclass(frozen=True)
class Line:
    """The open roots, for one run of a step."""

    settings: Settings
    state: State

    @cached_property
    def sites(self) -> Sites:
        return self.settings.sites()

    def engines(self, job: str) -> Engines:
        """The roots of a job, or Unavailable."""
        return self.sites.of(job)

    @cached_property
    def store(self) -> Store:
        return self.settings.open_store()


def open_line() -> Line:
    """The line as it is configured, or Unavailable."""
    found = settings()
    return Line(found, found.open_state())


class JobStep(luigi.Task):
    """A step of one job. Its output is its marker; a sub-class says what `work` leaves it."""

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
        """Do the work, unless another worker has done it since; note how the attempt ended."""
        line = open_line()
        with logs.of_step(self.key), Ledger(line.state, self.key).attempt():
            if line.state.read(self.key) is None:
                line.state.sweep(layout.folder_of(self.key))
                log.info("begins")
                with self._shown() as scheduler:
                    self.work(line)
                log.info("done: %s", layout.marker_path(self.key))
                scheduler.say_refused(line.state, self.key)

    @contextmanager
    def _shown(self) -> Iterator[Visualiser]:
        """Show on a terminal's bar and on luigid's page how far the work has come."""
        scheduler = Visualiser(self)
        with attended.bar_of(short(self.key)), watched(scheduler.show):
            yield scheduler

    def work(self, line: Line) -> None:
        """Read what the step needs, call one function of `warcmill`, publish."""
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


@dataclass
class Listed:
    """What a scan found: launches in its days, tasks to run, and launches it could not read, with why."""

    launches: tuple[Launch, ...] = ()
    tasks: list[luigi.Task] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


class Scan(luigi.Task):
    """Find what some days still lack, and ask for the steps. Leaves nothing itself.

    It lists once a process. What cannot be read fails the scan at its end, when the others are done.
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
    def listed(self) -> Listed:
        with told_at_the_end(str(self.task_family), self.date_interval) as ending:
            return self._list(ending)

    def _list(self, ending: Ending) -> Listed:
        line = open_line()
        _lock(line.state, str(self.task_family))
        listed = self.find(line, ending)
        if len(listed.launches) != 1:  # one launch cannot be asked for in parts
            _refuse_too_many(str(self.date_interval), listed.tasks)
        return listed

    def find(self, line: Line, ending: Ending) -> Listed:
        """What these days lack."""
        raise NotImplementedError(f"{self.task_family} scans for nothing")


class LaunchScan(Scan):
    """A scan of the launches of some days; a sub-class says what one of them lacks."""

    only = LaunchesParameter(default="", description="of these days' launches only some: JOB/LAUNCH,JOB/LAUNCH")

    def missing(self, line: Line, launch: Launch) -> Iterable[luigi.Task]:
        """The tasks that this launch lacks."""
        raise NotImplementedError(f"{self.task_family} scans for nothing")

    def find(self, line: Line, ending: Ending) -> Listed:
        dates = self.date_interval
        found = sites.find(line.sites, dates.date_a, dates.date_b)
        asked = tuple(one for one in found.launches if not self.only or str(one) in self.only.split(","))
        listed = Listed(asked, [], [])
        ending.launches = found.launches
        for odd in found.odd:
            log.warning("%s; not taken for a launch", odd)
        for error in found.away:
            log.error("%s; what lies there alone is left for another run", error)
            listed.troubles.append(str(error))
            ending.unreadable.append(Trouble("", "unreadable", error.what, str(error)))
        for bare in found.bare:
            _tell_bare(bare, listed, ending)
        for launch in asked:
            self._list_one(line, launch, listed, ending)
        log.info("%s: %s, %d launches", self.task_family, span(dates), len(asked))
        return listed

    def _list_one(self, line: Line, launch: Launch, listed: Listed, ending: Ending) -> None:
        known = len(listed.tasks)
        try:
            listed.tasks.extend(self.missing(line, launch))
        except WarcmillError as error:
            log.error("%s: %s", launch, error)
            _note(launch, str(error), listed, ending)
        except Exception as fault:  # a fault in Warcmill: one odd launch does not hold up the others
            log.exception("%s", launch)
            _note(launch, errors.told(fault), listed, ending)
        if len(listed.tasks) > known:
            ending.busy.add(launch.day)


def _note(launch: Launch, why: str, listed: Listed, ending: Ending) -> None:
    """A launch that could not be listed fails the scan at its end, and is told in the notice."""
    listed.troubles.append(f"{launch}: {why}")
    ending.unreadable.append(Trouble(str(launch), "unreadable", str(launch), why))


def short(key: Key) -> str:
    """A step as a bar names it: `Checksum daily/20161019234428 final`."""
    params = dict(key.params)
    launch = params.get("launch_id") or params.get("due", "")
    return f"{key.task.rpartition('.')[2]} {params.get('job', '')}/{launch} {params.get('stage', '')}".rstrip()


def _tell_bare(bare: Bare, listed: Listed, ending: Ending) -> None:
    """Say that a root holds no launch. Where launches lie otherwise than configured, no scan would ever see them."""
    if not bare.misplaced:
        log.warning("%s", bare.text)
        return
    log.error("%s", bare.text)
    listed.troubles.append(bare.text)
    ending.unreadable.append(Trouble("", "unreadable", "launches", bare.text))


def span(dates: luigi.date_interval.DateInterval) -> str:
    """The days of an interval, as people count them."""
    note = f" ({dates.date_b} is not in it)" if isinstance(dates, luigi.date_interval.Custom) else ""
    return f"first day {dates.date_a}, last day {dates.date_b - timedelta(days=1)}{note}"


def _refuse_too_many(interval: str, asked: list[luigi.Task]) -> None:
    """Count what Luigi would have to run, with all that it rests on, and stop above the bound."""
    pending: set[str] = set()
    stack = list(asked)
    while stack and len(pending) <= MOST_TASKS:
        task = stack.pop()
        if task.task_id not in pending and not task.complete():
            pending.add(task.task_id)
            stack.extend(task.deps())
    if len(pending) > MOST_TASKS:
        why = f"more than {MOST_TASKS} tasks to run, too many for one scan: run 'warcmill backfill {interval}'"
        raise BadInput(interval, why)


def _lock(state: State, name: str) -> None:
    """Hold the scan's lock until the process ends. It only saves work: two scans at once are harmless."""
    if holder := locks.take(state, name):
        log.error("%s is already running: process %s; this one stops (exit 10)", name, holder)
        raise PidLockAlreadyTakenExit
