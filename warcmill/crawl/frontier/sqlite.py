"""The frontier of a crawl on one machine: one SQLite file, and one thread that uses it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from warcmill.base import clock
from warcmill.crawl.durable import failed, sync
from warcmill.crawl.frontier import (
    LEASE_SECONDS,
    Defer,
    Finish,
    Gate,
    Intake,
    Lease,
    Offered,
    Rate,
    UriPage,
    check_visit,
    journal,
    state,
)
from warcmill.crawl.frontier.accounts import Sums
from warcmill.crawl.frontier.database import named, open_database, transaction, write_back
from warcmill.crawl.frontier.queues import by_queue
from warcmill.crawl.frontier.state import Ledger
from warcmill.crawl.uri import FOREVER, Status, Transitions, Uri
from warcmill.errors import Conflict, Unavailable, WarcmillError, describe

T = TypeVar("T")
WRITE_BACK_AT, UNASKED_AT = 8000, 40_000  # rows changed; pages of the WAL, after which SQLite does it unasked


class SqliteFrontier:
    """A frontier in the database at `path`. After an error of the disk it takes nothing more: open it anew.

    `note` is called within the transaction of a change, with the lines that a journal has for it.
    """

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
        self.stopped: WarcmillError | None = None
        try:
            self.db = open_database(path)
        except BaseException:
            self._thread.shutdown()
            raise
        with named(path):
            self.db.execute(f"PRAGMA wal_autocheckpoint={UNASKED_AT}")
            self.ledger = Ledger(self.db)
        self._changes = self.db.total_changes  # when it was last written back

    async def offer(self, uris: Sequence[Uri]) -> list[Offered]:
        """Schedule the URIs that its crawl has not seen; answer for each, in order."""

        def act() -> list[Offered]:
            answers = self.ledger.offer(uris)
            self._note(journal.taken(uri) for uri in new(uris, answers))
            return answers

        answers = await self.within(act)
        self.scheduled(uris, answers)
        return answers

    def scheduled(self, uris: Sequence[Uri], answers: Sequence[Offered]) -> None:
        """Move the URIs that were taken to Scheduled."""
        for uri in new(uris, answers):
            self.transitions.update(uri, Status.SUSPENDED if uri.not_before >= FOREVER else Status.SCHEDULED)

    async def lease(self, holder: str, limit: int, seconds: float = LEASE_SECONDS) -> list[Lease]:
        """Lease up to `limit` URIs whose gates are open: by priority, then in order of arrival."""

        def act() -> list[Lease]:
            self.ledger.table.rounds.forget_some()
            return self.ledger.lease(holder, limit, self.now(), seconds)

        return await self.within(act)

    async def is_empty(self) -> bool:
        """True if nothing waits in any crawl but what a person has suspended."""
        query = "SELECT total(waiting) FROM crawls"
        return await self.within(lambda: not self.db.execute(query).fetchone()[0])

    async def spent(self, uri: Uri) -> Sums:
        """What was fetched of the host, target and crawl of a URI."""
        return await self.within(lambda: self.ledger.spending.of(uri))

    async def next_time(self) -> float | None:
        """When the next queue opens, or the next URI has waited long enough; None: never."""
        return await self.within(self.ledger.queues.next_time)

    async def finish(self, visits: Sequence[Finish]) -> list[bool]:
        """End visits; False for a lease that has ended before."""
        for visit in visits:
            check_visit(visit.lease.uri, visit.history)

        def act() -> list[bool]:
            ended = self.ledger.finish(visits, self.now())
            self._note(journal.finished(visit) for visit, held in zip(visits, ended, strict=True) if held)
            return ended

        return await self.within(act)

    async def defer(self, waits: Sequence[Defer]) -> list[bool]:
        """Let URIs wait; False for one that does not wait here, and for a lease that has ended before."""

        def act() -> list[bool]:
            ended = self.ledger.defer(waits, self.now())
            self._note(journal.deferred(wait) for wait, held in zip(waits, ended, strict=True) if held)
            return ended

        return await self.within(act)

    async def block(self, gate: Gate, until: float) -> None:
        """Close a gate until then; FOREVER, or a time gone by, which opens it."""
        by_queue(gate)
        await self.within(lambda: self.ledger.queues.block(gate, until, self.now()))

    async def set_rate(self, gate: Gate, rate: Rate | None) -> None:
        """Set the rate of a gate, or that of every gate with none of its own (queue '')."""
        by_queue(gate)
        await self.within(lambda: self.ledger.queues.set_rate(gate, rate))

    async def purge(self, crawl: str, keys: Sequence[str] | None = None) -> int:
        """Forget a crawl, and return how many of its URIs waited; or remove some URIs."""

        def remove(keys: Sequence[str]) -> int:
            now = self.now()
            self._note(journal.removed(crawl, key, now) for key in keys)
            return state.remove(self.ledger, crawl, keys, now)

        def begin() -> None:
            self._note([journal.purged(crawl)])
            state.begin_purge(self.ledger, crawl)

        if keys is not None:
            return await self.within(lambda: remove(keys))
        await self.within(begin)
        return await self.purge_rest()

    async def purge_rest(self) -> int:
        """Delete what an interrupted purge has left, in steps between which others get their turn."""
        total, last = 0, False
        while not last:
            some, last = await self.within(lambda: state.purge_some(self.ledger, self.now()))
            total += some
        return total

    async def count(self, crawl: str = "") -> Mapping[Status, int]:
        """Count a crawl's URIs by status, without walking them."""
        return await self.within(lambda: self.ledger.count(crawl))

    async def list(
        self, crawl: str = "", keys: Sequence[str] | None = None, after: int = 0, limit: int = 100
    ) -> UriPage:
        """List URIs that wait, in order of arrival; or those of these keys, visited ones too."""
        if keys is not None:
            return await self.within(lambda: UriPage(self.ledger.look_up(crawl, keys), 0))
        return await self.within(lambda: self.ledger.waiting(crawl, after, limit))

    async def snapshot(self, path: Path) -> None:
        """Copy it whole, durable, to a new file."""
        await self.within(self.ledger.table.pages.sweep)
        await self.run(lambda: copy(self.db, path))

    async def close(self) -> None:
        """Close the database; leases that are out wait again."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self.db.close)
        self._thread.shutdown()

    def _note(self, lines: Iterable[str]) -> None:
        if noted := list(lines):
            self.note(noted)

    async def within(self, act: Callable[[], T]) -> T:
        """Do something in one transaction, on the thread of the database. Any error stops the frontier."""

        def whole() -> T:
            if self.db.total_changes - self._changes > WRITE_BACK_AT:
                write_back(self.db, self.path)
                self._changes = self.db.total_changes
            with transaction(self.db, self.path):
                return act()

        return await self.fatal(whole)

    async def fatal(self, act: Callable[[], T]) -> T:
        """Do something on the thread of the database that leaves all in order, or stops the frontier."""

        def whole() -> T:
            try:
                return act()
            except BaseException as error:
                self.stopped = (
                    error if isinstance(error, WarcmillError) else Unavailable(str(self.path), describe(error))
                )
                raise

        return await self.run(whole)

    async def run(self, act: Callable[[], T]) -> T:
        """Do something on the thread of the database. After an error of the disk all calls raise that."""

        def unless_stopped() -> T:
            if self.stopped:
                raise self.stopped
            return act()

        return await asyncio.get_running_loop().run_in_executor(self._thread, unless_stopped)


def _nothing(_: list[str]) -> None:
    """A frontier without a journal."""


def new(uris: Iterable[Uri], answers: Iterable[Offered]) -> list[Uri]:
    """The URIs that were taken."""
    return [uri for uri, answer in zip(uris, answers, strict=True) if answer.answer is Intake.NEW]


def copy(db: sqlite3.Connection, path: Path) -> None:
    """Copy a database to a new file, and make that durable. Conflict when there is a file."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError as error:
        raise Conflict(str(path), "it exists; a snapshot needs a new name") from error
    except OSError as error:
        raise failed(path, error) from error
    with named(path), closing(sqlite3.connect(path)) as target:
        db.backup(target)
        target.execute("INSERT OR REPLACE INTO about VALUES ('clean', 1)")
        target.commit()
        target.execute("PRAGMA journal_mode=DELETE")
    sync(path)
