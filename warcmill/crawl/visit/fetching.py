"""Fetching: the one way of a URI to its server and into the books, with a lease or without.

    Fetching   admit, fetch, let the host rest; of a URI without a lease all at once, of a page's part in its turn
    Entries    then keep or refuse: the end of a visit, or of a fetch without a lease, as the books keep it

A visit takes these steps one by one, as its reader fetches; so do host look-ups, robots.txt files, what a browser or a
spider asks for besides. Who admits is handed in: a launch's admission, or that of a page which another engine asks for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from warcmill.base import clock
from warcmill.crawl.books.books import BookEntry, Books, Kept
from warcmill.crawl.extract.links import Link
from warcmill.crawl.fetch import addresses as dns
from warcmill.crawl.fetch import heartbeat
from warcmill.crawl.fetch.addresses import HostLookup
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import Failure
from warcmill.crawl.frontier import Lease
from warcmill.crawl.job.job import Job
from warcmill.crawl.logs import lines
from warcmill.crawl.logs.lines import BESIDES, FaultListener
from warcmill.crawl.policies.decision import Decision
from warcmill.crawl.policies.politeness import Politeness
from warcmill.crawl.uri import Status, Uri
from warcmill.crawl.visit import history
from warcmill.crawl.visit.history import AnswerComparison
from warcmill.crawl.visit.offers import Refusals
from warcmill.formats.warc.records import Pairs

LONGEST_SLEEP = 60.0  # seconds until a URI that waits for its turn asks again


class Admitted(NamedTuple):
    """It may be fetched from one of these addresses; `delay` is what its robots.txt asks for between two fetches."""

    addresses: tuple[str, ...]
    delay: float


class Refusal(NamedTuple):
    """It will not be fetched: the `status` of its line, and the policy that refused it. `cause`: the status of the
    robots.txt that cannot be had."""

    status: int
    against: Decision
    cause: int = 0

    @property
    def why(self) -> str:
        """The policy and its reason."""
        return f"{self.against.policy}: {self.against.why}"


class Later(NamedTuple):
    """Not yet: its queue is left alone until `opens`, and it itself until `again`."""

    opens: float
    again: float = 0.0


NotAdmitted = Refusal | Later | Failure


class Admits(Protocol):
    """Decides if a URI may be fetched now, from which addresses, and for how long its host is left alone then."""

    async def admit(self, uri: Uri, job: Job, *, in_turn: bool = True) -> Admitted | NotAdmitted:
        """Judge a URI. `in_turn`: False for a part of a page that is open, whose parts are fetched at once."""
        ...

    async def rest(
        self, settings: Politeness, queue: str, admitted: Admitted, answer: Exchange | Failure, took: float, *,
        has_lease: bool = True,
    ) -> float:  # fmt: skip
        """Let a host rest that was asked; return until when its queue does, 0: not at all. The frontier lets the queue
        of a lease rest; that of a URI without one is to rest besides."""
        ...

    def close(self) -> None:
        """Ask no more."""
        ...


class FetchResult(NamedTuple):
    """An answer, or why it is missing; and when the queue of its URI may be asked again."""

    answer: Exchange | Failure
    opens: float = 0.0


class FetchedPart(NamedTuple):
    """An answer to a part of a page that is open, by which its host rests after the page."""

    answer: Exchange
    admitted: Admitted
    politeness: Politeness


class Fetching:
    """The fetches of a launch, or of a page."""

    def __init__(self, fetcher: Fetcher, admission: Admits) -> None:
        self._fetcher, self._admission = fetcher, admission

    async def admit(self, uri: Uri, job: Job, *, in_turn: bool = True) -> Admitted | NotAdmitted:
        """Judge a URI; `job` is its job. One that is admitted is under way from now on."""
        return await self._admission.admit(uri, job, in_turn=in_turn)

    async def fetch(
        self, uri: Uri, job: Job, request: FetchRequest, admitted: Admitted, *, has_lease: bool = True
    ) -> FetchResult:
        """Ask the server of an admitted URI, and let its host rest. The loop's own delays are not the server's."""
        beats = heartbeat.current()
        began = beats.now()
        answer = await self._fetcher.fetch(request, admitted.addresses, job.limits)
        took = beats.now() - began
        rest = self._admission.rest(job.politeness, uri.queue, admitted, answer, took, has_lease=has_lease)
        return FetchResult(answer, await rest)

    async def beside(self, uri: Uri, job: Job, request: FetchRequest) -> Exchange | Refusal | Failure:
        """Fetch a URI without a lease, when it is the turn of its host, which rests then."""
        while isinstance(admitted := await self.admit(uri, job), Later):
            wait = max(admitted.opens, admitted.again) - clock.steady()
            await asyncio.sleep(max(0.01, min(LONGEST_SLEEP, wait)))
        if not isinstance(admitted, Admitted):
            return admitted
        return (await self.fetch(uri, job, request, admitted, has_lease=False)).answer

    async def part(
        self, job: Job, request: Callable[[], FetchRequest | None], admitted: Admitted,
        turn: AbstractAsyncContextManager[object],
    ) -> Exchange | Failure | None:  # fmt: skip
        """Ask for a part of a page that is open, in its `turn` among those of its host, which rests after the page.
        `request` is made then: None, and so is the result, if the part is not wanted any more."""
        async with turn:
            asked = request()
            return await self._fetcher.fetch(asked, admitted.addresses, job.limits) if asked else None

    async def rest(self, queue: str, part: FetchedPart, *, has_lease: bool) -> float:
        """Let the host of a page's part rest, after the page; return until when its queue does."""
        answer, admitted, politeness = part
        took = answer.took_ms / 1000
        return await self._admission.rest(politeness, queue, admitted, answer, took, has_lease=has_lease)

    def close(self) -> None:
        """Ask no more."""
        self._admission.close()
        self._fetcher.close()


