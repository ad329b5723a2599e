"""Start crawls when they are due, checkpoint them and stop them: each act once."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from contextlib import closing
from datetime import UTC, datetime, time
from functools import cached_property

import luigi

from tasks.config import engines
from tasks.config import feed as feeds
from tasks.config import pypi as indexes
from tasks.line import OpenRoots, feed_of, open_line, papers_of
from tasks.params import CheckpointParameter, DueParameter, LaunchParameter, NumberParameter
from tasks.pypi import DumpDistributionData, DumpFull
from tasks.step import JobStep, Scan, Step, ToRun, span
from tasks.summary import ScanEnding
from warcmill import errors, layout
from warcmill.audit import due_crawls
from warcmill.base import clock
from warcmill.base.schedule import missed
from warcmill.clients.engine import Engine
from warcmill.clients.notice import Trouble
from warcmill.errors import Conflict, NotReady, WarcmillError
from warcmill.formats.pypi.data_sets import DISTRIBUTIONS
from warcmill.launches.roots import JobRoots
from warcmill.launches.view import of_checkpoint
from warcmill.markers import decisions, locks
from warcmill.markers.claim import Claim
from warcmill.markers.facts.pulse import Continued, Started
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Key, Launch, stamp_time
from warcmill.pulse import broken_launches, feed
from warcmill.pulse import control as steps
from warcmill.pypi import dumps
from warcmill.pypi import feed as index_feed
from warcmill.pypi.data_sets import open_history
from warcmill.pypi.feed import ChangedProject
from warcmill.pypi.survey import listing

log = logging.getLogger(__name__)
MOST_NAMED = 10


class CrawlFeed(JobStep):
    """Fetch and keep the feed of a due crawl; refuse a feed that cannot be right.

    The feed of a job that mirrors a package index is what changed there since its newest whole dump.

    Requires: of such a job pypi.DumpDistributionData of its newest launch, if that ended with nothing left to fetch;
              and pypi.DumpFull, if one was decided of its newest whole dump.
    Output:   00.feed.{job}.{due}
    Changes:  feeds/ in the state root, where feeds are kept by their digest.
    Re-run:   safe; until it succeeds, each run asks the source again.
    """

    task_namespace = "pulse"

    due = DueParameter(description="when the crawl is due: 14 digits, such as 20161019230000")
    full = luigi.BoolParameter(
        default=False, significant=False, description="of a package index: ask for all projects, not for what changed"
    )
    continues = LaunchParameter(
        default="",
        significant=False,
        description="of a package index: keep this launch's feed",
    )

    @property
    def key(self) -> Key:
        return layout.feed_key(self.job, self.due)

    def requires(self) -> list[luigi.Task]:
        if not indexes.mirrors(self.job) or self.full or self.continues:
            return []
        line = open_line()
        full, newest = (
            dumps.of_newest(line.state, self.job),
            broken_launches.last(line.rootmap.alone(self.job), self.job),
        )
        steps: list[luigi.Task] = [DumpFull.of(full)] if full else []
        if newest is None or not newest.is_empty:
            return steps
        return [*steps, DumpDistributionData(job=self.job, launch_id=newest.launch.id)]

    def work(self, line: OpenRoots) -> None:
        if indexes.mirrors(self.job):
            indexes.refuse_unfit(self.job)
            line.state.publish(self.key, self._of_index(line))
            return
        feeds.refuse_unfit(line.settings, self.job)
        _look_at_feed(line, self.job)
        line.state.publish(self.key, feed.crawl(line.state, feeds.due_of(self.job, self.due), feeds.source()))

    def _of_index(self, line: OpenRoots) -> Claim:
        if self.continues:
            started = line.state.require(layout.key("pulse.Started", Launch(self.job, self.continues)))
            earlier = layout.feed_key(self.job, Started.from_claim(started.claim).due)
            return index_feed.again(line.state, self.key, earlier)
        source = indexes.source()
        if self.full and not source.has_changelog:
            return listing.full(line.state, self.key, source, is_first=dumps.newest(line.state, self.job) is None)
        if self.full:
            return index_feed.full(line.state, self.key, source, dumps.newest(line.state, self.job))
        newest = dumps.newest(line.state, self.job)
        if newest is None:
            why = "it has no whole dump yet, after which changes count; first run"
            raise NotReady(self.job, f"{why}: warcmill pypi trigger_full {self.job}")
        sweep, swept, more = indexes.sweep(), dict[str, ChangedProject](), dict[str, Json]()
        if source.has_changelog and not sweep:
            return index_feed.increment(line.state, self.key, source, newest)
        data = indexes.published(line.state)
        try:
            with closing(open_history(data.state, data.index, data.current(DISTRIBUTIONS))) as known:
                if not source.has_changelog:
                    return listing.increment(line.state, self.key, source, newest, known, sweep)
                swept, more = listing.swept(line.state, self.key, source, known, sweep)
        except NotReady as error:
            if not source.has_changelog:
                raise
            log.warning("%s: no page is asked for besides what has changed: %s", self.job, error)
        return index_feed.increment(line.state, self.key, source, newest, swept, more)


class StartJob(JobStep):
    """Launch a due crawl once, and wait until it crawls.

    Requires: CrawlFeed, if the job has a feed; StopJob of a launch that still runs for an earlier due time.
    Output:   00.due.{job}.{due}
    Changes:  the engine, once; 01.jobs.{job}.{launch_id}.started of the launch.
    Re-run:   safe; a start that died half-way is found and finished, not repeated.
    """

    task_namespace = "pulse"

    due = DueParameter(description="when it is due: 14 digits, such as 20161019230000")
    checkpoint = CheckpointParameter(
        default="",
        significant=False,
        description="resume from this checkpoint, such as cp00002-20161020204551; by default a fresh launch",
    )
    broken = LaunchParameter(
        default="",
        significant=False,
        description="resume the launch with this id, which broke off, from its newest valid checkpoint",
    )
    retries = luigi.BoolParameter(
        default=False, significant=False, description="ask again for the URLs of the job's retry.jsonl, and what waits"
    )
    mends = luigi.Parameter(default="", significant=False, description="the launch, JOB/LAUNCH, that it patches")
    full = luigi.BoolParameter(
        default=False, significant=False, description="of a package index: crawl all projects, not what changed"
    )

    @property
    def key(self) -> Key:
        return layout.due_key(self.job, self.due)

    def requires(self) -> list[luigi.Task]:
        return [*self._feed, *self._before]

    @property
    def _feed(self) -> list[luigi.Task]:
        """The step that makes its feed. A launch of an index that continues another one keeps that one's."""
        if not indexes.mirrors(self.job):
            return _fed(self.job, self.due)
        continues = self.broken
        if self.checkpoint:
            continues = of_checkpoint(open_line().rootmap.alone(self.job), self.job, self.checkpoint).launch.id
        return [CrawlFeed(job=self.job, due=self.due, full=self.full, continues=continues)]

    @cached_property
    def _before(self) -> list[luigi.Task]:
        """The steps that end the launch before. The engine is asked once; if it does not answer, `work` reports it."""
        try:
            with closing(engines.engine_of(self.job)) as engine:
                begun = steps.running(open_line().state, engine, self.job)
        except WarcmillError as error:
            log.error("%s: %s", self.job, error)
            return []
        except Exception:  # a fault in Warcmill: `work` meets it again, and the attempt records it
            log.exception("%s", self.job)
            return []
        if begun is None or begun.due >= self.due:
            return []
        stop = StopJob(job=self.job, launch_id=begun.launch.id, successor=self.due)
        return [stop] if begun.is_recorded else [stop, StartJob(job=self.job, due=begun.due)]

    def work(self, line: OpenRoots) -> None:
        roots = line.rootmap.alone(self.job)
        if unchanged := self._unchanged(line, roots):
            line.state.publish(self.key, unchanged)
            return
        checkpoint = of_checkpoint(roots, self.job, self.checkpoint) if self.checkpoint else None
        with locks.alone(line.state, f"pulse.{self.job}"), closing(engines.engine_of(self.job)) as engine:
            retried: dict[str, Json] = {"retries": True} if self.retries else {}

            def prepare() -> dict[str, Json]:
                found = retried or _prepared(line.state, engine, self.job, self.due)
                _look_at_papers(line, engine, self.job)
                return {**found, "mends": self.mends} if self.mends else found

            def resume() -> Continued | None:
                if not self.broken:
                    return checkpoint
                launch = Launch(self.job, self.broken)
                steps.stop(engine, launch)  # ends it cleanly, if its engine can
                return broken_launches.checkpoint(line.state, roots, engine, launch)

            claim = steps.start(line.state, engine, self.job, self.due, prepare, resume)
        line.state.publish(self.key, claim)

    def _unchanged(self, line: OpenRoots, roots: JobRoots) -> Claim | None:
        """The claim of a due crawl of an index in which nothing is new: the newest launch is what it got. Else None."""
        if not indexes.mirrors(self.job):
            return None
        fed, before = line.state.require(layout.feed_key(self.job, self.due)), broken_launches.last(roots, self.job)
        return steps.unchanged(self.job, self.due, fed, before.launch) if before else None


