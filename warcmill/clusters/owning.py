"""Whose hosts are: a host that an updater meets is resolved and assigned by the rules, once; the crawl is told; hosts
are moved from one cluster to another. Talks to PostgreSQL, to the crawl and to name servers.

All changes of owners are made under one lock of the centre, so editions are in the order in which they are seen. A host
that moves is nobody's for a while: first its old owner lets go of what waits, and all that it did is in the centre;
then the new one hears what was visited; only then it begins.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from warcmill.base import clock, disk
from warcmill.base.escapes import printable
from warcmill.clients.postgresql import Postgresql
from warcmill.clusters.centre import COUNT, order_parts, surt_of_host
from warcmill.clusters.rules import Country, HostRules, countries, no_country, parse
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.fetch.addresses import HostLookup, Resolver
from warcmill.crawl.policies.owners import FORBIDDEN, OTHERS, OURS
from warcmill.crawl.uri import Status, queue_of
from warcmill.errors import BadConfig, BadInput, Conflict, NotReady, Unavailable
from warcmill.model import Json

SECONDS = 60.0  # for the crawl to answer
RESOLVE_SECONDS, AT_ONCE = 10.0, 50  # for all new hosts of a step; questions under way
ADDRESSES = 32  # that are kept of a host
TTL_LEAST, TTL_MOST = 300.0, 86_400.0  # seconds until the addresses of a host are asked for again
MISS_LEAST, MISS_MOST = 60.0, 7 * 86_400.0  # and of a host without any: twice as long each time
DUE_AT_ONCE = 20
TOLD_AT_ONCE = 500  # hosts of a line to the crawl
ROWS_AT_ONCE = 5000
HOSTS_AT_ONCE = 20  # of which rows are changed by a statement
SETTLED_AT_ONCE = 50_000  # URIs of hosts that arrive in one transaction
LEAVES, ARRIVES = "leaves", "arrives"
LOCK = "SELECT pg_advisory_xact_lock(hashtext('warcmill-owners'))"
_NEXT = "nextval('host_editions')"
_KNOWN = (
    "SELECT a.address, (SELECT cluster FROM hosts h WHERE h.addresses @> ARRAY[a.address] AND NOT forbidden"
    " AND h.cluster <> ALL($2::text[]) ORDER BY added, host LIMIT 1) AS cluster"
    " FROM unnest($1::text[]) AS a(address)"
)
_ASSIGN = (
    "INSERT INTO hosts (host, surt, cluster, rule, forbidden, addresses, resolved, due, misses)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7, now() + make_interval(secs => $8), $9) ON CONFLICT DO NOTHING"
)
_LOST = f"""
WITH lost AS MATERIALIZED (
  SELECT u.host, u.digest, u.status AS was, 'Scheduled' AS now FROM uris u JOIN hosts h USING (host)
  WHERE NOT h.forbidden AND u.status IN ('Parsed', 'Failed') AND u.uri ~ '^https?://'
    AND coalesce(u.hops, '') NOT LIKE '%P'
    AND EXISTS (SELECT 1 FROM visits v WHERE v.host = u.host AND v.digest = u.digest AND v.cluster = $1)
    AND NOT EXISTS (
      SELECT 1 FROM visits v LEFT JOIN journals j USING (cluster, launch, writer, journal)
      LEFT JOIN unnest($2::text[], $3::text[]) AS s(launch, stage) ON s.launch = v.launch AND s.stage = j.stage
      WHERE v.host = u.host AND v.digest = u.digest AND (v.cluster <> $1 OR s.stage IS NOT NULL))
), again AS (
  UPDATE uris u SET status = now, cluster = $1, launch = '', journal = 0, download_at = NULL, last_update = now()
  FROM lost l
  WHERE u.host = l.host AND u.digest = l.digest
)
{COUNT.format(of="lost")}
"""
_EDITIONS = (
    "SELECT coalesce((SELECT max(edition) FROM hosts), 0) AS newest,"
    " coalesce((SELECT value::bigint FROM about WHERE name = $1), 0) AS told"
)
_TOLD = "INSERT INTO about VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
# Of hosts that had others before, which know what was lost as visited.
_LOST_OF_OTHERS = (
    "SELECT host, cluster, moving FROM hosts h WHERE cluster <> $1 AND leaves IS DISTINCT FROM $1 AND EXISTS (SELECT 1"
    " FROM uris u WHERE u.host = h.host AND u.cluster = $1 AND u.launch = '' AND status = 'Scheduled') ORDER BY host"
)
_TEXTS = ("key", "crawl", "hops", "via", "source", "payload")
_NOT_ITS_OWNERS = "cluster <> (SELECT h.cluster FROM hosts h WHERE h.host = uris.host)"
_COLUMNS = "SELECT uri, key, crawl, hops, via, source, payload, status, download_at FROM uris"
_ROWS, _ROWS_OF = f"{_COLUMNS} WHERE host = $1 AND", f"{_COLUMNS} WHERE host = ANY($1::text[]) AND"
_ARRIVED = (
    f"SELECT host, scheduled + suspended AS waits FROM hosts h WHERE cluster = $1 AND moving = '{ARRIVES}'"
    " AND NOT EXISTS (SELECT 1 FROM orders o WHERE o.cluster = $1 AND state = 'waiting' AND verb = 'visited'"
    " AND last_host = h.host) ORDER BY host LIMIT $2 FOR UPDATE"
)
_PORT = re.compile(r":[0-9]+$")

log = logging.getLogger(__name__)


class RulesPlace(Struct, frozen=True):
    """The files of a group's rules, and of the countries of addresses; `alone`: after so many hours without the centre
    a cluster crawls nothing."""

    rules: Path
    countries: Path | None = None
    alone: float = 24.0


class KeptRules:
    """The rules of a group, as its file says, or else as the centre has kept them: the last good ones."""

    def __init__(self, place: RulesPlace, clusters: Sequence[str]) -> None:
        self.place, self._clusters = place, clusters
        self._seen: list[tuple[int, int]] = []
        self._now: HostRules | None = None
        self.country: Country = no_country
        self.fault = ""

    def read(self) -> HostRules:
        """Read the file; BadConfig if it has a fault."""
        path = self.place.rules
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = disk.reason(error, path) if isinstance(error, OSError) else "it is not UTF-8"
            raise BadConfig(str(path), why) from error
        found = parse(text, str(path), self._clusters)
        if found.needs_countries and self.place.countries is None:
            raise BadConfig(str(path), "a rule is by country; name the file of countries in [group.NAME] countries")
        if found.needs_countries:
            self.country = countries(self.place.countries)
        return found

    async def current(self, db: Postgresql, cluster: str) -> HostRules:
        """Return the rules as they are now, and keep them in the centre. Of a file with a fault, the last good ones;
        BadConfig if none were kept, or if they are by country and no file of countries was read."""
        seen = [_seen(path) for path in (self.place.rules, self.place.countries) if path]
        if self._now and seen == self._seen:
            return self._now
        try:
            self._now, self.fault = self.read(), ""
        except BadConfig as error:
            kept = self._now or await self._kept(db)
            if kept is None or (kept.needs_countries and self.country is no_country):
                raise  # without its countries a host would go to another cluster, for good
            self._now, self.fault = kept, str(error)
            log.warning("%s; the last good rules stay, sha256 %s", error, kept.digest[:12])
        self._seen = seen
        await self._keep(db, cluster, self._now)
        return self._now

    async def _kept(self, db: Postgresql) -> HostRules | None:
        rows = await db.rows("SELECT value FROM about WHERE name = 'rules'")
        return parse(rows[0]["value"], "the rules that the centre has kept", self._clusters) if rows else None

    async def _keep(self, db: Postgresql, cluster: str, rules: HostRules) -> None:
        put = "INSERT INTO about VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value"

        async def act(connection: Any) -> None:
            await connection.execute(put, "rules", rules.text)
            await connection.execute(put, f"rules fault {cluster}", printable(self.fault))
            await connection.execute("UPDATE clusters SET rules = $2 WHERE cluster = $1", cluster, rules.digest)

        await db.whole(act)


def _seen(path: Path) -> tuple[int, int]:
    """The time and the size of a file, by which an edited one is seen."""
    try:
        found = path.stat()
    except OSError:  # who reads it says why
        return 0, 0
    return found.st_mtime_ns, found.st_size


class HostAssigner:
    """Assigns hosts that an updater meets, and keeps their addresses fresh."""

    def __init__(self, kept: KeptRules, resolver: Resolver, cluster: str) -> None:
        self._kept, self._resolver, self._cluster = kept, resolver, cluster
        self._refreshing: asyncio.Task[dict[str, HostLookup | None]] | None = None

    async def assign(self, db: Postgresql, hosts: Collection[str]) -> None:
        """Assign those of some hosts that are new; of several updaters that meet one, the first wins."""
        query = "SELECT n.host FROM unnest($1::text[]) AS n(host) LEFT JOIN hosts h USING (host) WHERE h.host IS NULL"
        new = [row["host"] for row in await db.rows(query, sorted(hosts)) if row["host"]]
        if not new:
            return
        rules = await self._kept.current(db, self._cluster)
        found = await self._resolved(new)

        async def act(connection: Any) -> None:
            await connection.execute(LOCK)
            gone = await _retired(connection)
            every = sorted({address for one in found.values() for address in _addresses(one)})
            rows = await connection.fetch(_KNOWN, every, gone)
            known = {row["address"]: row["cluster"] for row in rows if row["cluster"]}
            for host in sorted(new):
                lookup = found.get(host)
                addresses = _addresses(lookup)
                one = rules.judge(host, addresses, country=self._kept.country, known=known, gone=gone)
                cluster = await _heir(connection, one.cluster or rules.default, gone)
                if one.cluster:
                    known |= {address: cluster for address in addresses if address not in known}
                await connection.execute(
                    _ASSIGN, host, surt_of_host(host), cluster, one.rule, not one.cluster, addresses,
                    datetime.now(UTC) if lookup else None, _due(lookup, 0), 0 if lookup else 1,
                )  # fmt: skip

        await db.whole(act)

    async def refresh(self, db: Postgresql) -> None:
        """Keep the addresses of hosts fresh of which something waits: ask in the background, and note what came."""
        if self._refreshing is None:
            due = (
                "SELECT host FROM hosts WHERE cluster = $1 AND due < now() AND scheduled > 0 AND host <> ''"
                " ORDER BY due LIMIT $2"
            )
            hosts = [row["host"] for row in await db.rows(due, self._cluster, DUE_AT_ONCE)]
            if hosts:
                self._refreshing = asyncio.create_task(self._resolved(hosts))
            return
        if not self._refreshing.done():
            return
        found, self._refreshing = self._refreshing.result(), None
        rows = await db.rows("SELECT host, misses FROM hosts WHERE host = ANY($1::text[])", [*found])
        misses = {row["host"]: row["misses"] for row in rows}
        values = [
            (
                host,
                _addresses(one),
                one is not None,
                _due(one, misses.get(host, 0)),
                0 if one else misses.get(host, 0) + 1,
            )
            for host, one in sorted(found.items())
        ]
        query = (
            "UPDATE hosts SET addresses = CASE WHEN $3 THEN $2 ELSE addresses END,"
            " resolved = CASE WHEN $3 THEN now() ELSE resolved END, due = now() + make_interval(secs => $4),"
            " misses = $5 WHERE host = $1"
        )

        async def act(connection: Any) -> None:
            await connection.executemany(query, values)

        await db.whole(act)

    def close(self) -> None:
        """Ask for nothing more."""
        if self._refreshing:
            self._refreshing.cancel()

    async def _resolved(self, hosts: Sequence[str]) -> dict[str, HostLookup | None]:
        """The addresses of hosts, as far as they come in time; None for a host without any."""
        found: dict[str, HostLookup | None] = dict.fromkeys(hosts)
        left = iter(hosts)

        async def ask_some() -> None:
            for host in left:
                lookup = await self._resolver.lookup(host)
                if isinstance(lookup, HostLookup):
                    found[host] = lookup

        tasks = [asyncio.create_task(ask_some()) for _ in range(min(AT_ONCE, len(hosts)))]
        _, pending = await asyncio.wait(tasks, timeout=RESOLVE_SECONDS)
        for task in pending:
            task.cancel()
        for one in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(one, Exception):
                raise one
        return found


def _addresses(lookup: HostLookup | None) -> list[str]:
    """The addresses of a host, so many at most, in one order."""
    return sorted({*lookup.addresses})[:ADDRESSES] if lookup else []


def _due(lookup: HostLookup | None, misses: int) -> float:
    """The seconds until a host is asked for again: a little before its TTL ends."""
    if lookup is None:
        return min(MISS_LEAST * 2.0 ** min(misses, 20), MISS_MOST)
    return min(max(lookup.ttl * 0.9, TTL_LEAST), TTL_MOST)


async def _retired(connection: Any) -> list[str]:
    return [row["cluster"] for row in await connection.fetch("SELECT cluster FROM clusters WHERE retired IS NOT NULL")]


async def _heir(connection: Any, cluster: str, gone: Collection[str]) -> str:
    """A cluster, or, when it is retired, the first that is not."""
    if cluster not in gone:
        return cluster
    rows = await connection.fetch("SELECT cluster FROM clusters WHERE retired IS NULL ORDER BY cluster LIMIT 1")
    if not rows:
        raise Conflict(cluster, "all clusters of the group are retired; nobody is left to crawl its hosts")
    return str(rows[0]["cluster"])


async def hear(db: Postgresql, crawl: RunningJob, cluster: str, alone: float) -> None:
    """Note that a cluster has reached the centre, and then let its crawl hear of it: so it stops before others may have
    its hosts. NotReady while none runs."""
    await db.rows("UPDATE clusters SET reached = now() WHERE cluster = $1", cluster)
    _ask(crawl, "owners", alone=round(alone * 3600))


async def tell(db: Postgresql, crawl: RunningJob, cluster: str, *, is_read: bool) -> None:
    """Tell the crawl of a cluster whose hosts are, as far as it has not heard it; all anew where the centre has told it
    another edition: it, or the crawl, came back from a copy, or is new. NotReady while no crawl runs, or while its
    journal is not read, by which hosts are assigned that such a centre does not know."""
    known = _ask(crawl, "owners")["edition"]
    row = (await db.rows(_EDITIONS, f"told {cluster}"))[0]
    newest, told = row["newest"], row["told"]
    if newest == known == told:
        return
    anew = known != told
    if anew and not is_read:
        raise NotReady("the centre", f"it has told another edition than {known}; the journal is read first")
    known = 0 if anew else known
    query = "SELECT * FROM hosts WHERE edition > $1 AND edition <= $2 ORDER BY edition LIMIT $3"
    while anew or known < newest:
        rows = await db.rows(query, known, newest, TOLD_AT_ONCE)
        hosts: list[Json] = [
            [row["host"], _owner(row, cluster), row["rule"] if row["forbidden"] else ""]
            for row in rows if row["host"] and not any(letter.isspace() for letter in row["host"])
        ]  # fmt: skip
        known = rows[-1]["edition"] if rows else newest
        _ask(crawl, "owners", edition=known, hosts=hosts, anew=anew)
        await db.rows(_TOLD, f"told {cluster}", str(known))
        anew = False


def _owner(row: Any, cluster: str) -> str:
    if row["forbidden"]:
        return FORBIDDEN
    return OURS if row["cluster"] == cluster and row["moving"] is None else OTHERS


def _ask(crawl: RunningJob, verb: str, /, **fields: Json) -> Any:
    try:
        return crawl.ask(verb, SECONDS, **fields)
    except (Unavailable, BadInput) as error:
        what = error.what if isinstance(error, Unavailable) else error.path
        raise NotReady(what, error.why) from error


class Moves:
    """The hosts that leave a cluster, or arrive there, as its updater moves them on."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._given_up = set[str]()

    async def step(self, db: Postgresql, crawl: RunningJob, *, is_read: bool) -> bool:
        """Move hosts on; `is_read`: all that the journal had at the begin of the step is in the centre. False if none
        moves. NotReady while no crawl runs."""
        query = "SELECT host, cluster, leaves, moving FROM hosts WHERE moving IS NOT NULL AND $1 IN (cluster, leaves)"
        rows = await db.rows(f"{query} ORDER BY host LIMIT {TOLD_AT_ONCE}", self._cluster)
        if any(row["moving"] == ARRIVES and row["cluster"] == self._cluster for row in rows):
            await settle(db, self._cluster)
        leaving = {row["host"] for row in rows if row["moving"] == LEAVES and row["leaves"] == self._cluster}
        if done := sorted(leaving & self._given_up) if is_read else []:
            await db.whole(lambda connection: hand_on(connection, done, self._cluster))
        self._given_up &= leaving
        if left := sorted(leaving - self._given_up - {*done}):
            busy = _ask(crawl, "give_up", hosts=[*left])["busy"]
            self._given_up |= {*left} - {*busy}
        return bool(rows)


