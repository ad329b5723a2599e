"""The cookie jars of all crawls, and their rows in the books."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import astuple

from warcmill.crawl.cookies import Cookie, Jar

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
