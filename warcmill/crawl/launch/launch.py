"""One open launch of a job: crawl it, take checkpoints of it, end it. Nothing here outlives the launch.

    open_launch(places, job, launch)                    a new one, that begins afresh
    open_launch(..., resume=checkpoint)                 a new one, that continues a checkpoint
    open_launch(..., follows=launch_id)                 a new one, with what waited in the job's newest launch; of an
                                                        endless job with what was seen, too
    open_launch(...) of a launch that was killed        its files are cut to its books, and it continues

Writes to the launch's folders. PREPARING is in job.log before anything else, so a launch that is killed while it is
opened is known.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from warcmill import __version__
from warcmill.base import clock
from warcmill.crawl.books.books import Books, open_books
from warcmill.crawl.books.files import Folders
from warcmill.crawl.control.messages import ServiceVerb
from warcmill.crawl.control.owners import ToldOwners
from warcmill.crawl.control.sites import NAME as SITES
from warcmill.crawl.control.sites import KeptSites
from warcmill.crawl.durable import make_folder
from warcmill.crawl.frontier import Begins, Frontier, Gate, Rate
from warcmill.crawl.frontier.crew import Crew, Order
from warcmill.crawl.frontier.link import RedisLink, RedisPlace
from warcmill.crawl.frontier.register import FED, Register
from warcmill.crawl.job.job import CEILINGS, Audiences, End, Fetched, Job, Live
from warcmill.crawl.launch import checkpoint, reports
from warcmill.crawl.launch import folders as launch_folders
from warcmill.crawl.launch import folders as lock
from warcmill.crawl.launch.checkpoint import DATABASE, DUMP, STATISTICS, Checkpoint
from warcmill.crawl.launch.database import open_frontier, refuse_emptied, restore, restore_fed
from warcmill.crawl.launch.folders import RETRY, LaunchFolders, Places
from warcmill.crawl.launch.intake import ask_again
from warcmill.crawl.launch.job_log import NAME as JOB_LOG
from warcmill.crawl.launch.job_log import JobLog, Word
from warcmill.crawl.launch.leader import Leader, Share, files_of, papers_of, write_retired
from warcmill.crawl.launch.reports import Reporter
from warcmill.crawl.logs.logs import Logs
from warcmill.crawl.logs.progress import Moment
from warcmill.crawl.logs.statistics import Figures, Statistics
from warcmill.crawl.policies.owners import NAME as OWNERS
from warcmill.crawl.policies.owners import Owners
from warcmill.crawl.uri import Status, Uri, canonical, shown
from warcmill.crawl.visit.spider import Spider
from warcmill.crawl.visit.visit import Kit, make_kit
from warcmill.errors import BadInput, NotReady, Unavailable, WarcmillError
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.formats.seeds import SEED_LIST
from warcmill.formats.warc.writer import WarcFiles, Writer
from warcmill.model import Json, Launch, Stage, stamp_time

ROW_SECONDS = 20.0  # between two rows of progress-statistics.log
SpiderMaker = Callable[[Kit, Figures, float], Spider]
"""Makes the loop of a launch of its kit, its figures and the time when it began."""


class LaunchService(Protocol):
    """Serves, in one process of a launch, those who ask its job for URIs. A room above the crawler docks by it."""

    @property
    def audiences(self) -> Audiences:
        """Those who ask, for `job.of`."""
        ...

    @property
    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """The answers that this process has got for them, by spider, then by status."""
        ...

    @property
    def verbs(self) -> Mapping[str, ServiceVerb]:
        """The verbs that it adds to those of the control socket."""
        ...

    def opened(self, running: Running, crew: Crew | None) -> None:
        """Hear that the launch is open. `crew`: the workers of the process that leads."""
        ...

    def beside(self) -> Sequence[Coroutine[None, None, None]]:
        """Return the work that is done beside the crawl, until that ends and cancels it."""
        ...


class ServiceMaker(Protocol):
    """Makes the service of a process."""

    def leads(self, folder: Path) -> LaunchService:
        """Return the service for the job's own process; `folder` is the job's."""
        ...

    def joins(self, crew: Crew) -> LaunchService:
        """Return the service for a worker."""
        ...


class Running(Struct):
    """A launch with all its files open. `continues`: the checkpoint that it was resumed from. `leader`: who leads its
    workers, where the frontier can have any. A worker writes no job.log."""

    places: Places
    folders: LaunchFolders
    job: Job
    launch: Launch
    books: Books
    register: Register
    logs: Logs
    figures: Figures
    job_log: JobLog
    kit: Kit
    spider: Spider
    reporter: Reporter
    continues: Stage | None = None
    leader: Leader | None = None
    service: LaunchService | None = None
    is_closed: bool = False
    watching: asyncio.Task[None] | None = None
    sites: KeptSites | None = None

    async def crawl(self) -> End:
        """Crawl until nothing waits, if the job may end, a ceiling is reached, or the spider is asked to stop."""
        self.job_log.write(Word.PAUSED)  # as Heritrix, which waits there until it is asked to crawl
        self.job_log.write(Word.RUNNING)
        self.logs.event("RUNNING", "Preparing")
        rows = asyncio.create_task(self._report())
        listed = self.folders.own / SEED_LIST
        try:
            return await self.spider.run(listed if listed.exists() else None)
        finally:
            rows.cancel()
            await asyncio.gather(rows, return_exceptions=True)

    async def moment(self) -> Moment:
        """The figures of now."""
        counts, now = await self.books.frontier.count(), time.time()
        shares = self._shares()
        return Moment(
            at=now,
            seconds=self.spider.seconds,
            discovered=sum(counts.values()),
            queued=counts[Status.SCHEDULED] + counts[Status.DOWNLOADING] + counts[Status.SUSPENDED],
            downloaded=sum(one.succeeded for one in shares),
            bytes=sum(one.bytes for one in shares),
            failures=sum(one.failed for one in shares),
            busy=sum(one.under_way for one in shares),
        )

    def share(self) -> Share:
        """The figures of this process alone."""
        found = self.figures
        summary = reports.figures(
            found, self.kit.offers.refused, self.reporter.first_failure, self.reporter.policies_failed,
            self.books.left_out.joined(self.kit.offers.left_out),
        )  # fmt: skip
        served = self.service.counts if self.service else {}
        return Share.of(self.launch.id, found, summary, self.spider.under_way, served)

    def answers(self) -> dict[str, Json]:
        """The answers that its service has got, by process ('' is this one), spider and status."""
        others = self.leader.shares if self.leader else {}
        return {
            name: {spider: {**statuses} for spider, statuses in one.served.items()}
            for name, one in {"": self.share(), **others}.items()
        }

    def _shares(self) -> list[Share]:
        return [self.share(), *(self.leader.shares.values() if self.leader else ())]

    def watched(self) -> list[Path]:
        """The folders and files that it writes to or holds: without one of these it must not continue."""
        name, own = self.job.name, self.folders
        state = self.places.state(name)
        folders = [own.job, own.own, own.warcs, own.logs, self.places.scratch(name), state]
        return [*folders, state / lock.NAME, self.places.database(name)]

    def summary(self) -> dict[str, Json]:
        """The figures of the launch so far."""
        first, *others = (one.summary for one in self._shares())
        return reduce(reports.added, others, dict(first))

    async def checkpoint(self, workers_continue: bool = True) -> Stage:
        """Let what is under way end, take a checkpoint, and continue; workers only if `workers_continue`, as the next
        launch fetches again what they fetch after it."""
        stage = checkpoint.next_stage(self.folders, clock.stamp(), self.continues)
        if self.leader:
            await self.leader.order(Order.CHECKPOINT, str(stage))
        try:
            async with self.spider.drained():
                await self.books.settle()
                if self.leader:
                    await self.leader.done()
                fed = await self.books.frontier.run(lambda: self.register.number(FED))
                row = self.logs.progress(await self.moment())
                await checkpoint.take(
                    self.books, self.logs, self.job_log, await self._statistics(), self.folders, self.launch, stage,
                    row, self.places.require, fed,
                )  # fmt: skip
        finally:
            if self.leader and workers_continue:
                await self.leader.order(Order.CONTINUE)
        return stage

    async def close(self, end: End) -> None:
        """Close all files, write the reports, and then FINISHED."""
        self.job_log.write(Word.STOPPING)
        if end is End.EMPTY:
            self.job_log.write(Word.EMPTY)
        if self.leader:
            await self.leader.order(Order.END)
        await self.kit.close()
        await self.books.settle()
        if self.leader:
            await self.leader.done()
        statistics = await self._statistics()
        if self.leader:
            write_retired(self.folders, self.leader.retired)
            await self._unwatch()
            self.leader.close()
        self.logs.progress(await self.moment())
        self.logs.event("ENDED", end)
        left, now = await self.books.frontier.waiting(reports.MOST_QUEUES), time.time()
        await self._count_waiting(end, left.queued)
        self.is_closed = True
        await self.books.close()
        self.logs.close()
        summary = self.summary()
        cuts = reports.bounds_of(summary)
        ending = reports.Ending(
            self.job.name, now, self.spider.seconds, end, "FINISHED", statistics, left, left_out=cuts
        )  # fmt: skip
        reports.write(self.folders.reports, ending)
        reports.write_summary(self.folders.own, end, summary)
        self.job_log.finished()

    async def _count_waiting(self, end: End, waiting: int) -> None:
        """Count what waits at a ceiling as left out by it."""
        if waiting and (bound := CEILINGS.get(end)):
            first = (await self.books.frontier.list(limit=1)).uris
            example = shown(first[0].uri) if first else ""
            self.kit.offers.left_out.add(bound, self.kit.job.bound(bound), example, waiting)

    async def leave(self) -> None:
        """Close all files; the launch continues without this worker."""
        await self.kit.close()
        await self.books.settle()
        self.logs.progress(await self.moment())
        self.is_closed = True
        await self.books.close()
        self.logs.close()

    async def abandon(self) -> None:
        """Let go of all files after an error of a disk; the next start repairs the launch."""
        await self.kit.close()
        if self.leader:
            await self._unwatch()
            self.leader.close()
        if not self.is_closed:
            await self.books.close()

    def watch(self, leader: Leader) -> None:
        """Lead the workers of the launch."""
        self.leader = leader
        self.watching = asyncio.create_task(leader.watch(self.share, self._count_others))
        self.watching.add_done_callback(self._has_watched)

    def _has_watched(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and isinstance(error := task.exception(), WarcmillError):
            self.spider.fail(error)

    def _count_others(self, shares: Iterable[Share]) -> None:
        sums = [(one.documents, one.size, one.under_way) for one in shares]
        self.spider.elsewhere = Fetched(*map(sum, zip(*sums, strict=True))) if sums else Fetched()

    async def _unwatch(self) -> None:
        if self.watching:
            self.watching.cancel()
            await asyncio.gather(self.watching, return_exceptions=True)

    async def _statistics(self) -> Statistics:
        return await self.leader.statistics(self.figures) if self.leader else self.figures

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(ROW_SECONDS)
            try:
                self.logs.progress(await self.moment())
                if self.leader:
                    await self.leader.renew()
            except Unavailable as error:
                with suppress(Unavailable):  # its disk may be the same; the spider reports why the books have stopped
                    self.logs.alert("SEVERE", f"no more rows of progress: {error}")
                return


def began(launch: Launch) -> float:
    """When a launch began, by its id."""
    return stamp_time(launch.id).timestamp()


async def open_launch(
    places: Places, job: Job, launch: Launch, resume: Checkpoint | None = None, follows: str = "",
    spider: SpiderMaker = Spider, service: ServiceMaker | None = None,
) -> Running:  # fmt: skip
    """Open a launch, and offer its seeds. Unavailable when a disk is not there: nothing was written then. `service`:
    whom a job that has one is served by; without it the launch may be put in order, but nobody is served."""
    places.require()
    serving = service.leads(places.job(job.name)) if service and job.service else None
    if serving:
        job = replace(job, audiences=serving.audiences)
    folders = places.folders(launch)
    job_log = JobLog(folders.job, folders.own, launch)
    make_folder(places.state(job.name))
    make_folder(places.scratch(job.name))
    if not (folders.own / JOB_LOG).exists():
        _begin(places, launch, job_log, resume, follows)
    frontier, register = open_frontier(places.database(job.name), job.name, places.frontier)
    try:
        books = await open_books(
            frontier, register, launch.id, Folders(folders.warcs, folders.logs, tuple(_earlier(places, resume))),
            partial(_warcs, places, job, launch),
            _begins(job, resume, follows, retries=(folders.own / RETRY).exists()), results=job.results_log,
        )  # fmt: skip
    except BaseException:
        await frontier.close()
        raise
    if job.name in places.owned:
        books.frontier.owners = Owners(places.state(job.name) / OWNERS)
    await books.frontier.set_gates(job.gate_by)
    if not (job.service and follows):  # the rates of who is served stay over its launches
        await books.frontier.set_rate(Gate(""), _rate(job))
    sites = KeptSites(places.state(job.name) / SITES) if job.endless else None
    if sites:
        await sites.apply(books.frontier)
        books.frontier.begun_anew = partial(sites.apply, books.frontier)
    running = _opened(places, job, launch, books, register, job_log, resume, spider)
    running.sites = sites
    crew = await _lead(running, places.frontier) if places.frontier else None
    await ask_again(running.kit.offers, books.frontier, folders.own)
    seeds = running.kit.offers.seeds(job.seeds)
    running.kit.offers.taken(seeds, await books.frontier.offer(seeds))
    if serving:
        running.service = serving
        serving.opened(running, crew)
    return running


def _begin(places: Places, launch: Launch, job_log: JobLog, resume: Checkpoint | None, follows: str) -> None:
    """Begin a launch that is not there yet; one that resumes a checkpoint gets the frontier of that."""
    folders = places.folders(launch)
    if follows and places.frontier:
        refuse_emptied(launch.job, places.frontier)
    launch_folders.begin(folders, retries=bool(follows))
    checkpoint.write(folders.own, resume)
    checkpoint.write_followed(folders.own, follows)
    job_log.launched()
    if resume:
        _bring_back(places, launch, resume)
        for what in checkpoint.damaged(folders.checkpoints, resume):
            job_log.warn(_passed_over(what))


async def _lead(running: Running, place: RedisPlace) -> Crew:
    """Lead the workers of a launch; return these."""
    crew, files = Crew(RedisLink(place, running.job.name)), files_of(papers_of(running.folders), running.job)
    alert = partial(running.logs.alert, "WARNING")
    owners = running.books.frontier.owners
    told = ToldOwners(RedisLink(place, running.job.name), owners) if isinstance(owners, Owners) else None
    running.watch(leader := Leader(crew, running.launch, files, float(place.checkpoint_wait), alert, told))
    await leader.begin()
    if place.leads_only:
        running.spider.only_lead()
    return crew


async def join_launch(
    places: Places, job: Job, launch: Launch, frontier: Frontier, register: Register, spider: SpiderMaker = Spider,
    service: LaunchService | None = None,
) -> Running:  # fmt: skip
    """Join a launch that another process leads, as a worker."""
    job = replace(job, audiences=service.audiences) if service else job
    folders = places.folders(launch)
    try:
        books = await open_books(
            frontier, register, launch.id, Folders(folders.warcs, folders.logs), partial(_warcs, places, job, launch),
            Begins.CONTINUES, results=job.results_log,
        )  # fmt: skip
    except BaseException:
        await frontier.close()
        raise
    await frontier.set_gates(job.gate_by)
    running = _opened(places, job, launch, books, register, JobLog(folders.job, folders.own, launch), None, spider)
    running.spider.follow()
    if service:
        running.service = service
        service.opened(running, None)
    return running


def _earlier(places: Places, resume: Checkpoint | None) -> Iterator[Path]:
    """The WARCs of the launches that one continues, as far as their checkpoints are there."""
    while resume:
        folders = places.folders(resume.launch)
        yield folders.warcs
        before = checkpoint.continued_from(folders.own)
        try:
            resume = checkpoint.named(folders.checkpoints, resume.launch.job, before) if before else None
        except (NotReady, BadInput):
            return


def _begins(job: Job, resume: Checkpoint | None, follows: str, *, retries: bool) -> Begins:
    """The part that it takes over from the launch before. An endless job is one crawl, whose days are launches; so is
    one that asks again for what it missed."""
    if resume:
        return Begins.CONTINUES
    if follows:
        return Begins.KEEPS if job.endless or retries else Begins.FOLLOWS
    return Begins.FRESH


def _bring_back(places: Places, launch: Launch, resume: Checkpoint) -> None:
    """Bring a checkpoint's frontier to where the job has it now. NotReady for one that was elsewhere."""
    copy = DUMP if places.frontier else DATABASE
    if copy not in resume.files:
        there = "in the job's database" if places.frontier else "in Redis"
        why = f"its frontier was {there}, which 'frontier' of the engine does not say; set that, or begin afresh"
        raise NotReady(f"{launch.job} {resume.stage}", why)
    if places.frontier:
        restore(launch.job, launch.id, resume.folder / DUMP, places.frontier)
        restore_fed(places.database(launch.job), checkpoint.fed(resume))
    else:
        checkpoint.database(resume, places.database(launch.job))


