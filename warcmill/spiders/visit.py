"""The reader for a spider of Scrapy: we admit and fetch, Scrapy runs middlewares, callback and pipelines.

Scrapy hears of a URI once it is admitted or refused for good. A fetch that failed, or an answer that asks to come
back, is tried again by us: then Scrapy's downloader gets `Postponed`, which no errback of the spider hears.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urldefrag

from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    NotSupported,
    ResponseDataLossError,
)
from scrapy.http import Headers, HtmlResponse, Response
from scrapy.responsetypes import responsetypes
from twisted.python.failure import Failure as ScrapyFailure

from warcmill.crawl.books.books import CrawlResult
from warcmill.crawl.extract.links import EMBED
from warcmill.crawl.fetch import heartbeat
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest, RenderOptions
from warcmill.crawl.fetch.limits import CONNECT_FAILED, DISCONNECT, LENGTH, NO_ADDRESS, TIME, TIMED_OUT, Failure
from warcmill.crawl.job.job import Audience
from warcmill.crawl.logs import lines
from warcmill.crawl.uri import Data, Uri, make, shown, without_credentials
from warcmill.crawl.visit import history
from warcmill.crawl.visit.fetching import Refusal
from warcmill.crawl.visit.rendering import DOM_TYPE, NOT_RENDERED
from warcmill.crawl.visit.visit import Kit, Reading, Visit
from warcmill.errors import BadInput
from warcmill.spiders import browsers
from warcmill.spiders.guard import DEATHS, CodeExit
from warcmill.spiders.heard import HeardSettings
from warcmill.spiders.items import result_of
from warcmill.spiders.requests import InHand

if TYPE_CHECKING:
    from warcmill.spiders.bridge import ScrapyBridge

log = logging.getLogger(__name__)
BESIDES = " besides"
_AGAIN = ", so this visit kept nothing; unless its crawl was stopped it is visited again, and its items come again"
_ERRORS: dict[int, type[Exception]] = {
    NO_ADDRESS: CannotResolveHostError,
    lines.NO_HOST: CannotResolveHostError,
    CONNECT_FAILED: DownloadConnectionRefusedError,
    TIMED_OUT: DownloadTimeoutError,
}
_OURS = frozenset([b"Connection", b"Content-Length", b"Transfer-Encoding", b"Proxy-Authorization"])


class Postponed(Exception):
    """The request is retried later."""


class SpiderVisit(InHand):
    """A visit in the hands of Scrapy. `found`: what the page has led to, which is offered with its entry. `results`:
    items of it that an application has asked for."""

    def __init__(self, visit: Visit, bridge: ScrapyBridge) -> None:
        self.uri, self.number, self.found, self.results = visit.uri, visit.number, list[Uri](), list[CrawlResult]()
        self.offered = 0  # requests that are not to be filtered: each has a number
        self.size = 0  # bytes of the payloads of what was found
        self.trace, self.rendered = "", NOT_RENDERED
        self.request: Request | None = None
        self.errback: Callable[[ScrapyFailure], Any] | None = None  # of the spider
        self.ended: asyncio.Future[None] | None = None
        self._visit, self._bridge = visit, bridge
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0  # by the heartbeat: time in which others keep the loop is not its own

    @property
    def audience(self) -> Audience:
        """Who asked for it."""
        return self._visit.audience

    @property
    def has_answer(self) -> bool:
        """True if it was fetched already."""
        return self._visit.answer is not None

    @property
    def is_refused(self) -> bool:
        """True if it may never be fetched."""
        return self._visit.refusal is not None

    @property
    def is_postponed(self) -> bool:
        """True if it is asked again."""
        return self._visit.is_postponed

    @property
    def is_data(self) -> bool:
        """True if it holds its own bytes, which Scrapy reads itself."""
        return self.uri.uri.startswith("data:")

    async def download(self, request: Request) -> Response:
        """Fetch the request of this visit; called by Scrapy's downloader, at most once."""
        try:
            if refusal := self._visit.refusal:
                raise _refused(refusal)
            await self._visit.fetch(asked(request, self.uri.uri))
            match self._visit.answer:
                case Exchange() as answer if browsers.asks(request.meta) and not self._visit.is_postponed:
                    return await self._rendered(request, answer)
                case Exchange() as answer:
                    return response(request, answer, self._bridge.heard)
                case Failure() as failure:
                    raise _error(failure)
            raise IgnoreRequest("it was given back")
        finally:
            self.hand_over()

    async def _rendered(self, request: Request, answer: Exchange) -> Response:
        """The answer as the browser has it; as it came if it is not a page."""
        plain, rendering = response(request, answer, self._bridge.heard), self._bridge.kit.rendering
        page = self._visit.page(answer)
        if not rendering.wants(page, RenderOptions()):
            return plain
        self.rendered = await rendering.render(page, None)
        if self.rendered.page is None:
            raise DownloadFailedError(f"{plain.url} could not be opened in the browser: {self.rendered.failure}")
        headers = plain.headers.copy()
        headers.pop("Content-Encoding", None)
        headers["Content-Type"] = DOM_TYPE
        flags = [*plain.flags, browsers.PLAYWRIGHT] if request.meta.get(browsers.PLAYWRIGHT) else plain.flags
        found = self.rendered.page
        return HtmlResponse(
            url=found.final_url, status=plain.status, headers=headers, body=found.dom, flags=flags,
            ip_address=plain.ip_address, protocol=plain.protocol,
        )  # fmt: skip

    def hand_over(self) -> None:
        """Let Scrapy have its answer: callback and pipelines have the patience of the bridge from now on."""
        self._until = heartbeat.current().now() + self._bridge.patience
        self._wait()

    def scraped(self, item: object) -> None:
        """Take an item that has passed the pipelines: one of an application that asked for it is a result."""
        try:
            if self._visit.job.results_log and (result := result_of(item)):
                self.results.append(result)
        except RecursionError:
            self.trace = self.trace or "an item of it is no result: it is nested too deep, or contains itself"
            log.error("%s: %s", shown(self.uri.uri), self.trace)

    def broke(self, error: Exception) -> None:
        """Note that a downloader middleware has failed, so that the page was not fetched; what ignores it did not."""
        is_ours = self._was_not_fetched or self._visit.answer or isinstance(error, IgnoreRequest)
        if isinstance(error, CodeExit) or not is_ours:
            self.trace = "".join(traceback.format_exception(error))

    @property
    def _was_not_fetched(self) -> bool:
        """True if there is no answer to read, for a reason that its entry names anyway."""
        visit = self._visit
        return bool(visit.refusal) or visit.is_postponed or isinstance(visit.answer, Failure)

    def failed(self, failure: ScrapyFailure) -> object:
        """The errback of its request: the spider's own, unless it is asked again."""
        if isinstance(failure.value, Postponed):
            return ()
        return self.errback(failure) if self.errback else failure

    def read(self) -> Reading:
        """All that Scrapy has got from it. An application that gets no item hears of the fault."""
        if not self.trace or self._was_not_fetched:
            return Reading(found=self.found, results=self.results, rendered=self.rendered)
        if not (self.is_data or self._visit.answer):
            return Reading(found=self.found, results=self.results, fault=self.trace, where=self._bridge.guard.code)
        told = self.results or self.audience.notice(self.uri, "its callback, or a pipeline, has failed")
        where = self._bridge.guard.code
        return Reading((), ("callbackFailed",), self.found, told, self.rendered, self.trace, where)

    def end(self) -> None:
        """Wait no more."""
        if self._timer:
            self._timer.cancel()

    def _wait(self) -> None:
        """Wait for callback and pipelines; not for ever."""
        left = self._until - heartbeat.current().now()
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(left, self._wait)
        else:
            self._bridge.give_up(self)


