"""The rows behind the ledger: find, read, insert, delete and count them. Within a transaction of the caller.

A row holds a URI so that what is ordinary about it takes no room. Fresh starts (`Rounds`) change a few rows, however
many were seen: what is of no use any more is deleted later, some at a time.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from warcmill.crawl.frontier.database import Names, milliseconds, select_in
from warcmill.crawl.uri import Status, Uri, digest, waits

AT_ONCE = 2000  # rows that one call of `forget_some` reads
SPARE = 10_000  # pages

Row = tuple[int, int, int, int | None, int, str, str | None, int, int | None, str | None, str | None]
"""id, queue, priority, until, crawl, uri, hops, via, source, more, spider: a row of `waiting`."""

COLUMNS = "id, queue, priority, until, crawl, uri, hops, via, source, more, spider"
_STATUS = tuple(Status)  # its place is on disk: add at the end only
_PLACE = {status: place for place, status in enumerate(_STATUS)}
_VISIT = struct.Struct("<BhI")

TAKEN = "(round >= ? OR id >= ?)"
"""True if a row was taken in this round, or waits since an earlier one; its values are `Rounds.taken`."""

_BEGIN, _END = (-1, b""), (1 << 62, b"")
_SOME = "SELECT crawl, digest FROM seen WHERE (crawl, digest) > (?, ?) ORDER BY crawl, digest LIMIT 1 OFFSET ?"
_FORGET = (
    "DELETE FROM seen WHERE (crawl, digest) > (?, ?) AND (crawl, digest) <= (?, ?)"
    " AND visit IS NULL AND round < ? AND (id IS NULL OR id < ?)"
)

COUNTED = {
    Status.SCHEDULED: "waiting",
    Status.SUSPENDED: "suspended",
    Status.PARSED: "parsed",
    Status.FAILED: "failed",
    Status.REMOVED: "removed",
}
Name = tuple[int, bytes]
"""A crawl's id and a digest: how `seen` knows a URI."""