async def hand_on(connection: Any, hosts: Iterable[str], old: str) -> None:
    """Give hosts, of which their `old` owner does nothing more, to the new ones: which sites are suspended, their rates
    and what was visited is ordered to be known there; what waits is in no frontier until they have arrived."""
    await connection.execute(LOCK)
    names, waits = sorted(hosts), "status IN ('Scheduled', 'Suspended')"
    query = "SELECT host, cluster, parsed + failed + removed AS visited FROM hosts WHERE host = ANY($1::text[])"
    rows = await connection.fetch(f"{query} ORDER BY host FOR UPDATE", names)
    moved = "UPDATE uris u SET cluster = h.cluster, launch = '', journal = 0, last_update = now() FROM hosts h"
    for at in range(0, len(names), HOSTS_AT_ONCE):  # each has its time
        some = names[at : at + HOSTS_AT_ONCE]
        await connection.execute(f"{moved} WHERE h.host = ANY($1::text[]) AND u.host = h.host AND u.{waits}", some)
    sites = {str(row["site"]) for row in await connection.fetch("SELECT DISTINCT site FROM sites")}
    wished = sites | {_PORT.sub("", site) for site in sites}
    for row in rows:
        host, owner = row["host"], row["cluster"]
        if host in wished:
            await _hand_on_sites(connection, host, old, owner)
        if row["visited"]:
            await _order(connection, owner, "visited", f"{_ROWS} NOT ({waits}) ORDER BY digest", host, _visited)
    query = f"UPDATE hosts SET moving = '{ARRIVES}', leaves = NULL, edition = {_NEXT} WHERE host = ANY($1::text[])"
    await connection.execute(query, names)


