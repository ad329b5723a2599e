"""The accounts of a frontier, in its database: cookies, the robots.txt of each site, the sums that quotas count, and
the memory of each spider.

All is read and written within a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Mapping

from msgspec.structs import astuple

from warcmill.crawl.fetch.cookies import Cookie, Jar
from warcmill.crawl.frontier import SiteRow, Sums
from warcmill.crawl.frontier.database import select_in
from warcmill.crawl.policies.quotas import NAMES, By, Spent
from warcmill.crawl.uri import Uri
from warcmill.formats.logs.crawllog import CrawlRecord

_COLUMNS = "domain, path, name, value, expires, created, host_only, secure"
_LEVEL = 6  # of the texts of robots.txt
_ADD = (
    "INSERT INTO spent VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET documents = documents + excluded.documents,"
    " bytes = bytes + excluded.bytes, seconds = seconds + excluded.seconds"
)


class Jars:
    """A jar for each crawl that has cookies. `jar` may be called on any thread, all else on the database's."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._jars: dict[str, Jar] = {}
        found: dict[str, list[Cookie]] = {}
        for crawl, domain, path, name, value, expires, created, host_only, secure in db.execute(
            "SELECT c.name, domain, path, k.name, value, expires, created, host_only, secure"
            " FROM cookies k JOIN crawls c ON c.id = k.crawl WHERE c.name IS NOT NULL"
        ):
            found.setdefault(crawl, []).append(
                Cookie(domain, path, name, value, expires, created, bool(host_only), bool(secure))
            )
        self._jars.update({crawl: Jar(cookies) for crawl, cookies in found.items()})

    def jar(self, crawl: str) -> Jar:
        """Return the jar of a crawl."""
        known = self._jars.get(crawl)
        return self._jars.setdefault(crawl, Jar()) if known is None else known

    def keep(self, crawl: int, changed: Iterable[Cookie], now: float) -> None:
        """Keep what an answer has changed in a crawl's jar."""
        cookies = list(changed)
        gone = [(crawl, *cookie.key) for cookie in cookies if cookie.expires <= now]
        self._db.executemany("DELETE FROM cookies WHERE crawl = ? AND domain = ? AND path = ? AND name = ?", gone)
        self._db.executemany(
            f"INSERT OR REPLACE INTO cookies (crawl, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(crawl, *astuple(cookie)) for cookie in cookies if cookie.expires > now],
        )

    def forget(self, crawl: str) -> None:
        """Empty the jar of a crawl. Its rows go with the crawl."""
        self._jars.pop(crawl, None)

    def clear(self) -> None:
        """Empty all jars."""
        self._jars.clear()
        self._db.execute("DELETE FROM cookies")


class Sites:
    """The rows of sites: a launch that is continued does not ask for their robots.txt again."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def get(self, origins: Iterable[str]) -> dict[str, SiteRow]:
        """Return the rows of sites; one that was not asked in this round is left out."""
        query = "SELECT origin, status, until, failures, text FROM sites WHERE origin IN"
        rows = (SiteRow(*row) for row in select_in(self._db, query, origins))
        return {row.origin: row._replace(text=zlib.decompress(row.text)) for row in rows}

    def put(self, row: SiteRow) -> None:
        """Keep the row of a site."""
        packed = zlib.compress(row.text, _LEVEL)
        self._db.execute("INSERT OR REPLACE INTO sites VALUES (?, ?, ?, ?, ?)", (*row[:4], packed))

    def clear(self) -> None:
        """Forget all: each is asked anew."""
        self._db.execute("DELETE FROM sites")


class Memories:
    """The rows of what spiders remember."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def of(self, spider: str) -> dict[str, str]:
        """Return what a spider remembers."""
        return dict(self._db.execute("SELECT name, value FROM memory WHERE spider = ?", (spider,)))

    def keep(self, spider: str, changed: Mapping[str, str]) -> None:
        """Keep what has changed; '' forgets a text."""
        gone = [(spider, name) for name, value in changed.items() if not value]
        self._db.executemany("DELETE FROM memory WHERE spider = ? AND name = ?", gone)
        kept = [(spider, name, value) for name, value in changed.items() if value]
        self._db.executemany("INSERT OR REPLACE INTO memory VALUES (?, ?, ?)", kept)

    def clear(self) -> None:
        """Forget all."""
        self._db.execute("DELETE FROM memory")


class Spending:
    """The rows of sums, however many hosts there are."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, documents: Iterable[tuple[Uri, CrawlRecord]]) -> None:
        """Count documents: the URI of each, and its line in crawl.log."""
        spent = [
            (by, name(uri), 1, line.content_size or 0, seconds_of(line))
            for uri, line in documents
            for by, name in NAMES.items()
        ]
        self._db.executemany(_ADD, spent)

    def of(self, uri: Uri) -> Sums:
        """Return the sums that a URI shares."""
        query = "SELECT documents, bytes, seconds FROM spent WHERE what = ? AND name = ?"
        rows = {by: self._db.execute(query, (by, name(uri))).fetchone() for by, name in NAMES.items()}
        return {by: Spent(*row) for by, row in rows.items() if row}

    def forget(self, crawl: str) -> None:
        """Forget the sum of a crawl, whose name may be given again."""
        self._db.execute("DELETE FROM spent WHERE what = ? AND name = ?", (By.CRAWL, crawl))

    def clear(self) -> None:
        """Forget all."""
        self._db.execute("DELETE FROM spent")


def seconds_of(line: CrawlRecord) -> float:
    """Return how long a fetch took, by its line in crawl.log."""
    milliseconds = (line.fetched or "").partition("+")[2]
    return int(milliseconds) / 1000 if milliseconds.isdigit() else 0.0
