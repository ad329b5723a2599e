"""Recovery of what was lost: rows of the centre from the journals of a cluster, or the frontier of a cluster from the
centre. Talks to PostgreSQL; reads journals.

The frontier is ordered from the centre like the hosts of a cluster that is gone, but for the same cluster: its new
launch hears which sites are suspended, their rates and what was visited, before it has a host again; then what waits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from warcmill.base import clock
from warcmill.clients.postgresql import Postgresql
from warcmill.clusters import books
from warcmill.clusters.following import OWN, ClusterJournals
from warcmill.clusters.owning import ARRIVES, LEAVES, LOCK, hand_on, order_visited, order_waiting
from warcmill.clusters.tables import STATUSES
from warcmill.errors import Busy, Conflict, NotReady

_PLACE = (
    "UPDATE writers SET launch = '', stage = '', journal = 0, read = 0, log_read = 0, tail = '', behind = $3"
    " WHERE cluster = $1 AND writer = $2"
)
# Without a launch it was ordered from the cluster, whose journal has not taken it yet.
_FORGET = """
WITH gone AS MATERIALIZED (
  DELETE FROM uris WHERE cluster = $1 AND launch <> '' AND uri <> ALL($2::text[])
  RETURNING host, digest
), visited AS (
  DELETE FROM visits v USING gone g WHERE v.host = g.host AND v.digest = g.digest AND v.cluster = $1 RETURNING 1
)
SELECT (SELECT count(*) FROM gone) AS uris, (SELECT count(*) FROM visited) AS visits
"""
_NUMBER = "count(*) FILTER (WHERE status = '{status}') AS {one}"
# Crawls hear of all hosts again, too: the centre may be a new one.
_NONE = f"UPDATE hosts SET {', '.join(f'{one} = 0' for one in STATUSES)}, edition = nextval('host_editions')"
_RECOUNT = (
    f"UPDATE hosts h SET {', '.join(f'{one} = u.{one}' for one in STATUSES)} FROM (SELECT host,"
    f" {', '.join(_NUMBER.format(one=one, status=one.capitalize()) for one in STATUSES)} FROM uris GROUP BY host) u"
    " WHERE u.host = h.host"
)
_HOSTS = (
    "SELECT host FROM hosts WHERE cluster = $1 AND (moving IS NULL OR moving = $2) AND NOT forbidden"
    " ORDER BY host FOR UPDATE"
)
_VISITED = "SELECT count(*) FROM uris WHERE cluster = $1 AND status NOT IN ('Scheduled', 'Suspended')"
_WAITS = "UPDATE uris SET launch = '', journal = 0 WHERE cluster = $1 AND status IN ('Scheduled', 'Suspended')"
_WISH = "INSERT INTO orders (cluster, verb, subject, uris) VALUES ($1, $2, $3, 1)"
_OF_OTHERS = "SELECT DISTINCT host FROM uris WHERE cluster = $1 AND host <> ALL($2::text[]) ORDER BY host"


class ForgottenRows(NamedTuple):
    """The rows of a cluster that the centre has no more: its URIs, and visits of them; the bytes of journals by which
    the updater makes them anew, and how many URIs stay, as only the centre has them."""

    cluster: str
    uris: int
    visits: int
    bytes: int
    only_here: int


class OrderedFrontier(NamedTuple):
    """The order that a cluster has its frontier again: its hosts, the URIs that wait and those that were visited. The
    `behind` bytes that its lost journal had after `updated` nobody knows."""

    cluster: str
    hosts: int
    waiting: int
    visited: int
    behind: int
    updated: str


async def forget_rows(db: Postgresql, every: Sequence[ClusterJournals]) -> list[ForgottenRows]:
    """Forget the rows of clusters that their journals have, in one transaction: their updaters read all again. Those of
    retired ones stay. Busy while an updater runs; Mismatch when the journals are not those that the centre has read;
    Unavailable without the root of a worker."""
    retired = {row["cluster"] for row in await db.rows("SELECT cluster FROM clusters WHERE retired IS NOT NULL")}
    every = [one for one in every if one.name not in retired]
    only = dict[str, list[str]]()
    for one in every:
        found = await books.compare(db, one)
        only[one.name] = [differs.uri for differs in found.differences if not differs.journals]

    async def act(connection: Any) -> list[ForgottenRows]:
        answers = list[ForgottenRows]()
        await connection.execute(LOCK)
        for one in every:
            await _take_over(connection, one.name)
        await connection.execute("LOCK TABLE hosts IN SHARE ROW EXCLUSIVE MODE")
        for one in every:
            kept, behind = only[one.name], one.waiting({}, {})
            row = await connection.fetchrow(_FORGET, one.name, kept)
            await connection.executemany(_PLACE, [(one.name, name, left) for name, left in behind.items()])
            answers.append(ForgottenRows(one.name, row["uris"], row["visits"], sum(behind.values()), len(kept)))
        await connection.execute(_NONE)
        await connection.execute(_RECOUNT)
        return answers

    return await db.whole(act)


async def order_frontier(db: Postgresql, cluster: str, *, is_owned: bool) -> OrderedFrontier:
    """Order from a cluster, whose disk is lost, all that the centre has of it, and let the journals of its own process
    be read from their begin; `is_owned`: hosts have owners. Those of workers, whose disks may be there, are read on.
    Busy while its updater runs."""

    async def act(connection: Any) -> OrderedFrontier:
        await connection.execute(LOCK)
        await _take_over(connection, cluster)
        leaving = await connection.fetch("SELECT host FROM hosts WHERE leaves = $1 AND moving = $2", cluster, LEAVES)
        await hand_on(connection, [row["host"] for row in leaving], cluster)
        ours = [row["host"] for row in await connection.fetch(_HOSTS, cluster, ARRIVES)]
        wishes = await connection.fetch("SELECT * FROM sites WHERE cluster = $1 ORDER BY site", cluster)
        await connection.executemany(_WISH, [(cluster, *wish) for row in wishes for wish in _wishes(row)])
        waiting = int((await connection.execute(_WAITS, cluster)).removeprefix("UPDATE "))
        for host in ours:
            await order_visited(connection, cluster, host)
        for row in await connection.fetch(_OF_OTHERS, cluster, ours):
            await order_visited(connection, cluster, row["host"], others=True)
        if is_owned:
            query = f"UPDATE hosts SET moving = '{ARRIVES}', edition = nextval('host_editions')"
            await connection.execute(f"{query} WHERE host = ANY($1::text[])", ours)
        else:
            for host in ours:
                await order_waiting(connection, cluster, host)
        query = "SELECT sum(behind)::bigint AS behind, max(updated) AS updated FROM writers WHERE cluster = $1"
        about = await connection.fetchrow(query, cluster)
        await connection.execute(_PLACE, cluster, OWN, 0)
        updated = clock.text(about["updated"]) if about["updated"] else ""
        visited = await connection.fetchval(_VISITED, cluster)
        return OrderedFrontier(cluster, sum(map(bool, ours)), waiting, visited, about["behind"], updated)

    return await db.whole(act)


def _wishes(row: Any) -> Iterator[tuple[str, str]]:
    """The orders for what persons want of a site: the verb, and the subject."""
    if row["is_suspended"]:
        yield "suspend", json.dumps({"site": row["site"]})
    if row["rate"]:
        yield "rate", json.dumps({"site": row["site"], **json.loads(row["rate"])})


async def _take_over(connection: Any, cluster: str) -> None:
    """Keep updaters of a cluster away until the transaction ends. Busy when one runs."""
    row = await connection.fetchrow("SELECT * FROM clusters WHERE cluster = $1 FOR UPDATE", cluster)
    if row is None:
        raise NotReady(f"cluster {cluster}", "the centre has no row of it; 'warcmill group NAME init' adds it")
    if row["retired"]:
        raise Conflict(cluster, "it is retired, and its hosts are those of others; give a new job its place")
    lock = "SELECT pg_try_advisory_xact_lock(hashtext('warcmill-updater'), hashtext($1))"
    if not await connection.fetchval(lock, cluster):
        raise Busy(f"the updating of {cluster}, by {row['updater']},", "end that one, and start it again after this")
