"""The accounts that roles of a deployment share: counts by time, signs of life, expiries, stops, and the policy.

One SQLite file that several processes of one machine share; each call is a transaction. Writes to that file.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from warcmill.errors import Unavailable

WINDOWS: Final = (900, 3600, 21600, 43200, 86400, 604800)
"""Seconds over which counts are summed, besides the lifetime."""

LIFETIME: Final = "lifetime"
_SLOT: Final = 5  # seconds that are counted together
_ALL_TIME: Final = -1  # the slot of the lifetime
_CLAIM: Final = 60.0  # seconds after which another process may take up an expiry
_PATIENCE: Final = 30.0  # seconds for which the file may be locked
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS counts (role TEXT, name TEXT, slot INTEGER, number INTEGER NOT NULL,
    PRIMARY KEY (role, name, slot)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS lives (role TEXT, machine TEXT, id TEXT, until REAL NOT NULL,
    PRIMARY KEY (role, machine, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS expiries (spiderid TEXT, appid TEXT, crawlid TEXT, at INTEGER NOT NULL,
    claimed REAL NOT NULL DEFAULT 0, PRIMARY KEY (spiderid, appid, crawlid)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS stops (spiderid TEXT, appid TEXT, crawlid TEXT, PRIMARY KEY (spiderid, appid, crawlid))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rates (domain TEXT PRIMARY KEY, hits INTEGER, window INTEGER, scale REAL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS bans (domain TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS aside (number INTEGER PRIMARY KEY, place TEXT UNIQUE, handler TEXT, document TEXT,
    spiderid TEXT, appid TEXT, crawlid TEXT, stops INTEGER NOT NULL, since REAL NOT NULL,
    claimed REAL NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS seen (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_SUMS: Final = "SELECT name, total(number) FROM counts WHERE role = ? AND slot BETWEEN ? AND ? GROUP BY name"

Sums = Mapping[str, Mapping[str, int]]
"""Counts by name, then by window; a window without any is left out."""


class CrawlKey(NamedTuple):
    """The requests of an application in one crawl of a spider."""

    spiderid: str
    appid: str
    crawlid: str


class DomainRate(NamedTuple):
    """`hits` times `scale` in `window` seconds."""

    hits: int
    window: int
    scale: float


@dataclass(frozen=True, slots=True)
class DomainPolicy:
    """The rates of domains, and the domains that are not crawled."""

    rates: Mapping[str, DomainRate]
    bans: frozenset[str]


class AsideMessage(NamedTuple):
    """A message that waits for the job: its place on the bus, its handler and its document; `since` when."""

    place: str
    handler: str
    document: str
    since: float


class Accounts:
    """The accounts in a file. Unavailable when it cannot be read or written."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        self._path, self._now = path, now
        with self._named():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=TRUNCATE")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(_TABLES)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def count(self, role: str, names: Iterable[str], number: int = 1) -> None:
        """Add to counts of now, and forget those that no window has."""
        now = int(self._now())
        with self._whole() as db:
            for name in names:
                for slot in (now // _SLOT, _ALL_TIME):
                    db.execute(
                        "INSERT INTO counts VALUES (?, ?, ?, ?)"
                        " ON CONFLICT DO UPDATE SET number = number + excluded.number",
                        (role, name, slot, number),
                    )
            db.execute("DELETE FROM counts WHERE slot != ? AND slot < ?", (_ALL_TIME, (now - WINDOWS[-1]) // _SLOT - 1))

    def sums(self, role: str) -> dict[str, dict[str, int]]:
        """Return the counts of a role; what is zero is left out."""
        now, found = int(self._now()), dict[str, dict[str, int]]()
        with self._whole() as db:
            for window, least in (*((str(one), (now - one) // _SLOT + 1) for one in WINDOWS), (LIFETIME, _ALL_TIME)):
                most = _ALL_TIME if window == LIFETIME else now
                rows = db.execute(_SUMS, (role, least, most))
                for name, number in rows:
                    found.setdefault(name, {})[window] = int(number)
        return found

    def grown(self, name: str, value: int) -> int:
        """Note the value of a number that only grows, but begins again with a launch; return by how much it grew."""
        with self._whole() as db:
            row = db.execute("SELECT value FROM seen WHERE name = ?", (name,)).fetchone()
            db.execute("INSERT OR REPLACE INTO seen VALUES (?, ?)", (name, str(value)))
        before = int(row[0]) if row else 0
        return value - before if value >= before else value

    def live(self, role: str, machine: str, name: str, seconds: float) -> None:
        """Give a sign of life, which counts for so long."""
        with self._whole() as db:
            db.execute("INSERT OR REPLACE INTO lives VALUES (?, ?, ?, ?)", (role, machine, name, self._now() + seconds))
            db.execute("DELETE FROM lives WHERE until < ?", (self._now(),))

    def leave(self, role: str, machine: str, name: str) -> None:
        """Take the sign of life back."""
        with self._whole() as db:
            db.execute("DELETE FROM lives WHERE role = ? AND machine = ? AND id = ?", (role, machine, name))

    def lives(self, role: str) -> dict[str, list[str]]:
        """Return who of a role is alive, by machine."""
        found: dict[str, list[str]] = {}
        with self._whole() as db:
            rows = "SELECT machine, id FROM lives WHERE role = ? AND until >= ? ORDER BY machine, id"
            for machine, name in db.execute(rows, (role, self._now())):
                found.setdefault(machine, []).append(name)
        return found

    def expire(self, crawl: CrawlKey, at: int) -> None:
        """Note when a crawl expires; the last word counts. 0: that it does not."""
        with self._whole() as db:
            if at:
                words = "INSERT OR REPLACE INTO expiries (spiderid, appid, crawlid, at) VALUES (?, ?, ?, ?)"
                db.execute(words, (*crawl, at))
            else:
                db.execute("DELETE FROM expiries WHERE spiderid = ? AND appid = ? AND crawlid = ?", crawl)

    def expires(self, crawls: Iterable[CrawlKey]) -> dict[CrawlKey, int]:
        """Return when crawls expire; those that do not are left out."""
        words = "SELECT at FROM expiries WHERE spiderid = ? AND appid = ? AND crawlid = ?"
        with self._whole() as db:
            return {crawl: int(row[0]) for crawl in crawls if (row := db.execute(words, crawl).fetchone())}

    def claim_expired(self) -> list[CrawlKey]:
        """Return the crawls that have expired, and that no other process takes up now. `expire(crawl, 0)` ends that."""
        now = self._now()
        with self._whole() as db:
            rows = db.execute(
                "UPDATE expiries SET claimed = ?1 WHERE at < ?1 AND claimed < ?1 - ?2"
                " RETURNING spiderid, appid, crawlid",
                (now, _CLAIM),
            ).fetchall()
        return [CrawlKey(*row) for row in rows]

    def stop(self, crawl: CrawlKey) -> None:
        """Note that of a crawl only what is asked for is fetched from now on, and nothing that it links to."""
        with self._whole() as db:
            db.execute("INSERT OR REPLACE INTO stops VALUES (?, ?, ?)", crawl)

    def is_stopped(self, crawl: CrawlKey) -> bool:
        """True if a crawl was stopped."""
        with self._whole() as db:
            rows = db.execute("SELECT 1 FROM stops WHERE spiderid = ? AND appid = ? AND crawlid = ?", crawl)
            return rows.fetchone() is not None

    def put_aside(self, message: AsideMessage, crawl: CrawlKey, *, stops: bool, most: int) -> bool:
        """Keep a message that waits for the job; False if `most` wait. `stops`: it is a stop of that crawl."""
        with self._whole() as db:
            if db.execute("SELECT count(*) FROM aside").fetchone()[0] >= most:
                return False
            words = "INSERT OR IGNORE INTO aside (place, handler, document, since, spiderid, appid, crawlid, stops)"
            db.execute(f"{words} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*message, *crawl, stops))
            return True

    def stops_aside(self) -> set[CrawlKey]:
        """Return the crawls whose stop waits."""
        with self._whole() as db:
            rows = db.execute("SELECT spiderid, appid, crawlid FROM aside WHERE stops").fetchall()
        return {CrawlKey(*row) for row in rows}

    def claim_aside(self) -> list[AsideMessage]:
        """Return all that waits, in its order, unless another process has some of it; `end_aside` ends that."""
        now = self._now()
        with self._whole() as db:
            if db.execute("SELECT 1 FROM aside WHERE claimed >= ? - ?", (now, _CLAIM)).fetchone():
                return []
            rows = db.execute("SELECT place, handler, document, since FROM aside ORDER BY number").fetchall()
            db.execute("UPDATE aside SET claimed = ?", (now,))
        return [AsideMessage(*row) for row in rows]

    def end_aside(self, place: str) -> None:
        """Forget a message that was answered."""
        with self._whole() as db:
            db.execute("DELETE FROM aside WHERE place = ?", (place,))

    def free_aside(self) -> None:
        """Let any process take up what waits."""
        with self._whole() as db:
            db.execute("UPDATE aside SET claimed = 0")

    def set_rate(self, domain: str, rate: DomainRate | None) -> None:
        """Set the rate of a domain; None: it has none of its own."""
        with self._whole() as db:
            if rate:
                db.execute("INSERT OR REPLACE INTO rates VALUES (?, ?, ?, ?)", (domain, *rate))
            else:
                db.execute("DELETE FROM rates WHERE domain = ?", (domain,))

    def ban(self, domain: str, *, banned: bool) -> None:
        """Ban a domain, or allow it again."""
        with self._whole() as db:
            words = "INSERT OR REPLACE INTO bans VALUES (?)" if banned else "DELETE FROM bans WHERE domain = ?"
            db.execute(words, (domain,))

    def policy(self) -> DomainPolicy:
        """Return the policy."""
        with self._whole() as db:
            rates = {row[0]: DomainRate(*row[1:]) for row in db.execute("SELECT * FROM rates ORDER BY domain")}
            return DomainPolicy(rates, frozenset(row[0] for row in db.execute("SELECT domain FROM bans")))

    @contextmanager
    def _whole(self) -> Iterator[sqlite3.Connection]:
        with self._named():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(str(self._path), f"the accounts of requests cannot be used: {error}") from error
