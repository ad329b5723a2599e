"""Visit one URI: judge it, fetch it, take its links, and hand the result to the books.

Whatever goes wrong with a URI ends as a line of its own; an error of the books alone ends the crawl.

MERGED warcmill/crawl/visit/visit.py: What a launch visits URIs with, put together from its job.

MERGED warcmill/crawl/visit/visit.py: How a visit ends: kept, put back, tried again, or given up. Each ends the
lease in the books.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from warcmill.base import clock
from warcmill.crawl import uri as data_uri
from warcmill.crawl.books.books import BookEntry, Books
from warcmill.crawl.extract.links import EMBED
from warcmill.crawl.fetch import exchange, heartbeat
from warcmill.crawl.fetch.addresses import Judge, Resolver, read_hosts
from warcmill.crawl.fetch.answer import Fields
from warcmill.crawl.fetch.cookies import Cookie
from warcmill.crawl.fetch.exchange import Exchange, as_received, mime_of, request_of
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import Failure
from warcmill.crawl.frontier import Lease
from warcmill.crawl.job.job import Job, Live
from warcmill.crawl.logs import lines
from warcmill.crawl.logs.lines import Heard
from warcmill.crawl.policies.decision import Own
from warcmill.crawl.uri import Status
from warcmill.crawl.visit import history
from warcmill.crawl.visit.admission import Admission, Admitted, JudgedSums, Later, Manners, Refused, at_lease
from warcmill.crawl.visit.extraction import Document, Read, Readers
from warcmill.crawl.visit.history import History
from warcmill.crawl.visit.hosts import Hosts, RobotsFiles
from warcmill.crawl.visit.offers import Offers, Refusals
from warcmill.errors import BadInput, Unavailable, WarcmillError, describe
from warcmill.formats.logs.crawllog import ASKED_AGAIN, CrawlRecord
from warcmill.formats.warc.records import Record


class Visit:
    """One visit of a leased URI; `thread` is its number in the log."""

    def __init__(self, kit: Kit, lease: Lease, thread: int) -> None:
        self._kit, self._lease, self._uri, self._thread = kit, lease, lease.uri, thread
        self._moves = kit.books.frontier.transitions
        self._job = kit.job.of(lease.uri)
        self._end = Outcome(lease, thread, kit.books, kit.heard, self._job)

    async def run(self) -> None:
        """Make the visit. Raises only what the books raise."""
        self._moves.update(self._uri, Status.DOWNLOADING, tries=self._uri.tries + 1, download_started=clock.steady())
        try:
            await self._visit()
        except Exception as error:
            if isinstance(error, Unavailable):  # a disk, such as that of the scratch files: no fault of the page
                self._kit.books.stop(error)
            if self._kit.books.stopped:
                raise
            why = describe(error) if isinstance(error, WarcmillError) else traceback.format_exc()
            await self._end.broke(why)

    async def _visit(self) -> None:
        if self._uri.uri.startswith("data:"):
            await self._read_data()
            return
        match await self._kit.admission.ask(self._uri):
            case Admitted(addresses, delay):
                await self._fetch(addresses, delay)
            case Refused() as refused:
                await self._end.refuse(refused, self._kit.offers.refused)
            case Later() as later:
                await self._end.wait(later)
            case Failure() as failure:
                await self._end.fail(failure)

    async def _fetch(self, addresses: tuple[str, ...], delay: float) -> None:
        uri, kit, beats = self._uri, self._kit, heartbeat.current()
        before = history.read(self._lease.history)
        request = request_of(uri.uri, exchange.read(uri.payload, uri.uri), self._headers(before))
        began = beats.now()
        answer = await kit.fetcher.fetch(request, addresses, self._job.limits)
        address = answer.address if isinstance(answer, Exchange) else addresses[0]
        took, settings = beats.now() - began, self._job.politeness
        opens = kit.manners.after(settings, uri.queue, address, answer, took, delay)
        if isinstance(answer, Failure):
            await self._end.fail(answer, opens)
            return
        with closing(answer):
            await self._keep(answer, before, opens)

    def _headers(self, before: History | None) -> tuple[tuple[str, str], ...]:
        """Our headers of the request, as a browser would send them; and what asks for new things alone."""
        uri, wanted = self._uri, self._job.conditional
        cookies = self._kit.books.jar(uri.crawl).header(uri.uri, clock.steady())
        is_asked = wanted == "all" or (wanted == "embeds" and uri.hops.endswith(EMBED))
        is_told = uri.via.startswith("http:" if uri.uri.startswith("http:") else "http")  # RFC 9110, 10.1.3
        returned = (
            *((("Cookie", cookies),) if cookies else ()),
            *(before.conditions if before and is_asked else ()),
        )
        return (
            *((("Referer", uri.via),) if is_told else ()),
            *((name, as_received(value)) for name, value in returned),
        )

    async def _keep(self, answer: Exchange, before: History | None, opens: float) -> None:
        uri, kit = self._uri, self._kit
        if self._job.retries.asks_again(answer.status, uri.tries, answer.retry_after):
            await self._keep_first(answer, before, opens)
            return
        links, note = await self._links(answer)
        followed = kit.offers.followed(uri, links, answer.fields) if self._job.nofollow else links
        found = await kit.offers.of_many(uri, followed, kit.books.frontier)
        judged = history.judge(answer, before, lines.metadata(uri, links))
        cookies = kit.books.jar(uri.crawl).receive(uri.uri, answer.fields.all("set-cookie"), clock.steady())
        line = lines.of_answer(uri, answer, (*judged.annotations, *answer.annotations, *note), self._thread)
        due, left = history.when(self._job, uri, judged.history), judged.history
        await kit.books.keep(BookEntry(uri, self._lease, judged.records, line, left, found, opens, due, cookies))

    async def _keep_first(self, answer: Exchange, before: History | None, opens: float) -> None:
        """Keep an answer that says "later": its links, and what it leaves for the next launch, are those of the last
        one."""
        uri = self._uri
        judged = history.judge(answer, before, lines.metadata(uri, ()))
        cookies = self._kit.books.jar(uri.crawl).receive(uri.uri, answer.fields.all("set-cookie"), clock.steady())
        notes = (*judged.annotations, *answer.annotations)
        await self._end.ask_again(answer, judged.records, notes, opens, cookies)

    async def _links(self, answer: Exchange) -> Read:
        """The links of an answer, and notes for the log."""
        self._moves.update(
            self._uri, Status.PARSING, http_status=answer.status, hash=answer.payload_sha1, host_ip=answer.address,
            download_finished=clock.steady(),
        )  # fmt: skip
        read = await self._kit.readers.read(self._uri.uri, answer, self._job)
        self._moves.update(self._uri, Status.PARSED)
        return read

    async def _read_data(self) -> None:
        """Take the links of a `data:` URI: it needs no network, and has no record."""
        uri, kit = self._uri, self._kit
        try:
            data = data_uri.read(uri.uri)
        except BadInput as error:
            await self._end.fail(Failure(lines.FAULT, error.why, final=True))
            return
        one = Document(uri.uri, 200, Fields([("content-type", data.mime)]), self._job.extractors)
        self._moves.update(uri, Status.PARSING, http_status=200, download_finished=clock.steady())
        links, note = await kit.readers.read_small(one, data.body)  # as long as a URI may be
        self._moves.update(uri, Status.PARSED)
        line = lines.of_data(uri, mime_of(data.mime), len(data.body), self._thread, note)
        found = await kit.offers.of_many(uri, links, kit.books.frontier)
        await kit.books.keep(BookEntry(uri, self._lease, (), line, found=found))


@dataclass(frozen=True, slots=True)
class Kit:
    """The parts that every visit shares."""

    live: Live
    books: Books
    fetcher: Fetcher
    admission: Admission
    manners: Manners
    offers: Offers
    heard: Heard
    readers: Readers = field(default_factory=Readers)

    @property
    def job(self) -> Job:
        """The job as it is now."""
        return self.live.job

    def close(self) -> None:
        """Fetch no more: nothing is under way but what was fetched for others."""
        self.admission.robots.close()
        self.admission.hosts.close()
        self.fetcher.close()
        self.readers.close()


def make_kit(job: Job, books: Books, heard: Heard, scratch: Path) -> Kit:
    """Put the parts of a launch together; long answers are kept in `scratch` until they are in a WARC."""
    live = Live(job)
    judge = Judge(job.allow_private)
    fetcher = Fetcher(judge, job.limits, job.user_agent, scratch)
    hosts = Hosts(Resolver(job.resolve, read_hosts(), job.name_servers), judge, books, heard)
    others = Own(job.policies, heard.policy_failed)
    offers, manners = Offers(live, heard, others), Manners(live)
    robots = RobotsFiles(live, books, fetcher, hosts, offers, heard)
    sums = JudgedSums(books.frontier.spent)
    admission = Admission(live, at_lease(live, sums, others), sums, hosts, robots, manners)
    return Kit(live, books, fetcher, admission, manners, offers, heard)


class Outcome:
    """The ends of one visit; `thread` is its number in the log."""

    def __init__(self, lease: Lease, thread: int, books: Books, heard: Heard, job: Job) -> None:
        self._lease, self._uri, self.thread = lease, lease.uri, thread
        self._books, self._heard, self._job = books, heard, job
        self._moves = books.frontier.transitions

    async def wait(self, later: Later) -> None:
        """Put it back: it is not its turn, and this was no try."""
        self._moves.update(self._uri, Status.SCHEDULED, tries=self._uri.tries - 1, not_before=later.again)
        await self._books.keep(BookEntry(self._uri, self._lease, opens=later.opens))

    async def refuse(self, refused: Refused, refusals: Refusals) -> None:
        """End it: a policy is against it."""
        against = refused.against
        refusals.add(self._uri.uri, against)
        line = self._failed_with(refused.status, lines.words(against) if refused.status in lines.NAMED else ())
        self._heard.failed(line, f"{against.policy}: {against.why}")
        await self._books.keep(BookEntry(self._uri, self._lease, (), line, self._lease.history))

    async def fail(self, why: Failure, opens: float = 0.0) -> None:
        """No answer: it is tried again later, but not for ever."""
        if why.final or self._uri.tries >= self._job.retries.times:
            await self._give_up(why.status, why.why, opens)
            return
        self._heard.failed(lines.of_failure(self._uri, why.status, self.thread), why.why)
        until = clock.steady() + self._job.retries.next(self._uri.tries)
        self._moves.update(self._uri, Status.SCHEDULED, not_before=until)
        await self._books.keep(BookEntry(self._uri, self._lease, opens=opens))

    async def ask_again(self, answer: Exchange, records: Sequence[Record], notes: tuple[str, ...], opens: float,
                        cookies: Sequence[Cookie]) -> None:  # fmt: skip
        """Keep an answer that is not the last: it waits for its Retry-After, or for its host's delay."""
        now = clock.steady()
        until = max(opens, now + answer.retry_after)
        line = lines.of_answer(self._uri, answer, (*notes, ASKED_AGAIN), self.thread)
        self._heard.failed(line, f"it answered {answer.status}; it is asked again in {max(0.0, until - now):,.0f} s")
        self._moves.update(self._uri, Status.SCHEDULED, not_before=until)
        await self._books.keep(BookEntry(self._uri, self._lease, records, line, opens=opens, cookies=cookies))

    async def broke(self, trace: str) -> None:
        """End it after a fault in Warcmill; the log has the traceback."""
        if self._uri.status not in (Status.DOWNLOADING, Status.PARSING):
            self._uri.status = Status.DOWNLOADING  # the books have refused what it had become
        line = self._failed_with(lines.FAULT)
        self._heard.broke(line, trace)
        await self._books.keep(BookEntry(self._uri, self._lease, (), line, self._lease.history))

    async def _give_up(self, status: int, why: str, opens: float) -> None:
        line = self._failed_with(status)
        self._heard.failed(line, why)
        left = self._lease.history
        again_at = history.when(self._job, self._uri, left)
        await self._books.keep(BookEntry(self._uri, self._lease, (), line, left, opens=opens, again=again_at))

    def _failed_with(self, status: int, annotations: tuple[str, ...] = ()) -> CrawlRecord:
        self._moves.update(self._uri, Status.FAILED, http_status=status, download_finished=clock.steady())
        return lines.of_failure(self._uri, status, self.thread, annotations)
