"""A visit for a spider of Scrapy: we admit and fetch, Scrapy runs middlewares, callback and pipelines.

Scrapy hears of a URI once it is admitted or refused for good. A fetch that failed, or an answer that asks to come
back, is tried again by us: then Scrapy gets `Postponed`, which no errback of the spider hears.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from scrapy import Request
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    NotSupported,
    ResponseDataLossError,
)
from scrapy.http import Headers, Response
from scrapy.responsetypes import responsetypes
from twisted.python.failure import Failure as ScrapyFailure

from warcmill.base import clock
from warcmill.crawl.books.books import BookEntry, CrawlResult
from warcmill.crawl.extract.links import EMBED
from warcmill.crawl.fetch import heartbeat
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest
from warcmill.crawl.fetch.limits import CONNECT_FAILED, DISCONNECT, NO_ADDRESS, TIMED_OUT, Failure
from warcmill.crawl.frontier import Lease
from warcmill.crawl.logs import lines
from warcmill.crawl.uri import Status, Uri, make, shown
from warcmill.crawl.visit import history
from warcmill.crawl.visit.admission import Admitted, Later, NotAdmitted, Refusal
from warcmill.crawl.visit.sharing import SharedAnswer
from warcmill.crawl.visit.visit import Kit, Visit
from warcmill.spiders.guard import DEATHS
from warcmill.spiders.items import result_of

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


class SpiderVisit(Visit):
    """A visit whose answer goes to Scrapy. `found`: what the page has led to, which is offered with its entry.
    `results`: items of it that an application has asked for."""

    def __init__(self, kit: Kit, lease: Lease, thread: int, bridge: ScrapyBridge) -> None:
        super().__init__(kit, lease, thread)
        self.uri, self.number, self.found, self.results = lease.uri, lease.id, list[Uri](), list[CrawlResult]()
        self.offered = 0  # requests that are not to be filtered: each has a number
        self.trace = ""
        self.request: Request | None = None
        self.errback: Callable[[ScrapyFailure], Any] | None = None  # of the spider
        self.ended: asyncio.Future[None] | None = None
        self._bridge, self._shared = bridge, SharedAnswer()
        self._answer: Exchange | Failure | None = None
        self._opens, self._is_postponed = 0.0, False
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0  # by the heartbeat: time in which others keep the loop is not its own
        self._admitted: Admitted | Refusal | Failure | None = None

    @property
    def _is_shared(self) -> bool:
        return False

    def _outlived(self) -> None:
        if self.has_answer:
            self._kit.heard.alert("WARNING", f"{self.uri.uri}: its lease had ended before its callback did{_AGAIN}")

    async def _result(self, shared: SharedAnswer) -> BookEntry:
        admitted = await self._kit.admission.admit(self._uri, self._job)
        if isinstance(admitted, Later) or (isinstance(admitted, Failure) and not self._is_given_up(admitted)):
            return self._not_admitted(admitted)
        self._admitted, self._shared = admitted, shared
        guard = self._bridge.guard
        if (deaths := guard.deaths(self.uri)) >= DEATHS:
            guard.forget(self.uri)
            why = f"it is given up: the process has died {deaths} times while {guard.code} was at this page"
            return self._broken(why, guard.code)
        try:
            await self._bridge.scraped(self)
            await self._bridge.flush()
            self._bridge.flush_feeds()
            guard.forget(self.uri)
            entry = self._entry()
            return replace(entry, found=self.found, results=[*entry.results, *self.results])
        finally:
            if self._timer:
                self._timer.cancel()
            self._bridge.forget(self)

    async def download(self, request: Request) -> Response:
        """Fetch the request of this visit; called by Scrapy's downloader, at most once. From its end on, Scrapy has the
        patience of the bridge for what it does with that."""
        try:
            return await self._downloaded(request)
        finally:
            self._until = heartbeat.current().now() + self._bridge.patience
            self._wait()

    async def _downloaded(self, request: Request) -> Response:
        match self._admitted:
            case Refusal() | Failure() as refused:
                raise _refused(refused)
            case None:
                raise IgnoreRequest("it was given back")
            case Admitted() as admitted:
                answer = await self._fetched(request, admitted)
        self._answer = answer
        if isinstance(answer, Exchange):
            self._shared.put(answer)  # it is closed when the books have kept it
        if isinstance(answer, Failure):
            self._is_postponed = not self._is_given_up(answer)
            raise Postponed if self._is_postponed else _error(answer)
        if self._job.retries.asks_again(answer.status, self._uri.tries, answer.retry_after):
            self._is_postponed = True
            raise Postponed
        return response(request, answer, loss_is_error=self._bridge.loss_is_error)

    def _wait(self) -> None:
        """Wait for callback and pipelines; not for ever."""
        left = self._until - heartbeat.current().now()
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(left, self._wait)
        else:
            self._bridge.give_up(self)

    def scraped(self, item: object) -> None:
        """Take an item that has passed the pipelines: one of an application that asked for it is a result."""
        try:
            if self._job.results_log and (result := result_of(item)):
                self.results.append(result)
        except RecursionError:
            self.trace = self.trace or "an item of it is no result: it is nested too deep, or contains itself"
            log.error("%s: %s", shown(self.uri.uri), self.trace)

    @property
    def has_answer(self) -> bool:
        """True if it was fetched already."""
        return self._answer is not None

    def failed(self, failure: ScrapyFailure) -> object:
        """The errback of its request: the spider's own, unless it is asked again."""
        if isinstance(failure.value, Postponed):
            return ()
        return self.errback(failure) if self.errback else failure

    async def _fetched(self, request: Request, admitted: Admitted) -> Exchange | Failure:
        uri, beats = self._uri, heartbeat.current()
        began = beats.now()
        answer = await self._kit.fetcher.fetch(asked(request, uri.uri), admitted.addresses, self._job.limits)
        took = beats.now() - began
        self._opens = await self._kit.admission.rest(self._job.politeness, uri.queue, admitted, answer, took)
        return answer

    def _is_given_up(self, failure: Failure) -> bool:
        return failure.final or self._uri.tries >= self._job.retries.times

    def _entry(self) -> BookEntry:
        uri, answer = self._uri, self._answer
        if isinstance(self._admitted, Refusal | Failure):
            return self._not_admitted(self._admitted)
        if answer is None:  # a middleware of the project has answered it, or refused it
            self._moves.update(uri, Status.PARSED, download_finished=clock.steady())
            return BookEntry(uri, self._lease, history=self._lease.history)
        if isinstance(answer, Failure):
            return self._failed(answer, self._opens)
        compared = history.compare(answer, history.read(self._lease.history) if self._job.revisits else None)
        if self._is_postponed:
            return self._asked_again(answer, compared, self._opens)
        self._moves.update(
            uri, Status.PARSING, http_status=answer.status, hash=answer.payload_sha1, host_ip=answer.address,
            download_finished=clock.steady(),
        )  # fmt: skip
        self._moves.update(uri, Status.PARSED)
        records, left = history.records(answer, compared, lines.metadata(uri, ()))
        notes = (*compared.annotations, *answer.annotations, *(("callbackFailed",) if self.trace else ()))
        line = lines.of_answer(uri, answer, notes, self._thread)
        told: Sequence[CrawlResult] = ()
        if self.trace:
            self._kit.heard.broke(line, self.trace, self._bridge.guard.code)
            told = () if self.results else self._notice("its callback, or a pipeline, has failed")
        again = history.next_visit(self._job, uri, left)
        return BookEntry(uri, self._lease, records, line, left, opens=self._opens, again=again, results=told)