def _rate(job: Job) -> Rate | None:
    """The rate of each host's gate; None for the ordinary one."""
    return Rate(at_once=at_once(job)) if at_once(job) > 1 else None


def at_once(job: Job) -> int:
    """Return how many requests a host may have under way."""
    return job.politeness.at_once or (job.workers if job.is_hurried else 1)


def _opened(
    places: Places, job: Job, launch: Launch, books: Books, register: Register, job_log: JobLog,
    resume: Checkpoint | None, spider: SpiderMaker = Spider,
) -> Running:  # fmt: skip
    folders = places.folders(launch)
    logs, figures = Logs(folders.logs, scope=job.scope_log), _figures(job, resume)
    figures.limit_of = partial(_limit_of, Live(job))
    for what in figures.catch_up(folders.logs):
        logs.alert("SEVERE", what)
    for what in checkpoint.damaged(folders.checkpoints, resume) if resume else ():
        logs.alert("WARNING", _passed_over(what))
    for what in books.mended:
        logs.alert("WARNING", f"launch {launch.id} was killed: {what}")
    reporter = Reporter(figures, logs)
    books.frontier.warn = partial(logs.alert, "WARNING")
    if books.set_back:
        logs.alert("WARNING", f"the clock was set back by {books.set_back:,.0f} s; what waits for a while was moved")
    kit = make_kit(job, books, reporter, places.scratch(job.name), places.job(job.name))
    books.hear = partial(reporter.kept, kit.offers)
    books.ask_left_out = kit.offers.left_out_of
    figures.limit_of = partial(_limit_of, kit.live)
    stage, loop = resume.stage if resume else None, spider(kit, figures, began(launch))
    return Running(places, folders, job, launch, books, register, logs, figures, job_log, kit, loop, reporter, stage)


