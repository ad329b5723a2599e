"""Count what waits in a frontier for the reports of a launch. Walks its queues, and each row that waits."""

from __future__ import annotations

from warcmill.crawl.frontier_sqlite import SqliteFrontier
from warcmill.crawl.reports import Waiting
from warcmill.crawl.rows import milliseconds
from warcmill.crawl.uri import FOREVER

LONGEST = 100_000
"""How many queues are named, the longest first."""

_COUNTS = (
    "SELECT total(waiting + suspended + parsed + failed + removed), total(waiting + suspended) FROM crawls"
    " WHERE name IS NOT NULL"
)
_QUEUES = "SELECT count(*), total(head IS NOT NULL), total(wake IS NOT NULL), total(wake >= ?) FROM queues"
_LENGTHS = (
    "SELECT queues.name, lengths.items FROM (SELECT queue, count(*) AS items FROM waiting GROUP BY queue"
    " ORDER BY items DESC LIMIT ?) AS lengths JOIN queues ON queues.id = lengths.queue"
    " ORDER BY lengths.items DESC, queues.name"
)


async def waiting(frontier: SqliteFrontier) -> Waiting:
    """Return what the frontier has, as the reports show it."""
    return await frontier.run(lambda: _read(frontier))


def _read(frontier: SqliteFrontier) -> Waiting:
    db, out = frontier.db, len(frontier.ledger.leases)
    discovered, queued = map(int, db.execute(_COUNTS).fetchone())
    queues, ready, closed, retired = map(int, db.execute(_QUEUES, (milliseconds(FOREVER),)).fetchone())
    lengths = dict(db.execute(_LENGTHS, (LONGEST,)).fetchall())
    return Waiting(
        discovered, queued, lengths, ready=ready, snoozed=closed - retired, retired=retired,
        exhausted=queues - ready - closed, in_process=out,
    )  # fmt: skip
