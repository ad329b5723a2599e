"""Measure the takeover of a million URIs that wait with a cluster that is gone, beside bare COPY of the same rows.

    ./scripts/bench clusters_takeover

Takeover is `retire --gone`, and all that the updater of the heir does until each of its hosts has arrived: rows change
their owner, what was visited and what waits is ordered, by lines as the crawl of the heir takes them. CPU counts, of
both sides and of PostgreSQL. The peer has the rows ready, and copies them into an empty table with the same indexes.
The heir's crawl takes the orders later, at the speed of `load`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg

from benchmarks.clusters import cpu_of, uri_of
from servers import pins, postgresql
from servers.postgresql import PostgresqlServer
from warcmill.clients.postgresql import read_place
from warcmill.clusters import group, owning
from warcmill.clusters.centre import surt_of_host
from warcmill.clusters.group import Group
from warcmill.clusters.news import host_of
from warcmill.clusters.rules import no_country, parse
from warcmill.crawl.uri import digest

URIS, HOSTS, SETTLED = 1_000_000, 1000, 2.0
EAST, WEST = "east", "west"
COLUMNS = (
    "host", "digest", "cluster", "crawl", "uri", "status", "hops", "via", "source", "last_update", "launch", "journal",
)  # fmt: skip
Row = tuple[str, str, str, str, str]


def rows() -> Iterator[Row]:
    """What, ours, the peer's, their ratio, the bound."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server's user passes through it
        server = postgresql.up(Path(folder), pins.free(pins.POSTGRESQL))
        try:
            yield from asyncio.run(_measured(server))
        finally:
            server.stop()


async def _measured(server: PostgresqlServer) -> list[Row]:
    waiting = sorted(_waiting(), key=lambda row: row[:2])
    connection: Any = await asyncpg.connect(server.url())
    await connection.execute("CREATE DATABASE centre")
    await connection.close()
    place = read_place("centre", server.url("centre"))
    await group.make(Group("bench", place, (EAST, WEST)))
    connection = await asyncpg.connect(place.url)
    await connection.execute("CREATE TABLE bare (LIKE uris INCLUDING ALL)")
    before = time.process_time() + cpu_of(server)
    await connection.copy_records_to_table("bare", records=waiting, columns=COLUMNS)
    await connection.execute("CHECKPOINT")
    bare = time.process_time() + cpu_of(server) - before
    await connection.copy_records_to_table("uris", records=waiting, columns=COLUMNS)
    hosts = sorted({row[0] for row in waiting})
    put = "INSERT INTO hosts (host, surt, cluster, scheduled) SELECT h, s, $3, $4"
    put = f"{put} FROM unnest($1::text[], $2::text[]) n(h, s)"
    await connection.execute(put, hosts, [surt_of_host(one) for one in hosts], EAST, URIS // len(hosts))
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")
    await connection.close()
    rules = parse('default = "east"', "rules.toml", (EAST, WEST))
    steps = list[float]()
    async with group.asked(Group("bench", place, (EAST, WEST)), 3600.0) as db:
        before = time.process_time() + cpu_of(server)
        assert await owning.retire(db, rules, no_country, EAST, "fire", 24.0, gone=True) == len(hosts)
        steps.append(time.process_time() + cpu_of(server) - before)
        while await db.rows("SELECT 1 FROM hosts WHERE moving IS NOT NULL LIMIT 1"):
            await owning.settle(db, WEST)
        steps.append(time.process_time() + cpu_of(server) - before)
        ordered = (await db.rows("SELECT sum(uris) AS number FROM orders WHERE cluster = $1", WEST))[0]["number"]
        assert ordered == URIS
    ours = steps[-1]
    print(f"{steps[0]:.1f} s to retire, {steps[1] - steps[0]:.1f} s to settle", file=sys.stderr)
    shown = f"{ours:.1f} s", f"{bare:.1f} s COPY", f"{ours / bare:.2f} x", "4 x"
    return [(f"takeover of {URIS:,} URIs that wait", *shown)]


def _waiting() -> Iterator[tuple[object, ...]]:
    now = datetime.now(UTC)
    for number in range(URIS):
        one = uri_of(number, "http://www.example.org/archive/index.html")
        name = digest("", one.key)
        uri = one.uri, "Scheduled", one.hops, one.via, one.source
        yield host_of(one.uri), name, EAST, "", *uri, now, "20261129000000", 1
