"""Accounts in one SQLite file, which several processes of one machine share. Writes to that file."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from warcmill.base import disk
from warcmill.errors import BadInput, Unavailable
from warcmill.requests.accounts import (
    CLAIM,
    LIFETIME,
    WINDOWS,
    AccountChange,
    AsideMessage,
    CrawlKey,
    DomainPolicy,
    DomainRate,
)

_SLOT: Final = 5  # seconds that are counted together
_ALL_TIME: Final = -1  # the slot of the lifetime
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


class FileAccounts:
    """The accounts in a file. Of a job whose roles are on many machines: the copy on the disk of its own."""

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
        now, found = int(self._now()), dict[str, dict[str, int]]()
        with self._whole() as db:
            for window, least in (*((str(one), (now - one) // _SLOT + 1) for one in WINDOWS), (LIFETIME, _ALL_TIME)):
                most = _ALL_TIME if window == LIFETIME else now
                rows = db.execute(_SUMS, (role, least, most))
                for name, number in rows:
                    found.setdefault(name, {})[window] = int(number)
        return found

    def grown(self, name: str, value: int) -> int:
        with self._whole() as db:
            row = db.execute("SELECT value FROM seen WHERE name = ?", (name,)).fetchone()
            db.execute("INSERT OR REPLACE INTO seen VALUES (?, ?)", (name, str(value)))
        before = int(row[0]) if row else 0
        return value - before if value >= before else value

    def live(self, role: str, machine: str, name: str, seconds: float) -> None:
        with self._whole() as db:
            db.execute("INSERT OR REPLACE INTO lives VALUES (?, ?, ?, ?)", (role, machine, name, self._now() + seconds))
            db.execute("DELETE FROM lives WHERE until < ?", (self._now(),))

    def leave(self, role: str, machine: str, name: str) -> None:
        with self._whole() as db:
            db.execute("DELETE FROM lives WHERE role = ? AND machine = ? AND id = ?", (role, machine, name))

    def lives(self, role: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        with self._whole() as db:
            rows = "SELECT machine, id FROM lives WHERE role = ? AND until >= ? ORDER BY machine, id"
            for machine, name in db.execute(rows, (role, self._now())):
                found.setdefault(machine, []).append(name)
        return found

    def expire(self, crawl: CrawlKey, at: int) -> None:
        with self._whole() as db:
            if at:
                words = "INSERT OR REPLACE INTO expiries (spiderid, appid, crawlid, at) VALUES (?, ?, ?, ?)"
                db.execute(words, (*crawl, at))
            else:
                db.execute("DELETE FROM expiries WHERE spiderid = ? AND appid = ? AND crawlid = ?", crawl)

    def expires(self, crawls: Iterable[CrawlKey]) -> dict[CrawlKey, int]:
        words = "SELECT at FROM expiries WHERE spiderid = ? AND appid = ? AND crawlid = ?"
        with self._whole() as db:
            return {crawl: int(row[0]) for crawl in crawls if (row := db.execute(words, crawl).fetchone())}

    def claim_expired(self) -> list[CrawlKey]:
        now = self._now()
        with self._whole() as db:
            rows = db.execute(
                "UPDATE expiries SET claimed = ?1 WHERE at < ?1 AND claimed < ?1 - ?2"
                " RETURNING spiderid, appid, crawlid",
                (now, CLAIM),
            ).fetchall()
        return [CrawlKey(*row) for row in rows]

    def stop(self, crawl: CrawlKey) -> None:
        with self._whole() as db:
            db.execute("INSERT OR REPLACE INTO stops VALUES (?, ?, ?)", crawl)

    def is_stopped(self, crawl: CrawlKey) -> bool:
        with self._whole() as db:
            rows = db.execute("SELECT 1 FROM stops WHERE spiderid = ? AND appid = ? AND crawlid = ?", crawl)
            return rows.fetchone() is not None

    def put_aside(self, message: AsideMessage, crawl: CrawlKey, *, stops: bool, most: int) -> bool:
        with self._whole() as db:
            if db.execute("SELECT count(*) FROM aside").fetchone()[0] >= most:
                return False
            words = "INSERT OR IGNORE INTO aside (place, handler, document, since, spiderid, appid, crawlid, stops)"
            db.execute(f"{words} VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*message, *crawl, stops))
            return True

    def stops_aside(self) -> set[CrawlKey]:
        with self._whole() as db:
            rows = db.execute("SELECT spiderid, appid, crawlid FROM aside WHERE stops").fetchall()
        return {CrawlKey(*row) for row in rows}

    def claim_aside(self) -> list[AsideMessage]:
        now = self._now()
        with self._whole() as db:
            if db.execute("SELECT 1 FROM aside WHERE claimed >= ? - ?", (now, CLAIM)).fetchone():
                return []
            rows = db.execute("SELECT place, handler, document, since FROM aside ORDER BY number").fetchall()
            db.execute("UPDATE aside SET claimed = ?", (now,))
        return [AsideMessage(*row) for row in rows]

    def end_aside(self, place: str) -> None:
        with self._whole() as db:
            db.execute("DELETE FROM aside WHERE place = ?", (place,))

    def free_aside(self) -> None:
        with self._whole() as db:
            db.execute("UPDATE aside SET claimed = 0")

    def set_rate(self, domain: str, rate: DomainRate | None) -> None:
        with self._whole() as db:
            if rate:
                db.execute("INSERT OR REPLACE INTO rates VALUES (?, ?, ?, ?)", (domain, *rate))
            else:
                db.execute("DELETE FROM rates WHERE domain = ?", (domain,))

    def ban(self, domain: str, *, banned: bool) -> None:
        with self._whole() as db:
            words = "INSERT OR REPLACE INTO bans VALUES (?)" if banned else "DELETE FROM bans WHERE domain = ?"
            db.execute(words, (domain,))

    def policy(self) -> DomainPolicy:
        with self._whole() as db:
            rates = {row[0]: DomainRate(*row[1:]) for row in db.execute("SELECT * FROM rates ORDER BY domain")}
            return DomainPolicy(rates, frozenset(row[0] for row in db.execute("SELECT domain FROM bans")))

    def changes(self) -> list[AccountChange]:
        """Return what must not be lost, as changes that make it."""
        with self._whole() as db:
            expiries = db.execute("SELECT spiderid, appid, crawlid, at FROM expiries").fetchall()
            stops = db.execute("SELECT spiderid, appid, crawlid FROM stops").fetchall()
            words = "SELECT place, handler, document, since, stops, spiderid, appid, crawlid FROM aside ORDER BY number"
            aside = db.execute(words).fetchall()
            rates = db.execute("SELECT domain, hits, window, scale FROM rates").fetchall()
            bans = db.execute("SELECT domain FROM bans").fetchall()
        return [
            *(AccountChange("expire", [CrawlKey(*crawl).text, str(at)]) for *crawl, at in expiries),
            *(AccountChange("stop", [CrawlKey(*crawl).text]) for crawl in stops),
            *(
                AccountChange("put_aside", [row[0], json.dumps(row[:4]), CrawlKey(*row[5:]).text if row[4] else ""])
                for row in aside
            ),
            *(AccountChange("set_rate", [domain, json.dumps(rate)]) for domain, *rate in rates),
            *(AccountChange("ban", [domain, "1"]) for (domain,) in bans),
        ]

    def make(self, change: AccountChange) -> None:
        """Make a change that was made elsewhere."""
        match change:
            case AccountChange("expire", [crawl, at]):
                self.expire(CrawlKey(*json.loads(crawl)), int(at))
            case AccountChange("stop", [crawl]):
                self.stop(CrawlKey(*json.loads(crawl)))
            case AccountChange("put_aside", [_, message, crawl]):
                key = CrawlKey(*json.loads(crawl or '["", "", ""]'))
                self.put_aside(AsideMessage(*json.loads(message)), key, stops=bool(crawl), most=1 << 62)
            case AccountChange("end_aside", [place]):
                self.end_aside(place)
            case AccountChange("set_rate", [domain, rate]):
                self.set_rate(domain, DomainRate(*json.loads(rate)) if rate else None)
            case AccountChange("ban", [domain, is_banned]):
                self.ban(domain, banned=is_banned == "1")
            case _:
                raise BadInput(
                    str(self._path), f"{change.name} is not a change of accounts; does a newer version share them?"
                )

    @contextmanager
    def _whole(self) -> Iterator[sqlite3.Connection]:
        with self._named():
            try:
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            finally:
                if self._db.in_transaction:  # COMMIT may have failed; a full disk has ended it already
                    self._db.execute("ROLLBACK")

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            full = disk.full([self._path.parent])  # SQLite names it at some calls only
            why = f"{os.strerror(errno.ENOSPC)}; make room" if full else str(error)
            raise Unavailable(str(self._path), f"the accounts of requests cannot be used: {why}") from error
