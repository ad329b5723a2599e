"""The URIs and the hosts of a group, as a person looks at them: one, its history, lists. Reads PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from warcmill.base import clock
from warcmill.clients.postgresql import Postgresql
from warcmill.clusters.news import host_of
from warcmill.clusters.orders import under
from warcmill.crawl.uri import Status, digest, queue_of, without_session
from warcmill.errors import BadInput
from warcmill.model import Json

_TIMES = ("download_at", "download_started", "download_finished", "last_update")
_TEXTS = ("host", "uri", "status", "cluster", "crawl", "key", "hops", "via", "source", "hash", "address", "launch")
_URI = (
    "SELECT u.*, coalesce(j.stage, '') AS stage FROM uris u LEFT JOIN journals j ON j.cluster = u.cluster"
    " AND j.launch = u.launch AND j.writer = u.writer AND j.journal = u.journal WHERE u.host = $1 AND u.digest = $2"
)
_HISTORY = (
    "SELECT v.*, coalesce(j.stage, '') AS stage FROM visits v LEFT JOIN journals j ON j.cluster = v.cluster"
    " AND j.launch = v.launch AND j.writer = v.writer AND j.journal = v.journal WHERE v.host = $1 AND v.digest = $2"
    " ORDER BY finished DESC LIMIT $3"
)
# A status that is rare is looked for where hosts count any: not in all URIs.
_LIST = (
    "SELECT u.* FROM hosts h JOIN uris u ON u.host = h.host WHERE {counts} ($1::text IS NULL OR u.status = $1)"
    " AND ($2::text IS NULL OR u.host = $2) AND ($3::text IS NULL OR u.cluster = $3)"
    " AND (u.host, u.digest) > ($4, $5) ORDER BY u.host, u.digest LIMIT $6"
)


def name_of(uri: str, crawl: str = "", key: str = "") -> tuple[str, bytes]:
    """The host and the digest of a canonical URI, by which the centre has it. `key`: where that is another text."""
    return host_of(uri), digest(crawl, key or without_session(uri))


async def get(db: Postgresql, uri: str, crawl: str = "", key: str = "") -> dict[str, Json] | None:
    """The row of a URI; None if it was never taken."""
    rows = await db.rows(_URI, *name_of(uri, crawl, key))
    return as_json(rows[0], await suspended_sites(db)) if rows else None


async def history(
    db: Postgresql, uri: str, crawl: str = "", key: str = "", most: int | None = None
) -> list[dict[str, Json]]:
    """The visits of a URI, the oldest first, each with the WARC that has what came. `most`: the newest so many."""
    names = ("status", "http_status", "hash", "address", "warc", "warc_offset", "cluster", "launch", "stage")
    rows = await db.rows(_HISTORY, *name_of(uri, crawl, key), most)
    return [
        {"finished": _moment(row["finished"]), **{name: row[name] for name in names if row[name] not in (None, "")}}
        for row in reversed(rows)
    ]


async def listed(
    db: Postgresql, *, status: str | None = None, host: str | None = None, cluster: str | None = None,
    prefix: str | None = None, after: str = "", limit: int = 100,
) -> tuple[list[dict[str, Json]], str]:  # fmt: skip
    """Some URIs by host and digest, and where the next call begins; '' when there are no more."""
    last = _place(after)
    if prefix:
        rows = await under(db, prefix, cluster, [status] if status else None, last, limit)
    else:
        counts = f"h.{status.lower()} > 0 AND" if status else ""
        rows = await db.rows(_LIST.format(counts=counts), status, host, cluster, *last, limit)
    end = f"{rows[-1]['host']}:{rows[-1]['digest'].hex()}" if len(rows) == limit else ""
    suspended = await suspended_sites(db)
    return [as_json(row, suspended) for row in rows], end


def place_of(row: Mapping[str, Json]) -> str:
    """The place of a URI in lists of them, after which the next call may begin."""
    host, name = name_of(*(str(row.get(key, "")) for key in ("uri", "crawl", "key")))
    return f"{host}:{name.hex()}"


def _place(after: str) -> tuple[str, bytes]:
    """A place in a list; BadInput for another text."""
    host, _, name = after.rpartition(":")
    try:
        return host, bytes.fromhex(name)
    except ValueError as error:
        raise BadInput("after", "it is not a place in this list; take the 'next' of the list before") from error


async def suspended_sites(db: Postgresql) -> set[tuple[str, str]]:
    """The sites that are suspended, each with its cluster."""
    return {(row["cluster"], row["site"]) for row in await db.rows("SELECT * FROM sites WHERE is_suspended")}


def as_json(row: Any, suspended: Collection[tuple[str, str]] = ()) -> dict[str, Json]:
    """A row of `uris` as JSON; what it has not is left out. One that waits is `Suspended` if its site is."""
    found: dict[str, Json] = {name: row[name] for name in _TEXTS if row[name]}
    found |= {name: _moment(row[name]) for name in _TIMES if row[name]}
    found |= {"http_status": row["http_status"]} if row["http_status"] is not None else {}
    if row["status"] == Status.SCHEDULED and (row["cluster"], queue_of(row["uri"])) in suspended:
        found |= {"status": str(Status.SUSPENDED), "suspended": "site"}
    return found | ({"stage": row["stage"]} if row.get("stage") else {})


def _moment(time: datetime) -> str:
    return clock.text(time)
