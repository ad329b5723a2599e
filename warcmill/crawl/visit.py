"""Visit one URI: judge it, fetch it, take its links, and hand the result to the books.

Whatever goes wrong with a URI ends as a line of its own; an error of the books alone ends the crawl.
"""

from __future__ import annotations

import traceback
from contextlib import closing

from warcmill.crawl import again, answers, data_uri, fetch, heartbeat, history, lines, steady
from warcmill.crawl.admission import Admitted, Later, Refused
from warcmill.crawl.books import Result
from warcmill.crawl.exchange import Exchange, as_received, mime_of, request_of
from warcmill.crawl.extract.links import EMBED
from warcmill.crawl.extract.workers import Document, Read
from warcmill.crawl.frontier import Lease
from warcmill.crawl.head import Fields
from warcmill.crawl.history import History
from warcmill.crawl.kit import Kit
from warcmill.crawl.limits import Failure
from warcmill.crawl.outcome import Outcome
from warcmill.crawl.status import Status
from warcmill.errors import BadInput, Unavailable, WarcmillError, describe


class Visit:
    """One visit of a leased URI; `thread` is its number in the log."""

    def __init__(self, kit: Kit, lease: Lease, thread: int) -> None:
        self._kit, self._lease, self._uri, self._thread = kit, lease, lease.uri, thread
        self._moves = kit.books.frontier.transitions
        self._job = kit.job.of(lease.uri)
        self._end = Outcome(lease, thread, kit.books, kit.heard, self._job)

    async def run(self) -> None:
        """Make the visit. Raises only what the books raise."""
        self._moves.update(self._uri, Status.DOWNLOADING, tries=self._uri.tries + 1, download_started=steady.now())
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
        request = request_of(uri.uri, fetch.read(uri.payload, uri.uri), self._headers(before))
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
        cookies = self._kit.books.jar(uri.crawl).header(uri.uri, steady.now())
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
        judged = answers.judge(answer, before, lines.metadata(uri, links))
        cookies = kit.books.jar(uri.crawl).receive(uri.uri, answer.fields.all("set-cookie"), steady.now())
        line = lines.of_answer(uri, answer, (*judged.annotations, *answer.annotations, *note), self._thread)
        due, left = again.when(self._job, uri, judged.history), judged.history
        await kit.books.keep(Result(uri, self._lease, judged.records, line, left, found, opens, due, cookies))

    async def _keep_first(self, answer: Exchange, before: History | None, opens: float) -> None:
        """Keep an answer that says "later": its links, and what it leaves for the next launch, are those of the last
        one."""
        uri = self._uri
        judged = answers.judge(answer, before, lines.metadata(uri, ()))
        cookies = self._kit.books.jar(uri.crawl).receive(uri.uri, answer.fields.all("set-cookie"), steady.now())
        notes = (*judged.annotations, *answer.annotations)
        await self._end.ask_again(answer, judged.records, notes, opens, cookies)

    async def _links(self, answer: Exchange) -> Read:
        """The links of an answer, and notes for the log."""
        self._moves.update(
            self._uri, Status.PARSING, http_status=answer.status, hash=answer.payload_sha1, host_ip=answer.address,
            download_finished=steady.now(),
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
        self._moves.update(uri, Status.PARSING, http_status=200, download_finished=steady.now())
        links, note = await kit.readers.read_small(one, data.body)  # as long as a URI may be
        self._moves.update(uri, Status.PARSED)
        line = lines.of_data(uri, mime_of(data.mime), len(data.body), self._thread, note)
        found = await kit.offers.of_many(uri, links, kit.books.frontier)
        await kit.books.keep(Result(uri, self._lease, (), line, found=found))
