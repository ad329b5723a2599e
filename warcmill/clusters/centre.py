"""The centre of a group: news of a cluster go in, in one transaction with the place in its journal; counts and rows
come out. Talks to PostgreSQL.

A transaction takes its rows in one order, so that no two wait for each other: hosts by name, then the URIs of these.
The row of a host is the lock of its URIs.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Collection, Iterable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec

from warcmill.base import clock
from warcmill.base.escapes import printable
from warcmill.clients.postgresql import Postgresql, PostgresqlPlace
from warcmill.clusters import tables
from warcmill.clusters.following import OWN, JournalPlace
from warcmill.clusters.news import Break, HandedNews, News, NewsBatch, UriNews
from warcmill.clusters.tables import STATUSES
from warcmill.crawl.control.messages import MOST, ROOM
from warcmill.errors import Busy, NotReady
from warcmill.formats import surt
from warcmill.model import Json

_place = attrgetter("host", "digest")  # of a row in the order of all
SPACES = 30  # that a line to the crawl has more, for each URI
NEWS = (
    "CREATE TEMP TABLE IF NOT EXISTS news (host text, digest bytea, crawl text, uri text, key text, is_taken boolean,"
    " hops text, via text, source text, payload text, if_waiting text, otherwise text, refused_waiting int,"
    " refused_otherwise int, writer text, launch text, journal int, is_shared boolean, is_first boolean, at float8,"
    " wait text, waits_at float8,"
    " download_at float8, download_started float8, download_finished float8, http_status int,"
    " hash text, address text) ON COMMIT DELETE ROWS"
)
# The news are few beside the URIs: the server knows no figures of a new table, and would read all URIs at times.
_PLAN = "SET LOCAL enable_hashjoin = off", "SET LOCAL enable_mergejoin = off"
_HOSTS = (
    "INSERT INTO hosts (host, surt, cluster) SELECT host, surt, $1 FROM unnest($2::text[], $3::text[]) AS h(host, surt)"
    " ORDER BY host ON CONFLICT DO NOTHING"
)
_LOCK = "SELECT 1 FROM hosts WHERE host = ANY($1::text[]) ORDER BY host FOR UPDATE"
# Without a launch it was ordered from the cluster, whose journal has not taken it yet.
_WAITS_HERE = "u.status IN ('Scheduled', 'Suspended') AND u.cluster = $1 AND u.launch <> ''"
_REFUSED = (
    "SELECT uri, was, number FROM (SELECT n.uri, coalesce(u.status, 'not known') AS was,"
    f" CASE WHEN {_WAITS_HERE} THEN refused_waiting ELSE refused_otherwise END AS number FROM news n"
    " LEFT JOIN uris u ON u.host = n.host AND u.digest = n.digest"
    " WHERE refused_waiting + refused_otherwise > 0) AS r WHERE number > 0 ORDER BY uri"
)
# Of a job with several writers a line may be read late: see `news`.
_IS_LATE = (
    "coalesce(n.is_shared AND u.launch <> '' AND u.cluster = $1 AND (n.otherwise IS NULL OR n.is_first"
    " OR (n.at < u.at AND n.writer <> u.writer)), n.is_shared AND n.otherwise IS NULL)"
)
_COUNTED = ", ".join(f"{one} = h.{one} + c.{one}" for one in STATUSES)
_COUNTS = ", ".join(
    f"count(*) FILTER (WHERE now = '{one.capitalize()}') - count(*) FILTER (WHERE was = '{one.capitalize()}') AS {one}"
    for one in STATUSES
)
COUNT = f"UPDATE hosts h SET {_COUNTED} FROM (SELECT host, {_COUNTS} FROM {{of}} GROUP BY host) c WHERE h.host = c.host"


def _newer(column: str, value: str = "") -> str:
    """The value of a column after news `o` of a row `u`: what is late fills gaps alone."""
    value = value or f"o.{column}"
    return f"CASE WHEN o.is_late THEN coalesce(u.{column}, {value}) ELSE coalesce({value}, u.{column}) END"


_MERGE = f"""
WITH known AS MATERIALIZED (
  SELECT n.*, u.status AS was, u.host IS NOT NULL AS is_known, {_IS_LATE} AS is_late,
    CASE WHEN {_IS_LATE} THEN u.status
      ELSE coalesce(CASE WHEN {_WAITS_HERE} THEN n.if_waiting ELSE n.otherwise END, u.status) END AS base,
    CASE WHEN {_IS_LATE} THEN u.at ELSE n.at END AS since,
    CASE WHEN n.waits_at < u.waits_at THEN u.wait ELSE coalesce(n.wait, u.wait) END AS last_wait,
    greatest(n.waits_at, u.waits_at) AS waited_at
  FROM news n LEFT JOIN uris u ON u.host = n.host AND u.digest = n.digest
  WHERE u.host IS NULL OR u.cluster = $1
    OR EXISTS (SELECT 1 FROM hosts h WHERE h.host = n.host AND h.cluster = $1)
), ours AS MATERIALIZED (
  SELECT *, CASE WHEN is_shared AND coalesce(base, 'Scheduled') IN ('Scheduled', 'Suspended')
      AND waited_at >= coalesce(since, 0) THEN last_wait ELSE base END AS now
  FROM known
), changed AS (
  UPDATE uris u SET cluster = CASE WHEN o.otherwise IS NULL THEN u.cluster ELSE $1 END, status = o.now,
    uri = CASE WHEN o.is_taken THEN o.uri ELSE u.uri END, key = CASE WHEN o.is_taken THEN o.key ELSE u.key END,
    hops = CASE WHEN o.is_taken THEN o.hops ELSE coalesce(u.hops, o.hops) END,
    via = CASE WHEN o.is_taken THEN o.via ELSE coalesce(u.via, o.via) END,
    source = CASE WHEN o.is_taken THEN o.source ELSE coalesce(u.source, o.source) END,
    payload = CASE WHEN o.is_taken THEN o.payload ELSE u.payload END,
    download_at = {_newer("download_at", "to_timestamp(o.download_at)")},
    download_started = {_newer("download_started", "to_timestamp(o.download_started)")},
    download_finished = {_newer("download_finished", "to_timestamp(o.download_finished)")},
    last_update = now(), http_status = {_newer("http_status")}, hash = {_newer("hash")}, address = {_newer("address")},
    launch = CASE WHEN o.is_late THEN u.launch ELSE o.launch END,
    journal = CASE WHEN o.is_late THEN u.journal ELSE o.journal END,
    writer = CASE WHEN o.is_late THEN u.writer ELSE o.writer END,
    at = o.since, wait = o.last_wait, waits_at = o.waited_at
  FROM ours o WHERE o.is_known AND u.host = o.host AND u.digest = o.digest
), added AS (
  INSERT INTO uris (host, digest, cluster, crawl, uri, key, status, hops, via, source, download_at, download_started,
    download_finished, last_update, http_status, hash, address, launch, journal, payload, writer, at, wait,
    waits_at)
  SELECT host, digest, $1, crawl, uri, key, now, hops, via, source, to_timestamp(download_at),
    to_timestamp(download_started), to_timestamp(download_finished), now(), http_status, hash, address, launch, journal,
    payload, writer, since, last_wait, waited_at
  FROM ours WHERE NOT is_known AND now IS NOT NULL
)
{COUNT.format(of="ours")}
"""
# A URI that nobody had is its owner's from now on; one that waited here, and has left, too. Whoever a host moves to is
# ordered all of it at the end.
_HANDED = f"""
WITH handed AS MATERIALIZED (
  SELECT n.*, h.cluster AS owner, h.forbidden, h.moving, CASE WHEN h.forbidden THEN 'Failed' ELSE n.waits END AS now
  FROM unnest($2::text[], $3::bytea[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::boolean[]) AS n(host, digest, crawl, uri, key, waits, hops, via, source,
    payload, line, has_left) JOIN hosts h USING (host)
), added AS (
  INSERT INTO uris (host, digest, cluster, crawl, uri, key, status, hops, via, source, payload, last_update, launch,
    journal)
  SELECT host, digest, owner, crawl, uri, key, now, hops, via, source, payload, now(), '', 0 FROM handed
  ON CONFLICT DO NOTHING RETURNING host, digest, NULL AS was, status AS now
), moved AS (
  UPDATE uris u SET cluster = owner, launch = '', journal = 0, last_update = now() FROM handed n
  WHERE u.host = n.host AND u.digest = n.digest AND n.has_left AND {_WAITS_HERE}
  RETURNING u.host, u.digest
), counted AS (
  {COUNT.format(of="added")}
)
SELECT n.owner, n.line FROM handed n WHERE n.moving IS NULL AND NOT n.forbidden AND (
  EXISTS (SELECT 1 FROM added a WHERE a.host = n.host AND a.digest = n.digest)
  OR EXISTS (SELECT 1 FROM moved m WHERE m.host = n.host AND m.digest = n.digest)) ORDER BY n.host, n.digest
"""
_VISITS = (
    "INSERT INTO visits (host, digest, finished, writer, launch, journal, status, http_status, hash, address, warc,"
    " warc_offset, cluster) SELECT host, digest, to_timestamp(finished), writer, launch, journal, status, http_status,"
    " hash, address, warc, warc_offset, $1 FROM unnest($2::text[], $3::bytea[], $4::float8[], $5::text[], $6::text[],"
    " $7::int[], $8::text[], $9::int[], $10::text[], $11::text[], $12::text[], $13::bigint[]) AS v(host, digest,"
    " finished, writer, launch, journal, status, http_status, hash, address, warc, warc_offset) ON CONFLICT DO NOTHING"
)
_BREAK = (
    "WITH gone AS (DELETE FROM uris WHERE cluster = $1 AND launch <> '' AND ($2::text IS NULL OR crawl = $2)"
    " AND (NOT $3::boolean OR status NOT IN ('Scheduled', 'Suspended')) RETURNING host, status AS was, NULL AS now)"
    f" {COUNT.format(of='gone')}"
)
_PLACE = (
    "UPDATE writers SET launch = $3, stage = $4, journal = $5, read = $6, log_read = $7, tail = $8,"
    " groups = groups + $9, changes = changes + $10, refused = refused + $11, updated = now()"
    " WHERE cluster = $1 AND writer = $2 AND launch = $12 AND journal = $13 AND read = $14"
)
_STAGE = (
    "INSERT INTO journals (cluster, writer, launch, journal, stage) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"
)
_UNREAD = "no section of luigi.cfg has its root, and its journals were not read to their end; put the section back"


class RefusedMove(NamedTuple):
    """A URI that a line of a journal lets wait, and that does not: its status in the centre."""

    uri: str
    was: str


class Centre:
    """A connection to the centre, of the updater of `cluster`."""

    def __init__(self, db: Postgresql, cluster: str) -> None:
        self.db, self.cluster = db, cluster

    @classmethod
    async def open(cls, place: PostgresqlPlace, group: str, cluster: str, writers: Collection[str] = (OWN,)) -> Centre:
        """Connect, and become the updater of a cluster with these writers: Busy when another is. NotReady without
        tables, or a row of this cluster."""
        db = await Postgresql.connect(place, f"warcmill-updater-{cluster}")
        try:
            await tables.examine(db, group)
            found = cls(db, cluster)
            await found._become([*writers])
            return found
        except BaseException:
            await db.close()
            raise

    async def _become(self, writers: list[str]) -> None:
        me = f"pid {os.getpid()} on {socket.gethostname()}, since {clock.now()}"

        async def act(connection: Any) -> None:
            lock = "SELECT pg_try_advisory_lock(hashtext('warcmill-updater'), hashtext($1))"
            if not await connection.fetchval(lock, self.cluster):
                other = await connection.fetchval("SELECT updater FROM clusters WHERE cluster = $1", self.cluster)
                raise Busy(f"the updating of {self.cluster}, by {other},", "end that one first, or leave it")
            done = await connection.execute("UPDATE clusters SET updater = $2 WHERE cluster = $1", self.cluster, me)
            if done == "UPDATE 0":
                raise NotReady(
                    f"cluster {self.cluster}", "the centre has no row of it; 'warcmill group NAME init' adds it"
                )
            query = "INSERT INTO writers SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING"
            await connection.execute(query, self.cluster, writers)
            query = "UPDATE writers SET fault = $3 WHERE cluster = $1 AND writer <> ALL($2::text[]) AND behind > 0"
            await connection.execute(query, self.cluster, writers, _UNREAD)
            await connection.execute(NEWS)

        await self.db.whole(act)

    async def places(self) -> dict[str, JournalPlace]:
        """The place up to which the journals of each writer of the cluster were read."""
        return await self.db.whole(lambda connection: places_of(connection, self.cluster))

    async def note(self, behind: Mapping[str, int], faults: Mapping[str, str], strangers: str) -> None:
        """Note how many bytes of the journals of writers come after the places, which cannot be read, and why; and the
        workers whose journals are in no known root."""
        rows = [(self.cluster, name, behind.get(name), faults.get(name, "")) for name in sorted({*behind, *faults})]
        query = "UPDATE writers SET behind = coalesce($3, behind), fault = $4 WHERE cluster = $1 AND writer = $2"

        async def act(connection: Any) -> None:
            await connection.executemany(query, rows)
            query_of_job = "UPDATE clusters SET strangers = $2 WHERE cluster = $1 AND strangers <> $2"
            await connection.execute(query_of_job, self.cluster, strangers)

        await self.db.whole(act)

    async def note_fault(self, fault: str) -> None:
        """Note why the updater of the cluster ends, for who looks from elsewhere; '' once it works."""
        put = "INSERT INTO about VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        await self.db.rows(put, f"updater fault {self.cluster}", printable(fault))

    async def keep_sites(self, wanted: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep what persons want of sites, in place of what was there."""
        rows = [
            (self.cluster, site, bool(one.get("suspended")), json.dumps(one["rate"]) if one.get("rate") else None)
            for site, one in sorted(wanted.items())
        ]

        async def act(connection: Any) -> None:
            await connection.execute("DELETE FROM sites WHERE cluster = $1", self.cluster)
            await connection.executemany("INSERT INTO sites VALUES ($1, $2, $3, $4)", rows)

        await self.db.whole(act)

    async def begin_again(self) -> None:
        """Forget the places: all journals are read once more, and rows that they do not have stay."""
        query = "UPDATE writers SET launch = '', stage = '', journal = 0, read = 0, log_read = 0, tail = ''"
        await self.db.rows(f"{query} WHERE cluster = $1", self.cluster)

    async def keep(self, batch: NewsBatch, before: Mapping[str, JournalPlace]) -> list[RefusedMove]:
        """Keep news, and the places after them, in one transaction; return the moves that are refused. Busy when
        another has moved a place."""

        async def act(connection: Any) -> list[RefusedMove]:
            refused = list[RefusedMove]()
            for statement in _PLAN:
                await connection.execute(statement)
            for one in batch.news:
                if isinstance(one, Break):
                    await self._break(connection, one)
                else:
                    refused += await self._merge(connection, one)
            for writer, read in sorted(batch.read.items()):
                stages = [(self.cluster, writer, *one) for one in read.stages]
                await connection.executemany(_STAGE, stages)
                after, was = read.place, before.get(writer, JournalPlace())
                done = await connection.execute(
                    _PLACE, self.cluster, writer, after.launch, after.stage, after.journal, after.read, after.log_read,
                    after.tail, read.groups, read.changes, 0 if writer else len(refused), was.launch, was.journal,
                    was.read,
                )  # fmt: skip
                if done != "UPDATE 1":
                    raise Busy(f"the updating of {self.cluster}", "look for its other updater, and end that")
            return refused

        return await self.db.whole(act)

    async def _merge(self, connection: Any, news: News) -> list[RefusedMove]:
        if not (news.uris or news.handed):
            return []
        hosts = sorted(news.hosts)
        await connection.execute(_HOSTS, self.cluster, hosts, [surt_of_host(host) for host in hosts])
        await connection.execute(_LOCK, hosts)
        await connection.execute("TRUNCATE news")
        await connection.copy_records_to_table("news", records=map(_row, sorted(news.uris.values(), key=_place)))
        refused = list[RefusedMove]()
        if any(sum(one.refused) for one in news.uris.values()):
            refused = [RefusedMove(row["uri"], row["was"]) for row in await connection.fetch(_REFUSED, self.cluster)]
        await connection.execute(_MERGE, self.cluster)
        if news.visits:
            columns = [*zip(*sorted(news.visits, key=lambda one: one[:3]), strict=True)]
            await connection.execute(_VISITS, self.cluster, *columns)
        if news.handed:
            rows = [*map(_handed_row, sorted(news.handed.values(), key=lambda one: one[:2]))]
            columns = [*zip(*rows, strict=True)]
            by_owner: dict[str, list[Json]] = {}
            for row in await connection.fetch(_HANDED, self.cluster, *columns):
                by_owner.setdefault(row["owner"], []).append(json.loads(row["line"]))
            for owner, lines in sorted(by_owner.items()):
                await order_parts(connection, owner, "take", "uris", lines)
        return refused

    async def _break(self, connection: Any, one: Break) -> None:
        """Forget URIs of the cluster. It locks all hosts, as it may be of any."""
        has_some = "SELECT EXISTS (SELECT 1 FROM uris WHERE cluster = $1)"
        if await connection.fetchval(has_some, self.cluster):
            await connection.execute("LOCK TABLE hosts IN SHARE ROW EXCLUSIVE MODE")
            await connection.execute(_BREAK, self.cluster, one.crawl, one.visited_only)

    async def close(self) -> None:
        """Close the connection: another may be the updater then."""
        await self.db.close()


async def places_of(connection: Any, cluster: str) -> dict[str, JournalPlace]:
    """The place up to which the journals of each writer of a cluster were read; NotReady when the centre has no such
    cluster."""
    if not await connection.fetchval("SELECT EXISTS (SELECT 1 FROM clusters WHERE cluster = $1)", cluster):
        raise NotReady(f"cluster {cluster}", "the centre has no row of it; 'warcmill group NAME init' adds it")
    query = "SELECT writer, launch, stage, journal, read, log_read, tail FROM writers WHERE cluster = $1"
    return {writer: JournalPlace(*place) for writer, *place in await connection.fetch(query, cluster)}


async def order_parts(
    connection: Any, cluster: str, verb: str, name: str, lines: Iterable[Json], host: str = ""
) -> None:  # fmt: skip
    """Order something of many URIs from a cluster, of one `host` or of several, as many in an order as a line to the
    crawl has room for."""
    rows, some, size = list[tuple[str, str, str, int, str]](), list[str](), 0

    def end() -> None:
        rows.append((cluster, verb, f'{{"{name}":[{",".join(some)}]}}', len(some), host))
        some.clear()

    for line in lines:
        text = msgspec.json.encode(line).decode()
        length = len(text) * (1 if text.isascii() else 6) + SPACES
        if some and (len(some) == MOST or size + length > ROOM):
            end()
            size = 0
        some.append(text)
        size += length
    if some:
        end()
    query = "INSERT INTO orders (cluster, verb, subject, uris, last_host) VALUES ($1, $2, $3, $4, $5)"
    await connection.executemany(query, rows)


def surt_of_host(host: str) -> str:
    """The labels of a host in reverse order, as SURT prefixes of sites have them: `org,example,www,`."""
    return surt.surt(f"http://{host}/").partition("(")[2].partition(")")[0] if host else ""


def _row(one: UriNews) -> tuple[object, ...]:
    return (
        one.host, one.digest, one.crawl and _text(one.crawl), _text(one.uri), one.key and _text(one.key), one.is_taken,
        one.hops and _text(one.hops), one.via and _text(one.via), one.source and _text(one.source),
        one.payload and _text(one.payload), one.if_waiting, one.otherwise, *one.refused, *one.origin[:3],
        one.origin.at > 0, one.is_first, one.at, one.wait, one.waits_at, one.download_at, one.download_started,
        one.download_finished, one.http_status, one.hash, one.address,
    )  # fmt: skip


def _handed_row(one: HandedNews) -> tuple[object, ...]:
    texts = (_text(one.crawl), _text(one.uri), _text(one.key))
    more = (_text(one.hops), _text(one.via), _text(one.source), _text(one.payload), _text(one.line))
    return one.host, one.digest, *texts, one.status, *more, one.has_left


def _text(text: str | None) -> str | None:
    """A text as PostgreSQL takes it: without NUL, and in UTF-8."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
