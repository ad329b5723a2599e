"""The requests of a page that is open in the browser: each is judged, then recalled, shared or fetched, and kept.

    PageKit        what the requests of all pages go through, and share
    PageRequests   those of one page: what they count to, and what the crawl is to try again

The page itself is answered by what its visit has fetched, and all whose equal the launch has from its WARC. The rest
is fetched as the crawl fetches all, with the browser's own headers, and is an entry in the books without a lease.
"""

from __future__ import annotations

import asyncio
import hashlib
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

from msgspec.structs import replace

from warcmill.base import clock
from warcmill.crawl.books.books import Books
from warcmill.crawl.books.files import recall
from warcmill.crawl.extract.links import EMBED, LINK, REDIRECT, Link
from warcmill.crawl.fetch import login
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest, as_received
from warcmill.crawl.fetch.limits import Failure
from warcmill.crawl.job.job import Job, Live
from warcmill.crawl.logs import lines
from warcmill.crawl.logs.lines import FaultListener
from warcmill.crawl.render import (
    PAGES,
    SEEDS,
    Answer,
    PageRequest,
    Refused,
    RenderFailed,
    RenderSettings,
    Result,
)
from warcmill.crawl.uri import Status, Uri, canonical
from warcmill.crawl.uri import make as make_uri
from warcmill.crawl.visit import history
from warcmill.crawl.visit.extraction import Readers
from warcmill.crawl.visit.fetching import Admitted, Entries, FetchedPart, Fetching, Later, NotAdmitted, Refusal
from warcmill.crawl.visit.offers import Offers
from warcmill.crawl.visit.sharing import PageGet, SharedAnswer, Turns
from warcmill.errors import BadInput, Unavailable, WarcmillError, describe
from warcmill.formats.logs.crawllog import ASKED_AGAIN

AT_ONCE = 6  # requests to a host, as browsers have it
STREAM = 2.0  # seconds that a stream of events is read: it has no end, and nobody waits for more
LEAST = 1.0  # seconds that a request may take, however late it comes
TIMES = 100  # that a page has one URI asked for by GET
STOPPED, REQUESTS, BYTES = "stopped", "requests", "bytes"
SOCKET, REPEATS = "webSocket", "repeats"
PART, OPENED = "render:part", "render:opened"  # a page that the browser had as a part of another; the same in its turn
_WAITS = frozenset([Status.SCHEDULED, Status.SUSPENDED, Status.DOWNLOADING, Status.PARSING])
_PAGES = frozenset(["text/html", "application/xhtml+xml"])
# The crawl's own: it names itself, takes what it can record, and has a jar.
_NOT_SENT = frozenset(["host", "user-agent", "accept-encoding", "cookie", "connection", "content-length"])


class FetchedPage(NamedTuple):
    """A page that was fetched, with its answer, the job of its URI, and the rest that its host asks for."""

    uri: Uri
    job: Job
    shared: SharedAnswer
    answer: Exchange
    delay: float


def is_page(answer: Exchange) -> bool:
    """True if an answer is a page that a browser shows: one with the status of an error, too, if it has a text."""
    is_shown = 200 <= answer.status <= 299 or (answer.status >= 400 and answer.payload_length > 0)
    return answer.mime.lower() in _PAGES and is_shown and answer.method == "GET"


def is_wanted(settings: RenderSettings, uri: Uri) -> bool:
    """True if a job has a page rendered. The place that a seed redirects to counts as the seed."""
    return settings.which == PAGES or (settings.which == SEEDS and not uri.hops.strip(REDIRECT))


class PageKit:
    """The parts of the crawl that requests go through. `turns` and `host` are shared by all pages of a launch."""

    def __init__(
        self, live: Live, books: Books, fetching: Fetching, entries: Entries, offers: Offers, readers: Readers,
        heard: FaultListener, scratch: Path,
    ) -> None:  # fmt: skip
        self.live, self.books, self.fetching, self.entries = live, books, fetching, entries
        self.offers, self.readers, self.heard, self.scratch = offers, readers, heard, scratch
        self.turns = Turns()
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def host(self, queue: str) -> asyncio.Semaphore:
        """The turn of a request at its host."""
        found = self._hosts.get(queue) or asyncio.Semaphore(AT_ONCE)
        self._hosts[queue] = found
        return found


