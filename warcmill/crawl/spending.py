"""What was fetched of each host, target and crawl, for quotas: the books have it, however many hosts there are."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping

from warcmill.crawl.policies.quotas import NAMES, By, Spent
from warcmill.crawl.uri import Uri
from warcmill.formats.crawllog import CrawlRecord

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