class ScrapyReader:
    """The reader of one visit for a spider of Scrapy. Scrapy hears of what may not be fetched, too."""

    shares = False

    def __init__(self, kit: Kit, bridge: ScrapyBridge) -> None:
        self._kit, self._bridge = kit, bridge
        self._request: Request | BadInput | None = None

    def begin(self, visit: Visit) -> None:
        """Have the request of a visit, and the job of its URI as the project has its settings."""
        try:
            self._request = request = self._bridge.restored(visit.uri, visit.audience)
        except BadInput as error:
            self._request = error
        else:
            visit.job = self._bridge.heard.job(visit.job, request.meta)

    async def read(self, visit: Visit) -> Reading:
        bridge, guard, request = self._bridge, self._bridge.guard, self._request
        if not isinstance(request, Request):
            assert request is not None
            raise bridge.lost(visit.uri, request)
        if (deaths := guard.deaths(visit.uri)) >= DEATHS:
            guard.forget(visit.uri)
            why = f"it is given up: the process has died {deaths} times while {guard.code} was at this page"
            return Reading(fault=why, where=guard.code)
        taken = SpiderVisit(visit, bridge)
        try:
            await bridge.scraped(taken, request)
            await bridge.flush()
            bridge.flush_feeds()
            guard.forget(visit.uri)
            reading = taken.read()
            return reading._replace(memory=bridge.memory.changed()) if bridge.memory else reading
        finally:
            taken.end()
            bridge.forget(taken)

    async def read_data(self, visit: Visit, data: Data) -> Reading:
        _ = data
        return await self.read(visit)

    def lacks(self, answer: Exchange) -> str:
        if answer.truncated == TIME:
            return "it was not whole in time"
        meta = self._request.meta if isinstance(self._request, Request) else {}
        is_error = answer.truncated == DISCONNECT and self._bridge.heard.loss_is_error(meta)
        return "it broke off" if is_error else ""

    def outlived(self, visit: Visit) -> None:
        if self._bridge.memory:
            self._bridge.memory.unkept(visit.reading.memory)
        if visit.answer is not None:
            text = f"{visit.uri.uri}: its lease had ended before its callback did{_AGAIN}"
            self._kit.heard.alert("WARNING", text)