def _limit_of(live: Live, bound: str, line: CrawlRecord) -> tuple[int, bool]:
    """The value of a bound for the URI of a line, and whether a person has set it."""
    return live.job.of(Uri(line.uri, line.uri, "", source=line.source or "")).bound(bound)


def _passed_over(what: str) -> str:
    return f"checkpoint {what}. It is passed over; what was fetched since the one that is resumed is fetched again"


def _figures(job: Job, resume: Checkpoint | None) -> Figures:
    """The figures up to a checkpoint; none yet for a launch that begins afresh."""
    if resume is None:
        return Figures(_canonical(job.seeds))
    path = resume.folder / STATISTICS
    return Figures.load(path.read_bytes(), str(path))


def _warcs(places: Places, job: Job, launch: Launch, serial: int) -> WarcFiles:
    host = socket.gethostname()
    fields = (
        ("software", f"Warcmill/{__version__}"),
        ("hostname", host),
        ("isPartOf", job.name),
        ("robots", "obey" if job.robots else "ignore"),
        ("http-header-user-agent", job.user_agent),
        *((("operator", job.contact),) if job.contact else ()),
    )
    writer = Writer(job.name, os.getpid(), host)
    return WarcFiles(places.folders(launch).warcs, writer, fields, serial, job.warc_size, places.require)


def _canonical(seeds: Iterable[str]) -> list[str]:
    found = []
    for text in seeds:
        try:
            found.append(canonical(text))
        except BadInput:  # it is named in uri-errors.log
            continue
    return found
