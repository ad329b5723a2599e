"""The chain before the line: crawls are started when they are due, checkpointed, and stopped. Each is done once."""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, time
from functools import cached_property, partial

import luigi

from tasks import engines, feeds
from tasks.params import CheckpointParameter, DueParameter, NumberParameter
from tasks.step import JobStep, Line, Listed, Scan, Step, open_line, span
from tasks.summary import Ending
from warcmill import clock, errors, layout
from warcmill.clients.engine import Engine
from warcmill.errors import Unavailable, WarcmillError
from warcmill.model import Json, Key, stamp_time
from warcmill.notice import Trouble
from warcmill.schedule import missed
from warcmill.state import State
from warcmill.steps import continued
from warcmill.steps import pulse as steps

log = logging.getLogger(__name__)
MOST_NAMED = 10


class StartJob(JobStep):
    """Launch a crawl that is due, once, and wait until it crawls.

    Requires: CrawlFeed, where a feed feeds the job; StopJob of its launch that still runs for an earlier due time.
    Output:   00.due.{job}.{due}
    Changes:  the engine, once; 01.jobs.{job}.{launch_id}.started of the launch.
    Re-run:   safe; a start that died half-way is found and finished, not repeated.
    """

    task_namespace = "pulse"

    due = DueParameter(description="when it is due: 14 digits, such as 20161019230000")
    checkpoint = CheckpointParameter(
        default="", significant=False, description="resume from it, such as cp00002-20161020204551; else a fresh launch"
    )

    @property
    def key(self) -> Key:
        return layout.due_key(self.job, self.due)

    def requires(self) -> list[luigi.Task]:
        return [*feeds.needed(self.job, self.due), *self._before]

    @cached_property
    def _before(self) -> list[luigi.Task]:
        """Asked of the engine once. One that does not answer is told by `work`, as a failed step."""
        try:
            with closing(engines.engine_of(self.job)) as engine:
                begun = steps.running(open_line().state, engine, self.job)
        except WarcmillError as error:
            log.error("%s: %s", self.job, error)
            return []
        except Exception:  # a fault in Warcmill: `work` meets it again, and the attempt tells of it
            log.exception("%s", self.job)
            return []
        if begun is None or begun.due >= self.due:
            return []
        stop = StopJob(job=self.job, launch_id=begun.launch.id, successor=self.due)
        return [stop] if begun.is_told else [stop, StartJob(job=self.job, due=begun.due)]

    def work(self, line: Line) -> None:
        resume = (
            continued.of_checkpoint(line.sites.alone(self.job), self.job, self.checkpoint) if self.checkpoint else None
        )
        with _alone(line.state, self.job), closing(engines.engine_of(self.job)) as engine:
            prepare = partial(_prepared, line.state, engine, self.job, self.due)
            claim = steps.start(line.state, engine, self.job, self.due, prepare, resume)
        line.state.publish(self.key, claim)


class StopJob(Step):
    """End a launch, and see that the engine has ended it.

    Requires: CrawlFeed of the crawl that is to follow: without its feed the running one had better go on.
    Output:   01.jobs.{job}.{launch_id}.confirmed
    Changes:  the engine: the launch is terminated in order, its reports written, its files closed.
    Re-run:   safe; a launch that has ended is only confirmed.
    """

    task_namespace = "pulse"

    successor = DueParameter(
        default="", significant=False, description="due time of the crawl that waits for this: 14 digits; or nothing"
    )

    def requires(self) -> list[luigi.Task]:
        return feeds.needed(self.job, self.successor) if self.successor else []

    def work(self, line: Line) -> None:
        with _alone(line.state, self.job), closing(engines.engine_of(self.job)) as engine:
            claim = steps.stop(engine, self.launch)
        line.state.publish(self.key, claim)