class Besides(NamedTuple):
    """A request that Scrapy makes without a lease, such as of a pipeline for a picture: fetched at once, and kept."""

    kit: Kit
    heard: HeardSettings

    async def download(self, request: Request, via: str) -> Response:
        """Fetch it when it is its host's turn."""
        if browsers.asks(request.meta):
            raise NotSupported(f"{shown(request.url)}: it asks for a browser, which opens the pages of a spider alone")
        kit = self.kit
        try:
            uri = make(request.url, via=via, hops=EMBED)
        except BadInput as error:
            raise NotSupported(f"{without_credentials(request.url)}: {error.why}") from error
        uri.key += BESIDES
        answer = await kit.fetching.beside(uri, self.heard.job(kit.job.of(uri), request.meta), asked(request, uri.uri))
        if isinstance(answer, Refusal):
            await kit.entries.keep(kit.entries.refused(uri, answer))
            raise _refused(answer)
        if isinstance(answer, Failure):
            await kit.entries.keep(kit.entries.given_up(uri, answer.status, answer.why))
            raise _error(answer)
        try:
            await kit.entries.keep(kit.entries.answered(uri, answer, history.compare(answer, None)))
            return response(request, answer, self.heard)
        finally:
            answer.close()


def asked(request: Request, uri: str) -> FetchRequest:
    """The request as our fetcher makes it. NotSupported for one by a proxy."""
    if request.meta.get("proxy"):
        raise NotSupported(f"{uri}: its meta has 'proxy': requests are made by this crawler itself, without a proxy")
    headers = tuple(
        (name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))
        for name, values in request.headers.items()
        if name not in _OURS
        for value in values
    )
    timeout = float(request.meta.get("download_timeout") or 0.0)
    return FetchRequest(uri, request.method, headers, request.body, timeout)


def response(request: Request, answer: Exchange, heard: HeardSettings) -> Response:
    """The answer as Scrapy's own handler gives it: chunks are joined, codings of the content stay."""
    maxsize = heard.maxsize(request.meta)
    body, url = b"".join(answer.payload()), urldefrag(request.url)[0]
    flags = []
    if maxsize and len(body) >= maxsize + (answer.truncated != LENGTH):
        raise DownloadCancelledError(f"the answer of {url} is larger than {maxsize} bytes, its DOWNLOAD_MAXSIZE")
    if answer.truncated:
        if answer.truncated == TIME:
            raise DownloadTimeoutError(f"the answer of {url} was not whole in time")
        if answer.truncated == DISCONNECT and heard.loss_is_error(request.meta):
            raise ResponseDataLossError(f"the answer of {url} broke off after {len(body)} bytes")
        flags = ["dataloss"]
    headers = Headers()
    for name, value in answer.fields.pairs:
        headers.appendlist(name, value.encode("latin-1", "replace"))
    made = responsetypes.from_args(headers=headers, url=url, body=body)
    request.meta["download_latency"] = answer.took_ms / 1000
    return made(
        url=url, status=answer.status, headers=headers, body=body, flags=flags,
        ip_address=ipaddress.ip_address(answer.address), protocol="HTTP/1.1",
    )  # fmt: skip


def _refused(refusal: Refusal | Failure) -> Exception:
    if isinstance(refusal, Failure):
        return _error(refusal)
    if refusal.status == lines.NO_ROBOTS:
        return _ERRORS.get(refusal.cause, DownloadFailedError)(refusal.why)
    return IgnoreRequest(refusal.why)


def _error(failure: Failure) -> Exception:
    return _ERRORS.get(failure.status, DownloadFailedError)(failure.why)
