"""Remove URIs from the ledger, or forget a whole crawl, walking only its rows. Within the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable

from warcmill.crawl.ledger import Ledger
from warcmill.crawl.status import Status
from warcmill.crawl.uri import Uri

AT_ONCE = 2000


def remove(ledger: Ledger, crawl: str, keys: Iterable[str], now: float) -> int:
    """Remove URIs, so that they are not taken again; return how many of them waited."""
    gone = (Uri(key, key, "", crawl, status=Status.REMOVED, updated=now) for key in dict.fromkeys(keys))
    return sum(ledger.visit(uri, b"", now) for uri in gone)


def begin_purge(ledger: Ledger, crawl: str) -> None:
    """Give up a crawl's name: what is offered under it from now on is a new crawl."""
    ledger.db.execute("UPDATE crawls SET name = NULL WHERE name = ?", (crawl,))
    ledger.table.crawls.forget()
    ledger.jars.forget(crawl)
    ledger.spending.forget(crawl)


def purge_some(ledger: Ledger, now: float) -> tuple[int, bool]:
    """Delete some rows of the crawls that are being purged; return how many waited, and whether all are gone."""
    crawl = ledger.db.execute("SELECT id FROM crawls WHERE name IS NULL LIMIT 1").fetchone()
    if crawl is None:
        return 0, True
    names = ledger.db.execute(
        "SELECT crawl, digest, id FROM seen WHERE crawl = ? LIMIT ?", (*crawl, AT_ONCE)
    ).fetchall()
    found = ledger.table.rows([number for _, _, number in names if number is not None])
    ledger.drop(found, now)
    ledger.db.executemany("DELETE FROM seen WHERE crawl = ? AND digest = ?", [name[:2] for name in names])
    if not names:
        ledger.db.execute("DELETE FROM cookies WHERE crawl = ?", crawl)
        ledger.db.execute("DELETE FROM crawls WHERE id = ?", crawl)
    return len(found), False
