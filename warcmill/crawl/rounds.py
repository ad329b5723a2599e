"""The fresh starts of a crawl: which rows of `seen` count in this round. Within a transaction of the caller.

A start changes a few rows, however many were seen. What is of no use any more is deleted later, some at a time.
"""

from __future__ import annotations

import sqlite3

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
