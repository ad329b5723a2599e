"""The add-on by which Scrapy works for a launch: settings, scheduler, download handler, outermost spider middleware.

Scrapy makes each of them by itself, of the crawler; `BRIDGES` has the bridge of a crawler. No I/O of its own.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from inspect import isawaitable
from typing import Any, Self
from weakref import WeakKeyDictionary

from pydispatch.dispatcher import getAllReceivers, liveReceivers
from scrapy import Request, signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.exceptions import CloseSpider
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from warcmill.spiders import browsers
from warcmill.spiders.bridge import FILTER, ScrapyBridge, is_filter_of_none
from warcmill.spiders.visit import Postponed

log = logging.getLogger(__name__)
BRIDGES: WeakKeyDictionary[Crawler, ScrapyBridge] = WeakKeyDictionary()
OURS = 1_000
"""The priority of our settings: above those of the project, the spider and the command line."""
REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
_MIDDLEWARES, _DOWNLOADER, _HANDLERS = "SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES", "DOWNLOAD_HANDLERS"
_UNUSED = (
    FILTER, "SCHEDULER", "SCHEDULER_PRIORITY_QUEUE", "SCHEDULER_MEMORY_QUEUE", "SCHEDULER_DISK_QUEUE",
    "SCHEDULER_START_MEMORY_QUEUE", "SCHEDULER_START_DISK_QUEUE",
)  # fmt: skip
_UNSENT = ("headers_received", "bytes_received", "request_dropped")
"""Signals that a launch does not send."""


class LaunchAddon:
    """The settings that are ours; the rest stays the project's."""

    def __init__(self, bridge: ScrapyBridge) -> None:
        self._bridge = bridge

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LaunchAddon:
        """Make it for a crawler of a launch."""
        return cls(BRIDGES[crawler])

    def update_settings(self, settings: BaseSettings) -> None:
        """Set them."""
        if settings.getbool("HTTPCACHE_ENABLED"):
            log.warning("HTTPCACHE_ENABLED: switched off, as what comes from a cache is in no WARC")
        for name in ("HTTPCACHE_ENABLED", "ROBOTSTXT_OBEY", "HTTPPROXY_ENABLED"):
            settings.set(name, False, OURS)
        settings.set("TWISTED_REACTOR", REACTOR, OURS)
        for name in _UNUSED:
            if settings.getpriority(name) and not is_filter_of_none(settings, name):
                log.warning("%s: not used, as the frontier has what waits, and what was seen", name)
        settings.set("SCHEDULER", FrontierScheduler, OURS)
        theirs = settings.getdict(_HANDLERS)
        if unused := [scheme for scheme in ("http", "https") if theirs.get(scheme)]:
            log.warning("%s for %s: not used, as the launch fetches each page itself", _HANDLERS, ", ".join(unused))
        handlers = {**theirs, "http": LaunchHandler, "https": LaunchHandler}
        settings.set(_HANDLERS, handlers, OURS)
        if theirs_left := browsers.leave_out(settings, OURS):
            log.warning("%s: left out, as the launch has a browser of its own, or none", ", ".join(theirs_left))
        downloader = {name: place for name, place in settings.getdict(_DOWNLOADER).items() if not _is_retry(name)}
        listed = settings.get_component_priority_dict_with_base(_DOWNLOADER)
        place = next((place for name, place in listed.items() if _is_retry(name)), None)
        settings.set(_DOWNLOADER, {**downloader, RetryMiddleware: None, LaunchRetry: place}, OURS)
        others = settings.get_component_priority_dict_with_base(_MIDDLEWARES)
        outermost = min((place for place in others.values() if place is not None), default=0) - 1
        settings.set(_MIDDLEWARES, {**settings.getdict(_MIDDLEWARES), LaunchMiddleware: outermost}, OURS)
        settings.set("USER_AGENT", self._bridge.kit.job.user_agent, "addon")  # unless the project has its own
        for name in ("TELNETCONSOLE_ENABLED", "REMOTE_CONTROL_ENABLED"):  # they listen
            settings.set(name, False, "addon")


def _is_retry(name: Any) -> bool:
    return load_object(name) is RetryMiddleware


class LaunchRetry(RetryMiddleware):
    """Scrapy's middleware for retries: it counts them, and the frontier has the requests."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make it for a crawler of a launch."""
        made = super().from_crawler(crawler)
        BRIDGES[crawler].retries = True
        return made

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Request | Response:
        """Have a request asked again whose answer asks for that."""
        _ = spider
        again = super().process_response(request, response)
        return response if self._is_ours(request) else again

    def process_exception(self, request: Request, exception: Exception, spider: Any = None) -> Any:
        """Have a request asked again that has failed."""
        _ = spider
        if (visit := BRIDGES[self.crawler].first_of(request)) and visit.is_refused:
            return None  # that is final, whatever its reason was
        again = super().process_exception(request, exception)
        return None if self._is_ours(request) else again

    def _is_ours(self, request: Request) -> bool:
        """True for the request of a visit; `Postponed` if that is made again."""
        visit = BRIDGES[self.crawler].first_of(request)
        if visit and visit.is_postponed:
            assert self.crawler.stats is not None
            self.crawler.stats.inc_value("scheduler/enqueued")
            raise Postponed
        return visit is not None


