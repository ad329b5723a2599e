"""The frontier of a crawl on one machine: one SQLite file, and one thread that uses it.

`register` is the register of the launch's files, in the same database: what `change` does is one transaction with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from warcmill.base import clock
from warcmill.crawl.fetch.cookies import Jar
from warcmill.crawl.frontier import (
    LEASE_SECONDS,
    Change,
    Defer,
    Finish,
    Gate,
    GateBy,
    Lease,
    Memory,
    Offered,
    QueuePlace,
    QueueSlice,
    Rate,
    SiteRow,
    Sums,
    UnheardGroup,
    UriPage,
    Waited,
    Waiting,
    check_visit,
    journal,
    nothing_anew,
    scheduled,
)
from warcmill.crawl.frontier.database import copy, named, open_database, transaction, write_back
from warcmill.crawl.frontier.ledger import Ledger
from warcmill.crawl.frontier.queues import by_queue
from warcmill.crawl.frontier.register import Register
from warcmill.crawl.policies.owners import HeardOwners
from warcmill.crawl.uri import Status, Transitions, Uri
from warcmill.errors import BadConfig, Unavailable, WarcmillError, describe

T = TypeVar("T")
WRITE_BACK_AT, UNASKED_AT = 8000, 40_000  # rows changed; pages of the WAL, after which SQLite does it unasked


class SqliteFrontier:
    """A `Frontier` in the database at `path`; that protocol describes its methods. After an error of the disk it takes
    nothing more: open it anew."""

    is_shared = False
    remembered = 0  # nobody else changes it

    def __init__(
        self,
        path: Path,
        transitions: Transitions | None = None,
        now: Callable[[], float] = clock.steady,
    ) -> None:
        self.path, self.now = path, now
        self.transitions = transitions or Transitions(now=now)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="books")
        self.note: Callable[[list[str]], None] = _nothing
        self.warn: Callable[[str], None] = _silent
        self.begun_anew: Callable[[], Awaitable[None]] = nothing_anew
        self.stopped: WarcmillError | None = None
        try:
            self.db = open_database(path)
        except BaseException:
            self._thread.shutdown()
            raise
        with named(path):
            self.db.execute(f"PRAGMA wal_autocheckpoint={UNASKED_AT}")
            self.ledger = Ledger(self.db, now)
        self._wide: dict[str, int] = {}
        self._wider = deque[str]()
        self._answers = deque[tuple[Lease, float]]()  # that the ledger is yet to hear of
        self.register = Register(self.db, path)
        self._changes = self.db.total_changes  # when it was last written back

    @property
    def owners(self) -> HeardOwners | None:
        return self.ledger.owners

    @owners.setter
    def owners(self, owners: HeardOwners | None) -> None:
        self.ledger.owners = owners

    @property
    def leased(self) -> int:
        return len(self.ledger.leases)

    @property
    def is_ready(self) -> bool:
        return self.expects(0.0)

    def expects(self, seconds: float) -> bool:
        moment = self.now() + seconds
        has_more = self._wider or any(opens <= moment for _, opens in list(self._answers))
        return bool(has_more) or self.ledger.queues.is_ready(moment)

    def stop(self, error: WarcmillError) -> None:
        self.stopped = self.stopped or error

    def answered(self, lease: Lease, opens: float) -> None:
        self._answers.append((lease, opens))

    def widen(self, queue: str, at_once: int) -> None:
        if self._wide.get(queue) != at_once:
            self._wide[queue] = at_once
            self._wider.append(queue)

    async def offer(self, uris: Sequence[Uri]) -> list[Offered]:
        def act() -> list[Offered]:
            answers = self.ledger.offer(uris)
            self._note(journal.offered(uris, answers, self.now()))
            return answers

        answers = await self._within(act)
        scheduled(self.transitions, uris, answers)
        return answers

    async def lease(self, holder: str, limit: int, seconds: float = LEASE_SECONDS, spider: str = "") -> list[Lease]:
        return await self._within(lambda: self.ledger.lease(holder, limit, seconds, spider))

    async def lease_each(self, holder: str, limit: int, seconds: float, rooms: Mapping[str, int]) -> list[Lease]:
        return await self._within(lambda: self.ledger.lease_each(holder, limit, seconds, rooms))

    async def finish(self, visits: Sequence[Finish]) -> list[bool]:
        for visit in visits:
            check_visit(visit.lease.uri, visit.history)

        def act() -> list[bool]:
            lines = [journal.finished(self.ledger.as_asked(visit)) for visit in visits]
            ended = self.ledger.finish(visits)
            self._note(line for line, held in zip(lines, ended, strict=True) if held)
            return ended

        return await self._within(act)

    async def defer(self, waits: Sequence[Defer]) -> list[bool]:
        def act() -> list[bool]:
            lines = [journal.deferred(self.ledger.as_asked(wait)) for wait in waits]
            ended = self.ledger.defer(waits)
            self._note(line for line, held in zip(lines, ended, strict=True) if held)
            return ended

        return await self._within(act)

    def take_twice(self) -> list[str]:
        return []

    async def remove(self, crawl: str, keys: Sequence[str]) -> int:
        def act() -> int:
            self._note(journal.removed(crawl, key, self.now()) for key in keys)
            return self.ledger.remove(crawl, keys)

        return await self._within(act)

    async def forget(self, crawl: str, keys: Sequence[str]) -> None:
        await self._within(lambda: self.ledger.forget(crawl, keys))

    async def purge(self, crawl: str) -> int:
        waited = await self.begin_purge(crawl)
        await self.purge_rest()
        return waited

    async def begin_purge(self, crawl: str) -> int:
        def begin() -> int:
            self._note([journal.purged(crawl)])
            return self.ledger.begin_purge(crawl)

        return await self._within(begin)

    async def purge_rest(self) -> int:
        total, last = 0, False  # in steps, between which others get their turn
        while not last:
            some, last = await self._within(self.ledger.purge_some)
            total += some
        return total

    async def change(self, act: Callable[[Change], T], offered: Sequence[Uri] = ()) -> T:  # noqa: ARG002 - it is here
        """Make a change in one transaction, on the thread of the database. Any error stops the frontier."""

        def whole() -> T:
            result = act(self.ledger)
            self.ledger.note_clock()
            return result

        return await self._within(whole)

    async def resend(self, unheard: Callable[[int], Iterable[UnheardGroup]]) -> None:
        """Nothing: a change and the files that have it are one transaction."""

    async def run(self, act: Callable[[], T]) -> T:
        """Do something on the thread of the database, between two changes. Any error stops the frontier."""

        def whole() -> T:
            try:
                return act()
            except BaseException as error:
                self.stopped = (
                    error if isinstance(error, WarcmillError) else Unavailable(str(self.path), describe(error))
                )
                raise

        return await self._beside(whole)

    async def block(self, gate: Gate, until: float) -> None:
        by_queue(gate)
        await self._within(lambda: self.ledger.queues.block(gate, until, self.now()))

    async def suspended(self, queues: Iterable[str]) -> set[str]:
        return await self._within(lambda: self.ledger.queues.suspended(queues))

    async def set_rate(self, gate: Gate, rate: Rate | None) -> None:
        by_queue(gate)
        await self._within(lambda: self.ledger.queues.set_rate(gate, rate))

    async def set_gates(self, by: GateBy) -> None:
        if "spider" in by:
            raise BadConfig("gate_by", f"'{by}' needs a frontier in Redis; here rates are by queue")

    async def next_time(self) -> float | None:
        times = [opens for _, opens in list(self._answers)]
        if (following := self.ledger.queues.next_time()) is not None:
            times.append(following)
        return min(times, default=None)

    async def is_empty(self) -> bool:
        return await self._within(self.ledger.is_empty)

    async def count(self, crawl: str = "") -> Mapping[Status, int]:
        return await self._within(lambda: self.ledger.count(crawl))

    async def list(
        self, crawl: str = "", keys: Sequence[str] | None = None, after: int = 0, limit: int = 100
    ) -> UriPage:
        if keys is not None:
            return await self._within(lambda: UriPage(self.ledger.look_up(crawl, keys), 0))
        return await self._within(lambda: self.ledger.page(crawl, after, limit))

    async def waiting(self, longest: int) -> Waiting:
        return await self._beside(lambda: self.ledger.waiting(longest))

    async def queues_after(self, after: QueuePlace, limit: int) -> QueueSlice:
        return await self._beside(lambda: self.ledger.queues.slice(after, limit))

    async def tally(self, crawl: str | None = None) -> Sequence[Waited]:
        return await self._beside(lambda: self.ledger.tally(crawl))

    async def spent(self, uris: Sequence[Uri]) -> Sequence[Sums]:
        return await self._within(lambda: [self.ledger.spending.of(uri) for uri in uris])

    async def sites(self, origins: Sequence[str]) -> Mapping[str, SiteRow]:
        return await self._within(lambda: self.ledger.sites.get(origins))

    async def turn(self, name: str, span: float, *, waits: bool = True) -> float:  # noqa: ARG002 it shares nothing
        return 0.0

    def jar(self, crawl: str) -> Jar:
        return self.ledger.jar(crawl)

    async def memory(self, spider: str, after: int = 0) -> Memory:
        return Memory(0, await self._within(lambda: self.ledger.memories.of(spider)) if not after else {})

    async def snapshot(self, path: Path) -> None:
        await self._within(self.ledger.table.pages.sweep)
        await self._beside(lambda: copy(self.db, path))

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self.db.close)
        self._thread.shutdown()

    def _note(self, lines: Iterable[str]) -> None:
        if noted := list(lines):
            self.note(noted)
            self.ledger.note_clock()

    async def _within(self, act: Callable[[], T]) -> T:
        """Do something in one transaction, on the thread of the database."""

        def whole() -> T:
            if self.db.total_changes - self._changes > WRITE_BACK_AT:
                write_back(self.db, self.path)
                self._changes = self.db.total_changes
            with transaction(self.db, self.path):
                self._hear()
                return act()

        return await self.run(whole)

    def _hear(self) -> None:
        """Have the ledger hear what was noted since its last transaction."""
        while self._answers:
            self.ledger.answered(*self._answers[0])
            self._answers.popleft()  # now: until then `next_time` has it
        while self._wider:
            queue = self._wider.popleft()
            self.ledger.queues.widen(queue, self._wide[queue])

    async def _beside(self, act: Callable[[], T]) -> T:
        """Do something on the thread of the database. After an error of the disk all calls raise that."""

        def unless_stopped() -> T:
            if self.stopped:
                raise self.stopped
            return act()

        return await asyncio.get_running_loop().run_in_executor(self._thread, unless_stopped)


def _nothing(_: list[str]) -> None:
    """Note nothing: a frontier without a journal."""


def _silent(_: str) -> None:
    """Warn nobody: nothing of it is away."""
