"""One visit of a leased URI, a straight line: admit, have its reader fetch and read it, then make the entry to keep.

Two values make visits differ. The *audience* of the URI is who asked for it (`job.job`). The *reader* is how links and
items are got: `LinkReader`, or code of others. A room above the crawler docks by a `PageReader` of its own: that is
handed each visit once the URI is admitted, or refused for good; it has the visit fetch, and returns a `Reading`.

Whatever goes wrong with a URI ends as a line of its own; an error of the books alone ends the crawl. `Kit` is what all
visits of a launch share.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base import clock
from warcmill.crawl import uri as data_uri
from warcmill.crawl.books.books import BookEntry, Books, CrawlResult
from warcmill.crawl.extract.links import EMBED, LINK, Link
from warcmill.crawl.fetch import exchange, login
from warcmill.crawl.fetch.addresses import Judge, Resolver, read_hosts
from warcmill.crawl.fetch.answer import HeaderFields, mime_of
from warcmill.crawl.fetch.cookies import Cookie
from warcmill.crawl.fetch.exchange import Exchange, FetchOptions, FetchRequest, as_received, request_of
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import Failure
from warcmill.crawl.frontier import Frontier, Lease
from warcmill.crawl.job.job import Job, Live
from warcmill.crawl.logs import lines
from warcmill.crawl.logs.lines import FaultListener
from warcmill.crawl.policies.decision import Own
from warcmill.crawl.uri import Data, Status, Uri
from warcmill.crawl.visit import history, redirects, rendering
from warcmill.crawl.visit.admission import Admission, Hosts, Manners
from warcmill.crawl.visit.extraction import LinkSource, Read, Readers, link_limits
from warcmill.crawl.visit.fetching import Admitted, Entries, Fetching, Later, Refusal
from warcmill.crawl.visit.history import PastVisit
from warcmill.crawl.visit.offers import Offers
from warcmill.crawl.visit.page_requests import OPENED, FetchedPage, is_page
from warcmill.crawl.visit.rendering import DOM_FIELDS, NOT_RENDERED, Render, Rendering
from warcmill.crawl.visit.robots_files import LaunchRobots, RobotsFiles
from warcmill.crawl.visit.sharing import SharedAnswer
from warcmill.errors import BadInput, Unavailable, WarcmillError, describe
from warcmill.formats.logs.crawllog import ASKED_AGAIN


class Reading(NamedTuple):
    """All that was got from a URI: its links, for the metadata record; notes of its line in crawl.log; URIs that it has
    led to, and results for who asked. `fault`: a traceback of code of the name `where`. `memory`: what the spider of
    the URI remembers from now on. `again`: when it is visited again, as its reader has it; 0: as the job has it."""

    links: Sequence[Link] = ()
    notes: tuple[str, ...] = ()
    found: Sequence[Uri] = ()
    results: Sequence[CrawlResult] = ()
    rendered: Render = NOT_RENDERED
    fault: str = ""
    where: str = ""
    memory: Mapping[str, str] = MappingProxyType({})
    again: float = 0.0


class PageReader(Protocol):
    """Reads what visits fetch."""

    @property
    def shares(self) -> bool:
        """True if the browser of another page may have the answers: they are asked for as any browser would."""

    async def read(self, visit: Visit) -> Reading:
        """Have a visit fetch, and read its answer. There is nothing to read where `visit.refusal` gives a reason, where
        no answer came, or where the URI is asked again. Raises what the visit raises."""

    async def read_data(self, visit: Visit, data: Data) -> Reading:
        """Read a `data:` URI; without more nothing is read of it."""
        _ = visit, data
        return Reading()

    def lacks(self, answer: Exchange) -> str:
        """The reason for which an answer is of no use, so that it is asked for again; '' for one that is."""
        _ = answer
        return ""

    def outlived(self, visit: Visit) -> None:
        """Hear that the lease of a visit had ended before the visit did: nothing of it was kept."""


class LinkReader(PageReader):
    """Renders a page if the job wants that, and takes the links of an answer, as a crawler does."""

    shares = True

    def __init__(self, readers: Readers, rendering: Rendering, offers: Offers, frontier: Frontier) -> None:
        self._readers, self._rendering, self._offers, self._frontier = readers, rendering, offers, frontier

    async def read(self, visit: Visit) -> Reading:
        answer = await visit.fetch()
        if answer is None:
            visit.let_go()
            return Reading()
        uri, job, audience = visit.uri, visit.job, visit.audience
        page, options = visit.page(answer), visit.options().render
        rendered = NOT_RENDERED
        if self._rendering.wants(page, options):
            rendered = await self._rendering.render(page, options)
        else:
            visit.let_go()
        links, notes = await self._links(visit, answer, rendered)
        followed = self._offers.followed(uri, links, answer.fields) if job.nofollow else links
        followed = () if visit.late else audience.followed(answer, followed, job.limits)
        followed, ended, why = redirects.followed(uri, visit.sent, followed, visit.would_send)
        if ended:
            self._offers.refuse(uri, ended, redirects.NAME, why)
            notes = (*notes, redirects.LOOP)
        found = await self._offers.of_many(uri, followed, self._frontier)
        if visit.late:
            results = audience.notice(uri, visit.late)
        else:
            results = audience.page(uri, answer, followed, lambda some: self._offers.accepted(uri, some, found))
        return Reading(links, notes, [*found, *rendered.missed], results, rendered)

    async def read_data(self, visit: Visit, data: Data) -> Reading:
        fields, job = HeaderFields([("content-type", data.mime)]), visit.job
        source = LinkSource(visit.uri.uri, 200, fields, job.extractors, limits=link_limits(job))
        links, notes = await self._readers.read_small(source, data.body)  # as long as a URI may be
        return Reading(links, notes, await self._offers.of_many(visit.uri, links, self._frontier))

    def outlived(self, visit: Visit) -> None:
        """Nobody is to hear of it: the URI is visited again."""

    async def _links(self, visit: Visit, answer: Exchange, rendered: Render) -> Read:
        """The links of an answer, and those that its scripts have made besides; and notes for the log."""
        job = visit.job
        read = await self._readers.read(visit.uri, answer, job)
        if page := rendered.page:
            source = LinkSource(page.final_url, 200, DOM_FIELDS, job.extractors, limits=link_limits(job))
            read = read.joined(await self._readers.read_page(source, page.dom, job.limits))
            windows = [Link(url, LINK, "window", is_uri=False) for url in page.windows]
            read = read.joined(Read(windows))
        return read


class Visit:
    """One visit of a leased URI by a reader; `thread` is its number in the log.

    For the reader it has the URI, the job and the audience of that URI, and the `number` of the lease; `refusal`, why
    the URI may never be fetched, or cannot be reached; and `fetch`. After that `answer` is the answer, or the failure;
    `is_postponed` is True if the URI is asked again; `late` is why an answer that came too late does not count; `sent`
    is a digest of what was sent. `reading` is what its reader has returned.
    """

    def __init__(self, kit: Kit, lease: Lease, thread: int, reader: PageReader) -> None:
        self.uri, self.number = lease.uri, lease.id
        self.job = kit.job.of(lease.uri)
        self.audience = self.job.audience
        self.refusal: Refusal | Failure | None = None
        self.answer: Exchange | Failure | None = None
        self.is_postponed, self.late = False, ""
        self.reading = Reading()
        self._kit, self._lease, self._thread, self._reader = kit, lease, thread, reader
        self._moves = kit.books.frontier.transitions
        self._admitted: Admitted | None = None
        self.sent = ""
        self._shared = SharedAnswer()
        self._compared = history.AnswerComparison(None)
        self._cookies: Sequence[Cookie] = ()
        self._opens = 0.0

    async def run(self) -> None:
        """Make the visit, unless a browser has asked for the URI meanwhile. Raises only what the books raise."""
        async with self._kit.rendering.turns.of(self.uri, is_shared=self._is_shared) as shared:
            if not shared.has_waited or await self._kit.books.holds(self._lease):
                self._shared = shared
                await self._make()

    async def _make(self) -> None:
        self._moves.update(self.uri, Status.DOWNLOADING, tries=self.uri.tries + 1, download_started=clock.steady())
        try:
            kept = await self._kit.books.keep(await self._result())
            if not kept.held:
                self._reader.outlived(self)
        except Exception as error:
            if isinstance(error, Unavailable):  # a disk, such as that of the scratch files: no fault of the page
                self._kit.books.stop(error)
            if self._kit.books.stopped:
                raise
            trace = describe(error) if isinstance(error, WarcmillError) else traceback.format_exc()
            await self._kit.books.keep(self._with_reading(self._broken(trace, "Warcmill")))

    async def _result(self) -> BookEntry:
        """Take the steps in this order; each may end the visit."""
        if self.uri.uri.startswith("data:"):
            return await self._of_data()
        admitted = await self._kit.fetching.admit(self.uri, self.job)
        if isinstance(admitted, Later) or (isinstance(admitted, Failure) and not self._is_given_up(admitted)):
            return self._put_back(admitted)
        if isinstance(admitted, Admitted):
            self._admitted = admitted
        else:
            self.refusal = admitted
        self.reading = await self._reader.read(self)
        return self._with_reading(self._entry(self.reading))

    def _with_reading(self, entry: BookEntry) -> BookEntry:
        """An entry with all that was read and led to; nothing of that is lost with a record that cannot be kept."""
        results = [*entry.results, *self.reading.results]
        again = self.reading.again or entry.again
        return replace(entry, found=self.reading.found, results=results, memory=self.reading.memory, again=again)

    # For the reader.

    async def fetch(self, request: FetchRequest | None = None) -> Exchange | None:
        """Fetch the URI, once: as the crawl asks for it, or by a request of the reader's. Return the answer that is to
        be read; None without an answer, or if the URI is asked again."""
        if self._admitted is None:
            return None
        before = history.read(self._lease.history) if self.job.revisits else None
        asked = request or request_of(self.uri.uri, self.options(), self._headers(before))
        if request is None and self._signs_in(self.uri.uri):
            asked = asked._replace(signed_in=True)
        had = await self._kit.rendering.had(self.uri) if request is None and self._is_shared else None
        if had is None:
            answer, self._opens = await self._kit.fetching.fetch(self.uri, self.job, asked, self._admitted)
        else:
            answer = had._replace(address=self._admitted.addresses[0])
        self.answer = answer
        if isinstance(answer, Failure):
            self.is_postponed = not self._is_given_up(answer)
            return None
        self._shared.put(answer)  # it can be read until the books have kept it
        self._compared = history.compare(answer, before)
        if self._is_shared and (is_page(answer) or rendering.may_embed(self.uri)):
            self._compared = self._compared.whole()
        if request is None and self.audience.has_jar:
            jar = self._kit.books.jar(self.uri.crawl)
            self._cookies = jar.receive(self.uri.uri, answer.set_cookies, clock.steady())
        self.late = self.audience.late(answer) or self._reader.lacks(answer)
        retries, tries = self.job.retries, self.uri.tries
        if retries.asks_again(answer.status, tries, answer.retry_after, is_late=bool(self.late)):
            self.is_postponed = True
            return None
        self._moves.update(
            self.uri, Status.PARSING, http_status=answer.status, hash=answer.payload_sha1, host_ip=answer.address,
            download_finished=clock.steady(),
        )  # fmt: skip
        return answer

    @property
    def past(self) -> PastVisit | None:
        """The last visit of the URI, as far as it left something."""
        return history.read(self._lease.history)

    def let_go(self) -> None:
        """Let others ask the host of the URI, once it has rested: this visit asks no more. Quotas count what the books
        have, so with them the host waits for that."""
        if self.answer is not None and not self.job.quotas:
            self._kit.books.frontier.answered(self._lease, self._opens)
            self._kit.woken.set()

    def would_send(self, url: str) -> str:
        """A digest of what the crawl would send for a URI now."""
        return redirects.sent(url, self._jar_header(url))

    def options(self) -> FetchOptions:
        """The options of the URI's payload; BadInput for an invalid payload."""
        return exchange.read(self.uri.payload, self.uri.uri)

    def page(self, answer: Exchange) -> FetchedPage:
        """The answer, as the browser opens it."""
        assert self._admitted is not None
        return FetchedPage(self.uri, self.job, self._shared, answer, self._admitted.delay)

    @property
    def _is_shared(self) -> bool:
        """True if the browser of another page may ask for the same."""
        if not self._reader.shares:
            return False
        try:
            options = self.options()
        except BadInput:  # a step of the visit will raise it
            return False
        return options.is_plain and (self._kit.live.renders or options.render is not None)

    def _headers(self, before: PastVisit | None) -> tuple[tuple[str, str], ...]:
        """Our headers of the request, as a browser would send them; and what asks for new things alone, unless the
        browser of this launch may need the bytes."""
        uri, wanted, audience = self.uri, self.job.conditional, self.audience
        cookies = self._jar_header(uri.uri)
        self.sent = redirects.sent(uri.uri, cookies, self.options())
        is_conditional = wanted == "all" or (wanted == "embeds" and uri.hops.endswith(EMBED))
        is_named = uri.via.startswith("http:" if uri.uri.startswith("http:") else "http")  # RFC 9110, 10.1.3
        returned = (
            *((("Cookie", cookies),) if cookies else ()),
            *(before.conditions if before and is_conditional and not self._is_shared else ()),
        )
        return (
            *((("Referer", uri.via),) if is_named and audience.names_referrer(uri) else ()),
            *((name, as_received(value)) for name, value in returned),
            *audience.headers,
        )

    def _jar_header(self, url: str) -> str:
        if not self.audience.has_jar:
            return ""
        return self._kit.books.jar(self.uri.crawl).header(url, clock.steady(), login.jar(self.job.render.cookies))

    def _signs_in(self, url: str) -> bool:
        cookies = login.jar(self.job.render.cookies) if self.audience.has_jar else None
        return bool(cookies and cookies.fitting(url, clock.steady()))

    def _is_given_up(self, failure: Failure) -> bool:
        return failure.final or self.uri.tries >= self.job.retries.times

    # The ends of a visit.

    def _entry(self, reading: Reading) -> BookEntry:
        """The entry of a page that was read, or of the reason for which nothing was read."""
        match self.refusal or self.answer:
            case Refusal() as refusal:
                entry = self._kit.entries.refused(self.uri, refusal, self._lease, self._thread)
                return replace(entry, results=self.audience.refused(self.uri, refusal.against))
            case Failure() as failure:
                return self._failed(failure)
            case Exchange() as answer:
                return self._asked_again(answer) if self.is_postponed else self._answered(answer, reading)
        return self._unanswered(reading)

    def _answered(self, answer: Exchange, reading: Reading) -> BookEntry:
        """An answer that was read: its records, those of the page as a browser had it, and what it led to."""
        uri, heard, rendered, compared = self.uri, self._kit.heard, reading.rendered, self._compared
        was_had = bool(answer.record_id)
        notes = (*reading.notes, *((OPENED,) if was_had else ()), *rendered.notes)
        self._moves.update(uri, Status.PARSED)
        entry = self._kit.entries.answered(
            uri, answer, compared, reading.links, notes, rendered.metadata, self._lease, self._thread
        )
        assert entry.line is not None
        if rendered.failure:
            heard.failed(entry.line, f"not rendered: {rendered.failure}")
        for fault in rendered.page.faults if rendered.page else ():
            heard.failed(entry.line, fault)
        if reading.fault:
            heard.broke(entry.line, reading.fault, reading.where)
        left = history.without_validators(entry.history) if self._leaves_work(reading) else entry.history
        about = exchange.recorded(answer) if was_had else entry.records[0]
        records = [*entry.records, *rendered.records(uri, about)]
        return replace(
            entry, records=records, opens=max(self._opens, rendered.opens), cookies=self._cookies,
            again=history.next_visit(self.job, uri, left), history=left, is_opened=was_had,
            may_recall=self._is_shared and not compared.word and not was_had, rendered=rendered.page,
        )  # fmt: skip

    def _leaves_work(self, reading: Reading) -> bool:
        """True if the next visit has to ask for the whole page: not all was read of it, or followed."""
        return bool(self.late or reading.fault or reading.rendered.failure)

    def _unanswered(self, reading: Reading) -> BookEntry:
        """The reader has fetched nothing: it needed no answer, or a fault ended it."""
        if reading.fault:
            return self._broken(reading.fault, reading.where)
        self._moves.update(self.uri, Status.PARSED, download_finished=clock.steady())
        return BookEntry(self.uri, self._lease, history=self._lease.history)

    def _put_back(self, why: Later | Failure) -> BookEntry:
        """It is not fetched now: it is not its turn, which is not a try; or its host was not found this time."""
        if isinstance(why, Failure):
            return self._failed(why)
        self._moves.update(self.uri, Status.SCHEDULED, tries=self.uri.tries - 1, not_before=why.again)
        return BookEntry(self.uri, self._lease, opens=why.opens)

    def _failed(self, failure: Failure) -> BookEntry:
        """No answer: it is tried again later, but not for ever."""
        uri, entries, retries = self.uri, self._kit.entries, self.job.retries
        if self._is_given_up(failure):
            entry = entries.given_up(uri, failure.status, failure.why, self._lease, self._thread)
            again = history.next_visit(self.job, uri, entry.history)
            return replace(entry, opens=self._opens, again=again, results=self.audience.notice(uri, failure.why))
        entries.in_vain(uri, failure.status, failure.why, self._thread)
        self._wait(clock.steady() + retries.next(uri.tries))
        return BookEntry(uri, self._lease, opens=self._opens)

    def _asked_again(self, answer: Exchange) -> BookEntry:
        """An answer that asks to come back, or came too late: it waits for its Retry-After, or for its host's delay.
        The last answer gives its links, and the history for the next launch."""
        now = clock.steady()
        until = max(self._opens, now + answer.retry_after)
        entry = self._kit.entries.answered(
            self.uri, answer, self._compared, notes=(ASKED_AGAIN,), lease=self._lease, thread=self._thread
        )
        assert entry.line is not None
        why = self.late or f"it answered {answer.status}"
        self._kit.heard.failed(entry.line, f"{why}; it is asked again in {max(0.0, until - now):,.0f} s")
        self._wait(until)
        return replace(entry, history=b"", opens=self._opens, cookies=self._cookies)

    def _wait(self, until: float) -> None:
        """Let it wait for another try."""
        behind = self.uri.priority + self.audience.step
        self._moves.update(self.uri, Status.SCHEDULED, not_before=until, priority=behind)

    def _broken(self, trace: str, where: str) -> BookEntry:
        """A fault, in code of this name, ended it."""
        told = self.audience.notice(self.uri, f"a fault in {where}; runtime-errors.log of its launch has it")
        return replace(self._kit.entries.broken(self.uri, self._lease, trace, where, self._thread), results=told)

    async def _of_data(self) -> BookEntry:
        """Have a `data:` URI read: it needs no network, and has no record."""
        uri = self.uri
        try:
            data = data_uri.read(uri.uri)
        except BadInput as error:
            return self._failed(Failure(lines.FAULT, error.why, final=True))
        self._moves.update(uri, Status.PARSING, http_status=200, download_finished=clock.steady())
        reading = await self._reader.read_data(self, data)
        self._moves.update(uri, Status.PARSED)
        line = lines.of_data(uri, mime_of(data.mime), len(data.body), self._thread, reading.notes)
        if reading.fault:
            self._kit.heard.broke(line, reading.fault, reading.where)
        self.reading = reading
        return self._with_reading(BookEntry(uri, self._lease, (), line))


