"""Texts that many rows share, kept once: the pages that links were found on, the sources they descend from."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

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