async def _hand_on_sites(connection: Any, host: str, old: str, owner: str) -> None:
    """Order what persons have asked of the sites of a host as it is with its old owner."""
    query = (
        "SELECT site, coalesce(bool_or(is_suspended) FILTER (WHERE cluster = $2), false) AS was_suspended,"
        " coalesce(bool_or(is_suspended) FILTER (WHERE cluster = $3), false) AS is_suspended,"
        " max(rate::text) FILTER (WHERE cluster = $2) AS was_rate, max(rate::text) FILTER (WHERE cluster = $3) AS rate"
        " FROM sites WHERE cluster IN ($2, $3) AND (site = $1 OR starts_with(site, $1 || ':'))"
        " GROUP BY site ORDER BY site"
    )
    for row in await connection.fetch(query, host, old, owner):
        wanted = list[tuple[str, dict[str, Json]]]()
        if row["was_suspended"] != row["is_suspended"]:
            wanted.append(("suspend" if row["was_suspended"] else "resume", {}))
        if row["was_rate"] != row["rate"]:
            wanted.append(("rate", json.loads(row["was_rate"]) if row["was_rate"] else {"none": True}))
        orders = [(owner, verb, json.dumps({"site": row["site"], **more})) for verb, more in wanted]
        await connection.executemany("INSERT INTO orders (cluster, verb, subject, uris) VALUES ($1, $2, $3, 1)", orders)


