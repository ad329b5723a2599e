"""A launch that serves requests: it takes targets from the job's feed, counts what waits by crawl, and forgets crawls.

The frontier knows a target by its number. `register` keeps up to which number the feed was read, after its URIs were
offered, and the journal has it with each group: after a kill some may be offered again, and are seen. Writes to the
frontier.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from warcmill.base import clock
from warcmill.crawl.books.books import BookEntry, Books, CrawlResult, Kept
from warcmill.crawl.fetch.limits import CONNECT_FAILED, CONNECTION_LOST, NO_ADDRESS, TIMED_OUT
from warcmill.crawl.frontier import Intake, Waited
from warcmill.crawl.frontier.crew import Crew
from warcmill.crawl.frontier.register import FED, Register
from warcmill.crawl.logs.lines import NO_HOST, NO_ROBOTS
from warcmill.crawl.uri import Uri, make
from warcmill.crawl.visit.spider import Spider
from warcmill.crawl.visit.visit import Kit
from warcmill.errors import BadInput, Unavailable
from warcmill.model import Json
from warcmill.requests.serving.feed import FedTarget, RequestFeed
from warcmill.requests.serving.results import Requester, notice
from warcmill.requests.serving.scope import LINK_SPIDER, SOURCE, RequestTarget, level, names_of, number_of, read_target
from warcmill.requests.serving.targets import RequestAudience, RequestTargets

AT_ONCE: Final = 500
PATIENCE: Final = 1.0  # seconds for which who asks for a purge waits: meanwhile it answers nobody else
TOLD_AT_ONCE: Final = 10_000  # lines of results: each time waits for the disk
_UNANSWERED: Final = frozenset([NO_ADDRESS, CONNECT_FAILED, CONNECTION_LOST, TIMED_OUT, NO_HOST, NO_ROBOTS])


class AskedCrawl(NamedTuple):
    """The requests of an owner in one crawl; '' for any."""

    crawl: str = ""
    appid: str = ""


class AnswerCounts:
    """The answers that a process has got for requests: their number by spider, then by status.

    Each try of a page that no server answered counts as 504, as there.
    """

    def __init__(self, targets: RequestTargets, books: Books) -> None:
        self.counts: dict[str, dict[str, int]] = {}
        self._targets = targets
        self._before, books.hear = books.hear, self._heard

    def _heard(self, entry: BookEntry, kept: Kept) -> None:
        """Count the answer of an entry that is durable."""
        self._before(entry, kept)
        line = entry.line
        if not line or not line.status or line.is_asked_again or entry.uri.hops.endswith("P"):
            return
        status, number = (504, entry.uri.tries) if line.status in _UNANSWERED else (line.status, 1)
        if status > 0:
            target = self._targets.of(entry.uri.source)
            statuses = self.counts.setdefault(entry.uri.spider or LINK_SPIDER, {}) if target else {}
            statuses[str(status)] = statuses.get(str(status), 0) + number


class Feeding:
    """The feed of one open launch. Where the launch has workers, a `crew`, they are given the documents of targets."""

    def __init__(
        self, feed: RequestFeed, targets: RequestTargets, books: Books, register: Register, kit: Kit, spider: Spider,
        crew: Crew | None = None,
    ) -> None:  # fmt: skip
        self._feed, self._targets, self._books, self._register = feed, targets, books, register
        self._kit, self._spider, self._crew = kit, spider, crew
        self._one, self._has_purged = asyncio.Lock(), asyncio.Event()
        self._purges: dict[AskedCrawl, asyncio.Task[int]] = {}
        self._fed: int | None = None

    async def learn(self) -> int:
        """Take what the feed has besides; return up to where it was read. While workers cannot be given it, it waits in
        the feed."""
        async with self._one:
            if self._fed is None:
                self._fed = await self.place()
                await self._forget_ended()
            while True:
                found, after = await asyncio.to_thread(self._feed.read, self._fed, AT_ONCE)
                if not await self._teach(found) or not found:
                    return self._fed
                await self._offer(found)
                await self._books.frontier.run(partial(self._register.keep_number, FED, after))
                self._fed = after
                self._spider.wake()

    async def feed(self, targets: Sequence[tuple[str, dict[str, Json]]]) -> int:
        """Append requests of another machine to the feed, durable when this returns; return how many are new."""
        async with self._one:
            return await asyncio.to_thread(self._feed.append, targets)

    async def place(self) -> int:
        """Return up to where the feed was read."""
        return await self._books.frontier.run(lambda: self._register.number(FED))

    async def _teach(self, found: Iterable[FedTarget]) -> bool:
        """Give workers the documents of targets, and of those that they ask for, as Redis has lost them."""
        if not self._crew:
            return True
        try:
            asked = self._feed.each(await self._crew.asked())
            await self._crew.teach({one.number: one.document for one in (*asked, *found)})
        except Unavailable:
            return False
        return True

    async def _forget_ended(self) -> None:
        """Remove from Redis the documents of targets of which nothing waits."""
        if self._crew:
            waiting = {number_of(row.source) for row in await self._books.frontier.tally()}
            with suppress(Unavailable):  # the next launch does
                await self._crew.keep_documents({number for number in waiting if number is not None})

    async def tally(self, asked: AskedCrawl) -> list[Json]:
        """Count what waits, by crawl, owner and queue. Of very many crawls that takes a while: beside the crawl."""
        rows = await self._books.frontier.tally(asked.crawl or None)
        return await asyncio.to_thread(self._sums, rows, asked)

    async def purge(self, asked: AskedCrawl) -> int | None:
        """Forget a crawl, or what its owner has in it where others have something too; return how many URIs waited.
        None if it takes longer: it continues, and who asks again learns the number.

        Requests among them, which get no page now, are in results.jsonl before that.
        """
        if not (task := self._purges.get(asked)):
            self._purges[asked] = task = asyncio.create_task(self._purge(asked))
            await asyncio.wait([task], timeout=PATIENCE)
        if not task.done():
            return None
        self._purges.pop(asked, None)
        return await task

    async def _purge(self, asked: AskedCrawl) -> int:
        """Purge, a page after the other: what others ask for comes in between."""
        frontier = self._books.frontier
        await self._tell_purged(asked)
        async with self._one:  # nothing is learned meanwhile
            rows = await frontier.tally(asked.crawl)
            if len(await asyncio.to_thread(self._of, rows, asked)) == len(rows):
                self._kit.offers.forget(asked.crawl)
                waited = await frontier.begin_purge(asked.crawl)
                self._has_purged.set()
                return waited
        removed, after = 0, 0
        while True:
            page = await frontier.list(asked.crawl, after=after, limit=AT_ONCE)
            keys = [uri.key for uri in page.uris if (target := self._targets.of(uri.source)) and _is(target, asked)]
            removed += await frontier.remove(asked.crawl, keys) if keys else 0
            if not (after := page.next):
                return removed

    async def _tell_purged(self, asked: AskedCrawl) -> None:
        """Have the requests that a purge takes in results.jsonl."""
        after, told = 0, list[CrawlResult]()
        while self._kit.job.results_log:
            page = await self._books.frontier.list(asked.crawl, after=after, limit=AT_ONCE)
            told += self._purged(page.uris, asked)
            after = page.next
            if told and (len(told) >= TOLD_AT_ONCE or not after):
                await self._books.tell(told)
                told = []
            if not after:
                return

    async def tidy(self) -> None:
        """Delete what purges have left, until the launch ends: beside the crawl, as others are answered meanwhile."""
        try:
            while True:
                await self._has_purged.wait()
                self._has_purged.clear()
                await self._books.frontier.purge_rest()
        finally:
            for task in self._purges.values():
                task.cancel()

    def _purged(self, uris: Iterable[Uri], asked: AskedCrawl) -> Iterator[CrawlResult]:
        """The lines of requests that are given up."""
        for uri in uris:
            target = self._targets.of(uri.source) if level(uri.hops) == 0 else None
            audience = self._kit.job.of(uri).audience
            if target and isinstance(audience, RequestAudience) and _is(target, asked):
                expired = target.judge(uri)
                yield audience.purged(uri, expired.why if expired else "its crawl was stopped, or has expired")

    async def _offer(self, found: Iterable[FedTarget]) -> None:
        """Offer the first URI of each target. Who asked for one that cannot be crawled gets a notice."""
        made, refused = list[tuple[FedTarget, Uri]](), list[tuple[FedTarget, str]]()
        for one in found:
            try:
                made.append((one, self._uri(one)))
            except BadInput as error:
                refused.append((one, error.why))
        answers = await self._books.frontier.offer([uri for _, uri in made])
        refused += [
            (one, answer.why) for (one, _), answer in zip(made, answers, strict=True) if answer.answer is Intake.REFUSED
        ]
        for one, why in refused:
            self._kit.heard.no_uri("", why, str(one.document.get("url", f"{SOURCE}{one.number}")))
        if refused and self._kit.job.results_log:
            await self._books.tell([_refusal(one, why) for one, why in refused])

    def _uri(self, one: FedTarget) -> Uri:
        """The first URI of a target. Its key has the number, as each request is fetched once."""
        target = read_target(one.number, one.document)
        uri = make(target.url, crawl=target.crawl, source=target.source, priority=-target.priority,
                   spider=target.spider)  # fmt: skip
        uri.key = f"{uri.uri} {target.source}"  # no URI has a blank
        uri.queue = self._kit.job.queue(uri.uri)
        return uri

    def _sums(self, rows: Sequence[Waited], asked: AskedCrawl) -> list[Json]:
        sums: dict[tuple[str, str, str, str], list[int]] = {}
        for row, crawl in self._of(rows, asked):
            counts = sums.setdefault((*crawl, row.queue), [0, row.first, row.last])
            counts[0] += row.number
            counts[1], counts[2] = min(counts[1], row.first), max(counts[2], row.last)
        return [
            {"spiderid": spiderid, "crawlid": crawlid, "appid": appid, "queue": queue, "total": total,
             "high": -first, "low": -last}
            for (spiderid, crawlid, appid, queue), (total, first, last) in sorted(sums.items())
        ]  # fmt: skip

    def _of(self, rows: Sequence[Waited], asked: AskedCrawl) -> list[tuple[Waited, tuple[str, str, str]]]:
        """The rows of an owner, each with its spiderid, crawlid and appid. They may be many: the feed is read once. The
        spider is that which they wait for: another one may have found them."""
        by_number = [(row, number) for row in rows if (number := number_of(row.source)) is not None]
        appids: dict[int, str] = {}
        for number, _, document in self._feed.each({number for _, number in by_number}):
            appid = str(document.get("appid", ""))
            if asked.appid in ("", appid):
                appids[number] = appid
        return [(row, (*names_of(row.crawl), appids[number])) for row, number in by_number if number in appids]


def _refusal(one: FedTarget, why: str) -> CrawlResult:
    """The notice of a target that cannot be crawled, to whom its document names."""
    requester = Requester({name: one.document.get(name) for name in ("appid", "attrs", "crawlid")})
    known = {name: one.document.get(name) for name in ("spiderid", "url")}
    return notice(requester, {"action": "failed", **known, "why": why, "server_time": int(clock.steady())})


def _is(target: RequestTarget, asked: AskedCrawl) -> bool:
    return asked.appid in ("", target.appid)
