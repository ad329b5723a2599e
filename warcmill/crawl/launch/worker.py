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
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from warcmill.crawl.books.files import LOGS, Folders, recover
from warcmill.crawl.durable import make_folder
from warcmill.crawl.frontier.crew import Crew, Order, Orders
from warcmill.crawl.frontier.link import PARTLY, RedisLink, RedisPlace
from warcmill.crawl.job import file
from warcmill.crawl.launch import folders as launch_folders
from warcmill.crawl.launch.database import on_redis, open_register
from warcmill.crawl.launch.folders import NAME as LOCK
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.launch.launch import Running, SpiderMaker, join_launch
from warcmill.crawl.launch.leader import CHECKPOINT_WAIT, NETWORKS
from warcmill.crawl.visit.spider import Spider
from warcmill.errors import BadConfig, Unavailable, WarcmillError
from warcmill.model import Launch

log = logging.getLogger(__name__)
OWN = ".worker"
SIGN_SECONDS, LONGEST_PAUSE = 1.0, 2 * CHECKPOINT_WAIT
SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class WorkerPlaces(Places):
    """The folders of a worker."""

    job_name: str = ""

    def require(self) -> None:
        """Raise Unavailable unless its disk is there."""
        if not (self.state(self.job_name) / LOCK).exists():
            raise Unavailable(str(self.output), f"the lock of this worker in {OWN} is gone; mount the disk")


class Worker:
    """A worker of a job, by its name, over the Redis that has the frontier; `exit` is its public address, where rates
    are by that, too. `spider` makes its loop in each launch."""

    def __init__(
        self, output: Path, name: str, job: str, place: RedisPlace, exit: str = "",  # noqa: A002
        spider: SpiderMaker = Spider,
    ) -> None:  # fmt: skip
        self._spider = spider
        self._name, self._job, self._place, self._exit = name, job, place, exit
        self._places = WorkerPlaces(output, output / OWN, frontier=place, job_name=job)
        self._running: Running | None = None
        self._is_leaving, self._done, self._token = False, 0, ""

    async def run(self) -> None:
        """Crawl launch after launch, until a signal. BadConfig without its folder; Busy when its name, or its folder,
        is another's."""
        if not self._places.output.is_dir():
            raise BadConfig("--output", f"{self._places.output} is no folder; make it, and name it in a [writer.NAME]")
        with launch_folders.held(self._places.state(self._job)):
            link = RedisLink(self._place, self._job)
            crew = Crew(link)
            try:
                link.examine()
                loop = asyncio.get_running_loop()
                for one in SIGNALS:
                    loop.add_signal_handler(one, self._signalled)
                register = open_register(self._places.database(self._job))
                self._token = register.writer
                register.disconnect()
                await self._work(crew)
            finally:
                with suppress(Unavailable):
                    await crew.leave(self._name, self._token)
                crew.close()

    def _signalled(self) -> None:
        if self._running and self._is_leaving:
            self._running.spider.hurry()
        elif self._running:
            self._running.spider.stop()
        self._is_leaving = True

    async def _work(self, crew: Crew) -> None:
        await crew.sign(self._name, self._token)
        while not self._is_leaving:
            try:
                await self._look(crew)
            except Unavailable as error:  # of Redis, or of its disk; what is kept of a launch is whole
                log.warning("%s; tried again", error)
            if not self._is_leaving:
                await asyncio.sleep(SIGN_SECONDS)

    async def _look(self, crew: Crew) -> None:
        """Join the launch that there is, if any; close what a kill has left of one that ends."""
        orders = await crew.sign(self._name, self._token)
        launch, files = await crew.job()
        is_over = orders.kind == Order.END and orders.launch == launch
        if launch and not is_over:
            await self._crawl(crew, Launch.parse(self._job, launch), files)
        elif is_over and orders.number > self._done:
            self._close_left()
            await self._report(crew, orders)

    async def _report(self, crew: Crew, orders: Orders) -> None:
        await crew.report(self._name, orders.number)
        self._done = orders.number

    def _close_left(self, current: str = "") -> None:
        """Put the files in order that a kill has left, of another launch than the current one."""
        register = open_register(self._places.database(self._job))
        try:
            if register.launch not in ("", current) and not register.is_clean:
                found = self._places.folders(Launch.parse(self._job, register.launch))
                recover(register, Folders(found.warcs, found.logs))
                register.close()
        finally:
            register.disconnect()

    async def _crawl(self, crew: Crew, launch: Launch, files: dict[str, bytes]) -> None:
        """Crawl one launch, until it is over or a signal comes."""
        networks = json.loads(files.pop(NETWORKS))
        job = replace(file.parse(files, self._job), allow_private=tuple(networks))
        folders = self._places.folders(launch)
        for folder in (folders.warcs, folders.logs, self._places.scratch(self._job)):
            make_folder(folder)
        self._close_left(launch.id)
        frontier, register = on_redis(
            self._places.database(self._job), self._job, self._place, leads=False, exit=self._exit
        )
        running = self._running = await join_launch(self._places, job, launch, frontier, register, self._spider)
        signs = asyncio.create_task(self._follow(crew, running))
        try:
            if not self._is_leaving:
                await running.spider.run()
                if running.spider.is_over:
                    self._is_leaving = True
            await running.leave()
        except BaseException:
            await running.abandon()
            raise
        finally:
            self._running = None
            signs.cancel()
            found = await asyncio.gather(signs, return_exceptions=True)
        if isinstance(found[0], Orders):
            await self._report(crew, found[0])

    async def _follow(self, crew: Crew, running: Running) -> Orders | None:
        """Give signs of life, and do what is ordered; return the order that ended the launch, None for none."""
        ours = running.launch.id
        while True:
            await asyncio.sleep(SIGN_SECONDS)
            try:
                orders = await crew.sign(self._name, self._token)
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

    async def _close_stage(self, crew: Crew, running: Running, orders: Orders) -> None:
        """Close a stage, and wait until the leader has made the checkpoint."""
        async with running.spider.drained():
            await running.books.settle()
            if not any((running.folders.logs / f"{name}.{orders.stage}").exists() for name in LOGS):
                await running.books.rotate(orders.stage)
                running.logs.rotate(orders.stage)
            await self._report(crew, orders)
            deadline = time.monotonic() + LONGEST_PAUSE  # the leader may have died
            while (found := await crew.sign(self._name, self._token)).number == orders.number:
                if self._is_leaving or found.current != orders.current or time.monotonic() > deadline:
                    return
                await asyncio.sleep(SIGN_SECONDS / 4)
            if found.kind == Order.END:  # nothing more is fetched, as the next launch begins with this checkpoint
                running.spider.stop()