async def settle(db: Postgresql, cluster: str) -> None:
    """Let hosts that arrive be their new owner's, some of those of which it knows what was visited; order what
    waits."""

    async def act(connection: Any) -> None:
        await connection.execute(LOCK)
        hosts, number = list[str](), 0
        for row in await connection.fetch(_ARRIVED, cluster, TOLD_AT_ONCE):
            if hosts and number + row["waits"] > SETTLED_AT_ONCE:
                break
            hosts.append(row["host"])
            number += row["waits"]
        done = f"UPDATE hosts SET moving = NULL, since = now(), edition = {_NEXT} WHERE host = ANY($1::text[])"
        await connection.execute(done, hosts)
        waiting = f"{_ROWS_OF} status IN ('Scheduled', 'Suspended') AND launch = '' ORDER BY host, digest"
        await _order(connection, cluster, "take", waiting, hosts, _line)

    await db.whole(act)


async def _order(
    connection: Any, cluster: str, verb: str, query: str, of: str | list[str], line: Callable[[Any], Json]
) -> None:  # fmt: skip
    """Order the URIs of a query, of a host or some, a few thousand in memory."""
    name, some = {"take": "uris", "visited": "visited"}[verb], list[Json]()
    host = of if isinstance(of, str) else ""
    async for row in connection.cursor(query, of, prefetch=ROWS_AT_ONCE):
        some.append(line(row))
        if len(some) == ROWS_AT_ONCE:
            await order_parts(connection, cluster, verb, name, some, host)
            some = []
    await order_parts(connection, cluster, verb, name, some, host)


