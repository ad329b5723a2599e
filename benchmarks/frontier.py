"""Measure the frontier at a million queued URIs beside the bare SQL of the same rows: speed, and bytes on disk.

    ./scripts/bench frontier
    python -m benchmarks.frontier [QUEUED]      10,000,000 takes an hour: memory must stay as it is at 1,000,000

SQLite keeps up to 16 MB of pages in memory; beyond that nothing grows with what waits. Memory is read before the
bare SQL begins, which has a database of its own.

The bare SQL takes the same rows: the first of each of 64 queues. It deletes them, writes their visits, and notes the
new first rows, in one transaction a batch; it has no leases, gates, URIs as values, pages, or counts.
"""

from __future__ import annotations

import resource
import shutil
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from warcmill.crawl.frontier import Finish, Gate, Rate, table
from warcmill.crawl.frontier.database import open_database, transaction
from warcmill.crawl.frontier.ledger import Ledger
from warcmill.crawl.uri import Status, Uri, digest

QUEUED, FEW, HOSTS, BATCH, MEASURED, LINKS = 1_000_000, 10_000, 1000, 64, 20_000, 20
KINDS = (
    ("a visit without history", b""),
    ("a visit with digest and length", b"h" * 25),
    ("a visit with 100", b"h" * 100),
)
NEXT = (
    f"SELECT w.{table.COLUMNS.replace(', ', ', w.')} FROM queues q JOIN waiting w ON w.id = q.head"
    " WHERE q.head IS NOT NULL ORDER BY q.priority, q.head LIMIT 64"
)
HEAD = (
    "UPDATE queues SET (priority, head) = (SELECT priority, id FROM waiting WHERE queue = ?1 AND until IS NULL"
    " ORDER BY priority, id LIMIT 1) WHERE id = ?1"
)
Row = tuple[str, str, str, str, str]


def rows() -> Iterator[Row]:
    """What, ours, the peer's, their ratio, the target."""
    yield from measure(QUEUED)


def measure(queued: int) -> Iterator[Row]:
    """Measure at so many queued URIs, after a few."""
    with tempfile.TemporaryDirectory() as folder:
        few = once(Path(folder) / "few", FEW)
        many = once(Path(folder) / "many", queued)
    yield (f"frontier: {queued:,} new URIs offered", f"{many.offered:,.0f}/s", "", "", "")
    yield bytes_row("a queued URI of 62 characters", many.bytes, 180)
    yield (
        "lease and finish",
        f"{MEASURED / many.ours:,.0f}/s",
        f"{MEASURED / many.bare:,.0f}/s",
        f"{many.bare / many.ours:.2f} x",
        "at least 0.7 x",
    )
    added = many.peak - few.peak
    yield (f"memory, and that at {FEW:,}", f"{many.peak} MB", f"{few.peak} MB", f"+ {added} MB", "+ 20 MB: a cache")
    for what, history in KINDS:
        yield visits(what, history)


class Found(NamedTuple):
    """Offers a second, bytes of a queued URI, seconds of CPU of ours and of the bare SQL, and MB at the most."""

    offered: float
    bytes: float
    ours: float
    bare: float
    peak: int


def once(folder: Path, queued: int) -> Found:
    """Fill a frontier, lease and finish some."""
    folder.mkdir()
    path, other = folder / "books.sqlite", folder / "bare.sqlite"
    database = open_database(path)
    empty = size(database)
    seconds = fill(database, path, queued)
    used = (size(database) - empty) / queued
    our_run(Ledger(database), path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    database.close()
    shutil.copyfile(path, other)
    ours, bare = by_turns(path, other)
    shutil.rmtree(folder)
    return Found(queued / seconds, used, ours, bare, peak)


def by_turns(path: Path, other: Path) -> tuple[float, float]:
    """Seconds of CPU of ours and of the bare SQL, each on its own copy: the median of five."""
    database, plain = open_database(path), open_database(other)
    ledger = Ledger(database)
    found = [(our_run(ledger, path), bare_run(plain, other)) for _ in range(5)]
    database.close()
    plain.close()
    return median(ours for ours, _ in found), median(bare for _, bare in found)


def uri(number: int) -> Uri:
    """A URI of 62 characters; LINKS after each other are found on one page, and on its host."""
    host = f"www.host{number // LINKS % HOSTS:04}.example"
    text = f"http://{host}/archive/{number:09}/the-article.html"
    via = f"http://{host}/archive/{number // LINKS:09}/the-listing.html"
    return Uri(text, text, host, hops="LLL", via=via, source="http://www.host0000.example/")


def fill(database: sqlite3.Connection, path: Path, queued: int) -> float:
    """Offer so many URIs in groups; return the seconds of CPU."""
    ledger, begin, group = Ledger(database), time.process_time(), BATCH * LINKS
    for first in range(0, queued, group):
        with transaction(database, path):
            ledger.offer([uri(number) for number in range(first, min(first + group, queued))])
    return time.process_time() - begin


def bare_run(database: sqlite3.Connection, path: Path) -> float:
    begin = time.process_time()
    for _ in range(0, MEASURED, BATCH):
        with transaction(database, path):
            found = database.execute(NEXT).fetchall()
            database.executemany("DELETE FROM waiting WHERE id = ?", [(row[0],) for row in found])
            database.executemany(
                "UPDATE seen SET visit = ?, id = NULL WHERE crawl = ? AND digest = ?",
                [(b"x" * 32, row[4], digest("", row[5])) for row in found],
            )
            database.executemany(HEAD, [(row[1],) for row in found])
    return time.process_time() - begin


def our_run(ledger: Ledger, path: Path) -> float:
    begin = time.process_time()
    for _ in range(0, MEASURED, BATCH):
        with transaction(ledger.db, path):
            leases = ledger.lease("bench", BATCH)
        for lease in leases:
            lease.uri.status = Status.PARSED
        with transaction(ledger.db, path):
            ledger.finish([Finish(lease, b"x" * 25) for lease in leases])
    return time.process_time() - begin


def visits(what: str, history: bytes) -> Row:
    """How many bytes a finished URI takes."""
    number = 200_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "books.sqlite"
        database = open_database(path)
        ledger, empty = Ledger(database), size(database)
        ledger.queues.set_rate(Gate(""), Rate(at_once=None))
        for first in range(0, number, 1024):
            with transaction(database, path):
                ledger.offer([uri(one) for one in range(first, first + 1024)])
                leases = ledger.lease("bench", 2000)
                for lease in leases:
                    lease.uri.status = Status.PARSED
                ledger.finish([Finish(lease, history) for lease in leases])
        found = (size(database) - empty) / number
        database.close()
    return bytes_row(what, found, 80 if len(history) < 50 else 180)


def bytes_row(what: str, found: float, target: int) -> Row:
    return (f"bytes of {what}", f"{found:.0f}", "", "", f"at most {target}")


def size(database: sqlite3.Connection) -> int:
    """The bytes in use."""
    pages, free, each = (
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * each)


if __name__ == "__main__":
    for row in measure(int((sys.argv[1:] or [QUEUED])[0])):
        print(" | ".join(row), flush=True)
