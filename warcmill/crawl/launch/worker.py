"""A worker: it joins the launches of a job that another process leads, and crawls. Writes below its output alone.

{output}/{warcs,logs}/{job}/{launch}/    what it leaves: a `[writer.NAME]` of the line reads it
{output}/.worker/{job}/                  its lock, its database, long answers

The job's files, the launch and the orders are in Redis. It ends by SIGTERM, when what is under way has ended; a second
one ends it at once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from warcmill.crawl.books.files import LOGS, Folders, recover
from warcmill.crawl.control.owners import FollowedOwners
from warcmill.crawl.durable import make_folder
from warcmill.crawl.frontier.crew import Crew, Order, Orders, token_of
from warcmill.crawl.frontier.link import CHECKPOINT_WAIT, PARTLY, RedisLink, RedisPlace
from warcmill.crawl.job import file
from warcmill.crawl.job.job import Fetched, Job
from warcmill.crawl.launch import folders as launch_folders
from warcmill.crawl.launch import reports
from warcmill.crawl.launch.database import on_redis, open_register
from warcmill.crawl.launch.folders import NAME as LOCK
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.launch.launch import Running, ServiceMaker, SpiderMaker, join_launch
from warcmill.crawl.launch.leader import NETWORKS, OWNED, Share
from warcmill.crawl.logs.statistics import Figures
from warcmill.crawl.visit.offers import Refusals
from warcmill.crawl.visit.spider import Spider
from warcmill.errors import BadConfig, Unavailable, WarcmillError
from warcmill.formats.logs.bounds import BoundTally
from warcmill.model import Json, Launch

log = logging.getLogger(__name__)
OWN = ".worker"
SIGN_SECONDS, LONGEST_PAUSE = 1.0, 2 * CHECKPOINT_WAIT
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class WorkerPlaces(Places, frozen=True):
    """The folders of a worker."""

    job_name: str = ""

    def require(self) -> None:
        """Raise Unavailable unless its disk is there."""
        if not (self.state(self.job_name) / LOCK).exists():
            raise Unavailable(str(self.output), f"the lock of this worker in {OWN} is gone; mount the disk")


class Worker:
    """A worker of a job, by its name, over the Redis that has the frontier; `exit` is its public address, where rates
    are by that, too. `spider` makes its loop in each launch. `service` serves a job that has one; `unserved`: why such
    a job is refused without it."""

    def __init__(
        self, output: Path, name: str, job: str, place: RedisPlace, exit: str = "",  # noqa: A002
        spider: SpiderMaker = Spider, service: ServiceMaker | None = None, unserved: str = "",
    ) -> None:  # fmt: skip
        self._spider, self._service, self._unserved = spider, service, unserved
        self._name, self._job, self._place, self._exit = name, job, place, exit
        self._places = WorkerPlaces(output, output / OWN, frontier=place, job_name=job)
        self._running: Running | None = None
        self._is_leaving, self._done = False, 0
        self._writer = self._token = self._edition = self._open = ""
        self._purged = self._group = 0
        self._is_known = False  # the launch of which files are open
        self._owners: FollowedOwners | None = None
        self._mark: list[Json] = []  # whose hosts are, as far as it has heard that, and does so
        self._rate, self._share = MinuteRate(), Share("", summary={}, served={})

    async def run(self) -> None:
        """Crawl launch after launch, until a signal. BadConfig without its folder; Busy when its name, or its folder,
        is another's; Conflict when it was retired."""
        if not self._places.output.is_dir():
            why = f"{self._places.output} is not a folder; make it, and name it in a [writer.NAME]"
            raise BadConfig("--output", why)
        with launch_folders.held(self._places.state(self._job)):
            link = RedisLink(self._place, self._job)
            crew = Crew(link)
            try:
                link.examine()
                loop = asyncio.get_running_loop()
                for one in SIGNALS:
                    loop.add_signal_handler(one, self._signalled)
                self._see_register()
                await self._sign(crew)
                await self._work(crew)
            finally:
                with suppress(WarcmillError):
                    if self._open:
                        await self._sign(crew)
                    else:
                        await crew.leave(self._name, self._token)
                crew.close()

    def _see_register(self) -> None:
        """Note the name of the register, and the launch of which a kill has left files open."""
        register = open_register(self._places.database(self._job))
        self._writer, self._token = register.writer, token_of(register.writer)
        self._open = "" if register.is_clean else register.launch
        self._is_known, self._group = True, register.group
        register.disconnect()

    @property
    def places(self) -> WorkerPlaces:
        """Its folders."""
        return self._places

    def committed(self, launch: str, size: int) -> int:
        """Return up to where results.jsonl of a launch may be read, which has so many bytes. Any thread may ask."""
        running = self._running
        if running and running.launch.id == launch:
            return min(size, running.books.results_length)
        return size if self._is_known and launch != self._open else 0

    def _signalled(self) -> None:
        if self._running and self._is_leaving:
            self._running.spider.hurry()
        elif self._running:
            self._running.spider.stop()
        self._is_leaving = True

    async def _work(self, crew: Crew) -> None:
        named = ""
        while not self._is_leaving:
            try:
                await self._look(crew)
                named = ""
            except Unavailable as error:  # of Redis, or of its disk; what is kept of a launch is whole
                if str(error) != named:
                    log.warning("%s; tried again each second", error)
                named = str(error)
            if not self._is_leaving:
                await asyncio.sleep(SIGN_SECONDS)

    async def _sign(self, crew: Crew) -> Orders:
        """Give a sign of life, with the number of the last group of its journal that no kill cuts off."""
        if (running := self._running) and not running.is_closed:
            self._share = running.share()
            with suppress(WarcmillError):  # the spider reports why the books have stopped
                self._group = await running.books.frontier.run(lambda: running.register.group)
        figures = {
            **self._share._asdict(), "per_minute": self._rate.now(self._share.succeeded), "group": self._group,
            "owners": self._mark,
        }  # fmt: skip
        return await crew.sign(self._name, self._token, self._open, figures)

    async def _look(self, crew: Crew) -> None:
        """Join the launch that there is, if any; close what a kill has left of one that ends. Without its disk it gives
        no sign of life: it is missing then, and others fetch what it had."""
        self._places.require()
        orders = await self._sign(crew)
        launch, edition, files = await crew.job()
        is_over = orders.kind == Order.END and orders.launch == launch
        if launch and not is_over:
            await self._crawl(crew, Launch.parse(self._job, launch), edition, files)
        elif is_over and (orders.number > self._done or self._open):
            left_out = self._close_left()
            figures, logs = Figures(), self._places.folders(Launch.parse(self._job, launch)).logs
            if logs.exists():
                figures.catch_up(logs)
            self._share = Share.of(launch, figures, reports.figures(figures, Refusals(), "", {}, left_out))
            await self._report(crew, orders.number, figures)
            await self._sign(crew)

    async def _report(self, crew: Crew, number: int, statistics: Figures) -> None:
        """Report what was done: its files are closed for it."""
        await crew.report(self._name, number, self._writer, statistics.dump())
        self._done = max(number, self._done)

    def _close_left(self, current: str = "") -> BoundTally:
        """Put the files in order that a kill has left, of another launch than the current one; return what bounds have
        left out of the last launch."""
        register = open_register(self._places.database(self._job))
        try:
            if register.launch not in ("", current) and not register.is_clean:
                found = self._places.folders(Launch.parse(self._job, register.launch))
                recover(register, Folders(found.warcs, found.logs))
                register.close()
            self._open = "" if register.is_clean else register.launch
            return register.left_out()
        finally:
            register.disconnect()

    async def _crawl(self, crew: Crew, launch: Launch, edition: str, files: dict[str, bytes]) -> None:
        """Crawl one launch, until it is over or a signal comes."""
        folders, job = self._places.folders(launch), self._read_job(files)
        service = self._service.joins(crew) if self._service and job.service else None
        for folder in (folders.warcs, folders.logs, self._places.scratch(self._job)):
            make_folder(folder)
        self._close_left(launch.id)
        self._open = launch.id
        orders = await self._sign(crew)  # from now on the leader waits for it
        if orders.current != launch.id or (orders.kind == Order.END and orders.launch == launch.id):
            self._close_left()
            return
        frontier, register = on_redis(
            self._places.database(self._job), self._job, self._place, leads=False, exit=self._exit
        )
        self._owners = frontier.owners = FollowedOwners(RedisLink(self._place, self._job)) if OWNED in files else None
        try:
            running = await join_launch(self._places, job, launch, frontier, register, self._spider, service)
        except BaseException:
            self._let_go_owners()
            raise
        self._running, self._edition = running, edition
        await self._hear(running)
        signs = asyncio.create_task(self._follow(crew, running))
        signs.add_done_callback(lambda _: running.spider.stop())  # without them it would crawl unled
        try:
            if not self._is_leaving:
                await running.spider.run()
                if running.spider.is_over:
                    self._is_leaving = True
            await running.leave()
            self._open, self._share = "", running.share()
            self._see_register()
        except BaseException:
            await running.abandon()
            raise
        finally:
            self._running = None
            signs.cancel()
            found = await asyncio.gather(signs, return_exceptions=True)
            self._let_go_owners()
        if isinstance(found[0], Exception):
            raise found[0]
        with suppress(Unavailable):
            await self._report(crew, found[0].number if isinstance(found[0], Orders) else 0, running.figures)
            await self._sign(crew)

    def _read_job(self, files: Mapping[str, bytes]) -> Job:
        """The job that these files configure. BadConfig for one whose service this worker lacks."""
        papers = {name: data for name, data in files.items() if name != OWNED}
        networks = json.loads(papers.pop(NETWORKS))
        job = file.parse(papers, self._job)
        if job.service and not self._service:
            raise BadConfig(f"job {self._job}", self._unserved)
        return replace(job, allow_private=tuple(networks))

    async def _follow(self, crew: Crew, running: Running) -> Orders | None:
        """Give signs of life, and do what is ordered; return the order that ended the launch, if one did."""
        ours = running.launch.id
        while True:
            await asyncio.sleep(SIGN_SECONDS)
            try:
                self._places.require()
            except Unavailable as error:
                running.spider.fail(error)
                return None
            try:
                await self._hear(running)
                orders = await self._sign(crew)
                await self._take(crew, running, orders)
                if orders.kind == Order.CHECKPOINT and orders.launch == ours and orders.number > self._done:
                    await self._close_stage(crew, running, orders)
            except Unavailable:
                continue  # the frontier warns of it
            except WarcmillError as error:
                running.spider.fail(error)
                return None
            is_ended = orders.kind == Order.END and orders.launch == ours
            if is_ended or orders.current not in (ours, "", ours + PARTLY):
                running.spider.stop()
                return orders if is_ended else None

    async def _hear(self, running: Running) -> None:
        """Hear whose hosts are. It says so once no host that is another's is visited."""
        if owners := self._owners:
            await owners.refresh()
            mark = owners.mark
            self._mark = mark if await running.spider.keeps_to(owners) else []

    def _let_go_owners(self) -> None:
        self._mark = []
        if self._owners:
            self._owners.close()
            self._owners = None

    async def _take(self, crew: Crew, running: Running, orders: Orders) -> None:
        """Take edits of the job's files, and the figures of the others; forget what others have purged."""
        if orders.purged != self._purged:
            self._purged = orders.purged
            running.kit.offers.forget_all()
        if orders.elsewhere:
            counts = [one for name, one in json.loads(orders.elsewhere).items() if name != self._name]
            running.spider.elsewhere = Fetched(*map(sum, zip(*counts, strict=True)))
        if orders.edition not in ("", self._edition) and orders.current == running.launch.id:
            launch, edition, files = await crew.job()
            if launch == running.launch.id:
                audiences = running.kit.live.job.audiences
                running.kit.live.job, self._edition = replace(self._read_job(files), audiences=audiences), edition
                running.logs.alert("WARNING", "the job's files were edited: counts from now on")

    async def _close_stage(self, crew: Crew, running: Running, orders: Orders) -> None:
        """Close a stage, and wait until the leader has made the checkpoint."""
        async with running.spider.drained():
            await running.books.settle()
            if not any((running.folders.logs / f"{name}.{orders.stage}").exists() for name in LOGS):
                await running.books.rotate(orders.stage)
                running.logs.rotate(orders.stage)
            await self._report(crew, orders.number, running.figures)
            deadline = time.monotonic() + LONGEST_PAUSE  # the leader may have died
            while (found := await self._sign(crew)).number == orders.number:
                if self._is_leaving or found.current != orders.current or time.monotonic() > deadline:
                    return
                await asyncio.sleep(SIGN_SECONDS / 4)
            if found.kind == Order.END:  # nothing more is fetched, as the next launch begins with this checkpoint
                running.spider.stop()


class MinuteRate:
    """The number of URIs that got an answer in the last minute."""

    def __init__(self) -> None:
        self._seen = deque[tuple[float, int]]()

    def now(self, succeeded: int) -> int:
        """Note how many have by now; return how many more than a minute ago."""
        moment = time.monotonic()
        if self._seen and succeeded < self._seen[-1][1]:  # another launch
            self._seen.clear()
        self._seen.append((moment, succeeded))
        while self._seen[0][0] < moment - 60:
            self._seen.popleft()
        return succeeded - self._seen[0][1]
