"""One visit of a leased URI, a straight line: admit, fetch, compare, render, extract, offer, keep.

Each step takes values and returns one; the first that ends the visit returns its `BookEntry`, which the books keep.
Whatever goes wrong with a URI ends as a line of its own; an error of the books alone ends the crawl. `Kit` is what
all visits of a launch share.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from warcmill.base import clock
from warcmill.crawl import uri as data_uri
from warcmill.crawl.books.books import BookEntry, Books, CrawlResult
from warcmill.crawl.extract.links import EMBED, REDIRECT, Link
from warcmill.crawl.fetch import exchange, heartbeat
from warcmill.crawl.fetch.addresses import Judge, Resolver, read_hosts
from warcmill.crawl.fetch.answer import HeaderFields, mime_of
from warcmill.crawl.fetch.cookies import Cookie
from warcmill.crawl.fetch.exchange import Exchange, FetchOptions, RenderOptions, as_received, request_of
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import TIME, Failure
from warcmill.crawl.frontier import Lease
from warcmill.crawl.job.job import Job, Live
from warcmill.crawl.logs import lines, results
from warcmill.crawl.logs.lines import FaultListener
from warcmill.crawl.logs.results import Requester
from warcmill.crawl.policies.decision import Own
from warcmill.crawl.policies.request import EXPIRY, STEP, level
from warcmill.crawl.render import NEVER
from warcmill.crawl.uri import Status, Uri
from warcmill.crawl.visit import history, rendering
from warcmill.crawl.visit.admission import Admission, Admitted, Hosts, Later, Manners, NotAdmitted, Refusal, RobotsFiles
from warcmill.crawl.visit.extraction import LinkSource, Read, Readers
from warcmill.crawl.visit.history import PastVisit
from warcmill.crawl.visit.offers import Offers
from warcmill.crawl.visit.rendering import DOM_FIELDS, FetchedPage, Render, Rendering
from warcmill.crawl.visit.sharing import SharedAnswer
from warcmill.errors import BadInput, Unavailable, WarcmillError, describe
from warcmill.formats.logs.crawllog import ASKED_AGAIN, CrawlRecord

LATE = "its answer was not whole in time"


class Visit:
    """One visit of a leased URI; `thread` is its number in the log."""

    def __init__(self, kit: Kit, lease: Lease, thread: int) -> None:
        self._kit, self._lease, self._uri, self._thread = kit, lease, lease.uri, thread
        self._moves = kit.books.frontier.transitions
        self._job = kit.job.of(lease.uri)

    async def run(self) -> None:
        """Make the visit, unless a browser has asked for the URI meanwhile. Raises only what the books raise."""
        async with self._kit.rendering.turns.of(self._uri, is_shared=self._is_shared) as shared:
            if not shared.has_waited or await self._kit.books.holds(self._lease):
                await self._make(shared)

    async def _make(self, shared: SharedAnswer) -> None:
        self._moves.update(self._uri, Status.DOWNLOADING, tries=self._uri.tries + 1, download_started=clock.steady())
        try:
            kept = await self._kit.books.keep(await self._result(shared))
            if not kept.held:
                self._outlived()
        except Exception as error:
            if isinstance(error, Unavailable):  # a disk, such as that of the scratch files: no fault of the page
                self._kit.books.stop(error)
            if self._kit.books.stopped:
                raise
            trace = describe(error) if isinstance(error, WarcmillError) else traceback.format_exc()
            await self._kit.books.keep(self._broken(trace))

    def _outlived(self) -> None:
        """Hear that the lease had ended before the visit did: nothing of it was kept."""

    async def _result(self, shared: SharedAnswer) -> BookEntry:
        """Take the steps in this order. Each returns a value, and may end the visit."""
        uri, kit = self._uri, self._kit
        if uri.uri.startswith("data:"):
            return await self._of_data()
        admitted = await kit.admission.admit(uri, self._job)
        if not isinstance(admitted, Admitted):
            return self._not_admitted(admitted)
        requester = self._job.requester  # who gets the page, from its record
        before = history.read(self._lease.history) if self._job.revisits and not requester else None
        answer, opens = await self._fetch(admitted, before)
        if isinstance(answer, Failure):
            return self._failed(answer, opens)
        shared.put(answer)  # it can be read until the books have kept it
        compared = history.compare(answer, before)
        if self._is_shared and (rendering.is_page(answer) or rendering.may_embed(uri)):
            compared = compared.whole()
        is_late = self._job.target is not None and answer.truncated == TIME  # for who asked it is a time-out
        if self._job.retries.asks_again(answer.status, uri.tries, answer.retry_after, is_late=is_late):
            return self._asked_again(answer, compared, opens, LATE if is_late else "")
        rendered = await self._render(answer, shared, admitted)
        links, notes = await self._extract(answer, rendered)
        followed = kit.offers.followed(uri, links, answer.fields) if self._job.nofollow else links
        if requester and not answer.fields.has("location"):
            followed = results.after_refresh(answer, followed, self._job.limits)
        followed = [] if is_late else followed  # who asked has no page of them
        found = [*await kit.offers.of_many(uri, followed, kit.books.frontier), *rendered.missed]
        records, left = history.records(answer, compared, (*lines.metadata(uri, links), *rendered.metadata))
        records = [*records, *rendered.records(uri, records[0])]
        notes = (*compared.annotations, *answer.annotations, *notes, *rendered.notes)
        line = lines.of_answer(uri, answer, notes, self._thread)
        if rendered.failure:
            kit.heard.failed(line, f"not rendered: {rendered.failure}")
        again = history.next_visit(self._job, uri, left)
        asked = requester if requester and results.is_page(uri) and not is_late else None
        brought = [self._result_for(asked, answer, followed, found)] if asked else self._notice(LATE) if is_late else []
        return BookEntry(
            uri, self._lease, records, line, left, found, max(opens, rendered.opens), again, self._cookies(answer),
            may_recall=self._is_shared and not compared.word, rendered=rendered.page, results=brought,
        )  # fmt: skip

    async def _fetch(self, admitted: Admitted, before: PastVisit | None) -> tuple[Exchange | Failure, float]:
        """The answer, and when the URI's queue may be asked again."""
        uri, kit, beats = self._uri, self._kit, heartbeat.current()
        request = request_of(uri.uri, self._options(), self._headers(before))
        began = beats.now()
        answer = await kit.fetcher.fetch(request, admitted.addresses, self._job.limits)
        took = beats.now() - began
        return answer, await kit.admission.rest(self._job.politeness, uri.queue, admitted, answer, took)

    def _options(self) -> FetchOptions:
        return exchange.read(self._uri.payload, self._uri.uri)

    @property
    def _is_shared(self) -> bool:
        """True if the browser of another page may ask for the same."""
        try:
            options = self._options()
        except BadInput:  # a step of the visit will raise it
            return False
        return options.is_plain and (self._kit.live.renders or options.render is not None)

    def _headers(self, before: PastVisit | None) -> tuple[tuple[str, str], ...]:
        """Our headers of the request, as a browser would send them; and what asks for new things alone, unless the
        browser of this launch may need the bytes."""
        uri, wanted = self._uri, self._job.conditional
        target = self._job.target
        cookies = "" if target else self._kit.books.jar(uri.crawl).header(uri.uri, clock.steady())
        is_conditional = wanted == "all" or (wanted == "embeds" and uri.hops.endswith(EMBED))
        is_named = uri.via.startswith("http:" if uri.uri.startswith("http:") else "http")  # RFC 9110, 10.1.3
        if self._job.requester and uri.hops.endswith(REDIRECT):
            is_named = False  # as Scrapy Cluster's crawler
        returned = (
            *((("Cookie", cookies),) if cookies else ()),
            *(before.conditions if before and is_conditional and not self._is_shared else ()),
        )
        return (
            *((("Referer", uri.via),) if is_named else ()),
            *((("Accept-Language", "en"),) if self._job.requester else ()),  # as Scrapy Cluster's crawler
            *((name, as_received(value)) for name, value in returned),
            *(target.headers if target else ()),
        )

    def _cookies(self, answer: Exchange) -> Sequence[Cookie]:
        """The cookies that an answer has changed in its crawl's jar. A request brings its own, and has no jar."""
        if self._job.target:
            return ()
        return self._kit.books.jar(self._uri.crawl).receive(self._uri.uri, answer.set_cookies, clock.steady())

    async def _render(self, answer: Exchange, shared: SharedAnswer, admitted: Admitted) -> Render:
        """Open a page in the browser, if it is one and the job or its URI asks for that."""
        settings, asked = self._job.render, self._options().render
        if not asked and settings.which == NEVER:
            return rendering.NOT_RENDERED
        if not (rendering.is_page(answer) and (asked or rendering.is_wanted(settings, self._uri))):
            return rendering.NOT_RENDERED
        page = FetchedPage(self._uri, self._job, shared, answer, admitted.delay)
        return await self._kit.rendering.render(page, asked or RenderOptions())

    async def _extract(self, answer: Exchange, rendered: Render) -> Read:
        """The links of an answer, and those that its scripts have made besides; and notes for the log."""
        self._moves.update(
            self._uri, Status.PARSING, http_status=answer.status, hash=answer.payload_sha1, host_ip=answer.address,
            download_finished=clock.steady(),
        )  # fmt: skip
        read = await self._kit.readers.read(self._uri, answer, self._job)
        if page := rendered.page:
            source = LinkSource(page.final_url, 200, DOM_FIELDS, self._job.extractors)
            read = read.joined(await self._kit.readers.read_page(source, page.dom, self._job.limits))
        self._moves.update(self._uri, Status.PARSED)
        return read

    def _result_for(
        self, requester: Requester, answer: Exchange, links: Sequence[Link], found: Sequence[Uri]
    ) -> CrawlResult:
        """The page, for who asked for it."""
        anchors = [link for link in links if results.is_anchor(link)]
        asked = self._job.target.url if self._job.target and not self._uri.hops else ""
        accepted = self._kit.offers.accepted(self._uri, anchors, found)
        return results.of_page(requester, answer, accepted, asked, refreshed=results.is_refreshed(links))

    async def _of_data(self) -> BookEntry:
        """Take the links of a `data:` URI: it needs no network, and has no record."""
        uri, kit = self._uri, self._kit
        try:
            data = data_uri.read(uri.uri)
        except BadInput as error:
            return self._failed(Failure(lines.FAULT, error.why, final=True))
        source = LinkSource(uri.uri, 200, HeaderFields([("content-type", data.mime)]), self._job.extractors)
        self._moves.update(uri, Status.PARSING, http_status=200, download_finished=clock.steady())
        links, note = await kit.readers.read_small(source, data.body)  # as long as a URI may be
        self._moves.update(uri, Status.PARSED)
        line = lines.of_data(uri, mime_of(data.mime), len(data.body), self._thread, note)
        found = await kit.offers.of_many(uri, links, kit.books.frontier)
        return BookEntry(uri, self._lease, (), line, found=found)

    # How a visit ends before its last step: put back, refused, tried again, or given up.

    def _not_admitted(self, answer: NotAdmitted) -> BookEntry:
        match answer:
            case Later(opens, again):  # it is not its turn, and this was no try
                self._moves.update(self._uri, Status.SCHEDULED, tries=self._uri.tries - 1, not_before=again)
                return BookEntry(self._uri, self._lease, opens=opens)
            case Refusal(status, against):
                self._kit.offers.refused.add(self._uri.uri, against)
                line = self._ended(status, lines.words(against) if status in lines.NAMED else ())
                self._kit.heard.failed(line, f"{against.policy}: {against.why}")
                kind = results.PURGED if against.policy == EXPIRY else results.NOTICE  # an expiry has its own notice
                told = self._notice(against.why, kind) if level(self._uri.hops) == 0 else ()
                return BookEntry(self._uri, self._lease, (), line, self._lease.history, results=told)
            case Failure():
                return self._failed(answer)

    def _failed(self, failure: Failure, opens: float = 0.0) -> BookEntry:
        """No answer: it is tried again later, but not for ever."""
        uri, retries = self._uri, self._job.retries
        if failure.final or uri.tries >= retries.times:
            line = self._ended(failure.status)
            self._kit.heard.failed(line, failure.why)
            left = self._lease.history
            again = history.next_visit(self._job, uri, left)
            told = self._notice(failure.why)
            return BookEntry(uri, self._lease, (), line, left, opens=opens, again=again, results=told)
        self._kit.heard.failed(lines.of_failure(uri, failure.status, self._thread), failure.why)
        self._moves.update(uri, Status.SCHEDULED, not_before=clock.steady() + retries.next(uri.tries), **self._behind())
        return BookEntry(uri, self._lease, opens=opens)

    def _asked_again(
        self, answer: Exchange, compared: history.AnswerComparison, opens: float, why: str = ""
    ) -> BookEntry:
        """An answer that asks to come back, or came too late: it waits for its Retry-After, or for its host's delay.
        Its links, and what it leaves for the next launch, are those of the last answer."""
        uri, now = self._uri, clock.steady()
        records, _ = history.records(answer, compared, lines.metadata(uri, ()))
        cookies = self._cookies(answer)
        until = max(opens, now + answer.retry_after)
        notes = (*compared.annotations, *answer.annotations, ASKED_AGAIN)
        line = lines.of_answer(uri, answer, notes, self._thread)
        why = why or f"it answered {answer.status}"
        self._kit.heard.failed(line, f"{why}; it is asked again in {max(0.0, until - now):,.0f} s")
        self._moves.update(uri, Status.SCHEDULED, not_before=until, **self._behind())
        return BookEntry(uri, self._lease, records, line, opens=opens, cookies=cookies)

    def _notice(self, why: str, kind: str = results.NOTICE) -> Sequence[CrawlResult]:
        """The notice of a page that its request does not get, for who asked for it."""
        target, requester = self._job.target, self._job.requester
        if not (target and requester and self._job.results_log and results.is_page(self._uri)):
            return ()
        now = int(clock.steady())
        more = {"action": "failed", "spiderid": target.spiderid, "url": self._uri.uri, "why": why}
        return [results.notice(requester, {**more, "server_time": now}, kind)]

    def _behind(self) -> dict[str, int]:
        """The place of a request's URI that is tried again: behind others."""
        return {"priority": self._uri.priority + STEP} if self._job.target else {}

    def _broken(self, trace: str, where: str = "Warcmill") -> BookEntry:
        """A fault, in code of this name, ended it; the log has the traceback."""
        if self._uri.status not in (Status.DOWNLOADING, Status.PARSING):
            self._uri.status = Status.DOWNLOADING  # the books have refused what it had become
        line = self._ended(lines.FAULT)
        self._kit.heard.broke(line, trace, where)
        told = self._notice(f"a fault in {where}; runtime-errors.log of its launch has it")
        return BookEntry(self._uri, self._lease, (), line, self._lease.history, results=told)

    def _ended(self, status: int, annotations: tuple[str, ...] = ()) -> CrawlRecord:
        self._moves.update(self._uri, Status.FAILED, http_status=status, download_finished=clock.steady())
        return lines.of_failure(self._uri, status, self._thread, annotations)


