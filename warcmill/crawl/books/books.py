"""The books of a launch: each result is in the WARC, in crawl.log, in the journal and in the database, or in none.

Results are committed in groups. Records are durable first, then the log lines and
the journal; then one transaction has the visits, what was found, and how long
each file is. After a kill the files are cut to these lengths.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from warcmill.crawl.books import recovery
from warcmill.crawl.books.recovery import CRAWL_LOG, LOGS, Folders
from warcmill.crawl.durable import Appended
from warcmill.crawl.fetch.cookies import Cookie, Jar
from warcmill.crawl.frontier import Defer, Finish, Lease, Offered, check_visit, journal, queues
from warcmill.crawl.frontier.accounts import SiteRow
from warcmill.crawl.frontier.database import examine, transaction
from warcmill.crawl.frontier.sqlite import SqliteFrontier, new
from warcmill.crawl.uri import Status, Uri
from warcmill.errors import Mismatch, NotReady, WarcmillError
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.formats.warc.records import Record
from warcmill.formats.warc.writer import RecordPlace, WarcFiles
from warcmill.layout import warc_serial

GROUP, WAIT = 64, 0.25  # results, seconds


class Begins(Enum):
    """What a launch takes over from the one before: FRESH, nothing that waits; FOLLOWS, what waits; CONTINUES, what
    was seen too, so that it counts on."""

    FRESH = "fresh"
    FOLLOWS = "follows"
    CONTINUES = "continues"


@dataclass(frozen=True, slots=True)
class BookEntry:
    """What came of a URI: its `records` (all exchanges, in one WARC), its line in crawl.log, what it leaves and found.

    The URI is as it is now: Parsed, Failed or Removed; or Scheduled, to be tried again when its `not_before` has
    come. Without a lease it was fetched besides the frontier, as robots.txt is. `opens`, `again`: see Finish.
    `cookies` are those that its answers have changed in its crawl's jar; `site` is what it says of its site.
    """

    uri: Uri
    lease: Lease | None = None
    records: Sequence[Record] = ()
    line: CrawlRecord | None = None
    history: bytes = b""
    found: Sequence[Uri] = ()
    opens: float = 0.0
    again: float = 0.0
    cookies: Sequence[Cookie] = ()
    site: SiteRow | None = None


class Kept(NamedTuple):
    """A result that is durable: the places of its records, and the answers to what it found.

    `held` is False when its lease had ended before: then nothing of it was written.
    """

    held: bool
    places: Sequence[RecordPlace] = ()
    offered: Sequence[Offered] = ()


Fate = Kept | WarcmillError


class Books:
    """The books of one launch, from `open_books` to `close`. After an error of the disk they take nothing more.

    `hear` is called with each result that is durable. `set_back` is by how many seconds the clock was since the last.
    """

    def __init__(self, frontier: SqliteFrontier, warcs: WarcFiles, folders: Folders, mended: Sequence[str]) -> None:
        self.frontier, self.warcs, self.mended = frontier, warcs, tuple(mended)
        self._folders = folders
        self._waiting: list[tuple[BookEntry, asyncio.Future[Kept]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._commits: set[asyncio.Task[None]] = set()
        self._open_logs()
        frontier.note = self._note
        self.hear: Callable[[BookEntry, Kept], None] = _nothing
        self.set_back = 0.0

    @property
    def stopped(self) -> WarcmillError | None:
        """Why the books take nothing more; None while they do."""
        return self.frontier.stopped

    def stop(self, error: WarcmillError) -> None:
        """Take nothing more, for this reason."""
        self.frontier.stopped = self.frontier.stopped or error

    def jar(self, crawl: str = "") -> Jar:
        """Return the cookies of a crawl; what an answer changes there must be in its result."""
        return self.frontier.ledger.jars.jar(crawl)

    async def keep(self, result: BookEntry) -> Kept:
        """Make a result durable, with others of its time. BadInput for one that cannot be; Unavailable when a disk
        failed: nothing of its group is kept. A caller that is cancelled still waits for it, as its records are read."""
        _check(result)
        future: asyncio.Future[Kept] = asyncio.get_running_loop().create_future()
        self._waiting.append((result, future))
        if len(self._waiting) >= min(GROUP, len(self.frontier.ledger.leases)):  # nobody else would come
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(WAIT, self._flush)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await _settled(future)
            raise

    async def settle(self) -> None:
        """Wait until all that was given is durable, or has failed."""
        self._flush()
        while self._commits:
            await asyncio.wait(self._commits)

    async def rotate(self, stage: str) -> None:
        """Close the WARC, and rename the logs for a stage; new ones begin."""
        await self.settle()
        await self.frontier.fatal(lambda: self._rotate(stage))

    async def close(self) -> None:
        """Wait for what was given, and close all files and the database. The WARC has its final name."""
        await self.settle()
        if not self.stopped:
            await self.frontier.fatal(self._end)
        await self.frontier.close()

    def _flush(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            group, self._waiting = self._waiting, []
            task = asyncio.create_task(self._commit(group))
            self._commits.add(task)
            task.add_done_callback(self._commits.discard)

    async def _commit(self, group: Sequence[tuple[BookEntry, asyncio.Future[Kept]]]) -> None:
        results = [result for result, _ in group]
        try:
            fates = await self.frontier.within(lambda: self._write(results))
        except BaseException as error:
            for _, future in group:
                _settle(future, error)
            if not isinstance(error, WarcmillError):
                raise
            return
        for (result, future), fate in zip(group, fates, strict=True):
            if isinstance(fate, Kept) and fate.held:
                self.frontier.scheduled(result.found, fate.offered)
                self.hear(result, fate)
            _settle(future, fate)

    def begin(self, begins: Begins) -> None:
        """Journal the beginning of a launch, so that no journal is empty."""
        lines = {Begins.FRESH: [journal.fresh()], Begins.FOLLOWS: [journal.carried()], Begins.CONTINUES: []}
        with transaction(self.frontier.db, self.frontier.path):
            self._note(lines[begins])

    # On the thread of the database, within a transaction

    def _write(self, results: Sequence[BookEntry]) -> list[Fate]:
        fates = self._append_records(results)
        done = [
            (result, fate) for result, fate in zip(results, fates, strict=True) if isinstance(fate, Kept) and fate.held
        ]
        lines = self._end_leases([result for result, _ in done])
        self.frontier.ledger.spending.add((result.uri, result.line) for result, _ in done if result.line)
        offered = self._offer([uri for result, _ in done for uri in result.found], lines)
        self.warcs.sync()
        self._append_lines(done)
        self._end_group(lines, [place for _, fate in done for place in fate.places])
        answers = iter(offered)
        return [
            fate._replace(offered=[next(answers) for _ in result.found])
            if isinstance(fate, Kept) and fate.held
            else fate
            for result, fate in zip(results, fates, strict=True)
        ]

    def _append_records(self, results: Sequence[BookEntry]) -> list[Fate]:
        """Append what still has its lease; a record that does not fit its header fails alone."""
        fates: list[Fate] = []
        ended: set[int] = set()
        for result in results:
            if result.lease and (result.lease.id in ended or not self.frontier.ledger.leases.holds(result.lease)):
                fates.append(Kept(held=False))
                continue
            try:
                fates.append(Kept(True, tuple(self.warcs.append(result.records)) if result.records else ()))
                ended.update([result.lease.id] if result.lease else [])
            except Mismatch as error:
                fates.append(error)
        return fates

    def _end_leases(self, results: Sequence[BookEntry]) -> list[str]:
        """End the leases, and return the lines that the journal has for it."""
        now, ledger = self.frontier.now(), self.frontier.ledger
        visits = [Finish(one.lease, one.history, one.opens, one.again) for one in results if one.lease and _ends(one)]
        waits = [
            Defer(one.uri.crawl, one.uri.key, one.uri.not_before, one.lease, one.opens)
            for one in results
            if one.lease and not _ends(one)
        ]
        others = [one for one in results if not one.lease]
        ledger.finish(visits, now)
        ledger.defer(waits, now)
        for one in others:
            ledger.visit(one.uri, one.history, now)
        for one in results:
            if one.cookies:
                ledger.keep_cookies(one.uri.crawl, one.cookies, now)
            if one.site:
                ledger.sites.put(one.site)
        return [
            *map(journal.finished, visits),
            *map(journal.deferred, waits),
            *(journal.visited(one.uri, one.history, 0.0) for one in others),
            *(journal.cookies(one.uri.crawl, one.cookies) for one in results if one.cookies),
            *(journal.site(one.site) for one in results if one.site),
        ]

    def _offer(self, found: Sequence[Uri], lines: list[str]) -> list[Offered]:
        answers = self.frontier.ledger.offer(found)
        lines += map(journal.taken, new(found, answers))
        return answers

    def _append_lines(self, done: Sequence[tuple[BookEntry, Kept]]) -> None:
        text = [_line(result.line, fate.places) for result, fate in done if result.line]
        if text:
            self._log.append(b"".join(text))
            self._log.sync()

    def _end_group(self, lines: Sequence[str], places: Sequence[RecordPlace]) -> None:
        """Journal a group, and note the files' lengths."""
        warcs = {place.name: place.offset + place.length for place in places}
        if self.warcs.name:
            warcs[self.warcs.name] = self.warcs.length  # with its warcinfo alone, too
        self._journal.append(journal.member(lines, {CRAWL_LOG: self._log.length, **warcs}))
        self._journal.sync()
        recovery.put_lengths(self.frontier.db, "warcs", warcs)
        queues.note(self.frontier.db, self.frontier.now())
        self._note_logs()

    def _note(self, lines: Sequence[str]) -> None:
        self._end_group(lines, ())

    # On the thread of the database

    def _rotate(self, stage: str) -> None:
        recovery.refuse_rotated(self._folders.logs, stage)
        self._close_files()
        db = self.frontier.db
        db.execute("INSERT OR REPLACE INTO about VALUES ('rotating', ?)", (stage,))
        recovery.finish_rotation(db, self._folders.logs, stage)
        self._open_logs()

    def _open_logs(self) -> None:
        self._log, self._journal = (Appended(self._folders.logs / name) for name in LOGS)
        with transaction(self.frontier.db, self.frontier.path):
            self._note_logs()

    def _note_logs(self) -> None:
        found = {CRAWL_LOG: self._log.length, journal.NAME: self._journal.length}
        recovery.put_lengths(self.frontier.db, "logs", found)

    def _end(self) -> None:
        self._close_files()
        self.frontier.db.execute("INSERT OR REPLACE INTO about VALUES ('clean', 1)")

    def _close_files(self) -> None:
        self.warcs.sync()
        self.warcs.close()
        self._log.close()
        self._journal.close()