def _visited(row: Any) -> Json:
    return {"visited": row["uri"], "key": row["key"] or "", "crawl": row["crawl"], "status": row["status"]}


def _line(row: Any) -> dict[str, Json]:
    """A row as the line of a dump: see `dump.line_of`, which takes its time for a million."""
    found: dict[str, Json] = {name: row[name] for name in _TEXTS if row[name]}
    found |= {"uri": row["uri"], "queue": queue_of(row["uri"]), "priority": 1}
    if row["status"] == Status.SUSPENDED:
        return found | {"until": None}
    return found | ({"until": row["download_at"].timestamp()} if row["download_at"] else {})


def _again(row: Any) -> dict[str, Json]:
    """The line of a URI that is fetched though it was visited."""
    return _line(row) | {"renew": True}


async def move(db: Postgresql, host: str, cluster: str) -> bool:
    """Have a host move to a cluster; False if it is there. NotReady for one that the centre does not know, or that
    moves already; Conflict for a retired cluster."""

    async def act(connection: Any) -> bool:
        await connection.execute(LOCK)
        row = await connection.fetchrow("SELECT * FROM hosts WHERE host = $1 FOR UPDATE", host)
        if row is None:
            raise NotReady(f"host {host}", "the centre does not know it; add a URI of it first")
        if row["moving"]:
            old = row["leaves"] or "its old owner"
            raise NotReady(f"host {host}", f"it moves to {row['cluster']} just now; {old} is still to let go of it")
        if cluster in await _retired(connection):
            raise Conflict(cluster, "it is retired; name another cluster")
        if row["cluster"] == cluster and not row["forbidden"]:
            return False
        query = (
            f"UPDATE hosts SET cluster = $2, leaves = cluster, moving = '{LEAVES}', rule = 'moved by hand',"
            f" forbidden = false, since = now(), edition = {_NEXT} WHERE host = $1"
        )
        await connection.execute(query, host, cluster)
        return True

    return await db.whole(act)