class PageRequests:
    """The requests of a page that is open. `notes` are words for its line in crawl.log; `missed`: what no server has
    answered, which the crawl is to try."""

    def __init__(self, kit: PageKit, page: FetchedPage) -> None:
        self._kit, self._page, self._limits = kit, page, page.job.render
        self._failed: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._tasks: dict[asyncio.Task[None], SharedAnswer] = {}
        itself = FetchedPart(page.answer, Admitted((page.answer.address,), page.delay), page.job.politeness)
        self._slowest = {page.uri.queue: itself}  # of each host, by which it rests
        self._bytes = 0
        self._language = ""
        self.notes: list[str] = []
        self.missed: dict[str, Uri] = {}
        self._begin_to_count()

    async def begin(self) -> None:
        """Begin to count requests, and time: the page is opened, maybe not for the first time. The browser's first
        request is for the page. A GET of an earlier browser that has no answer yet is given up: the page asks for it
        again while somebody waits for that."""
        left = [task for task, shared in self._tasks.items() if shared.asked and not shared.is_there]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._begin_to_count()

    def _begin_to_count(self) -> None:
        self._requests, self._is_open = 0, False
        self._times = Counter[str]()
        self._ends = asyncio.get_running_loop().time() + self._limits.seconds

    async def until_it_fails(self, opening: Coroutine[None, None, Result]) -> Result:
        """The result of opening the page, or why it ends before."""
        work = asyncio.create_task(opening)
        try:
            ends: list[asyncio.Future[Result]] = [work, self._failed]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            return self._failed.result() if self._failed.done() else work.result()
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until the books have all that was fetched. Raises what they raise."""
        while self._tasks:
            done, _ = await asyncio.wait(self._tasks)
            for task in done:
                if not task.cancelled():
                    task.result()
                self._tasks.pop(task, None)

    def stop(self) -> None:
        """Fetch no more: what is under way is given up."""
        for task in self._tasks:
            task.cancel()

    async def rest(self) -> float:
        """Let the hosts rest that were asked, as their politeness says; return until when the page's host rests."""
        opens = 0.0
        for queue, part in self._slowest.items():
            is_own = queue == self._page.uri.queue
            until = await self._kit.fetching.rest(queue, part, has_lease=is_own)
            opens = until if is_own else opens
        return opens

    async def answer(self, request: PageRequest) -> Answer | Refused:
        """Answer a request of the browser."""
        self._requests += 1
        if self._requests > self._limits.requests:
            self._fail(REQUESTS, f"more than {self._limits.requests:,} requests")
        if self._failed.done():
            return Refused("the page is given up")
        if request.is_socket:
            self._note(SOCKET)
            return Refused("a WebSocket cannot be recorded")
        is_itself = request.method == "GET" and _canonical(request.url) == self._page.uri.uri
        if is_itself and not self._is_open:  # its visit has it
            self._is_open, self._language = True, request.header("accept-language")
            return _answer(self._page.shared, await self._page.shared.read())
        hop = LINK if request.is_frame else EMBED
        is_page = is_itself and request.is_frame
        uri = _once_more(self._page.uri) if is_page else self._kit.offers.asked_for(self._page.uri, request.url, hop)
        if uri is None:
            return Refused("it does not belong to the crawl")
        if request.method != "GET":
            return await self._send(uri, request)
        return await self._get(uri, request, is_itself=is_itself)

    async def _get(self, uri: Uri, request: PageRequest, *, is_itself: bool) -> Answer | Refused:
        """A GET: what its equal has under way, or in the launch, or what is fetched now. A page that asks for itself
        waits for something to change, so it is asked each time."""
        turns = self._kit.turns
        headers = browser_request(request, uri.uri, self._ends, 0.0, self._jar(uri)).headers
        asked = PageGet(request, headers, self._language, is_anew=is_itself and request.destination != "image")
        shared, exchange, is_begun = await turns.enter(uri, asked)
        if is_begun:
            self._begin(uri, request, shared, lambda: turns.end(uri, shared))
            exchange = await shared.read()
        return _answer(shared, exchange)

    async def _send(self, uri: Uri, request: PageRequest) -> Answer | Refused:
        """A request of another method, which is never shared: what it does it does each time."""
        body = hashlib.sha256(request.body).hexdigest()
        uri.key = f"{request.method} {uri.uri} {body[:32]}"  # it is not a visit of the URI itself
        shared = SharedAnswer()
        self._begin(uri, request, shared, shared.end)
        return _answer(shared, await shared.read())

    def _begin(self, uri: Uri, request: PageRequest, shared: SharedAnswer, end: Callable[[], None]) -> None:
        """Ask for something in a task of its own: it continues when the browser does not wait for it any more."""
        task = asyncio.create_task(self._ask(uri, request, shared, end))
        self._tasks[task] = shared
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is None:
            self._tasks.pop(task, None)  # `settled` raises what is left
        else:
            self._fail(STOPPED, "the books take nothing more")

    async def _ask(self, uri: Uri, request: PageRequest, shared: SharedAnswer, end: Callable[[], None]) -> None:
        kit = self._kit
        try:
            known = await self._recalled(uri, shared) if shared.asked else None
            if known:
                shared.put(known)
            elif self._may_ask(uri, shared):
                await self._fetch(uri, request, shared)
            if shared.is_there:
                self.missed.pop(uri.uri, None)
        except asyncio.CancelledError:
            self._miss(uri, request)
            raise
        except Exception as error:
            if isinstance(error, Unavailable):  # a disk: no fault of the page
                kit.books.stop(error)
            if kit.books.stopped:
                raise
            trace = describe(error) if isinstance(error, WarcmillError) else traceback.format_exc()
            shared.why = "a fault; runtime-errors.log names it"
            kit.heard.broke(lines.of_failure(uri, lines.FAULT), trace)
        finally:
            end()

    async def _recalled(self, uri: Uri, shared: SharedAnswer) -> Exchange | None:
        """The answer that the launch has to an equal. One that differs makes what is fetched now one more capture."""
        kit, asked = self._kit, shared.asked
        assert asked is not None
        found = [await kit.books.find(uri.crawl, name) for name in (f"{uri.uri} {asked.name}", uri.uri)]
        for place in dict.fromkeys(filter(None, found)) if not asked.is_anew else ():
            known = await asyncio.to_thread(recall, uri.uri, *place, kit.scratch, with_request=True)
            if asked.takes(known, is_named=place == found[0]):
                return known
            known.close()
        if any(found) or shared.name != uri.uri:
            uri.key = f"GET {uri.uri}"  # it is not a visit of the URI itself
        return None

    def _may_ask(self, uri: Uri, shared: SharedAnswer) -> bool:
        """False for a URI that the page has had asked for too often."""
        self._times[uri.uri] += bool(shared.asked)
        if self._times[uri.uri] <= TIMES:
            return True
        self._note(REPEATS)
        shared.why = f"the page has asked for it {TIMES} times"
        return False

    async def _fetch(self, uri: Uri, request: PageRequest, shared: SharedAnswer) -> None:
        kit, job = self._kit, self._kit.live.job.of(uri)

        def asked() -> FetchRequest | None:
            if self._failed.done():
                return None
            sent = browser_request(request, uri.uri, self._ends, job.limits.total, self._jar(uri))
            signing = login.jar(job.render.cookies)
            return sent._replace(signed_in=bool(signing and signing.fitting(uri.uri, clock.steady())))

        admitted = await kit.fetching.admit(uri, job, in_turn=False)
        if not isinstance(admitted, Admitted):
            if not isinstance(admitted, Refusal):
                self._miss(uri, request)
            await self._unanswered(uri, admitted, shared)
            return
        answer = await kit.fetching.part(job, asked, admitted, kit.host(uri.queue))
        if isinstance(answer, Failure):
            self._miss(uri, request)
            await self._unanswered(uri, answer, shared)
        elif answer is not None:
            shared.put(answer)
            self._count(uri, FetchedPart(answer, admitted, job.politeness))
            await self._keep(uri, job, answer, request, shared.asked)

    def _jar(self, uri: Uri) -> str:
        signing = login.jar(self._kit.live.job.of(uri).render.cookies)
        return self._kit.books.jar(uri.crawl).header(uri.uri, clock.steady(), signing)

    def _miss(self, uri: Uri, request: PageRequest) -> None:
        if request.method == "GET" and not _is_again(uri):
            self.missed[uri.uri] = uri

    def _count(self, uri: Uri, part: FetchedPart) -> None:
        """Count an answer for the limits of the page, and for the rest of its host."""
        before = self._slowest.get(uri.queue)
        if before is None or before.answer.took_ms < part.answer.took_ms:
            self._slowest[uri.queue] = part
        self._bytes += part.answer.payload_length
        if self._bytes > self._limits.bytes:
            self._fail(BYTES, f"more than {self._limits.bytes:,} bytes of answers")

    async def _keep(
        self, uri: Uri, job: Job, answer: Exchange, request: PageRequest, asked: PageGet | None
    ) -> None:  # fmt: skip
        """Take the links of an answer, and keep it, as a visit does; but a page is still to be opened."""
        kit = self._kit
        links, notes = await kit.readers.read(uri, answer, job)
        followed = kit.offers.followed(uri, links, answer.fields) if job.nofollow else links
        found = []
        for one in await kit.offers.of_many(uri, followed, kit.books.frontier):
            if one.hops.endswith(REDIRECT):  # the browser follows it, before a worker would; else it is missed
                self.missed.setdefault(one.uri, one)
            else:
                found.append(one)
        may_wait = request.may_be_page and not _is_again(uri)
        waits, offered = await self._waits(uri, answer) if may_wait else (False, [])
        notes = (*notes, PART, ASKED_AGAIN) if waits else notes
        entry = kit.entries.answered(uri, answer, history.compare(answer, None), links, notes)
        cookies = kit.books.jar(uri.crawl).receive(uri.uri, answer.set_cookies, clock.steady())
        is_visit = asked is not None and not _is_again(uri)
        name, left = asked.name if asked else "", entry.history if is_visit else b""
        entry = replace(entry, is_part=waits, is_document=waits and request.is_document, history=left, asked=name)
        found = [*found, *offered]
        await kit.entries.keep(replace(entry, found=found, cookies=cookies, may_recall=bool(asked)))
        if is_visit and not waits:
            kit.offers.visited(uri)

    async def _waits(self, uri: Uri, answer: Exchange) -> tuple[bool, list[Uri]]:
        """True if an answer is a page that is opened in its turn; and its URI, if the frontier has not heard of it."""
        if not is_page(answer):
            return False, []
        kit, job = self._kit, self._kit.live.job
        if known := (await kit.books.frontier.list(uri.crawl, keys=[uri.key])).uris:
            (row,) = known
            return row.status in _WAITS and is_wanted(job.of(row).render, row), []
        offered = kit.offers.of(self._page.uri, [Link(uri.uri, LINK, PART)])
        waits = bool(offered) and is_wanted(job.of(offered[0]).render, offered[0])
        return waits, offered if waits else []

    async def _unanswered(self, uri: Uri, answer: NotAdmitted, shared: SharedAnswer) -> None:
        """Log what may not be fetched, once, as the crawl does for what it has found by itself."""
        kit = self._kit
        match answer:
            case Later():
                shared.why = "not now"
            case Failure(status, why):
                shared.why = why
                kit.entries.in_vain(uri, status, why)
            case Refusal(status):
                shared.why = answer.why
                seen = (await kit.books.frontier.list(uri.crawl, keys=[uri.key])).uris
                if not any(one.http_status == status for one in seen):
                    await kit.entries.keep(kit.entries.refused(uri, answer))

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def _fail(self, why: str, details: str) -> None:
        if not self._failed.done():
            self._failed.set_result(RenderFailed(why, details))


