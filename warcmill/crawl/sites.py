"""What the robots.txt of each site said, as the books keep it: so a launch that is continued does not ask again."""

from __future__ import annotations

import sqlite3
import zlib
from typing import NamedTuple

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