class Table:
    """The rows of one database; `queues` are the names of its queues."""

    def __init__(self, db: sqlite3.Connection, queues: Names) -> None:
        self.db, self._queues = db, queues
        self.crawls = Names(db, "crawls", "name")
        self.pages = _Pages(db)
        self._sources = Names(db, "sources", "uri")
        self.rounds = Rounds(db)
        found = db.execute("SELECT coalesce(max(id), 0) FROM waiting").fetchone()[0]
        self._next = max(1 + found, self.rounds.first)
        self._visited = bool(self.rounds.number or db.execute("SELECT 1 FROM about WHERE name = 'again'").fetchone())

    def names(self, uris: Iterable[Uri]) -> list[Name]:
        """Return the names of URIs; a crawl that is new gets its id."""
        return [(self.crawls.id(uri.crawl), digest(uri.crawl, uri.key)) for uri in uris]

    def known(self, names: Iterable[Name]) -> set[Name]:
        """Return those of the names that were taken in this round."""
        query = f"SELECT digest FROM seen WHERE crawl = ? AND {TAKEN} AND digest IN"
        return {
            (crawl, found)
            for crawl, digests in _by_crawl(names).items()
            for (found,) in select_in(self.db, query, digests, (crawl, *self.rounds.taken))
        }

    def histories(self, names: Iterable[Name]) -> dict[Name, bytes]:
        """Return what earlier visits left. In the first round there are none, unless a URI is to be visited again."""
        if not self._visited:
            return {}
        query = "SELECT digest, visit FROM seen WHERE crawl = ? AND visit IS NOT NULL AND digest IN"
        return {
            (crawl, name): read_visit(raw).history
            for crawl, digests in _by_crawl(names).items()
            for name, raw in select_in(self.db, query, digests, (crawl,))
        }

    def seen(self, crawl: str, key: str) -> tuple[int | None, bytes | None] | None:
        """Return the waiting row's id and the last visit of a URI that was taken in this round."""
        found: tuple[int | None, bytes | None] | None = self.db.execute(
            f"SELECT id, visit FROM seen WHERE crawl = ? AND digest = ? AND {TAKEN}",
            (self.crawls.find(crawl), digest(crawl, key), *self.rounds.taken),
        ).fetchone()
        return found

    def tag(self, name: Name) -> bytes:
        """Return the digest of a URI's tag; b'' without one."""
        found = self.db.execute("SELECT tag FROM seen WHERE crawl = ? AND digest = ?", name).fetchone()
        return (found and found[0]) or b""

    def put_tag(self, name: Name, tag: bytes) -> None:
        """Keep the digest of a URI's tag."""
        self.db.execute("UPDATE seen SET tag = ? WHERE crawl = ? AND digest = ? AND tag IS NOT ?1", (tag, *name))

    def find(self, crawl: str, key: str) -> Row | None:
        """Return the row of a URI that waits."""
        seen = self.seen(crawl, key)
        return None if not seen or seen[0] is None else self.rows([seen[0]])[0]

    def rows(self, ids: Sequence[int]) -> list[Row]:
        """Return the rows of these ids, in their order; an id without a row is left out."""
        found = select_in(self.db, f"SELECT {COLUMNS} FROM waiting WHERE id IN", ids)
        by_id: dict[int, Row] = {row[0]: row for row in found}
        return [by_id[number] for number in ids if number in by_id]

    def after(self, crawl: str, number: int, limit: int) -> list[Row]:
        """Return the next rows of a crawl in order of arrival."""
        found: list[Row] = self.db.execute(
            f"SELECT {COLUMNS} FROM waiting WHERE id > ? AND crawl = ? ORDER BY id LIMIT ?",
            (number, self.crawls.find(crawl), limit),
        ).fetchall()
        return found

    def uris(self, found: Sequence[Row]) -> list[Uri]:
        """Return the URIs of rows."""
        vias = self.pages.read({row[7] or 0 for row in found})
        return [
            _uri_of(
                row,
                self.crawls.name(row[4]),
                self._queues.name(row[1]),
                vias.get(row[7] or 0, ""),
                row[5] if row[8] is None else self._sources.name(row[8]) if row[8] else "",
            )
            for row in found
        ]

    def insert(self, fresh: Sequence[tuple[Uri, Name]]) -> list[Row]:
        """Take URIs that were not known; return their rows."""
        pages = self.pages.add(uri.via for uri, _ in fresh)
        first = self._next
        self._next += len(fresh)
        made = [self._row(first + place, uri, name[0], pages) for place, (uri, name) in enumerate(fresh)]
        self.db.executemany(f"INSERT INTO waiting ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", made)
        self.db.executemany(
            "INSERT INTO seen (crawl, digest, round, id) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET round = excluded.round, id = excluded.id",
            [(*name, self.rounds.number, first + place) for place, (_, name) in enumerate(fresh)],
        )
        self.count([(name[0], waits(uri.not_before)) for uri, name in fresh], 1)
        return made

    def put(self, number: int, uri: Uri, crawl: int) -> Row:
        """Have a row that waits be another URI's of the same key; return it."""
        row = self._row(number, uri, crawl, self.pages.add([uri.via]))
        changed = ", ".join(f"{column} = ?" for column in COLUMNS.split(", ")[1:])
        self.db.execute(f"UPDATE waiting SET {changed} WHERE id = ?", (*row[1:], number))
        return row

    def delete(self, ids: Iterable[int]) -> None:
        """Delete waiting rows."""
        self.db.executemany("DELETE FROM waiting WHERE id = ?", [(number,) for number in ids])

    def reorder(self, number: int, priority: int) -> None:
        """Give a row another priority."""
        self.db.execute("UPDATE waiting SET priority = ?1 WHERE id = ?2 AND priority != ?1", (priority, number))

    def wait(self, changes: Sequence[tuple[int, float, str | None]]) -> None:
        """Let rows wait: id, until when, and what is not ordinary about each."""
        changed = [(milliseconds(until), more, number) for number, until, more in changes]
        self.db.executemany("UPDATE waiting SET until = ?, more = ? WHERE id = ?", changed)

    def end_visits(self, visits: Iterable[tuple[bytes, int | None, int, bytes]]) -> None:
        """Note visits of known URIs: visit, the row in which each waits again, crawl, digest."""
        self.db.executemany(
            f"UPDATE seen SET visit = ?, id = ?, round = {self.rounds.number} WHERE crawl = ? AND digest = ?", visits
        )

    def put_visit(self, name: Name, visit: bytes, number: int | None) -> None:
        """Note a visit of a URI that may not be known."""
        self.db.execute(
            "INSERT INTO seen (crawl, digest, round, id, visit) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET round = excluded.round, id = excluded.id, visit = excluded.visit",
            (*name, self.rounds.number, number, visit),
        )

    def forget(self, name: Name, status: Status) -> None:
        """Forget the visit of a URI, which ended with this status."""
        self.db.execute("DELETE FROM seen WHERE crawl = ? AND digest = ?", name)
        self.count([(name[0], status)], -1)

    def expect_visits_again(self) -> None:
        """Note that URIs of this round will be visited once more."""
        if not self._visited:
            self._visited = True
            self.db.execute("INSERT INTO about VALUES ('again', 1)")

    def begin_round(self) -> None:
        """Begin afresh: nothing waits, every URI may come again, and what visits left is kept."""
        busy = "head IS NOT NULL OR wake IS NOT NULL OR recent IS NOT NULL"
        for statement in (
            "DELETE FROM waiting",
            "DELETE FROM pages",
            f"UPDATE queues SET priority = NULL, head = NULL, wake = NULL, recent = NULL WHERE {busy}",
            "UPDATE crawls SET waiting = 0, suspended = 0, parsed = 0, failed = 0, removed = 0",
        ):
            self.db.execute(statement)
        self._visited = True
        self.rounds.begin(self._next)

    def carry_round(self) -> None:
        """Begin with what waits, each at its time: other URIs may come again, and what visits left is kept."""
        self.db.execute("UPDATE crawls SET parsed = 0, failed = 0, removed = 0")
        self._visited = True
        self.rounds.begin(self.rounds.first)

    def counts(self, crawl: str) -> dict[Status, int]:
        """Return how many URIs of a crawl there are by status."""
        query = f"SELECT {', '.join(COUNTED.values())} FROM crawls WHERE name = ?"
        found = self.db.execute(query, (crawl,)).fetchone() or (0,) * len(COUNTED)
        return dict(zip(COUNTED, found, strict=True))

    def count(self, changes: Iterable[tuple[int, Status]], each: int) -> None:
        """Add `each` to the counts of a crawl's URIs with a status, for every time that one comes."""
        for (crawl, status), number in Counter(changes).items():
            column = COUNTED[status]
            self.db.execute(f"UPDATE crawls SET {column} = {column} + ? WHERE id = ?", (each * number, crawl))

    def _row(self, number: int, uri: Uri, crawl: int, pages: dict[str, int]) -> Row:
        source = None if uri.source == uri.uri else self._sources.id(uri.source) if uri.source else 0
        return (
            number, self._queues.id(uri.queue), uri.priority, milliseconds(uri.not_before), crawl, uri.uri,
            uri.hops or None, pages[uri.via], source, unusual(uri, uri.tries), uri.spider or None,
        )  # fmt: skip


