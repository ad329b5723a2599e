"""A centre of a group with rows of every sort, hostile ones too, in a database of its own."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import asyncpg

from servers.postgresql import PostgresqlServer
from warcmill.clients.postgresql import read_place
from warcmill.clusters import group
from warcmill.clusters.centre import surt_of_host
from warcmill.clusters.group import Group
from warcmill.clusters.looking import name_of
from warcmill.clusters.tables import STATUSES
from warcmill.crawl.uri import canonical

NAME, EAST, WEST = "web", "web-east", "web-west"
LARGE, SMALL, HIDDEN = "large.example", "a.small.example", "secret.example"
MARKUP = "<b>\u202egpj.exe"
WARC = "web-east-1.warc.gz"
CODES = {"Failed": 404, "Parsed": 200}
URIS = 120  # of the large host
ODD = canonical(f"http://{SMALL}/?q={MARKUP}{'W' * 900}")
_URI = (
    "INSERT INTO uris (host, digest, cluster, crawl, uri, status, hops, via, source, last_update, http_status, launch,"
    " journal) VALUES ($1, $2, $3, $4, $5, $6, 'L', $7, $7, now() - interval '1 day', $8, '20261129000000', 1)"
)
_VISIT = (
    "INSERT INTO visits VALUES ($1, $2, now() - $3 * interval '1 day', 'Parsed', 200, 'sha1:X', '192.0.2.1', $4, $5,"
    " $6, '20261129000000', 1)"
)


def leave(server: PostgresqlServer, folder: Path) -> Group:
    """A group whose centre has rows."""
    return asyncio.run(_leave(server, f"c{os.getpid()}_{abs(hash(folder))}"))


async def _leave(server: PostgresqlServer, database: str) -> Group:
    connection = await asyncpg.connect(server.url())
    await connection.execute(f"CREATE DATABASE {database}")
    await connection.close()
    made = Group(NAME, read_place("centre", server.url(database)), (EAST, WEST))
    await group.make(made)
    connection = await asyncpg.connect(made.centre.url)
    try:
        await _fill(connection)
    finally:
        await connection.close()
    return made


async def _fill(connection: Any) -> None:
    uris = [(f"http://{LARGE}/{n}", EAST, "", _status(n)) for n in range(URIS)]
    uris += [(f"http://h{n}.small.example/", EAST, "", "Parsed") for n in range(60)]
    uris += [(ODD, WEST, "", "Failed"), (f"http://{SMALL}/", WEST, MARKUP, "Scheduled")]
    uris += [(f"http://{HIDDEN}/{n}", EAST, "", "Scheduled") for n in range(URIS - 20)]
    owners = {name_of(uri)[0]: cluster for uri, cluster, _, _ in uris}
    hosts = [(host, surt_of_host(host), cluster) for host, cluster in owners.items()]
    await connection.executemany("INSERT INTO hosts (host, surt, cluster) VALUES ($1, $2, $3)", hosts)
    rows = [
        (*name_of(uri, crawl), cluster, crawl, uri, status, f"http://{SMALL}/{MARKUP}", CODES.get(status))
        for uri, cluster, crawl, status in uris
    ]  # fmt: skip
    await connection.executemany(_URI, rows)
    number = "SELECT count(*) FROM uris u WHERE u.host = h.host AND u.status = "
    counts = ", ".join(f"{one} = ({number}'{one.capitalize()}')" for one in STATUSES)
    await connection.execute(f"UPDATE hosts h SET {counts}")
    first = name_of(f"http://{LARGE}/0")
    await connection.executemany(_VISIT, [(*first, 2, WARC, 1234, EAST), (*first, 1, None, None, EAST)])
    await connection.execute("INSERT INTO journals VALUES ($1, '20261129000000', 1, '20261129010000')", EAST)
    await connection.execute("INSERT INTO sites VALUES ($1, $2, true, NULL)", WEST, SMALL)
    await connection.execute(
        "UPDATE writers SET behind = 12345, updated = now(), refused = 3, launch = '20261129' WHERE cluster = $1",
        EAST,
    )
    orders: list[tuple[str, dict[str, Any], str, str]] = [
        ("add", {"uris": [f"http://{LARGE}/{n}" for n in range(5)]}, "done", "1 of 5 are refused"),
        ("suspend", {"site": LARGE}, "refused", f"{MARKUP} of it waits"),
        ("remove", {"prefix": "http://(example,large,)/1"}, "waiting", ""),
        ("resume", {"prefix": "http://(example,"}, "done", "9 URIs"),
        ("remove", {"uri": f"http://{LARGE}/7"}, "done", ""),
        ("add", {"uris": [f"http://{HIDDEN}/new"]}, "waiting", ""),
        *(("add", {"uris": [ODD]}, "done", "") for _ in range(60)),
    ]  # fmt: skip
    await connection.executemany(
        "INSERT INTO orders (cluster, verb, subject, uris, state, reason, ended)"
        " VALUES ($1, $2, $3, $4, $5, $6, CASE WHEN $5 <> 'waiting' THEN now() END)",
        [(EAST, verb, json.dumps(one), len(one.get("uris", "1")), state, why) for verb, one, state, why in orders],
    )


def _status(number: int) -> str:
    return "Failed" if number % 40 == 3 else "Removed" if number == 5 else "Parsed" if number % 2 else "Scheduled"