class Entries:
    """The entries of one launch. A URI without a lease is moved to its end here; `thread` is its number in the log."""

    def __init__(self, books: Books, heard: FaultListener, refused: Refusals) -> None:
        self._books, self._heard, self._refusals = books, heard, refused
        self._moves = books.frontier.transitions

    async def keep(self, entry: BookEntry) -> Kept:
        """Have the books keep an entry; it is durable when this returns."""
        return await self._books.keep(entry)

    def answered(
        self, uri: Uri, answer: Exchange, compared: AnswerComparison, links: Iterable[Link] = (),
        notes: tuple[str, ...] = (), metadata: Pairs = (), lease: Lease | None = None, thread: int = BESIDES,
    ) -> BookEntry:  # fmt: skip
        """The entry of an answer: its records, its line with these notes, and the history that it leaves."""
        if lease is None:
            lines.visited(self._moves, uri, answer.status, failed=False, digest=answer.payload_sha1)
        records, left = history.records(answer, compared, (*lines.metadata(uri, links), *metadata), notes)
        line = lines.of_answer(uri, answer, (*compared.annotations(answer), *notes), thread)
        return BookEntry(uri, lease, records, line, left)

    def refused(self, uri: Uri, refusal: Refusal, lease: Lease | None = None, thread: int = BESIDES) -> BookEntry:
        """The entry of a URI that a policy refuses."""
        status, against = refusal.status, refusal.against
        self._refusals.add(uri.uri, against)
        words = lines.words(against) if status in lines.NAMED else ()
        return self.given_up(uri, status, refusal.why, lease, thread, words)

    def given_up(
        self, uri: Uri, status: int, why: str, lease: Lease | None = None, thread: int = BESIDES,
        annotations: tuple[str, ...] = (),
    ) -> BookEntry:  # fmt: skip
        """The entry of a URI that gets no answer."""
        self._fail(uri, status, lease)
        line = lines.of_failure(uri, status, thread, annotations)
        self._heard.failed(line, why)
        return BookEntry(uri, lease, (), line, lease.history if lease else b"")

    def broken(self, uri: Uri, lease: Lease, trace: str, where: str, thread: int) -> BookEntry:
        """The entry of a URI that a fault ended, in code of the name `where`; the log has the traceback."""
        if uri.status not in (Status.DOWNLOADING, Status.PARSING):
            uri.status = Status.DOWNLOADING  # the books have refused what it had become
        self._fail(uri, lines.FAULT, lease)
        line = lines.of_failure(uri, lines.FAULT, thread)
        self._heard.broke(line, trace, where)
        return BookEntry(uri, lease, (), line, history.without_validators(lease.history))

    def in_vain(self, uri: Uri, status: int, why: str, thread: int = BESIDES) -> None:
        """Log a try after which others come: it has no entry."""
        self._heard.failed(lines.of_failure(uri, status, thread), why)

    async def looked_up(self, uri: Uri, found: HostLookup | Failure, began: float) -> None:
        """Keep the entry of a look-up: its record, if a name server was asked, and its line."""
        lines.visited(self._moves, uri, found.status, failed=isinstance(found, Failure))
        record = dns.record_of(found) if isinstance(found, HostLookup) else None
        line = lines.of_lookup(uri, found, record, began)
        await self.keep(BookEntry(uri, None, [record] if record else (), line))
        if isinstance(found, Failure):
            self._heard.failed(line, found.why)

    def _fail(self, uri: Uri, status: int, lease: Lease | None) -> None:
        if lease is None:
            lines.visited(self._moves, uri, status, failed=True)
        else:
            self._moves.update(uri, Status.FAILED, http_status=status, download_finished=clock.steady())
