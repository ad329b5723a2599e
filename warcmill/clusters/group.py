"""A group of clusters, as luigi.cfg has it, and its verbs that change or ask the centre as a whole. Talks to
PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from msgspec import Struct

from warcmill.base import clock
from warcmill.clients.postgresql import Postgresql, PostgresqlPlace
from warcmill.clusters import tables
from warcmill.clusters.owning import RulesPlace
from warcmill.clusters.tables import STATUSES
from warcmill.model import Json

STRANGE = "no [writer.NAME] that its updater knows has what it journals; add one, and start the updater again"
_IS_UPDATED = (
    "EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND classid = (hashtext('warcmill-updater')::bigint & 4294967295)::oid"
    " AND objid = (hashtext({cluster})::bigint & 4294967295)::oid)"
)


class Group(Struct, frozen=True):
    """A group: its jobs, each a cluster, and the place of its centre. `owned`: its hosts have owners, by rules."""

    name: str
    centre: PostgresqlPlace
    jobs: tuple[str, ...]
    owned: RulesPlace | None = None


@asynccontextmanager
async def asked(group: Group, seconds: float = 60.0) -> AsyncIterator[Postgresql]:
    """A connection to the centre of a group, whose tables are there, while the block runs."""
    db = await Postgresql.connect(group.centre, f"warcmill group {group.name}", seconds)
    try:
        await tables.examine(db, group.name)
        yield db
    finally:
        await db.close()


async def make(group: Group) -> bool:
    """Make the tables of a group, and the rows of its jobs; False if all were there."""
    db = await Postgresql.connect(group.centre, f"warcmill group {group.name}")
    try:
        return await tables.make(db, group.name, group.jobs)
    finally:
        await db.close()


async def is_updated(db: Postgresql, cluster: str) -> bool:
    """True if the updater of a cluster has its lock."""
    return bool((await db.rows(f"SELECT {_IS_UPDATED.format(cluster='$1::text')} AS found", cluster))[0]["found"])


async def status(group: Group, seconds: float = 60.0) -> list[dict[str, Json]]:
    """Each cluster of a group: its URIs by status, how far its journal was read, who updates it, and what waits."""
    counts = ", ".join(f"coalesce(sum({one}), 0)::bigint AS {one}" for one in STATUSES)
    query = (
        "SELECT c.cluster, retired, why, rules, scope, scope_note, strangers, updater, h.*, w.*,"
        " (SELECT count(*) FROM orders o WHERE o.cluster = c.cluster AND state = 'waiting') AS orders,"
        f" {_IS_UPDATED.format(cluster='c.cluster')} AS is_updated,"
        " (SELECT value FROM about WHERE name = 'rules fault ' || c.cluster) AS fault,"
        " (SELECT value FROM about WHERE name = 'updater fault ' || c.cluster) AS updater_fault,"
        " (SELECT coalesce(max(edition), 0) FROM scopes) AS newest,"
        " (SELECT count(*) FROM hosts o WHERE moving IS NOT NULL AND c.cluster IN (o.cluster, o.leaves)) AS moving"
        " FROM clusters c LEFT JOIN (SELECT cluster AS written, max(launch) AS launch, sum(groups)::bigint AS groups,"
        " sum(changes)::bigint AS changes, sum(refused)::bigint AS refused, sum(behind)::bigint AS behind,"
        " max(updated) AS updated, json_agg(json_build_array(writer, launch, behind, fault) ORDER BY writer) AS writers"
        " FROM writers GROUP BY cluster) w ON w.written = c.cluster"
        f" LEFT JOIN (SELECT cluster AS of, count(*) AS hosts, {counts} FROM hosts GROUP BY cluster) h"
        " ON h.of = c.cluster ORDER BY c.cluster"
    )
    async with asked(group, seconds) as db:
        return [_as_json(row) for row in await db.rows(query)]


def unread(one: Mapping[str, Json]) -> Iterator[str]:
    """Say of which writers of a cluster, as `status` has it, the journals are not read, and why."""
    for writer in cast("list[dict[str, Json]]", one["writers"]):
        if writer["fault"]:
            yield f"the journals of {writer['writer']} are not read: {writer['fault']}"
    if one["strangers"]:
        yield f"{one['strangers']}: {STRANGE}"


def _as_json(row: Any) -> dict[str, Json]:
    counts = {one.capitalize(): row[one] or 0 for one in STATUSES}
    writers: list[Json] = [
        {"writer": writer, "launch": launch, "behind": behind, "fault": fault}
        for writer, launch, behind, fault in json.loads(row["writers"] or "[]") if writer
    ]  # fmt: skip
    return {
        "cluster": row["cluster"], "launch": row["launch"] or "", "groups": row["groups"] or 0,
        "changes": row["changes"] or 0, "refused": row["refused"] or 0, "behind": row["behind"] or 0,
        "hosts": row["hosts"] or 0, "uris": counts,
        "updater": row["updater"] if row["is_updated"] else "", "orders": row["orders"],
        "retired": clock.text(row['retired']) if row["retired"] else "", "why": row["why"],
        "rules": row["rules"], "rules_fault": row["fault"] or "", "moving": row["moving"],
        "updater_fault": row["updater_fault"] or "",
        "scope": {"edition": row["scope"], "newest": row["newest"], "note": row["scope_note"]},
        "writers": writers, "strangers": row["strangers"],
        "updated": clock.text(row['updated']) if row["updated"] else "",
    }  # fmt: skip
