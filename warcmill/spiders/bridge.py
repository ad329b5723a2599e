"""The bridge between a launch and Scrapy's crawler: visits that Scrapy has in hand, requests that are to be offered.

Everything here runs on the one loop of both. Writes to the frontier of the launch.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter
from scrapy.exceptions import IgnoreRequest
from scrapy.extensions.feedexport import FeedExporter
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from twisted.python.failure import Failure

from warcmill.crawl.durable import failed
from warcmill.crawl.extract.links import LINK, REDIRECT
from warcmill.crawl.frontier import Intake, Offered, check_offer
from warcmill.crawl.job.job import Audience
from warcmill.crawl.uri import LONGEST_URI, Status, Uri, canonical, shown, without_credentials
from warcmill.crawl.visit.visit import Kit
from warcmill.errors import BadInput, WarcmillError
from warcmill.spiders import browsers
from warcmill.spiders.guard import CodeGuard
from warcmill.spiders.heard import HeardSettings
from warcmill.spiders.memory import SpiderMemory
from warcmill.spiders.requests import APPID, CRAWLID, MARK, RequestForms
from warcmill.spiders.visit import Besides, SpiderVisit

log = logging.getLogger(__name__)
LOOK = 0.01  # seconds
FILTER = "DUPEFILTER_CLASS"
_THEIRS = frozenset(["ftp", "file", "s3"])  # schemes that Scrapy fetches, and a launch does not
AT_ONCE, BYTES_AT_ONCE = 1_000, 1 << 20  # requests that are offered in one commit, and their payloads together
PATIENCE, CALLBACK_SECONDS = "WARCMILL_CALLBACK_SECONDS", 600.0
_OWN_META = frozenset([MARK, "depth", "download_slot", "download_latency", "download_timeout", "redirect_times",
                       "redirect_ttl", "redirect_urls", "redirect_reasons", "proxy", "cookiejar"])  # fmt: skip
_UNHEARD = (
    ("dont_obey_robotstxt", "as 'robots' of crawl.toml counts"),
    ("bindaddress", "as the launch fetches each page itself"),
)


def is_filter_of_none(settings: BaseSettings, name: str = FILTER) -> bool:
    """True if a setting is the filter of duplicates that filters none."""
    return name == FILTER and load_object(settings.get(FILTER)) is BaseDupeFilter


class ScrapyBridge:
    """One crawler of Scrapy in one launch."""

    def __init__(self, kit: Kit, crawler: Crawler, guard: CodeGuard) -> None:
        self.kit, self.crawler, self.guard = kit, crawler, guard
        self.is_drained = False  # nothing waits for this spider
        self.retries = False  # until Scrapy makes the middleware for them
        self.unarchived = Counter[str]()  # answers of middlewares, by the name of each
        self.refused = self.hung = 0
        self._named = set[str]()  # keys of `meta` that are not heard
        self._filters = not is_filter_of_none(crawler.settings)
        self._nowhere: deque[Request] = deque()  # nobody can fetch them: their errbacks hear of it
        self._ready: deque[SpiderVisit] = deque()  # admitted; Scrapy has not asked for them yet
        self._visits: dict[int, SpiderVisit] = {}  # these, and those that Scrapy has
        self._by_request: dict[Request, SpiderVisit] = {}
        self._offers: list[Uri] = []
        self._offering = asyncio.Lock()
        self._flushing: asyncio.Task[None] | None = None
        self._starts = self._others = 0
        self.remembered: Mapping[str, str] = {}  # by the frontier, before the spider is open
        self.continues = 0  # requests that waited then
        self.memory: SpiderMemory | None = None

    def opened(self) -> None:
        """Have the spider remember what the frontier has of it. Scrapy has opened it: its middlewares are there."""
        self.memory = SpiderMemory(self.crawler, self._forms.values, self.remembered)
        if self.continues:
            kept = f"{self.continues} requests wait; its cookies and spider.state are as they were kept"
            anew = "All else begins anew: its attributes, and files that it had open"
            log.warning("spider %s continues: %s. %s", self.crawler.spidercls.name, kept, anew)

    @cached_property
    def _forms(self) -> RequestForms:
        assert self.crawler.spider
        return RequestForms(self.crawler.spider)

    @cached_property
    def heard(self) -> HeardSettings:
        """The settings that our fetcher hears."""
        assert self.crawler.spider
        return HeardSettings(self.crawler.settings, self.crawler.spider, retries=self.retries)

    @property
    def is_idle(self) -> bool:
        """True if Scrapy has nothing in hand that it does not offer."""
        return not (self._visits or self._offers or self._flushing or self._nowhere)

    @property
    def taken(self) -> int:
        """The number of requests that came of no page."""
        return self._starts - self._others

    @property
    def patience(self) -> float:
        """The seconds that callback and pipelines have for a page."""
        return float(self.crawler.settings.getfloat(PATIENCE, CALLBACK_SECONDS))

    # From the launch to Scrapy

    def restored(self, uri: Uri, audience: Audience) -> Request:
        """The request of a URI; BadInput if the spider is another now."""
        request = self._forms.restored(uri, audience)
        if uri.tries:  # before this one
            request.meta["retry_times"] = request.meta.get("retry_times", 0) + uri.tries
        return request

    def lost(self, uri: Uri, error: BadInput) -> BadInput:
        """Name a URI whose request cannot be restored; return its error."""
        self.kit.offers.lost(uri, error.why)
        self._refuse(uri.uri, error.why)
        return error

    async def scraped(self, visit: SpiderVisit, request: Request) -> None:
        """Hand a visit to Scrapy, and wait until it has nothing left to do for it."""
        request.meta[MARK] = visit.number
        visit.errback, request.errback = request.errback, visit.failed
        visit.request, visit.ended = request, asyncio.get_running_loop().create_future()
        self._visits[visit.number] = visit
        self._ready.append(visit)
        self.poke()
        await visit.ended

    def forget(self, visit: SpiderVisit) -> None:
        """Have a visit no more: it has ended, or was given back."""
        self._visits.pop(visit.number, None)
        if visit.request is not None:
            self._by_request.pop(visit.request, None)
        if visit in self._ready:
            self._ready.remove(visit)

    def give_up(self, visit: SpiderVisit) -> None:
        """Wait no more for a callback, or a pipeline, that does not come to its end: the page is kept."""
        if visit.ended and not visit.ended.done():
            self.hung += 1
            visit.trace = f"its callback, or a pipeline, has not ended in {self.patience:.0f} s ({PATIENCE})"
            log.error("%s: %s", shown(visit.uri.uri), visit.trace)
            visit.ended.set_result(None)

    def waiting_visits(self) -> list[SpiderVisit]:
        """The visits that Scrapy has not asked for."""
        return list(self._ready)

    def next_request(self) -> Request | None:
        """The request of the next visit, if one is ready."""
        if not (self._nowhere or self._ready):
            return None
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value("scheduler/dequeued")
        if self._nowhere:
            return self._nowhere.popleft()
        visit = self._ready.popleft()
        assert visit.request is not None
        self._by_request[visit.request] = visit
        if visit.is_data:
            visit.hand_over()
        return visit.request

    def left(self, request: Request) -> None:
        """Hear that Scrapy's engine has nothing left to do for a request."""
        visit = self._by_request.pop(request, None)
        if visit and visit.ended and not visit.ended.done():
            visit.ended.set_result(None)

    def poke(self) -> None:
        """Have Scrapy's engine ask for requests, and look if it is idle."""
        if self.slot is not None:
            self.slot.nextcall.schedule()

    @property
    def slot(self) -> Any:
        """The requests that Scrapy's engine has in hand; None while no spider is open. It has no public name for it."""
        return getattr(self.crawler.engine, "_slot", None)

    # From Scrapy to the launch

    def visit_of(self, request: Request | None) -> SpiderVisit | None:
        """The visit that a request belongs to; IgnoreRequest for one that was given back."""
        number = request.meta.get(MARK) if request is not None else None
        if number is None:
            return None
        if number not in self._visits:
            raise IgnoreRequest("its visit was given back")
        return self._visits[number]

    def first_of(self, request: Request) -> SpiderVisit | None:
        """The visit that a request is the first of."""
        visit = self._visits.get(request.meta.get(MARK, -1))
        return visit if visit and visit.request is request else None

    def answers(self, name: str) -> None:
        """Hear that a middleware has answered a request itself: that is in no WARC."""
        if name not in self.unarchived:
            log.warning("%s answers requests itself: such answers are not archived", name)
        self.unarchived[name] += 1

    def uri_of(self, request: Request | None) -> Uri | None:
        """The URI of the visit that a request belongs to, or has belonged to."""
        visit = self.in_hand(request)
        return visit.uri if visit else None

    def in_hand(self, request: Request | None) -> SpiderVisit | None:
        """The visit that a request belongs to, unless it was given back."""
        return self._visits.get(request.meta.get(MARK, -1)) if request is not None else None

    async def download(self, request: Request) -> Response:
        """Fetch for Scrapy's downloader."""
        visit = self.visit_of(request)
        if visit is None or visit.has_answer or visit.request is None or request.url != visit.request.url:
            return await Besides(self.kit, self.heard).download(request, visit.uri.uri if visit else "")
        return await visit.download(request)

    def start(self, request: Request) -> None:
        """Take a request of `start()`."""
        if not self._is_wanted(request):
            return
        self._starts += 1
        self._take(request, None, "", self._starts)

    def scheduled(self, request: Request) -> None:
        """Take a request that came to the scheduler: of a redirect, an errback, or an extension."""
        parent = self._visits.get(request.meta.get(MARK, -1))
        if parent:
            parent.offered += 1
            self._take(request, parent.uri, REDIRECT, parent.offered)
        else:
            self._others -= 1
            self._take(request, None, "", self._others)

    def yielded(self, request: Request, visit: SpiderVisit, response: Response) -> bool:
        """Take a request of a callback; True if it is time to `flush`."""
        if _is_asked_for(response.meta):  # as Scrapy Cluster, whose requests belong to who asked
            for key, value in response.meta.items():
                if key not in _OWN_META and key not in request.meta:
                    request.meta[key] = value
        if not self._is_wanted(request):
            return False
        visit.offered += 1
        if uri := self._made(request, visit.uri, LINK, visit.offered):
            (visit.found if visit.number in self._visits else self._offers).append(uri)
            visit.size += len(uri.payload)
        if visit.number not in self._visits:  # it was given up: what comes late is offered by itself
            return True
        if len(visit.found) < AT_ONCE and visit.size <= BYTES_AT_ONCE:
            return False
        self._offers += visit.found
        visit.found, visit.size = [], 0
        return True

    @property
    def is_full(self) -> bool:
        """True if it is time to `flush`."""
        return len(self._offers) >= AT_ONCE

    async def flush(self) -> None:
        """Offer what was taken, and wait for the offer that is under way. A request stays until the frontier has it, so
        no page is kept before all that it has led to."""
        async with self._offering:
            while some := self._offers[: _together(self._offers)]:
                answers = await self.kit.books.frontier.offer(some)
                del self._offers[: len(some)]
                self.answered(some, answers)
                for uri, answer in zip(some, answers, strict=True):
                    if answer.answer is Intake.REFUSED:
                        self.kit.offers.lost(uri, answer.why)
                self.kit.woken.set()

    async def begun(self) -> None:
        """Wait until Scrapy has begun what was taken, or as much as it has room for at once: it does so before it asks
        `start()` for more, which may then close the spider."""
        await self.flush()
        name, stats = str(self.crawler.spidercls.name), self.crawler.stats
        assert stats is not None
        taken = stats.get_value("scheduler/enqueued", 0) + self.continues
        most = min(taken, self.crawler.settings.getint("CONCURRENT_REQUESTS"))
        while stats.get_value("scheduler/dequeued", 0) < most:
            counts = await self.kit.books.frontier.count(name)
            if not (counts.get(Status.SCHEDULED, 0) or counts.get(Status.DOWNLOADING, 0)):
                return
            await asyncio.sleep(LOOK)

    def flush_feeds(self) -> None:
        """Hand the items in Scrapy's feeds to the system, so that a kill loses no item of a kept page: Scrapy does
        so only at its end. Unavailable when the disk does not take them."""
        feeds: Any = self.crawler.get_extension(FeedExporter)
        for slot in feeds.slots if feeds else ():
            if slot.file is not None and not slot.file.closed:
                try:
                    slot.file.flush()
                except OSError as error:
                    raise failed(Path(slot.uri), error) from error

    def answered(self, offered: Sequence[Uri], answers: Sequence[Offered]) -> None:
        """Hear what the frontier has taken, and count it as Scrapy's scheduler does: spiders and extensions read its
        figures."""
        for uri, answer in zip(offered, answers, strict=True):
            if answer.answer is Intake.REFUSED:
                self._refuse(uri.uri, answer.why)
        stats = self.crawler.stats
        assert stats is not None
        for kind, name in ((Intake.NEW, "scheduler/enqueued"), (Intake.SEEN, "dupefilter/filtered")):
            if number := sum(one.answer is kind for one in answers):
                stats.inc_value(name, number)

    def _take(self, request: Request, parent: Uri | None, hop: str, number: int) -> None:
        self.is_drained = False
        if uri := self._made(request, parent, hop, number):
            self._offers.append(uri)
            if self._flushing is None:
                self._flushing = asyncio.ensure_future(self._flush_soon())

    async def _flush_soon(self) -> None:
        try:
            await asyncio.sleep(0)
            await self.flush()
        except WarcmillError as error:  # the next flush, of a visit or of the loop, raises it
            log.error("%s; the requests of the spider stay, to be offered again", error)
        finally:
            self._flushing = None

    def _is_wanted(self, request: Request) -> bool:
        """Ask who hears of scheduled requests, such as the middleware that refuses other sites."""
        heard = self.crawler.signals.send_catch_log(
            signals.request_scheduled, request=request, spider=self.crawler.spider, dont_log=IgnoreRequest
        )
        return not any(isinstance(one, Failure) and isinstance(one.value, IgnoreRequest) for _, one in heard)

    def _made(self, request: Request, parent: Uri | None, hop: str, number: int) -> Uri | None:
        assert self.crawler.spider
        name = self.crawler.request_fingerprinter.fingerprint(request)
        for key, instead in _UNHEARD:
            if key in request.meta and key not in self._named:
                self._named.add(key)
                log.warning("meta has %r: not heard, %s", key, instead)
        try:
            uri = self._forms.waiting(request, name, parent=parent, hop=hop, number=number, filters=self._filters)
            browsers.check(request.meta, uri.uri, renders=self.kit.live.renders)
            uri.queue = self.kit.job.queue(uri.uri)
            check_offer(uri)
        except BadInput as error:
            url = without_credentials(request.url)
            crawl, via = (parent.crawl, parent.uri) if parent else ("", "")
            if _is_nowhere(request.url):
                self.kit.heard.no_uri(via, error.why, url)
                self._leads_nowhere(request)
                return None
            lost = Uri(url, url, "", crawl, via=via, spider=str(self.crawler.spider.name))
            self.kit.offers.lost(lost, error.why, with_page=parent is not None)
            self._refuse(url, error.why)
            return None
        return uri

    def _leads_nowhere(self, request: Request) -> None:
        """Have Scrapy ask for what cannot be fetched, so that it fails there."""
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value("scheduler/enqueued")
        request.meta.pop(MARK, None)
        self._nowhere.append(request)
        self.is_drained = False
        self.poke()

    def _refuse(self, url: str, why: str) -> None:
        """A request that cannot wait is lost: so Scrapy's log names it too, and the command does not end with 0."""
        self.refused += 1
        log.error("%s is not fetched: %s", shown(url), why)


def _is_nowhere(url: str) -> bool:
    """True for a URL that Scrapy cannot fetch, either: it is invalid, or of another scheme. Its log names it whole, so
    one with a password is not for it."""
    try:
        canonical(url)
    except BadInput:
        is_invalid = len(url) <= LONGEST_URI and without_credentials(url) == url
        return is_invalid and url.partition(":")[0].lower() not in _THEIRS
    return False


def _together(offers: Sequence[Uri]) -> int:
    """The number of the first that are offered in one commit."""
    size = 0
    for number, uri in enumerate(offers[:AT_ONCE]):
        size += len(uri.payload)
        if number and size > BYTES_AT_ONCE:
            return number
    return AT_ONCE


def _is_asked_for(meta: dict[str, Any]) -> bool:
    return bool(meta.get(APPID) and meta.get(CRAWLID))
