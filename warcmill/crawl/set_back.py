"""A clock that was set back between two processes of a crawl: what waits for so many seconds must not wait for hours.

Within one process `steady` sees to that. Times of a calendar, and those that a person has set to FOREVER, stay.
"""

from __future__ import annotations

import sqlite3

from warcmill.crawl import rates
from warcmill.crawl.rows import milliseconds
from warcmill.crawl.uri import FOREVER

LEAST = 1.0  # seconds: less is how clocks are kept right
_LATER = '%"tries": %'  # a URI that is tried again, in `more`; a quote within a payload has a backslash before it


def note(db: sqlite3.Connection, now: float) -> None:
    """Note what the clock says. Within a transaction."""
    db.execute("INSERT OR REPLACE INTO about VALUES ('clock', ?)", (now,))


def undo(db: sqlite3.Connection, now: float) -> float:
    """Move delays back if the clock is before what was noted last; return by how many seconds.

    Those of hosts and their rates, of URIs that are tried again, and of robots.txt that are kept. Within a transaction.
    """
    row = db.execute("SELECT value FROM about WHERE name = 'clock'").fetchone()
    back = row[0] - now if row else 0.0
    if back < LEAST:
        return 0.0
    step, last = round(back * 1000), milliseconds(FOREVER)
    db.execute("UPDATE queues SET wake = wake - ? WHERE wake < ?", (step, last))
    hits = db.execute("SELECT recent, id FROM queues WHERE recent IS NOT NULL").fetchall()
    db.executemany(
        "UPDATE queues SET recent = ? WHERE id = ?", [(rates.earlier(hit, back), number) for hit, number in hits]
    )
    db.execute("UPDATE waiting SET until = until - ? WHERE until < ? AND more LIKE ?", (step, last, _LATER))
    db.execute("UPDATE sites SET until = until - ?", (back,))
    note(db, now)
    return float(back)