class CheckpointJob(Step):
    """Take a checkpoint of a running launch: its logs up to now become a stage.

    Requires: nothing.
    Output:   01.jobs.{job}.{launch_id}.checkpointed.{number}
    Changes:  the engine, once.
    Re-run:   safe; a checkpoint of this number that job.log tells of is not taken again.
    """

    task_namespace = "pulse"

    number = NumberParameter(description="the checkpoint's number: 1 is a fresh launch's first")

    @property
    def key(self) -> Key:
        return layout.key(self.task_family, self.launch, number=f"{self.number:05d}")

    def work(self, line: Line) -> None:
        with _alone(line.state, self.job), closing(engines.engine_of(self.job)) as engine:
            claim = steps.checkpoint(line.sites.alone(self.job), engine, self.launch, self.number)
        line.state.publish(self.key, claim)


class ScanForLaunches(Scan):
    """Launch every job of the configuration that is due within some days, and has not been launched.

    Requires: StartJob of the newest due time of each job, while it is no older than `[pulse] catch_up_hours`.
    Output:   none.
    Changes:  nothing itself; due times that it is too late for are named in the log.
    Re-run:   safe; does only what is missing.
    """

    task_namespace = "pulse"

    def find(self, line: Line, ending: Ending) -> Listed:
        """The starts that are missing. A job whose section is wrong fails the scan when the others are done."""
        listed = Listed()
        jobs = engines.scheduled()
        for job in jobs:
            try:
                listed.tasks.extend(self._missing(line, job))
            except WarcmillError as error:
                log.error("%s: %s", job, error)
                _note(job, str(error), listed, ending)
            except Exception as fault:  # a fault in Warcmill: one odd job does not hold up the others
                log.exception("%s", job)
                _note(job, errors.told(fault), listed, ending)
        ending.starts = [task.key for task in listed.tasks if isinstance(task, StartJob)]
        log.info("%s: %s, %d jobs", self.task_family, span(self.date_interval), len(jobs))
        return listed

    def _missing(self, line: Line, job: str) -> Iterator[StartJob]:
        def done(moment: datetime) -> bool:
            return line.state.holds(layout.due_key(job, _stamp(moment)))

        days = self.date_interval
        first, end = (datetime.combine(day, time(), UTC) for day in (days.date_a, days.date_b))
        found = missed(engines.schedule_of(job), first, end, stamp_time(clock.stamp()), engines.catch_up(), done)
        if found.late:
            _tell_late(job, found.late)
        if found.launch:
            yield StartJob(job=job, due=_stamp(found.launch))


def _note(job: str, why: str, listed: Listed, ending: Ending) -> None:
    """A job that could not be looked at fails the scan at its end, and is told in the notice."""
    listed.troubles.append(f"{job}: {why}")
    ending.unreadable.append(Trouble(job, "unreadable", f"[job.{job}]", why))


def _tell_late(job: str, late: tuple[datetime, ...]) -> None:
    named = ", ".join(clock.stamp_text(_stamp(moment)) for moment in late[-MOST_NAMED:])
    more = f", and {len(late) - MOST_NAMED} before" if len(late) > MOST_NAMED else ""
    log.warning("%s: %d due times had no launch, and it is too late for them: %s%s", job, len(late), named, more)


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y%m%d%H%M%S}"


def _prepared(state: State, engine: Engine, job: str, due: str) -> dict[str, Json]:
    """A job that no feed feeds is launched with the configuration that lies in its folder."""
    return feeds.configure(state, engine, job, due) if feeds.is_fed(job) else {}


@contextmanager
def _alone(state: State, job: str) -> Iterator[None]:
    """Wait until no other process of this host speaks to the job's engine for us.

    Two starts at once could each tear down what the other has just built.
    """
    folder = state.store.base / ".locks"
    try:
        folder.mkdir(exist_ok=True)
        file = (folder / f"pulse.{job}").open("a")
    except OSError as error:
        raise Unavailable(f"root 'state', {folder}", str(error.strerror)) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