def _by_crawl(names: Iterable[Name]) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for crawl, name in names:
        found.setdefault(crawl, []).append(name)
    return found


class Rounds:
    """The rounds of one database: the `number` of this one, and the `first` id that a row of `waiting` may have.

    `seen` keeps the ids of rows that a fresh start has deleted. They are all lower, and none is given again.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        found = db.execute("SELECT name, value FROM about WHERE name IN ('round', 'first', 'stale')").fetchall()
        about: dict[str, int] = dict(found)
        self.number, self.first = about.get("round", 0), about.get("first", 1)
        self._after: tuple[int, bytes] | None = _BEGIN if "stale" in about else None

    @property
    def taken(self) -> tuple[int, int]:
        """The values of TAKEN."""
        return self.number, self.first

    def begin(self, first: int) -> None:
        """Begin a round; a row with an id from `first` on still waits."""
        self.number, self.first, self._after = self.number + 1, first, _BEGIN
        about = {"round": self.number, "first": first, "stale": 1}
        self._db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about.items())

    def forget_some(self) -> bool:
        """Delete some rows of earlier rounds that were never visited; True if there may be more."""
        if self._after is None:
            return False
        last = self._db.execute(_SOME, (*self._after, AT_ONCE - 1)).fetchone()
        self._db.execute(_FORGET, (*self._after, *(last or _END), *self.taken))
        self._after = last
        if last is None:
            self._db.execute("DELETE FROM about WHERE name = 'stale'")
        return last is not None


class _Pages:
    """The pages that waiting URIs were found on. Counting who refers to each would cost more than it frees."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._next = 1 + db.execute("SELECT coalesce(max(id), 0) FROM pages").fetchone()[0]

    def add(self, vias: Iterable[str]) -> dict[str, int]:
        """Keep the pages of a batch; return their ids. 0 stands for none."""
        distinct = dict.fromkeys(vias)
        distinct.pop("", None)
        ids = {via: self._next + place for place, via in enumerate(distinct)}
        self._next += len(ids)
        self._db.executemany("INSERT INTO pages VALUES (?, ?)", [(number, via) for via, number in ids.items()])
        return {"": 0, **ids}

    def read(self, ids: set[int]) -> dict[int, str]:
        """Return the texts of some ids."""
        return {0: "", **dict(select_in(self._db, "SELECT id, uri FROM pages WHERE id IN", ids - {0}))}

    def sweep(self) -> None:
        """Delete the pages that no waiting URI refers to, when these must be most of them."""
        kept, waiting = (
            self._db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("pages", "waiting")
        )
        if kept > SPARE + 2 * waiting:
            self._db.execute("DELETE FROM pages WHERE id NOT IN (SELECT via FROM waiting WHERE via IS NOT NULL)")