class StopJob(Step):
    """End a launch, and check that the engine has ended it.

    Requires: CrawlFeed of the crawl that follows: without its feed, the running crawl is better left running.
    Output:   01.jobs.{job}.{launch_id}.confirmed
    Changes:  the engine: it terminates the launch in order, writes its reports and closes its files.
    Re-run:   safe; a launch that has ended is only confirmed.
    """

    task_namespace = "pulse"

    successor = DueParameter(
        default="", significant=False, description="due time of the crawl that waits for this: 14 digits; empty: none"
    )

    def requires(self) -> list[luigi.Task]:
        return _fed(self.job, self.successor) if self.successor else []

    def work(self, line: OpenRoots) -> None:
        with locks.alone(line.state, f"pulse.{self.job}"), closing(engines.engine_of(self.job)) as engine:
            claim = steps.stop(engine, self.launch)
        line.state.publish(self.key, claim)


class CheckpointJob(Step):
    """Take a checkpoint of a running launch: its logs up to now become a stage.

    Requires: nothing.
    Output:   01.jobs.{job}.{launch_id}.checkpointed.{number}
    Changes:  the engine, once.
    Re-run:   safe; a checkpoint with this number in job.log is not taken again.
    """

    task_namespace = "pulse"

    number = NumberParameter(description="the checkpoint's number: 1 is a fresh launch's first")

    @property
    def key(self) -> Key:
        return layout.key(self.task_family, self.launch, number=f"{self.number:05d}")

    def work(self, line: OpenRoots) -> None:
        with locks.alone(line.state, f"pulse.{self.job}"), closing(engines.engine_of(self.job)) as engine:
            claim = steps.checkpoint(line.rootmap.alone(self.job), engine, self.launch, self.number)
        line.state.publish(self.key, claim)


