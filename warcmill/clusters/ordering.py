"""The making of orders: changes as persons and programs ask for them, checked, and files of URIs by the million. Writes
to PostgreSQL.

A verb, a page and a program make an order by the same functions. One that is made `once` has a name: asked for again by
it, nothing is made, and its numbers are returned.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from io import BufferedReader, BytesIO
from typing import Any, NamedTuple, cast

from msgspec import Struct, structs

from warcmill.clients.postgresql import Postgresql
from warcmill.clusters.news import host_of
from warcmill.clusters.orders import VERBS, check_prefix
from warcmill.crawl.control.messages import MOST, queue_named
from warcmill.crawl.uri import canonical
from warcmill.errors import BadInput, Conflict
from warcmill.model import Json

PART = 500  # URIs of an order for a part of a file, so that one fits a line of the crawl's control
MOST_NUMBER = 1 << 31
ROOM = 1 << 18  # bytes of the URIs of an order
ONCE = "once "  # begins the name of what is made once, where a part of a file has the digest of that
_RATE = ("hits", "window", "moderated", "at_once", "none")
_INSERT = "INSERT INTO orders (cluster, verb, subject, uris, load, part) VALUES ($1, $2, $3, $4, $5, $6)"


class OrderRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A change that somebody asks for: `act` is a verb of VERBS, its subject some `uris`, a `site` or a `prefix`, which
    is a SURT. `crawl`: the namespace of the URIs; `key`: of one URI, where it is known by another text. The others are
    of a rate."""

    act: str
    uris: tuple[str, ...] = ()
    site: str = ""
    prefix: str = ""
    crawl: str = ""
    key: str = ""
    hits: int | None = None
    window: float | None = None
    moderated: bool | None = None
    at_once: int | None = None
    none: bool | None = None

    def subject(self) -> dict[str, Json]:
        """The subject of its order, with URIs as crawls write them; BadInput with what is wrong."""
        if self.act not in VERBS:
            raise BadInput("act", f"it is not one of {', '.join(VERBS)}")
        named = [name for name in ("uris", "site", "prefix") if getattr(self, name)]
        fits = {"add": ["uris"], "rate": ["site"]}.get(self.act, ["uris", "site", "prefix"])
        if len(named) != 1 or named[0] not in fits:
            raise BadInput(self.act, f"name {'one of ' if len(fits) > 1 else ''}{', '.join(fits)}, and nothing else")
        rate = {name: value for name in _RATE if (value := getattr(self, name)) is not None}
        for name, value in rate.items():
            if not (math.isfinite(value) and abs(value) < MOST_NUMBER):
                raise BadInput(name, "it is not a number that a rate can have")
        if rate and self.act != "rate":
            raise BadInput(self.act, f"it has no {', '.join(rate)}; a rate has")
        if (self.crawl or self.key) and (self.act == "add" or not self.uris):
            raise BadInput(self.act, "crawl and key are of URIs that are suspended, resumed or removed")
        for name in ("site", "prefix", "crawl", "key"):
            _check_text(name, getattr(self, name))
        if self.prefix:
            check_prefix(self.prefix)
            return {"prefix": self.prefix}
        if self.site:
            return {"site": queue_named(self.site), **rate}
        return self._uris()

    def _uris(self) -> dict[str, Json]:
        if len(self.uris) > MOST or sum(map(len, self.uris)) > ROOM:
            raise BadInput(
                "uris", f"an order has room for {MOST:,} URIs of {ROOM:,} bytes; load a file of them instead"
            )
        uris = [*dict.fromkeys(map(canonical, self.uris))]
        if self.key and len(uris) > 1:
            raise BadInput("key", "it is of one URI")
        more = {name: value for name in ("crawl", "key") if (value := getattr(self, name))}
        return {"uri": uris[0], **more} if len(uris) == 1 and self.act != "add" else {"uris": [*uris], **more}


def _check_text(name: str, text: str) -> None:
    """BadInput for a text that no PostgreSQL has."""
    if "\0" in text or text.encode("utf-8", "replace").decode() != text:
        raise BadInput(name, "it has a character that is in no name and no URL")


async def make(db: Postgresql, wanted: OrderRequest, default: str, once: str = "") -> list[int]:
    """Put what somebody asks for into the centre; return the numbers of its orders. `once`: a name, under which it is
    made once; Conflict when something else was made under it."""
    print_of = zlib.crc32(repr(structs.astuple(wanted)).encode("utf-8", "replace")) >> 1
    name = f"{ONCE}{hashlib.sha256(once.encode('utf-8', 'replace')).hexdigest()}" if once else None
    return await put(db, wanted.act, wanted.subject(), default, name, print_of if once else None)


async def put(
    db: Postgresql,
    verb: str,
    subject: Mapping[str, Json],
    default: str,
    load: str | None = None,
    part: int | None = None,
) -> list[int]:
    """Put an order into the centre; return its number, or one for each cluster that it is for: the cluster of its host,
    `default` for a host that is new, all for a prefix."""

    async def act(connection: Any) -> list[int]:
        if load and (known := await _made(connection, load, part)):
            return known
        subjects = await _by_cluster(connection, subject, default)
        if not subjects:
            raise Conflict("the order", "all clusters of the group are retired, none would take it")
        rows = [(one, verb, json.dumps(its), _number(its), load, part) for one, its in sorted(subjects.items())]
        return [await connection.fetchval(f"{_INSERT} RETURNING number", *row) for row in rows]

    return await db.whole(act)


