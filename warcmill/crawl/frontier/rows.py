"""A URI as the rows of the database hold it. What is ordinary takes no room.

MERGED warcmill/crawl/frontier/rows.py: The fresh starts of a crawl: which rows of `seen` count in this round.
Within a transaction of the caller.

A start changes a few rows, however many were seen. What is of no use any more is deleted later, some at a time.

MERGED warcmill/crawl/frontier/rows.py: Texts that many rows share, kept once: the pages that links were found on,
the sources they descend from.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterable
from typing import NamedTuple

from warcmill.crawl.uri import FOREVER, Status, Uri

Row = tuple[int, int, int, int | None, int, str, str | None, int, int | None, str | None]
"""id, queue, priority, until, crawl, uri, hops, via, source, more: a row of `waiting`."""

COLUMNS = "id, queue, priority, until, crawl, uri, hops, via, source, more"
_STATUS = tuple(Status)  # its place is on disk: add at the end only
_PLACE = {status: place for place, status in enumerate(_STATUS)}
_VISIT = struct.Struct("<BhI")


class Visit(NamedTuple):
    """How the last visit of a URI ended; `finished` in seconds."""

    status: Status
    http_status: int
    finished: int
    history: bytes


def pack_visit(uri: Uri, history: bytes) -> bytes:
    """Return a visit as bytes: 7 and its history."""
    http_status = max(-32768, min(uri.http_status, 32767))
    return _VISIT.pack(_PLACE[uri.status], http_status, ended(uri)) + history


def ended(uri: Uri) -> int:
    """When a visit ended, in whole seconds."""
    return int(uri.download_finished or uri.updated)


def read_visit(raw: bytes) -> Visit:
    """Return the visit that these bytes hold."""
    status, http_status, finished = _VISIT.unpack_from(raw)
    return Visit(_STATUS[status], http_status, finished, raw[_VISIT.size :])


def milliseconds(moment: float) -> int | None:
    """A time as rows have it; None for one that is not set."""
    return round(moment * 1000) if moment > 0 else None


def more(uri: Uri, tries: int) -> str | None:
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


def key_of(uri: str, more: str | None) -> str:
    """Return the key of the URI of a row."""
    return (json.loads(more).get("key") or uri) if more else uri


def read(row: Row, crawl: str, queue: str, via: str, source: str) -> Uri:
    """Return the URI of a row; the texts that its numbers stand for are given."""
    _, _, priority, until, _, uri, hops, _, _, extra = row
    not_before = (until or 0) / 1000
    status = Status.SUSPENDED if not_before >= FOREVER else Status.SCHEDULED
    if not extra:
        return Uri(uri, uri, queue, crawl, hops or "", via, source, priority, not_before, "", status)
    extras = json.loads(extra)
    return Uri(
        extras.get("key", uri), uri, queue, crawl, hops or "", via, source, priority, not_before,
        extras.get("payload", ""), status, extras.get("cluster", ""), extras.get("host_ip", ""),
        tries=extras.get("tries", 0),
    )  # fmt: skip


AT_ONCE = 2000  # rows that one call of `forget_some` reads
TAKEN = "(round >= ? OR id >= ?)"
"""True if a row was taken in this round, or waits since an earlier one; its values are `Rounds.taken`."""

_BEGIN, _END = (-1, b""), (1 << 62, b"")
_SOME = "SELECT crawl, digest FROM seen WHERE (crawl, digest) > (?, ?) ORDER BY crawl, digest LIMIT 1 OFFSET ?"
_FORGET = (
    "DELETE FROM seen WHERE (crawl, digest) > (?, ?) AND (crawl, digest) <= (?, ?)"
    " AND visit IS NULL AND round < ? AND (id IS NULL OR id < ?)"
)


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
        """Delete some rows of earlier rounds that were never visited; whether there may be more."""
        if self._after is None:
            return False
        last = self._db.execute(_SOME, (*self._after, AT_ONCE - 1)).fetchone()
        self._db.execute(_FORGET, (*self._after, *(last or _END), *self.taken))
        self._after = last
        if last is None:
            self._db.execute("DELETE FROM about WHERE name = 'stale'")
        return last is not None


AT_MOST = 10_000  # kept in memory
SPARE = 10_000  # pages
CHUNK = 500  # parameters of one query


def select_in(
    db: sqlite3.Connection, query: str, values: Iterable[object], before: tuple[object, ...] = ()
) -> list[tuple]:  # type: ignore[type-arg]
    """Return the rows of a query that ends in `IN`, for any number of values."""
    todo, found = list(values), []
    for begin in range(0, len(todo), CHUNK):
        part = todo[begin : begin + CHUNK]
        found += db.execute(f"{query} ({','.join('?' * len(part))})", (*before, *part)).fetchall()
    return found


class Pages:
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


class Names:
    """A table of names and their ids, of which the last used are kept in memory."""

    def __init__(self, db: sqlite3.Connection, table: str, column: str) -> None:
        self._db, self._table, self._column = db, table, column
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}

    def find(self, name: str) -> int | None:
        """Return the id of a name; None when it has none."""
        if name in self._ids:
            return self._ids[name]
        row = self._db.execute(f"SELECT id FROM {self._table} WHERE {self._column} = ?", (name,)).fetchone()
        return self._keep(row[0], name) if row else None

    def id(self, name: str) -> int:
        """Return the id of a name, and give it one if it has none."""
        if (known := self.find(name)) is not None:
            return known
        made = self._db.execute(f"INSERT INTO {self._table} ({self._column}) VALUES (?)", (name,)).lastrowid
        return self._keep(made or 0, name)

    def name(self, number: int) -> str:
        """Return the name of an id."""
        if number not in self._names:
            row = self._db.execute(f"SELECT {self._column} FROM {self._table} WHERE id = ?", (number,)).fetchone()
            self._keep(number, row[0])
        return self._names[number]

    def forget(self) -> None:
        """Read all from the table again."""
        self._ids.clear()
        self._names.clear()

    def _keep(self, number: int, name: str) -> int:
        if len(self._ids) >= AT_MOST:
            self.forget()
        self._ids[name], self._names[number] = number, name
        return number