async def open_books(
    frontier: SqliteFrontier, launch: str, folders: Folders, warcs: Callable[[int], WarcFiles],
    begins: Begins = Begins.FRESH,
) -> Books:  # fmt: skip
    """Open the books of a launch over its frontier; `warcs` makes its WARC files, from the number of the first on.

    Those of a launch that was killed are put in order first; what that took is in `mended`. For another launch than
    the database was last open for, they begin, as `begins` says.
    """

    def open_all() -> Books:
        db, mended = frontier.db, []
        before, clean = _about(db, "launch"), _about(db, "clean")
        if before and not clean:
            examine(db, frontier.path)
        if before == launch:
            mended = recovery.recover(db, folders)
        elif before and not clean:
            raise NotReady(f"launch {launch}", f"launch {before} was killed; open its books first, to put it in order")
        else:
            _begin(frontier, launch, begins)
        db.execute("DELETE FROM about WHERE name = 'clean'")
        with transaction(db, frontier.path):
            back = queues.undo(db, frontier.now())
        books = Books(frontier, warcs(_next_serial(recovery.lengths(db))), folders, mended)
        books.set_back = back
        books.begin(Begins.CONTINUES if before == launch else begins)
        return books

    books = await frontier.run(open_all)
    await frontier.purge_rest()
    return books


