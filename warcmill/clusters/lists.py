"""Lists of a group's centre as pages show them: hosts, the URIs of one, orders, each read by its key; and the URIs that
have waited longest. Reads PostgreSQL.

A query reads a page by an index, or all rows of `hosts`, which has the counts: never all URIs.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

from warcmill.base import clock
from warcmill.clients.postgresql import Postgresql
from warcmill.clusters.centre import surt_of_host
from warcmill.clusters.looking import as_json, suspended_sites
from warcmill.clusters.news import host_of
from warcmill.clusters.tables import STATUSES
from warcmill.crawl.uri import queue_of, without_session
from warcmill.model import Json

_COUNTS = ", ".join(STATUSES)
_ALL = " + ".join(STATUSES)
_HOSTS = (
    "SELECT host, {counts}, {number} AS number FROM hosts WHERE cluster = $1 AND {number} >= $2"
    " AND ($3 = '' OR starts_with(surt, $3)) AND ({number}, host) < ($4, $5) ORDER BY {number} DESC, host DESC LIMIT $6"
)
_URIS = "SELECT * FROM uris WHERE host = $1 AND digest > $2 {status} ORDER BY digest LIMIT $3"
_OLDEST = (
    "SELECT c.cluster, u.uri, u.crawl, u.key, u.last_update FROM clusters c CROSS JOIN LATERAL (SELECT * FROM uris u"
    " WHERE u.cluster = c.cluster AND status = 'Scheduled' ORDER BY last_update LIMIT 1) u"
)
# Of an order for many URIs, its first is shown: all may be a quarter of a megabyte.
_ORDER = (
    "number, cluster, verb, uris, made, state, reason, ended, given, subject - 'uris' AS subject,"
    " subject -> 'uris' ->> 0 AS first"
)
_ORDERS = (
    f"SELECT {_ORDER} FROM orders WHERE number < $1 AND ($2::text IS NULL OR state = $2)"
    " AND ($3::text IS NULL OR cluster = $3) ORDER BY number DESC LIMIT $4"
)
# Each part has an index, also of two texts: $1 and $2 are those of the URI. A prefix is compared behind its scheme, as
# `orders.under` does.
_NAMES = "coalesce(subject ->> 'uri', subject ->> 'site')"
_ORDERS_FOR = (
    f"SELECT {_ORDER} FROM orders WHERE number IN ("
    "SELECT number FROM orders WHERE verb <> 'take' AND coalesce(subject ->> 'crawl', '') = $3"
    " AND (subject -> 'uris' @> to_jsonb($1::text) OR subject -> 'uris' @> to_jsonb($2::text))"
    f" UNION SELECT number FROM orders WHERE {_NAMES} IS NOT NULL AND coalesce(subject ->> 'crawl', '') = $3"
    f" AND ({_NAMES} = $1 OR {_NAMES} = $2)"
    f" UNION SELECT number FROM orders WHERE {_NAMES} IS NOT NULL AND {_NAMES} = $4"
    " UNION SELECT number FROM orders WHERE subject ? 'prefix'"
    " AND starts_with($5, substring(subject ->> 'prefix' FROM strpos(subject ->> 'prefix', '(') + 1))"
    ") ORDER BY number DESC LIMIT $6"
)
_MOST = (1 << 63) - 1


class HostPlace(NamedTuple):
    """A place in the hosts of a cluster, which begin with those that have the most URIs."""

    number: int = _MOST
    host: str = ""


async def hosts(
    db: Postgresql, cluster: str, status: str | None, domain: str, before: HostPlace, most: int
) -> list[dict[str, Any]]:
    """Hosts of a cluster, those with the most URIs first, of all statuses or one; of a domain, '' for all."""
    query = _HOSTS.format(counts=_COUNTS, number=status.lower() if status else f"({_ALL})")
    rows = await db.rows(query, cluster, 1 if status else 0, surt_of_host(domain) if domain else "", *before, most)
    return [
        {"host": row["host"], "uris": {one.capitalize(): row[one] for one in STATUSES}, "number": row["number"]}
        for row in rows
    ]


async def host(db: Postgresql, name: str) -> dict[str, Json] | None:
    """A host: its cluster, its counts, and all else that its row has; None for one that is new."""
    rows = await db.rows("SELECT * FROM hosts WHERE host = $1", name)
    if not rows:
        return None
    row = dict(rows[0])
    counts: dict[str, Json] = {one.capitalize(): row.pop(one) for one in STATUSES}
    return {name: _plain(value) for name, value in row.items() if value is not None} | {"uris": counts}


def _plain(value: Any) -> Json:
    """A value of a row as JSON."""
    if isinstance(value, datetime):
        return moment(value)
    return [*map(str, value)] if isinstance(value, list) else value if isinstance(value, bool | int) else str(value)


async def uris(
    db: Postgresql, name: str, status: str | None, after: bytes, most: int
) -> tuple[list[dict[str, Json]], str]:
    """Some URIs of a host, of all statuses or one, by their digests after one; and the digest of the last, '' when
    there are no more."""
    query = _URIS.format(status="AND status = $4" if status else "")
    rows = await db.rows(query, name, after, most + 1, *([status] if status else []))
    end = rows[most - 1]["digest"].hex() if len(rows) > most else ""
    suspended = await suspended_sites(db)
    return [as_json(row, suspended) for row in rows[:most]], end


async def oldest(db: Postgresql) -> dict[str, dict[str, Json]]:
    """The URI of each cluster that has waited for longest."""
    names = ("uri", "crawl", "key")
    return {
        row["cluster"]: {"since": moment(row["last_update"]), **{name: row[name] for name in names if row[name]}}
        for row in await db.rows(_OLDEST)
    }


async def orders(
    db: Postgresql, state: str | None, cluster: str | None, before: int, most: int
) -> tuple[list[dict[str, Json]], int]:
    """Some orders before a number, the newest first, in all states or one; and the number of the last, 0 when there are
    no more. `before` 0: the newest."""
    rows = await db.rows(_ORDERS, before or _MOST, state, cluster, most + 1)
    return [*map(_order, rows[:most])], rows[most - 1]["number"] if len(rows) > most else 0


async def orders_for(db: Postgresql, uri: str, crawl: str, most: int) -> list[dict[str, Json]]:
    """The newest orders for a URI, its site or a prefix that it is under."""
    _, slash, path = uri.partition("://")[2].partition("/")
    place = f"{surt_of_host(host_of(uri))}){slash}{path}"
    rows = await db.rows(_ORDERS_FOR, uri, without_session(uri), crawl, queue_of(uri), place, most)
    return [*map(_order, rows)]


def _order(row: Any) -> dict[str, Json]:
    subject = json.loads(row["subject"])
    return {
        **{name: row[name] for name in ("number", "cluster", "verb", "uris", "state", "reason", "given")},
        "subject": subject | ({"first": row["first"]} if row["first"] else {}),
        "made": moment(row["made"]), "ended": moment(row["ended"]) if row["ended"] else "",
    }  # fmt: skip


def moment(time: datetime) -> str:
    """A time as texts have it."""
    return clock.text(time)