class ScanForLaunches(Scan):
    """Launch every configured job that is due within some days, and continue what broke off in them.

    Requires: StartJob of the newest due time of each job, if it is no older than `[pulse] catch_up_hours` and was not
              accepted as skipped; and of each launch that StartJob began, that has no end, and that its engine does not
              crawl, likewise.
    Output:   none.
    Changes:  nothing itself; logs the due times that are too old to launch, and what cannot be continued. Its notice
              names, beside starts that failed, scripts whose sites are offline, have changed, are silent or late.
    Re-run:   safe; does only what is missing. It asks the engines of those jobs alone whose newest launch has no end.
    """

    task_namespace = "pulse"

    def find(self, line: OpenRoots, ending: ScanEnding) -> ToRun:
        """The starts that are missing. A job with a wrong section fails the scan at its end, after the others."""
        listed = ToRun()
        jobs = engines.scheduled()
        for job in dict.fromkeys([*jobs, *engines.crawled()]):
            try:
                due: list[luigi.Task] = [*self._missing(line, job)] if job in jobs else []
                if due and engines.schedule_of(job).waits:
                    due = self._after_the_newest(line, job, due)
                listed.tasks.extend(due or self._broken(line, job))
            except WarcmillError as error:
                log.error("%s: %s", job, error)
                _note(job, str(error), listed, ending)
            except Exception as fault:  # a fault in Warcmill: one such job must not hold up the others
                log.exception("%s", job)
                _note(job, errors.describe(fault), listed, ending)
            self._watched(job, ending)
        ending.starts = [task.key for task in listed.tasks if isinstance(task, StartJob)]
        log.info("%s: %s, %d jobs", self.task_family, span(self.date_interval), len(jobs))
        return listed

    def _watched(self, job: str, ending: ScanEnding) -> None:
        """Take the findings of the watch over a job's scripts into the notice. They hold up no start."""
        why = ""
        try:
            if job in engines.crawled(engines.WARCMILL) and (folder := engines.folder_of(job)):
                from warcmill.scripts import answers  # most lines have none

                ending.watched += answers.troubles(folder)
        except WarcmillError as error:
            why = str(error)
            log.error("%s: %s", job, error)
        except Exception as fault:  # a fault in Warcmill, as above
            why = errors.describe(fault)
            log.exception("%s", job)
        if why:
            ending.unreadable.append(Trouble(job, "unreadable", "scripts", why))

    def _after_the_newest(self, line: OpenRoots, job: str, due: list[luigi.Task]) -> list[luigi.Task]:
        """The start of a due crawl that waits until the job's newest launch has ended; first that one is continued."""
        with closing(engines.engine_of(job)) as engine:
            seen = engine.look(job)
        if seen.running:
            log.info("%s: the crawl that is due waits for launch %s, by overrun=%s", job, seen.launch_id, engines.WAIT)
            return []
        return [*self._broken(line, job)] or due

    def _broken(self, line: OpenRoots, job: str) -> Iterator[luigi.Task]:
        """The step that continues the job's newest launch, if that broke off; or that finishes such a step."""
        if not engines.has_engine(job):
            return
        roots = line.rootmap.alone(job)
        if before := broken_launches.half_begun(line.state, roots, job):
            yield StartJob(job=job, due=broken_launches.due_of(before), broken=before.id)
            return
        newest = broken_launches.newest(line.state, roots, job)
        if newest is None or not self.date_interval.date_a <= newest.seen.date() < self.date_interval.date_b:
            return
        with closing(engines.engine_of(job)) as engine:
            seen = engine.look(job)
            if seen.running or seen.launch_id != newest.launch.id:
                return
            if newest.is_empty:  # only its end is missing
                yield StopJob(job=job, launch_id=newest.launch.id)
            elif self._may_continue(line, roots, newest, None if seen.died else engine):
                yield StartJob(job=job, due=broken_launches.due_of(newest.launch), broken=newest.launch.id)

    def _may_continue(
        self, line: OpenRoots, roots: JobRoots, newest: broken_launches.Newest, engine: Engine | None
    ) -> bool:
        """True if a launch that broke off can be continued; the log has why not. Without an engine to ask, since that
        first makes a checkpoint, it has one."""
        since = stamp_time(clock.stamp()) - engines.catch_up()
        if newest.seen < since:
            how = f"'warcmill pulse start {newest.launch.job} --checkpoint NAME' does it"
            log.warning("%s broke off, and is too old to be continued now; %s", newest.launch, how)
            return False
        try:
            broken_launches.refuse_endless(line.state, roots, newest.launch, since)
            if engine:
                broken_launches.checkpoint(line.state, roots, engine, newest.launch)
        except (Conflict, NotReady) as error:
            log.error("%s", error)
            return False
        return True

    def _missing(self, line: OpenRoots, job: str) -> Iterator[StartJob]:
        skipped = _skipped(line, job)

        def done(moment: datetime) -> bool:
            return _stamp(moment) in skipped or line.state.holds(layout.due_key(job, _stamp(moment)))

        days = self.date_interval
        first, end = (datetime.combine(day, time(), UTC) for day in (days.date_a, days.date_b))
        late_and_next = missed(
            engines.schedule_of(job), first, end, stamp_time(clock.stamp()), engines.catch_up(), done
        )
        if late_and_next.late:
            _warn_about_late(job, late_and_next.late)
        if late_and_next.launch:
            yield StartJob(job=job, due=_stamp(late_and_next.launch))


