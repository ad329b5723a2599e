"""The loop of a launch that crawls for a spider of Scrapy: it leases for that, beside Scrapy's crawler.

The launch ends when Scrapy has closed the spider: because nothing waits and it is idle, or because it was asked to.
Reads and writes by the books of the launch.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scrapy import Spider as ScrapySpider
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.settings import Settings

from warcmill.crawl.books.books import BookEntry, Kept
from warcmill.crawl.fetch import heartbeat
from warcmill.crawl.frontier import Lease
from warcmill.crawl.job.job import End
from warcmill.crawl.logs.statistics import Figures
from warcmill.crawl.uri import Status
from warcmill.crawl.visit.spider import HOLDER, Spider
from warcmill.crawl.visit.visit import Kit, Visit
from warcmill.errors import BadConfig, WarcmillError
from warcmill.requests.serving.scope import crawl_name
from warcmill.spiders.addon import BRIDGES, OURS, LaunchAddon
from warcmill.spiders.bridge import ScrapyBridge
from warcmill.spiders.guard import CodeGuard
from warcmill.spiders.heard import FIRST_WAIT
from warcmill.spiders.visit import ScrapyReader

log = logging.getLogger(__name__)
_PAUSES = 10  # between two looks at all that waits, in the time that one takes
_NOT_BY_ITSELF = ("finished", "start_error", "shutdown")  # nothing is left, or it is stopped
CLOSE_SECONDS = 30.0  # until pipelines and extensions have closed


class ScrapyLoop(Spider):
    """A `Spider` whose visits go to a spider of Scrapy. `state`: the folder that its job keeps for itself."""

    def __init__(
        self, kit: Kit, figures: Figures, began: float, state: Path, spider: type[ScrapySpider], settings: Settings,
        arguments: Mapping[str, str],
    ) -> None:  # fmt: skip
        super().__init__(kit, figures, began)
        kit.live.wait = FIRST_WAIT
        self._runner = AsyncCrawlerRunner(settings.copy())
        self._crawler = self._runner.create_crawler(spider)
        own = self._crawler.settings  # with the spider's, which may have add-ons, too
        own.set("ADDONS", {**own.getdict("ADDONS"), LaunchAddon: OURS}, OURS)
        self._arguments = dict(arguments)
        self._guard = CodeGuard(str(spider.name), state, kit.heard.alert)
        self.bridge = BRIDGES[self._crawler] = ScrapyBridge(kit, self._crawler, self._guard)
        self._before, kit.books.hear = kit.books.hear, self._heard
        self._crawling: asyncio.Task[None] | None = None
        self._is_closing = False
        self.closed_by = ""
        self._crawler.signals.connect(self._has_closed, signals.spider_closed)
        crawl, guard = self._crawler.crawl_async, self._guard

        async def crawl_async(*args: Any, **kwargs: Any) -> None:
            await guard.run(None, crawl(*args, **kwargs))

        setattr(self._crawler, "crawl_async", crawl_async)  # noqa: B010 - what is made and opened at its beginning
        self._name = str(spider.name)
        self._look_again = 0.0
        self._version = self._seen = 0  # of what the spider remembers

    async def run(self, seed_list: Path | None = None) -> End:
        """Crawl until Scrapy has closed the spider, or the launch is to end."""
        self._guard.begin()
        self.bridge.continues = (await self._kit.books.frontier.count(self._name)).get(Status.SCHEDULED, 0)
        self.bridge.remembered = await self._changed_elsewhere()
        self._crawling = asyncio.ensure_future(self._runner.crawl(self._crawler, **self._arguments))
        self._crawling.add_done_callback(self._closed)
        try:
            return await super().run(seed_list)
        finally:
            await self._close()
            self._guard.end()

    async def settled(self) -> None:
        """Wait until no visit is under way. Those that Scrapy has not begun are given back at once."""
        held = {visit.uri.key for visit in self.bridge.waiting_visits()}
        for task, lease in self._visits.items():
            if lease.uri.key in held:
                task.cancel()
        await super().settled()

    async def _lease(self, limit: int) -> list[Lease]:
        if self._crawling is None or self._crawling.done() or self._crawler.spider is None:
            return []
        frontier, memory = self._kit.books.frontier, self.bridge.memory
        leases = await frontier.lease(HOLDER, limit, spider=self._name)
        if memory and frontier.remembered != self._seen:
            memory.learn(await self._changed_elsewhere())
        if leases:
            self.bridge.is_drained = False
        if self._kit.job.audiences and len(leases) < limit:  # some may be for our own crawler
            leases += await super()._lease(limit - len(leases))
        return leases

    async def _changed_elsewhere(self) -> Mapping[str, str]:
        """Return what other processes have changed of what the spider remembers, since this was last asked."""
        frontier = self._kit.books.frontier
        self._seen = frontier.remembered
        self._version, texts = await frontier.memory(self._name, self._version)
        return texts

    def _visit(self, lease: Lease, thread: int) -> Visit:
        if not lease.uri.spider:
            return super()._visit(lease, thread)
        reader = ScrapyReader(self._kit, self.bridge)
        visit = Visit(self._kit, lease, thread, reader)
        reader.begin(visit)
        return visit

    async def _has_nothing_left(self) -> bool:
        if self._crawling is None or self._crawling.done():
            return self.bridge.is_drained
        await self.bridge.flush()
        taken = self.bridge.taken
        waits = await self._waits()  # meanwhile the spider may have asked for more
        self.bridge.is_drained = not waits and self.bridge.is_idle and taken == self.bridge.taken
        self.bridge.poke()
        has_hung = self.bridge.hung > 0 and not self._kit.job.endless
        return self.bridge.is_drained and has_hung  # then Scrapy is never idle

    async def _waits(self) -> bool:
        """True if a request waits for the spider. One that names its crawlid is of another crawl than the spider's own:
        those are looked for among all that waits, which takes the longer the more there is, so not too often."""
        frontier, now = self._kit.books.frontier, time.monotonic()
        if (await frontier.count(self._name)).get(Status.SCHEDULED, 0):
            return True
        if await frontier.is_empty():
            return False
        if now < self._look_again:
            return True
        crawls = crawl_name(self._name, "")
        found = any(one.crawl.startswith(crawls) for one in await frontier.tally())
        self._look_again = time.monotonic() + _PAUSES * (time.monotonic() - now)
        return found

    def _heard(self, entry: BookEntry, kept: Kept) -> None:
        """Hear what became of the requests that the page of an entry has led to."""
        self._before(entry, kept)
        if entry.uri.spider:
            self.bridge.answered(entry.found, kept.offered)

    def _closed(self, crawling: asyncio.Task[None]) -> None:
        """Hear that Scrapy has closed the spider."""
        self.is_over = not self._is_closing
        if not crawling.cancelled() and (error := crawling.exception()):
            self._failure = self._failure or self._named(error)
            self.hurry()
        elif not self.bridge.is_drained:
            self.stop(End.EMPTY)  # it has finished by itself: what it has not asked for waits for nobody
        self._woken.set()

    def _has_closed(self, reason: str) -> None:
        """Hear why Scrapy closes the spider."""
        if reason not in _NOT_BY_ITSELF:
            self.closed_by = reason

    def _named(self, error: BaseException) -> BaseException:
        """The error of a spider that could not begin, such as for want of an argument: no fault of ours. Its traceback
        is in the log."""
        if isinstance(error, WarcmillError) or not isinstance(error, Exception):
            return error
        log.error("spider %s cannot be run", self._name, exc_info=error)
        return BadConfig(f"spider {self._name}", f"it cannot be run: {type(error).__name__}: {error}")

    async def _close(self) -> None:
        """Close Scrapy's spider, and what it has opened, such as the files of its feeds."""
        crawling, self._is_closing = self._crawling, True
        if crawling is None or crawling.done():
            return
        try:
            async with heartbeat.timeout(CLOSE_SECONDS):
                await self._crawler.stop_async()
                await asyncio.wait([crawling])
        except TimeoutError:
            log.error("spider %s did not close in %.0f s: its pipelines may lack something", self._name, CLOSE_SECONDS)
            crawling.cancel()
        if not crawling.done() or crawling.cancelled():
            return
        error = crawling.exception()
        if isinstance(error, BadConfig):
            raise error
        if error:
            log.error("spider %s closed by an error", self._name, exc_info=error)
