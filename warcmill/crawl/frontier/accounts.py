"""The cookie jars of all crawls, and their rows in the books.

MERGED warcmill/crawl/frontier/accounts.py: What the robots.txt of each site said, as the books keep it: so a launch
that is continued does not ask again.

MERGED warcmill/crawl/frontier/accounts.py: What was fetched of each host, target and crawl, for quotas: the books
have it, however many hosts there are.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from typing import NamedTuple

from warcmill.crawl.fetch.cookies import Cookie, Jar
from warcmill.crawl.policies.quotas import NAMES, By, Spent
from warcmill.crawl.uri import Uri
from warcmill.formats.logs.crawllog import CrawlRecord

_COLUMNS = "domain, path, name, value, expires, created, host_only, secure"


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
        return self._jars.setdefault(crawl, Jar())

    def keep(self, crawl: int, changed: Iterable[Cookie], now: float) -> None:
        """Keep what an answer has changed in a crawl's jar. Within a transaction."""
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
        """Empty all jars. Within a transaction."""
        self._jars.clear()
        self._db.execute("DELETE FROM cookies")


_LEVEL = 6


class SiteRow(NamedTuple):
    """The last status of a site's robots.txt, its text, until when it counts, and how often it was asked in vain."""

    origin: str
    status: int
    until: float
    failures: int = 0
    text: bytes = b""


class Sites:
    """The rows of sites. Within a transaction of the caller."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def get(self, origin: str) -> SiteRow | None:
        """Return the row of a site; None when it was not asked in this round."""
        query = "SELECT status, until, failures, text FROM sites WHERE origin = ?"
        row = self._db.execute(query, (origin,)).fetchone()
        if not row:
            return None
        status, until, failures, packed = row
        return SiteRow(origin, status, until, failures, zlib.decompress(packed))

    def put(self, row: SiteRow) -> None:
        """Keep the row of a site."""
        packed = zlib.compress(row.text, _LEVEL)
        self._db.execute("INSERT OR REPLACE INTO sites VALUES (?, ?, ?, ?, ?)", (*row[:4], packed))

    def clear(self) -> None:
        """Forget all: each is asked anew."""
        self._db.execute("DELETE FROM sites")


_ADD = (
    "INSERT INTO spent VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET documents = documents + excluded.documents,"
    " bytes = bytes + excluded.bytes, seconds = seconds + excluded.seconds"
)
Sums = Mapping[By, Spent]
"""What was fetched of the host, the target and the crawl of a URI."""


class Spending:
    """The rows of sums. Within a transaction of the caller."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, answers: Iterable[tuple[Uri, CrawlRecord]]) -> None:
        """Count the documents among these answers: the URI of each, and its line in crawl.log."""
        sums: defaultdict[tuple[By, str], Spent] = defaultdict(Spent)
        for uri, line in answers:
            if is_document(line):
                for by, name in NAMES.items():
                    before = sums[by, name(uri)]
                    sums[by, name(uri)] = before.plus(line.content_size or 0, _seconds(line))
        self._db.executemany(_ADD, [(*key, *spent) for key, spent in sums.items()])

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


def is_document(line: CrawlRecord) -> bool:
    """True if a line of crawl.log is of an answer, and of its URI's last one; an address or a robots.txt, which another
    needs first, is none."""
    return (line.status or 0) > 0 and not line.is_asked_again and not (line.hops or "").rstrip("R").endswith("P")


def _seconds(line: CrawlRecord) -> float:
    milliseconds = (line.fetched or "").partition("+")[2]
    return int(milliseconds) / 1000 if milliseconds.isdigit() else 0.0