class FrontierScheduler(BaseScheduler):
    """Scrapy's scheduler: what waits, waits in the frontier."""

    def __init__(self, bridge: ScrapyBridge) -> None:
        self._bridge = bridge

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> FrontierScheduler:
        """Make it for a crawler of a launch."""
        return cls(BRIDGES[crawler])

    def has_pending_requests(self) -> bool:
        """True unless nothing waits for this spider."""
        return not self._bridge.is_drained

    def enqueue_request(self, request: Request) -> bool:
        """Take a request; whether the frontier has it already is not known at once."""
        self._bridge.scheduled(request)
        return True

    def next_request(self) -> Request | None:
        """A request that was leased and admitted."""
        return self._bridge.next_request()


class LaunchHandler(BaseDownloadHandler):
    """Scrapy's download handler: our fetcher."""

    lazy = False

    async def download_request(self, request: Request) -> Response:
        """Fetch a request."""
        return await BRIDGES[self.crawler].download(request)


class LaunchMiddleware:
    """The spider middleware that is asked last: it takes requests, and passes items on."""

    def __init__(self, bridge: ScrapyBridge) -> None:
        self._bridge = bridge
        for lost in (signals.spider_error, signals.item_error):
            bridge.crawler.signals.connect(self._failed, lost)
        bridge.crawler.signals.connect(self._opened, signals.spider_opened)
        bridge.crawler.signals.connect(self._scraped, signals.item_scraped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> LaunchMiddleware:
        """Make it for a crawler of a launch."""
        return cls(BRIDGES[crawler])

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Take the requests of `start()`."""
        bridge, found = self._bridge, aiter(start)
        while True:
            try:
                one = await bridge.guard.run(None, anext(found))
            except StopAsyncIteration:
                return
            except CloseSpider:
                await bridge.begun()
                raise
            if not isinstance(one, Request):
                yield one
                continue
            bridge.start(one)
            if bridge.is_full:
                await bridge.flush()

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Take the requests of a callback."""
        bridge = self._bridge
        visit = bridge.visit_of(response.request)
        uri, found = visit.uri if visit else None, aiter(result)
        while True:
            try:
                one = await bridge.guard.run(uri, anext(found))
            except StopAsyncIteration:
                return
            if visit is None or not isinstance(one, Request):
                yield one
            elif bridge.yielded(one, visit, response):
                await bridge.flush()

    def _opened(self) -> None:
        """Hear of each request that the engine has done with."""
        slot = self._bridge.slot
        assert slot is not None
        remove, bridge = slot.remove_request, self._bridge

        def removed(request: Request) -> None:
            remove(request)
            bridge.left(request)

        slot.remove_request = removed  # no signal says that all of a page is done
        bridge.opened()
        for name in _UNSENT:
            if [*liveReceivers(getAllReceivers(bridge.crawler, getattr(signals, name)))]:
                log.warning("signal %s: not sent, as the launch fetches each page itself", name)
        self._guard(bridge.crawler.engine.scraper, bridge.crawler.engine.downloader.middleware)
        asked = bridge.crawler.engine.downloader.middleware.methods["process_request"]
        for place, method in enumerate(asked):
            asked[place] = _Asked(method, bridge)

    def _guard(self, scraper: Any, downloads: Any) -> None:
        """Have the code of the project guarded: middlewares, callbacks, errbacks and pipelines."""
        bridge, guard = self._bridge, self._bridge.guard
        call, scrape, pipelines = scraper.call_spider_async, scraper.start_itemproc_async, scraper.itemproc
        read, download = scraper.spidermw.scrape_response_async, downloads.download_async
        process, close = getattr(pipelines, "process_item_async", None), getattr(pipelines, "close_spider_async", None)

        async def downloaded(fetch: Any, request: Request) -> Any:
            try:
                return await guard.run(bridge.uri_of(request), download(fetch, request))
            except Exception as error:
                if visit := bridge.in_hand(request):
                    visit.broke(error)
                raise

        async def scraped_response(call: Any, response: Any, request: Request) -> Any:
            return await guard.run(bridge.uri_of(request), read(call, response, request))

        async def called(result: Any, request: Request) -> Any:
            return await guard.run(bridge.uri_of(request), call(result, request))

        async def scraped(item: Any, *, response: Any) -> None:
            await guard.run(bridge.uri_of(getattr(response, "request", None)), scrape(item, response=response))

        scraper.call_spider_async, scraper.start_itemproc_async = called, scraped
        scraper.spidermw.scrape_response_async, downloads.download_async = scraped_response, downloaded
        if process:
            pipelines.process_item_async = lambda item: guard.run(None, process(item))
        if close:
            pipelines.close_spider_async = lambda: guard.run(None, close())

    def _scraped(self, item: Any, response: Any) -> None:
        """Hear of an item that has passed the pipelines."""
        request = getattr(response, "request", None)
        if request is not None and (visit := self._bridge.visit_of(request)):
            visit.scraped(item)

    def _failed(self, failure: Any, response: Any) -> None:
        """Note that a callback, or a pipeline, has failed: its page is kept."""
        request = getattr(response, "request", None)
        if request is not None and (visit := self._bridge.visit_of(request)):
            visit.trace = failure.getTraceback()


class _Asked:
    """A method of a downloader middleware that is asked before a request is fetched: it may answer that itself."""

    def __init__(self, method: Any, bridge: ScrapyBridge) -> None:
        self._method, self._bridge = method, bridge

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)

    def __eq__(self, other: object) -> bool:
        return bool(self._method == other)

    def __hash__(self) -> int:
        return hash(self._method)

    def __call__(self, **words: Any) -> Any:
        found = self._method(**words)
        if found is None:
            return None
        return self._awaited(found) if isawaitable(found) else self._heard(found)

    async def _awaited(self, found: Any) -> Any:
        return self._heard(await found)

    def _heard(self, found: Any) -> Any:
        if isinstance(found, Response):
            self._bridge.answers(type(self._method.__self__).__name__)
        return found