def _skipped(line: OpenRoots, job: str) -> Collection[str]:
    """The due times that were accepted as skipped. A damaged decision skips none: better a crawl too many."""
    found, wrong = decisions.readable(line.state.store, decisions.ACCEPTED)
    for error in wrong:
        log.error("%s: what this decision accepts as skipped is unknown: %s", job, error)
    return due_crawls.accepted(found).get(job, {})


def _note(job: str, why: str, listed: ToRun, ending: ScanEnding) -> None:
    """Record a job that could not be read: it fails the scan at its end, and the notice names it."""
    listed.troubles.append(f"{job}: {why}")
    ending.unreadable.append(Trouble(job, "unreadable", f"[job.{job}]", why))


def _warn_about_late(job: str, late: tuple[datetime, ...]) -> None:
    """Log the due times that are too old to launch."""
    named = ", ".join(clock.stamp_text(_stamp(moment)) for moment in late[-MOST_NAMED:])
    more = f", and {len(late) - MOST_NAMED} before" if len(late) > MOST_NAMED else ""
    log.warning("%s: %d due times had no launch, and are too old to launch now: %s%s", job, len(late), named, more)


def _stamp(moment: datetime) -> str:
    return clock.digits(moment)


def _fed(job: str, due: str) -> list[luigi.Task]:
    """The feed step of a due crawl; none for a job without a feed."""
    return [CrawlFeed(job=job, due=due)] if feeds.is_fed(job) or indexes.mirrors(job) else []


