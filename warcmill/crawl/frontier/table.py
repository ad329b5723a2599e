"""The rows behind the ledger: find, read, insert, delete and count them. Within a transaction of the caller."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence

from warcmill.crawl.frontier import digest, rows
from warcmill.crawl.frontier.queues import Queues
from warcmill.crawl.frontier.rows import COLUMNS, TAKEN, Names, Pages, Rounds, Row, select_in
from warcmill.crawl.uri import FOREVER, Status, Uri

COUNTED = {
    Status.SCHEDULED: "waiting",
    Status.SUSPENDED: "suspended",
    Status.PARSED: "parsed",
    Status.FAILED: "failed",
    Status.REMOVED: "removed",
}
Name = tuple[int, bytes]
"""A crawl's id and a digest: how `seen` knows a URI."""


def waits(until: float) -> Status:
    """The status of a URI that waits until then."""
    return Status.SUSPENDED if until >= FOREVER else Status.SCHEDULED


class Table:
    """The rows of one database."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.queues = Queues(db)
        self.crawls = Names(db, "crawls", "name")
        self.pages = Pages(db)
        self._sources = Names(db, "sources", "uri")
        self.rounds = Rounds(db)
        found = db.execute("SELECT coalesce(max(id), 0) FROM waiting").fetchone()[0]
        self._next = max(1 + found, self.rounds.first)
        self._visited = bool(self.rounds.number or db.execute("SELECT 1 FROM about WHERE name = 'again'").fetchone())

    # What is there

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
            (crawl, name): rows.read_visit(raw).history
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
            rows.read(
                row,
                self.crawls.name(row[4]),
                self.queues.names.name(row[1]),
                vias.get(row[7] or 0, ""),
                row[5] if row[8] is None else self._sources.name(row[8]) if row[8] else "",
            )
            for row in found
        ]

    # Changes

    def insert(self, fresh: Sequence[tuple[Uri, Name]]) -> None:
        """Take URIs that were not known."""
        pages = self.pages.add(uri.via for uri, _ in fresh)
        first = self._next
        self._next += len(fresh)
        made = [self._row(first + place, uri, name[0], pages) for place, (uri, name) in enumerate(fresh)]
        self.db.executemany(f"INSERT INTO waiting ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", made)
        self.db.executemany(
            "INSERT INTO seen (crawl, digest, round, id) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET round = excluded.round, id = excluded.id",
            [(*name, self.rounds.number, first + place) for place, (_, name) in enumerate(fresh)],
        )
        self.queues.arrived((row[1], row[2], row[0]) for row in made if row[3] is None)
        self.count(((name[0], waits(uri.not_before)) for uri, name in fresh), 1)

    def delete(self, ids: Iterable[int]) -> None:
        """Delete waiting rows."""
        self.db.executemany("DELETE FROM waiting WHERE id = ?", [(number,) for number in ids])

    def wait(self, changes: Sequence[tuple[int, float, str | None]]) -> None:
        """Let rows wait: id, until when, and what is not ordinary about each."""
        changed = [(rows.milliseconds(until), more, number) for number, until, more in changes]
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
            number, self.queues.names.id(uri.queue), uri.priority, rows.milliseconds(uri.not_before), crawl, uri.uri,
            uri.hops or None, pages[uri.via], source, rows.more(uri, uri.tries),
        )  # fmt: skip


def _by_crawl(names: Iterable[Name]) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for crawl, name in names:
        found.setdefault(crawl, []).append(name)
    return found