def _once_more(page: Uri) -> Uri:
    """The URI of a page that its browser asks for again: it is where the page is, and was accepted."""
    uri = make_uri(
        page.uri, key=page.key, crawl=page.crawl, hops=page.hops, via=page.via, source=page.source,
        priority=page.priority, is_canonical=True,
    )  # fmt: skip
    uri.queue = page.queue
    return uri


def _is_again(uri: Uri) -> bool:
    return uri.key == f"GET {uri.uri}"


def _canonical(url: str) -> str:
    try:
        return canonical(url)
    except BadInput:
        return ""


def _answer(shared: SharedAnswer, exchange: Exchange | None) -> Answer | Refused:
    """The answer as the browser gets it."""
    if exchange is None:
        return Refused(shared.why or "it was not fetched")
    return Answer(exchange.status, tuple(exchange.fields.pairs), exchange.payload(), shared.leave)


def browser_request(request: PageRequest, url: str, ends: float, total: float, jar: str = "") -> FetchRequest:
    """The request as it is sent for a page that `ends` at a time of the loop, in `total` seconds at most: with the
    browser's headers but its name, and with the cookies of the crawl's `jar` that it has not."""
    cookies = _cookies(jar, request.header("cookie"))
    headers = [
        *(
            field
            for field in request.headers
            if not (name := field[0].lower()).startswith("sec-ch-ua") and name not in _NOT_SENT
        ),
        *([("Cookie", cookies)] if cookies else []),
    ]
    longest = STREAM if request.is_stream else max(LEAST, ends - asyncio.get_running_loop().time())
    return FetchRequest(
        url, request.method, tuple((name, as_received(value)) for name, value in headers), request.body,
        min(longest, total),
    )  # fmt: skip


def _cookies(ours: str, browsers: str) -> str:
    """The cookies of the crawl's jar and of the browser, whose scripts may have set newer ones."""
    newer = [pair for pair in browsers.split("; ") if pair]
    names = {pair.partition("=")[0] for pair in newer}
    return "; ".join([*(pair for pair in ours.split("; ") if pair and pair.partition("=")[0] not in names), *newer])