class Besides(NamedTuple):
    """A request that Scrapy makes without a lease, such as of a pipeline for a picture: fetched at once, and kept."""

    kit: Kit
    loss_is_error: bool

    async def download(self, request: Request, via: str) -> Response:
        """Fetch it when it is its host's turn."""
        kit = self.kit
        uri = make(request.url, via=via, hops=EMBED)
        uri.key += BESIDES
        job = kit.job.of(uri)
        while isinstance(admitted := await kit.admission.admit(uri, job), Later):
            await asyncio.sleep(max(0.01, min(60.0, max(admitted.opens, admitted.again) - clock.steady())))
        if not isinstance(admitted, Admitted):
            await self._give_up(uri, admitted)
            raise _refused(admitted)
        began = heartbeat.current().now()
        answer = await kit.fetcher.fetch(asked(request, uri.uri), admitted.addresses, job.limits)
        took = heartbeat.current().now() - began
        if opens := await kit.admission.rest(job.politeness, uri.queue, admitted, answer, took):
            kit.manners.rest(uri.queue, opens)
        if isinstance(answer, Failure):
            await self._give_up(uri, answer)
            raise _error(answer)
        lines.visited(kit.books.frontier.transitions, uri, answer.status, failed=False, digest=answer.payload_sha1)
        try:
            compared = history.compare(answer, None)
            records, left = history.records(answer, compared, lines.metadata(uri, ()))
            line = lines.of_answer(uri, answer, answer.annotations)
            await kit.books.keep(BookEntry(uri, None, records, line, left))
            return response(request, answer, loss_is_error=self.loss_is_error)
        finally:
            answer.close()

    async def _give_up(self, uri: Uri, answer: Refusal | Failure) -> None:
        """Log a request that gets no answer."""
        kit, notes = self.kit, tuple[str, ...]()
        if isinstance(answer, Refusal):
            kit.offers.refused.add(uri.uri, answer.against)
            notes = lines.words(answer.against) if answer.status in lines.NAMED else ()
        lines.visited(kit.books.frontier.transitions, uri, answer.status, failed=True)
        line = lines.of_failure(uri, answer.status, annotations=notes)
        kit.heard.failed(line, answer.against.why if isinstance(answer, Refusal) else answer.why)
        await kit.books.keep(BookEntry(uri, None, (), line))


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


def response(request: Request, answer: Exchange, *, loss_is_error: bool) -> Response:
    """The answer as Scrapy's own handler gives it: chunks are joined, codings of the content stay."""
    body = b"".join(answer.payload())
    flags = []
    if answer.truncated:
        if loss_is_error and answer.truncated == DISCONNECT:
            raise ResponseDataLossError(f"the answer of {request.url} broke off after {len(body)} bytes")
        flags = ["dataloss"]
    headers = Headers()
    for name, value in answer.fields.pairs:
        headers.appendlist(name, value.encode("latin-1", "replace"))
    made = responsetypes.from_args(headers=headers, url=request.url, body=body)
    request.meta["download_latency"] = answer.took_ms / 1000
    return made(
        url=request.url, status=answer.status, headers=headers, body=body, flags=flags,
        ip_address=ipaddress.ip_address(answer.address), protocol="HTTP/1.1",
    )  # fmt: skip


def _refused(admitted: NotAdmitted) -> Exception:
    if isinstance(admitted, Refusal):
        why = f"{admitted.against.policy}: {admitted.against.why}"
        return DownloadFailedError(why) if admitted.status == lines.NO_ROBOTS else IgnoreRequest(why)
    return _error(admitted) if isinstance(admitted, Failure) else IgnoreRequest("it is not its turn")


def _error(failure: Failure) -> Exception:
    return _ERRORS.get(failure.status, DownloadFailedError)(failure.why)
