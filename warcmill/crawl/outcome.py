"""How a visit ends: kept, put back, tried again, or given up. Each ends the lease in the books."""

from __future__ import annotations

from collections.abc import Sequence

from warcmill.crawl import again, lines, steady
from warcmill.crawl.admission import Later, Refused
from warcmill.crawl.books import Books, Result
from warcmill.crawl.cookies import Cookie
from warcmill.crawl.exchange import Exchange
from warcmill.crawl.frontier import Lease
from warcmill.crawl.heard import Heard
from warcmill.crawl.job import Job
from warcmill.crawl.limits import Failure
from warcmill.crawl.offers import Refusals
from warcmill.crawl.status import Status
from warcmill.formats.crawllog import ASKED_AGAIN, CrawlRecord
from warcmill.formats.warc.records import Record


class Outcome:
    """The ends of one visit; `thread` is its number in the log."""

    def __init__(self, lease: Lease, thread: int, books: Books, heard: Heard, job: Job) -> None:
        self._lease, self._uri, self.thread = lease, lease.uri, thread
        self._books, self._heard, self._job = books, heard, job
        self._moves = books.frontier.transitions

    async def wait(self, later: Later) -> None:
        """Put it back: it is not its turn, and this was no try."""
        self._moves.update(self._uri, Status.SCHEDULED, tries=self._uri.tries - 1, not_before=later.again)
        await self._books.keep(Result(self._uri, self._lease, opens=later.opens))

    async def refuse(self, refused: Refused, refusals: Refusals) -> None:
        """End it: a policy is against it."""
        against = refused.against
        refusals.add(self._uri.uri, against)
        line = self._failed_with(refused.status, lines.words(against) if refused.status in lines.NAMED else ())
        self._heard.failed(line, f"{against.policy}: {against.why}")
        await self._books.keep(Result(self._uri, self._lease, (), line, self._lease.history))

    async def fail(self, why: Failure, opens: float = 0.0) -> None:
        """No answer: it is tried again later, but not for ever."""
        if why.final or self._uri.tries >= self._job.retries.times:
            await self._give_up(why.status, why.why, opens)
            return
        self._heard.failed(lines.of_failure(self._uri, why.status, self.thread), why.why)
        until = steady.now() + self._job.retries.next(self._uri.tries)
        self._moves.update(self._uri, Status.SCHEDULED, not_before=until)
        await self._books.keep(Result(self._uri, self._lease, opens=opens))

    async def ask_again(self, answer: Exchange, records: Sequence[Record], notes: tuple[str, ...], opens: float,
                        cookies: Sequence[Cookie]) -> None:  # fmt: skip
        """Keep an answer that is not the last: it waits for its Retry-After, or for its host's delay."""
        now = steady.now()
        until = max(opens, now + answer.retry_after)
        line = lines.of_answer(self._uri, answer, (*notes, ASKED_AGAIN), self.thread)
        self._heard.failed(line, f"it answered {answer.status}; it is asked again in {max(0.0, until - now):,.0f} s")
        self._moves.update(self._uri, Status.SCHEDULED, not_before=until)
        await self._books.keep(Result(self._uri, self._lease, records, line, opens=opens, cookies=cookies))

    async def broke(self, trace: str) -> None:
        """End it after a fault in Warcmill; the log has the traceback."""
        if self._uri.status not in (Status.DOWNLOADING, Status.PARSING):
            self._uri.status = Status.DOWNLOADING  # the books have refused what it had become
        line = self._failed_with(lines.FAULT)
        self._heard.broke(line, trace)
        await self._books.keep(Result(self._uri, self._lease, (), line, self._lease.history))

    async def _give_up(self, status: int, why: str, opens: float) -> None:
        line = self._failed_with(status)
        self._heard.failed(line, why)
        left = self._lease.history
        again_at = again.when(self._job, self._uri, left)
        await self._books.keep(Result(self._uri, self._lease, (), line, left, opens=opens, again=again_at))

    def _failed_with(self, status: int, annotations: tuple[str, ...] = ()) -> CrawlRecord:
        self._moves.update(self._uri, Status.FAILED, http_status=status, download_finished=steady.now())
        return lines.of_failure(self._uri, status, self.thread, annotations)