def _begin(frontier: SqliteFrontier, launch: str, begins: Begins) -> None:
    with transaction(frontier.db, frontier.path):
        frontier.db.execute("DELETE FROM files")
        frontier.db.execute("DELETE FROM about WHERE name = 'rotating'")
        frontier.db.execute("INSERT OR REPLACE INTO about VALUES ('launch', ?)", (launch,))
        if begins is Begins.FRESH:
            frontier.ledger.begin_round()
        elif begins is Begins.FOLLOWS:
            frontier.ledger.carry_round()


def _about(db: sqlite3.Connection, name: str) -> object:
    row = db.execute("SELECT value FROM about WHERE name = ?", (name,)).fetchone()
    return row[0] if row else None


def _next_serial(names: dict[str, int]) -> int:
    return max((serial.number + 1 for name in names if (serial := warc_serial(name))), default=0)


def _nothing(_result: BookEntry, _kept: Kept) -> None:
    """Nobody hears."""


def _check(result: BookEntry) -> None:
    """BadInput when a result cannot be put into the books."""
    if _ends(result) or not result.lease:
        check_visit(result.uri, result.history)


def _ends(result: BookEntry) -> bool:
    return result.uri.status not in (Status.SCHEDULED, Status.SUSPENDED)


def _line(line: CrawlRecord, places: Sequence[RecordPlace]) -> bytes:
    return crawllog.render(line, places[0].name, places[0].offset) if places else crawllog.render(line)


async def _settled(future: asyncio.Future[Kept]) -> None:
    """Wait for the result of a caller that was cancelled."""
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    future.exception()


def _settle(future: asyncio.Future[Kept], fate: Kept | BaseException) -> None:
    if future.done():  # its holder has gone away
        return
    if isinstance(fate, Kept):
        future.set_result(fate)
    else:
        future.set_exception(fate)