async def _made(connection: Any, load: str, part: int | None) -> list[int]:
    """The orders that were made under a name; Conflict when they are of another request."""
    await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", load)
    rows = await connection.fetch("SELECT number, part FROM orders WHERE load = $1 ORDER BY number", load)
    if any(row["part"] != part for row in rows):
        numbers = ", ".join(str(row["number"]) for row in rows)
        raise Conflict("the request", f"under its key another one was taken, order {numbers}; use a new key")
    return [row["number"] for row in rows]


async def _by_cluster(
    connection: Any, subject: Mapping[str, Json], default: str
) -> dict[str, Mapping[str, Json]]:  # fmt: skip
    """The subject of an order for each cluster that it is for."""
    if "prefix" in subject:
        rows = await connection.fetch("SELECT cluster FROM clusters WHERE retired IS NULL ORDER BY cluster")
        return {row["cluster"]: subject for row in rows}
    first = await _first(connection, default)
    if "uris" not in subject:
        host = host_of(str(subject.get("uri") or canonical(f"http://{subject['site']}/")))
        return {(await owners_of(connection, [host])).get(host, first): subject}
    found: dict[str, Mapping[str, Json]] = {}
    uris = [*map(str, cast("list[Json]", subject["uris"]))]
    owners = await owners_of(connection, [host_of(uri) for uri in uris])
    for uri in uris:
        own = found.setdefault(owners.get(host_of(uri), first), {**subject, "uris": []})
        cast("list[Json]", own["uris"]).append(uri)
    return found


async def _first(connection: Any, default: str) -> str:
    """The cluster that hears of a new host first: a retired one hears nothing."""
    query = "SELECT cluster FROM clusters WHERE retired IS NULL ORDER BY cluster <> $1, cluster LIMIT 1"
    return str(await connection.fetchval(query, default) or default)


def _number(subject: Mapping[str, Json]) -> int:
    uris = subject.get("uris")
    return len(uris) if isinstance(uris, list) else 1


async def owners_of(connection: Any, hosts: Sequence[str]) -> dict[str, str]:
    """The clusters of hosts; one that is new is left out."""
    rows = await connection.fetch("SELECT host, cluster FROM hosts WHERE host = ANY($1::text[])", [*{*hosts}])
    return {row["host"]: row["cluster"] for row in rows}


class BadLine(NamedTuple):
    """A line of a file that is no URL: its number, from 1, and why."""

    number: int
    why: str


class LoadedFile(NamedTuple):
    """A file of URLs that was put into the centre: its URIs, how many of them are `new` there, its bad lines, and its
    orders by state."""

    uris: int
    new: int
    bad: list[BadLine]
    orders: dict[str, int]

    def json(self) -> dict[str, Json]:
        """The answer for programs."""
        bad: list[Json] = [{"line": one.number, "why": one.why} for one in self.bad]
        return {"lines": self.uris + len(self.bad), "new": self.new, "bad": bad, "orders": dict(self.orders)}


async def load(db: Postgresql, file: BufferedReader | BytesIO, default: str, most_bad: int | None = None) -> LoadedFile:
    """Put a file of URLs, a line each, into the centre, in parts; each part once, however often the same file comes.
    BadInput after more than `most_bad` lines that are none; the parts before that are ordered."""
    name = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    bad = list[BadLine]()
    number = new = 0
    for part, some in enumerate(_parts(_uris(file, bad, most_bad))):
        new += await _load_part(db, name, part, some, default)
        number += len(some)
    query = "SELECT state, count(*) AS number FROM orders WHERE load = $1 GROUP BY state ORDER BY state"
    return LoadedFile(number, new, bad, {row["state"]: row["number"] for row in await db.rows(query, name)})


def _parts(uris: Iterator[str]) -> Iterator[list[str]]:
    """URIs in parts that an order has room for."""
    some, size = list[str](), 0
    for uri in uris:
        if some and (len(some) >= PART or size + len(uri) > ROOM):
            yield some
            some, size = [], 0
        some.append(uri)
        size += len(uri)
    if some:
        yield some


def _uris(file: BufferedReader | BytesIO, bad: list[BadLine], most_bad: int | None) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        try:
            if text := line.decode("utf-8").strip():
                yield canonical(text)
        except (BadInput, UnicodeDecodeError) as error:
            why = error.why if isinstance(error, BadInput) else "it is not UTF-8"
            bad.append(BadLine(number, why))
            if most_bad is not None and len(bad) > most_bad:
                rest = f"the first is line {bad[0].number}: {bad[0].why}; what came before line {number} is ordered"
                raise BadInput("the file", f"more than {most_bad:,} lines are no URLs; {rest}") from error


async def _load_part(db: Postgresql, name: str, part: int, uris: Sequence[str], default: str) -> int:
    """Put a part of a file into the centre as orders, once however often it is called; return how many URIs are new
    there. `name` is the digest of the file."""

    async def act(connection: Any) -> int:
        owners = await owners_of(connection, [host_of(uri) for uri in uris])
        known = await connection.fetchval(
            "SELECT EXISTS (SELECT 1 FROM orders WHERE load = $1 AND part = $2)", name, part
        )
        if known:
            return 0
        by_cluster: dict[str, list[str]] = {}
        first = await _first(connection, default)
        for uri in uris:
            by_cluster.setdefault(owners.get(host_of(uri), first), []).append(uri)
        rows = [
            (one, "add", json.dumps({"uris": some}), len(some), name, part) for one, some in sorted(by_cluster.items())
        ]
        await connection.executemany(f"{_INSERT} ON CONFLICT DO NOTHING", rows)
        return len(uris)

    return await db.whole(act)