async def retire(
    db: Postgresql, rules: HostRules, country: Country, cluster: str, why: str, alone: float, *, gone: bool,
    verified: Collection[tuple[str, str]] | None = None,
) -> int:  # fmt: skip
    """Retire a cluster, and give its hosts to heirs by the rules; return how many. NotReady until it has been alone for
    so many hours, unless it is known to be `gone`. `verified`: as its disk is lost, the launches and stages of it that
    the store has; what neither they nor another cluster have is fetched again, also of hosts that had left it."""

    async def act(connection: Any) -> int:
        await connection.execute(LOCK)
        row = await connection.fetchrow(
            "SELECT retired, now() - coalesce(reached, added) AS since FROM clusters WHERE cluster = $1 FOR UPDATE",
            cluster,
        )
        if row is None:
            raise NotReady(f"cluster {cluster}", "the centre has no row of it")
        silent = row["since"].total_seconds() / 3600
        if row["retired"] is None and not gone and silent < alone + SECONDS / 3600:  # in which its crawl may have heard
            told = f"it has reached the centre {silent:.1f} hours ago, and may crawl for {alone:g}"
            raise NotReady(f"cluster {cluster}", f"{told}; wait, or vouch with --gone that its machine is off")
        query = "UPDATE clusters SET retired = coalesce(retired, now()), why = $2 WHERE cluster = $1"
        await connection.execute(query, cluster, why)
        retired = await _retired(connection)
        await _heir(connection, cluster, retired)  # Conflict if nobody is left
        if verified is not None:
            pairs = [*map(list, zip(*verified, strict=True))] or [[], []]
            await connection.execute("LOCK TABLE hosts IN SHARE ROW EXCLUSIVE MODE")
            await connection.execute(_LOST, cluster, *pairs)
            await _order_lost(connection, cluster)
        hosts = await connection.fetch(
            "SELECT host, addresses, moving FROM hosts WHERE cluster = $1 ORDER BY host FOR UPDATE",
            cluster,
        )
        every = sorted({address for one in hosts for address in one["addresses"]})
        known = {
            one["address"]: one["cluster"] for one in await connection.fetch(_KNOWN, every, retired) if one["cluster"]
        }
        free = list[str]()
        heirs = list[tuple[str, str, str]]()
        for host in hosts:
            one = rules.judge(host["host"], host["addresses"], country=country, known=known, gone=retired)
            heir = await _heir(connection, one.cluster or rules.default, retired)
            known |= {address: heir for address in host["addresses"] if address not in known}
            heirs.append((host["host"], heir, f"{one.rule}; {cluster} is retired"))
            if host["moving"] != LEAVES:  # else its old owner is still to let go
                free.append(host["host"])
        update = f"UPDATE hosts SET cluster = $2, rule = $3, since = now(), edition = {_NEXT} WHERE host = $1"
        await connection.executemany(update, heirs)
        leaving = await connection.fetch("SELECT host FROM hosts WHERE leaves = $1 AND moving = $2", cluster, LEAVES)
        await connection.execute("UPDATE orders SET state = 'refused', reason = $2, ended = now() WHERE cluster = $1"
                                 " AND state = 'waiting'", cluster, f"{cluster} is retired")  # fmt: skip
        await hand_on(connection, {*free, *(one["host"] for one in leaving)}, cluster)
        return len(hosts)

    return await db.whole(act)