def _look_at_feed(line: OpenRoots, job: str) -> None:
    """Complete a save of the feed that a kill cut short, and make an edition of what was edited by hand, of a feed that
    people edit here. An outage of the store is logged, and holds up no crawl."""
    papers = feed_of(line, job).papers
    try:
        if papers and papers.editions.newest():
            papers.settle()
    except WarcmillError as error:
        log.warning("%s: no edition is made of what was edited by hand in its feed since the last: %s", job, error)


def _look_at_papers(line: OpenRoots, engine: Engine, job: str) -> None:
    """Make an edition of what was edited by hand in a job of our own engine, so that its launch names it. Without the
    store none can be made: that is logged, and holds up no crawl."""
    if engine.kind != engines.WARCMILL:
        return
    folder = engines.own_engine(engines.section_of(job)).places.job(job)
    try:
        papers_of(line, folder, job).settle()
    except WarcmillError as error:
        log.warning("%s: the launch names no edition of what was edited by hand since the last: %s", job, error)


def _prepared(state: MarkerStore, engine: Engine, job: str, due: str) -> dict[str, Json]:
    """Write the job's configuration and return its facts. A job without a feed keeps the configuration it has."""
    if indexes.mirrors(job):
        return indexes.configure(state, engine, job, layout.feed_key(job, due))
    return feeds.configure(state, engine, job, due) if feeds.is_fed(job) else {}
