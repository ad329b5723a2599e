"""A launch with everything around it: signals and the control socket reach it, and it ends with a checkpoint."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress

from warcmill.crawl import edits
from warcmill.crawl.control import Control
from warcmill.crawl.control_frontier import FrontierControl
from warcmill.crawl.edits import Edits
from warcmill.crawl.job_log import Word
from warcmill.crawl.launch import Running
from warcmill.crawl.launch_folders import CONTROL
from warcmill.crawl.stop import End
from warcmill.crawl.watched import Watched
from warcmill.errors import Conflict, WarcmillError
from warcmill.model import Json

SIGNALS = (signal.SIGTERM, signal.SIGINT)
ROOT_SECONDS = 1.0  # between two looks at the roots


class Session(FrontierControl):
    """What a control socket speaks to; see `control.Controlled`."""

    def __init__(self, running: Running) -> None:
        super().__init__(running.books.frontier)
        self._running = running
        self._stopping = self._paused = False
        self._busy = asyncio.Lock()
        folders = running.folders
        self._edits = Edits(folders.job, folders.own, running.kit.live)
        self._watched = Watched(running.watched())

    async def run(self) -> End:
        """Crawl to the end, with a checkpoint when something is left; a second signal ends it at once."""
        control = Control(self._running.places.state(self._running.job.name) / CONTROL, self)
        await control.open()
        loop = asyncio.get_running_loop()
        for one in SIGNALS:
            loop.add_signal_handler(one, self._signalled)
        beside = [asyncio.create_task(self._take_checkpoints()), asyncio.create_task(self._watch_roots())]
        try:
            end = await self._running.crawl()
            self._stopping = True
            async with self._busy:  # a checkpoint that is being taken comes to its end
                for task in beside:
                    task.cancel()
                await control.close()
                if end is not End.EMPTY:
                    await self._running.checkpoint()
                await self._running.close(end)
        except BaseException:
            await self._running.abandon()
            raise
        finally:
            self._watched.close()
            await control.close()
        return end

    async def _take_checkpoints(self) -> None:
        """Take one every some hours; one that fails is tried again at the next time."""
        while hours := self._running.job.checkpoint_hours:
            await asyncio.sleep(hours * 3600)
            try:
                await self.checkpoint()
            except (WarcmillError, OSError) as error:
                self._running.logs.alert("SEVERE", f"no checkpoint: {error}")

    async def _watch_roots(self) -> None:
        """Pause while a disk is not there, and report it: nothing may be written beside it. End when a folder is gone,
        or the lock is another's. Take edits of its files."""
        is_gone = False
        while True:
            await asyncio.sleep(ROOT_SECONDS)
            if self._has_lost(self._watched.refuse_deleted):
                return
            try:
                self._running.places.require()
            except WarcmillError as error:
                if not is_gone:
                    self._running.spider.pause()
                    with suppress(WarcmillError):  # the log is open; its disk may be the one that is gone
                        self._running.logs.alert("SEVERE", f"the crawl waits: {error}")
                is_gone = True
                continue
            if self._has_lost(self._watched.refuse_moved):
                return
            if is_gone:
                self._running.spider.resume()
            is_gone = False
            self._take_edits()

    def _has_lost(self, look: Callable[[], None]) -> bool:
        """Look; end the crawl when something is lost."""
        try:
            look()
        except WarcmillError as error:
            self._running.spider.fail(error)
            return True
        return False

    def _take_edits(self) -> None:
        try:
            if edited := self._edits.take():
                self._running.logs.alert("WARNING", edited)
        except WarcmillError as error:
            self._running.logs.alert("SEVERE", edits.unfit(error))

    def _signalled(self) -> None:
        if self._stopping:
            self._running.spider.hurry()
        self._stopping = True
        self._running.spider.stop()

    async def state(self) -> Mapping[str, Json]:
        """What the crawl is doing."""
        running, moment = self._running, await self._running.moment()
        return {
            "state": "STOPPING" if self._stopping else "PAUSED" if self._paused else "RUNNING",
            "launch": running.launch.id,
            "continues": str(running.continues) if running.continues else "",
            "seconds": int(running.spider.seconds),
            "done": moment.downloaded,
            "queued": moment.queued,
            "bytes": moment.bytes,
            "under_way": moment.busy,
            **running.summary(),
        }

    async def pause(self) -> None:
        """Begin no more downloads, and wait until those under way have ended."""
        async with self._busy:
            if self._paused or self._stopping:
                return
            self._running.job_log.write(Word.PAUSING)
            self._running.spider.pause()
            self._paused = True
            await self._running.spider.settled()
            self._running.job_log.write(Word.PAUSED)

    async def proceed(self) -> None:
        """Go on after a pause."""
        async with self._busy:
            if self._paused:
                self._paused = False
                self._running.job_log.write(Word.RUNNING)
                self._running.spider.resume()

    async def checkpoint(self) -> str:
        """Take a checkpoint, continue, and return its name."""
        if self._stopping:
            raise Conflict(str(self._running.launch), "it is about to end, with a checkpoint of its own")
        async with self._busy:
            return str(await self._running.checkpoint())

    async def stop(self) -> None:
        """Begin to end the launch."""
        self._stopping = True
        self._running.spider.stop()
