"""Leases, and those that a process takes ahead from a Redis that is far. Asks Redis by the sender.

They are taken ahead as far as a round trip is worth: two of them at the present rate, and never where a window of time
counts. Who asks gets these at once. One that nobody has used for a while is given back; so are all when the process
ends, or is declared dead, as they are leases like others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple

from warcmill.crawl.frontier import Lease
from warcmill.crawl.frontier.outbox import MOST, parts
from warcmill.crawl.frontier.sender import Sender
from warcmill.crawl.uri import FOREVER
from warcmill.errors import Unavailable

KEPT = 1.0  # seconds, and some round trips, for which a lease is kept for somebody who asks
_RATE_SECONDS = 2.0  # over which the rate is taken


class LeaseAsker(NamedTuple):
    """Who asks for leases: the holder, the spider whose URIs they are, and for how many seconds."""

    holder: str
    spider: str
    seconds: float


class Versions(NamedTuple):
    """The versions of all cookies and of all memories, as Redis has them."""

    cookies: int
    memory: int


class FarLeases:
    """The leases of a process by a sender. `held` has all that are out here, and those that were taken ahead.

    `make` makes leases of an answer. `sent` gives what this process has sent of each version; `learn` hears the
    versions without that. `opens` is when something may be leased next, as far as is known; None: never.
    """

    def __init__(
        self, sender: Sender, held: dict[int, Lease], now: Callable[[], float], words: tuple[str, str],
        make: Callable[[Sequence[Any], str, float], list[Lease]], sent: Callable[[], Versions],
        learn: Callable[[Versions], Coroutine[Any, Any, None]],
    ) -> None:  # fmt: skip
        self._sender, self._held, self._now = sender, held, now
        self._writer, self._exit = words
        self._make, self._sent, self._learn = make, sent, learn
        self._kept: dict[LeaseAsker, deque[Lease]] = {}
        self._given: deque[tuple[float, int]] = deque()
        self._beside = set[asyncio.Task[None]]()
        self.turn = asyncio.Lock()  # of who leases, or may not have anybody lease
        self.opens: float | None = 0.0

    @property
    def ahead(self) -> int:
        """The number of those that were taken ahead."""
        return sum(map(len, self._kept.values()))

    def expect(self, moments: Iterable[float]) -> None:
        """Note until when URIs, and gates, wait."""
        now = self._now()
        if later := [moment for moment in moments if now < moment < FOREVER]:
            self.opens = min(later) if self.opens is None else min(self.opens, *later)

    async def lease(self, asker: LeaseAsker, limit: int) -> list[Lease]:
        """Lease up to so many."""
        found = self._take(asker, limit)
        if not found:
            async with self.turn:
                found = self._take(asker, limit) or await self._lease(asker, limit)
        elif (more := limit - len(found)) or self._lacks(asker):
            self._begin(self._lease_ahead(asker, more))
        self._note_rate(len(found))
        return found

    async def give_back(self, of: Iterable[Lease] | None = None) -> None:
        """Give back those of some, or of all, that nobody has used. If Redis is away, it has them back later."""
        wanted = None if of is None else {lease.token for lease in of}
        unused = [one for kept in self._kept.values() for one in kept if wanted is None or one.token in wanted]
        gone = {lease.token for lease in unused}
        self._kept = {asker: deque(one for one in kept if one.token not in gone) for asker, kept in self._kept.items()}
        for lease in (unused := [lease for lease in unused if self._sender.holds(lease)]):
            del self._held[lease.id]
        for some in parts(unused, MOST):
            await self._sender.unless_away("manage", "unused", *(word for one in some for word in (one.id, one.token)))

    async def close(self) -> None:
        """Ask for no more."""
        self._kept.clear()  # else a timer would give them back by a link that is closed
        for task in [*self._beside]:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _take(self, asker: LeaseAsker, limit: int) -> list[Lease]:
        """Take up to so many that were taken ahead, and have not ended."""
        kept, found, now = self._kept.get(asker, deque()), list[Lease](), self._now()
        while kept and len(found) < limit:
            lease = kept.popleft()
            if self._sender.holds(lease) and lease.until > now:
                found.append(lease)
        return found

    def _lacks(self, asker: LeaseAsker) -> int:
        """The number of more that are to be taken ahead; 0 while more than half of them are there."""
        if not (round_trip := self._sender.round_trip) or not self._given:
            return 0
        rate = sum(number for _, number in self._given) / max(self._now() - self._given[0][0], _RATE_SECONDS / 2)
        wanted = min(MOST, int(2 * round_trip * rate))
        kept = len(self._kept.get(asker, ()))
        return wanted - kept if kept <= wanted / 2 else 0

    def _note_rate(self, number: int) -> None:
        now = self._now()
        self._given.append((now, number))
        while self._given[0][0] < now - _RATE_SECONDS:
            self._given.popleft()

    async def _lease_ahead(self, asker: LeaseAsker, more: int) -> None:
        if not self.turn.locked():
            async with self.turn:
                await self._lease(asker, 0, more)

    async def _lease(self, asker: LeaseAsker, limit: int, ahead: int = 0) -> list[Lease]:
        """Lease so many, and some to keep."""
        found, wanted, more = list[Lease](), limit + max(ahead, self._lacks(asker)), True
        try:
            if self._sender.is_doubtful:
                await self._sender.give_back_unknown()
            while more and len(found) < wanted:
                some, more = await self._ask(asker, wanted - len(found), limit - len(found))
                found += some
        except Unavailable as error:
            self._sender.gone(error)
        except asyncio.CancelledError:
            self._sender.is_doubtful = True  # the answer comes to nobody
            raise
        if kept := found[limit:]:
            self._kept.setdefault(asker, deque()).extend(kept)
            pause = KEPT + 4 * self._sender.round_trip
            asyncio.get_running_loop().call_later(pause, lambda: self._begin(self.give_back(kept)))
        return found[:limit]

    async def _ask(self, asker: LeaseAsker, wanted: int, limit: int) -> tuple[list[Lease], bool]:
        """Ask for so many, of which a limit is for now; return also if more may be had."""
        now, sent, found, more = self._now(), self._sent(), list[Lease](), False
        replies = await self._sender.call_all("lease", [*self._words(asker, wanted, limit)])
        if b"lost" in replies:
            await self._sender.catch_up()
            return [], False
        for again, _, _, opens, *answer in replies:
            more = bool(again)
            self.opens = now + int(opens) / 1000 if opens else None
            found += self._make(answer, asker.holder, now + asker.seconds)
        cookies, memory = replies[-1][1:3]
        await self._learn(Versions(int(cookies) - sent.cookies, int(memory) - sent.memory))
        return found, more

    def _words(self, asker: LeaseAsker, wanted: int, limit: int) -> Iterable[Sequence[Any]]:
        """The words of calls that are under way at once; each leases for so long as Redis has it, which is longer than
        is known here."""
        span, known = round(asker.seconds * 1000), (self._sender.launch, self._sender.last)
        for begin in range(0, wanted, MOST):
            number = min(wanted - begin, MOST)
            yield self._writer, asker.spider, number, span, *known, self._exit, min(max(limit - begin, 0), number)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