class LastVisit(NamedTuple):
    """The end of the last visit of a URI; `finished` in seconds."""

    status: Status
    http_status: int
    finished: int
    history: bytes


def pack_visit(uri: Uri, history: bytes) -> bytes:
    """Return a visit as bytes: 7 and its history."""
    http_status = max(-32768, min(uri.http_status, 32767))
    return _VISIT.pack(_PLACE[uri.status], http_status, uri.ended) + history


def read_visit(raw: bytes) -> LastVisit:
    """Return the visit that these bytes hold."""
    status, http_status, finished = _VISIT.unpack_from(raw)
    return LastVisit(_STATUS[status], http_status, finished, raw[_VISIT.size :])


def unusual(uri: Uri, tries: int) -> str | None:
    """Return what is not ordinary about a URI as JSON; None when there is nothing."""
    if uri.key == uri.uri and not (uri.payload or uri.cluster or tries or uri.host_ip):
        return None
    found = {
        "key": uri.key if uri.key != uri.uri else "",
        "payload": uri.payload,
        "cluster": uri.cluster,
        "host_ip": uri.host_ip,
        "tries": tries,
    }
    return json.dumps({name: value for name, value in found.items() if value}, ensure_ascii=False)


def _uri_of(row: Row, crawl: str, queue: str, via: str, source: str) -> Uri:
    """Return the URI of a row; the texts that its numbers stand for are given."""
    _, _, priority, until, _, uri, hops, _, _, extra, spider = row
    not_before = (until or 0) / 1000
    status = waits(not_before)
    if not (extra or spider):
        return Uri(uri, uri, queue, crawl, hops or "", via, source, priority, not_before, "", status)
    extras = json.loads(extra or "{}")
    return Uri(
        extras.get("key", uri), uri, queue, crawl, hops or "", via, source, priority, not_before,
        extras.get("payload", ""), status, extras.get("cluster", ""), extras.get("host_ip", ""),
        tries=extras.get("tries", 0), spider=spider or "",
    )  # fmt: skip