@dataclass(frozen=True, slots=True)
class Kit:
    """The parts that every visit of a launch shares."""

    live: Live
    books: Books
    fetcher: Fetcher
    admission: Admission
    manners: Manners
    offers: Offers
    heard: FaultListener
    readers: Readers
    rendering: Rendering

    @property
    def job(self) -> Job:
        """The job as it is now."""
        return self.live.job

    async def close(self) -> None:
        """Fetch no more: nothing is under way but what was fetched for others."""
        await self.rendering.close()
        self.admission.close()
        self.fetcher.close()
        self.readers.close()


def make_kit(job: Job, books: Books, heard: FaultListener, scratch: Path) -> Kit:
    """Join the parts of a launch; long answers are kept in `scratch` until they are in a WARC."""
    live, judge, own = Live(job), Judge(job.allow_private), Own(job.policies, heard.policy_failed)
    fetcher = Fetcher(judge, job.limits, job.user_agent, scratch)
    hosts = Hosts(Resolver(job.resolve, read_hosts(), job.name_servers), judge, books, heard)
    offers, manners = Offers(live, heard, own), Manners(live)
    sites = RobotsFiles(live, books, fetcher, hosts, offers, heard)
    admission = Admission(live, own, books, hosts, sites, manners)
    readers = Readers()
    renders = Rendering(live, books, fetcher, admission, manners, offers, readers, heard, scratch)
    return Kit(live, books, fetcher, admission, manners, offers, heard, readers, renders)