class Kit(Struct, frozen=True):
    """The parts that every visit of a launch shares. `woken` has the spider look for what it may lease."""

    live: Live
    books: Books
    fetching: Fetching
    entries: Entries
    offers: Offers
    heard: FaultListener
    readers: Readers
    rendering: Rendering
    reader: PageReader
    woken: asyncio.Event

    @property
    def job(self) -> Job:
        """The job as it is now."""
        return self.live.job

    async def close(self) -> None:
        """Fetch no more: nothing is under way but what was fetched for others."""
        await self.rendering.close()
        self.fetching.close()
        self.readers.close()


def make_kit(job: Job, books: Books, heard: FaultListener, scratch: Path, folder: Path) -> Kit:
    """Join the parts of a launch of the job in a folder; long answers are kept in `scratch` until they are in a
    WARC."""
    live, judge, own = Live(job), Judge(job.allow_private), Own(job.policies, heard.policy_failed)
    offers, frontier = Offers(live, heard, own), books.frontier
    entries = Entries(books, heard, offers.refused)
    fetcher = Fetcher(judge, job.limits, job.user_agent, scratch)
    hosts = Hosts(Resolver(job.resolve, read_hosts(), job.name_servers), judge, frontier, entries)
    robots = LaunchRobots(live, frontier, fetcher, entries, offers, hosts.addresses)
    fetching = Fetching(fetcher, Admission(live, own, frontier, hosts, RobotsFiles(live), robots, Manners(live)))
    readers = Readers()
    renders = Rendering(live, books, fetching, entries, offers, readers, heard, scratch, folder)
    reader = LinkReader(readers, renders, offers, frontier)
    return Kit(live, books, fetching, entries, offers, heard, readers, renders, reader, asyncio.Event())