async def _order_lost(connection: Any, cluster: str) -> None:
    """Order what a cluster has lost from those that have its hosts already. NotReady while one of these moves."""
    for row in await connection.fetch(_LOST_OF_OTHERS, cluster):
        if row["moving"]:
            raise NotReady(f"host {row['host']}", f"it moves to {row['cluster']} just now; try again once it is there")
        lost = f"{_ROWS} launch = '' AND status = 'Scheduled' AND {_NOT_ITS_OWNERS} ORDER BY digest"
        await _order(connection, row["cluster"], "take", lost, row["host"], _again)
        query = "UPDATE uris SET cluster = $2 WHERE host = $1 AND cluster = $3 AND launch = '' AND status = 'Scheduled'"
        await connection.execute(query, row["host"], row["cluster"], cluster)


def told_of(row: Mapping[str, Any]) -> dict[str, Json]:
    """A host's row as JSON: its cluster, the rule, since when, and its addresses."""
    return {
        "host": row["host"], "cluster": "" if row["forbidden"] else row["cluster"], "forbidden": row["forbidden"],
        "rule": row["rule"], "since": clock.text(row['since']), "moving": row["moving"] or "",
        "addresses": [*row["addresses"]],
        "resolved": clock.text(row['resolved']) if row["resolved"] else "",
    }  # fmt: skip


async def explain(db: Postgresql, kept: KeptRules, resolver: Resolver, host: str) -> dict[str, Json]:
    """Say whose a host is and why; of a new one, whose it would be."""
    if rows := await db.rows("SELECT * FROM hosts WHERE host = $1", host):
        return {"known": True, **told_of(rows[0])}
    rules = kept.read()
    lookup = await resolver.lookup(host)
    addresses = _addresses(lookup if isinstance(lookup, HostLookup) else None)
    retired = [row["cluster"] for row in await db.rows("SELECT cluster FROM clusters WHERE retired IS NOT NULL")]
    rows = await db.rows(_KNOWN, addresses, retired)
    known = {row["address"]: row["cluster"] for row in rows if row["cluster"]}
    one = rules.judge(host, addresses, country=kept.country, known=known, gone=retired)
    return {
        "known": False, "host": host, "cluster": one.cluster, "forbidden": not one.cluster, "rule": one.rule,
        "addresses": [*addresses],
    }  # fmt: skip


async def order_visited(connection: Any, cluster: str, host: str, *, others: bool = False) -> None:
    """Order from a cluster to know what was visited of a host; `others`: what its owner has not visited."""
    more = f" AND {_NOT_ITS_OWNERS}" if others else ""
    query = f"{_ROWS} status NOT IN ('Scheduled', 'Suspended'){more} ORDER BY digest"
    await _order(connection, cluster, "visited", query, host, _visited)


async def order_waiting(connection: Any, cluster: str, host: str) -> None:
    """Order from a cluster what waits of a host, and is in no frontier."""
    query = f"{_ROWS} status IN ('Scheduled', 'Suspended') AND launch = '' ORDER BY digest"
    await _order(connection, cluster, "take", query, host, _line)
