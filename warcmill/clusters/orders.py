"""Orders: changes that wait in the centre for a cluster, by number, and what became of each. Talks to PostgreSQL, and
to the crawl.

A verb, a page and a program make an order by the same functions. One that is made `once` has a name: asked for again by
it, nothing is made, and its numbers are returned.

An order is given to the running crawl by its control, which may be done twice without a second effect: after a kill in
between it is given again. While no crawl runs it waits. One for a SURT prefix is given URI by URI, of those that the
centre has under it then.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from io import BufferedReader, BytesIO
from typing import Any, NamedTuple, cast

from msgspec import Struct, structs

from warcmill.base import clock
from warcmill.clients.postgresql import Postgresql
from warcmill.clusters.centre import Centre
from warcmill.clusters.news import host_of
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.control.messages import MOST, queue_named
from warcmill.crawl.uri import Status, canonical
from warcmill.errors import BadInput, Conflict, NotReady, Unavailable
from warcmill.model import Json

WAITING, DONE, REFUSED = "waiting", "done", "refused"
TAKE, VISITED = "take", "visited"  # that the centre orders itself
CHANGES = ("suspend", "resume", "remove")  # of URIs, a site, or a prefix
VERBS = ("add", *CHANGES, "rate")
SECONDS = 60.0  # for the crawl to answer
AT_ONCE = 20  # orders that are given before the journal is looked at again
PART = 500  # URIs of an order for a part of a file, so that one fits a line of the crawl's control
ROOM = 1 << 18  # bytes of the URIs of an order
MOST_NUMBER = 1 << 31
ONCE = "once "  # begins the name of what is made once, where a part of a file has the digest of that
_RATE = ("hits", "window", "moderated", "at_once", "none")
_INSERT = "INSERT INTO orders (cluster, verb, subject, uris, load, part) VALUES ($1, $2, $3, $4, $5, $6)"
_PAGE = 500  # URIs of a prefix, between two looks at the centre
_FITS: Mapping[str, tuple[Status, ...]] = {
    "suspend": (Status.SCHEDULED,), "resume": (Status.SUSPENDED,), "remove": (Status.SCHEDULED, Status.SUSPENDED),
}  # fmt: skip


class GroupOrder(NamedTuple):
    """An order that waits: its number, its verb, and its subject: `uris`, a `uri`, a `site` or a `prefix`, and the
    values of a rate. Of one for a prefix: how many URIs it was `given` for, the `last` one, and the first refusal."""

    number: int
    verb: str
    subject: Mapping[str, Any]
    given: int = 0
    last: tuple[str, bytes] = ("", b"")
    refusal: str = ""


class OrderOutcome(NamedTuple):
    """The end of an order: `done`, or `refused`; and the reason, or what of it was refused."""

    state: str
    reason: str = ""


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
    """A line of a file that is not a URL: its number, from 1, and why."""

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
    BadInput after more than `most_bad` lines that are not URLs; the parts before that are ordered."""
    name = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    bad = list[BadLine]()
    number = new = 0
    for part, some in enumerate(_in_parts(_uris(file, bad, most_bad))):
        new += await _load_part(db, name, part, some, default)
        number += len(some)
    query = "SELECT state, count(*) AS number FROM orders WHERE load = $1 GROUP BY state ORDER BY state"
    return LoadedFile(number, new, bad, {row["state"]: row["number"] for row in await db.rows(query, name)})


def _in_parts(uris: Iterator[str]) -> Iterator[list[str]]:
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
            if text := line.strip():
                yield canonical(text.decode("utf-8").strip())
        except (BadInput, UnicodeDecodeError) as error:
            why = error.why if isinstance(error, BadInput) else "it is not UTF-8"
            bad.append(BadLine(number, why))
            if most_bad is not None and len(bad) > most_bad:
                rest = f"the first is line {bad[0].number}: {bad[0].why}; what came before line {number} is ordered"
                raise BadInput("the file", f"more than {most_bad:,} lines are not URLs; {rest}") from error


async def _load_part(db: Postgresql, name: str, part: int, uris: Sequence[str], default: str) -> int:
    """Put a part of a file into the centre as orders, once however often it is called; return how many URIs are new
    there. `name` is the digest of the file."""

    async def act(connection: Any) -> int:
        known = "SELECT EXISTS (SELECT 1 FROM orders WHERE load = $1 AND part = $2)"
        if await connection.fetchval(known, name, part):
            return 0
        owners = await owners_of(connection, [host_of(uri) for uri in uris])
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


async def give_orders(centre: Centre, crawl: RunningJob, tell: Callable[[], Awaitable[None]]) -> bool:
    """Give some of the orders that wait to the crawl, in their order; False if none waits, or none can be given now.
    `tell` has the crawl know its hosts first, as they are with these orders."""
    query = "SELECT * FROM orders WHERE cluster = $1 AND state = 'waiting' ORDER BY number LIMIT $2"
    rows = await centre.db.rows(query, centre.cluster, AT_ONCE)
    given = False
    try:
        await tell()
    except NotReady:
        return given
    for row in rows:
        last = row["last_host"], row["last_digest"]
        one = GroupOrder(
            row["number"], row["verb"], json.loads(row["subject"]), row["given"], last, row["reason"]
        )  # fmt: skip
        try:
            found = await _give(centre.db, crawl, centre.cluster, one)
        except NotReady:
            return given
        if isinstance(found, GroupOrder):  # a part of it: others wait, and so does the journal
            more = "UPDATE orders SET given = $2, last_host = $3, last_digest = $4, reason = $5 WHERE number = $1"
            await centre.db.rows(more, found.number, found.given, *found.last, found.refusal)
            return True
        if row["verb"] in (TAKE, VISITED) and found == (DONE, ""):  # no person waits for it, and they are many
            await centre.db.rows("DELETE FROM orders WHERE number = $1", row["number"])
        else:
            end = "UPDATE orders SET state = $2, reason = $3, ended = now() WHERE number = $1"
            await centre.db.rows(end, row["number"], *found)
        given = True
    return given


async def _give(db: Postgresql, crawl: RunningJob, cluster: str, order: GroupOrder) -> OrderOutcome | GroupOrder:
    """Give an order to the crawl. NotReady while none runs, or while it does not answer."""
    try:
        if order.verb == "add":
            return _added(_ask(crawl, "add", uris=order.subject["uris"]))
        if order.verb == TAKE:
            return _named_refused(_ask(crawl, TAKE, uris=order.subject["uris"]))
        if order.verb == VISITED:
            return _named_refused(_ask(crawl, "load", visited=order.subject["visited"]))
        if "prefix" in order.subject:
            return await _give_each(db, crawl, cluster, order)
        if "uris" in order.subject:
            return _give_some(crawl, order)
        return _changed(order, _ask(crawl, order.verb, **_named(order.subject)))
    except (BadInput, Conflict) as error:
        return OrderOutcome(REFUSED, str(error))


def _named(subject: Mapping[str, Json]) -> Mapping[str, Json]:
    """The fields of a subject for the crawl: a URI is named by its key, where that is another text."""
    return {name: value for name, value in subject.items() if name != "uri"} if subject.get("key") else subject


def _give_some(crawl: RunningJob, order: GroupOrder) -> OrderOutcome:
    """Give an order for some URIs, one by one."""
    rest = {name: value for name, value in order.subject.items() if name != "uris"}
    uris = [*map(str, order.subject["uris"])]
    found = [_changed(order, _ask(crawl, order.verb, uri=uri, **rest)) for uri in uris]
    number = sum(one.state == DONE for one in found)
    refusal = next((f"{uri}: {one.reason}" for uri, one in zip(uris, found, strict=True) if one.state == REFUSED), "")
    return OrderOutcome(DONE if number else REFUSED, f"{number:,} URIs{f'; not {refusal}' if refusal else ''}")


def _ask(running: RunningJob, verb: str, /, **fields: Json) -> Any:
    try:
        return running.ask(verb, SECONDS, **fields)
    except Unavailable as error:
        raise NotReady(error.what, error.why) from error


def _named_refused(answer: Any) -> OrderOutcome:
    refused = [*map(str, answer.get("refused", ()))]
    return OrderOutcome(DONE, f"{len(refused):,} are refused; first {refused[0]}" if refused else "")


def _added(answer: Any) -> OrderOutcome:
    refused = [one for one in answer["answers"] if one["answer"] == "refused"]
    if not refused:
        return OrderOutcome(DONE)
    first = f"{refused[0]['uri']}: {refused[0].get('why', '')}"
    if len(refused) == len(answer["answers"]):
        return OrderOutcome(REFUSED, first)
    return OrderOutcome(DONE, f"{len(refused):,} of {len(answer['answers']):,} are refused; first {first}")


def _changed(order: GroupOrder, answer: Any) -> OrderOutcome:
    refused = [*map(str, answer.get("refused", ()))]
    if 0 in (answer.get("changed"), answer.get("removed")) and "site" not in order.subject:
        return OrderOutcome(REFUSED, refused[0] if refused else "nothing of it waits")
    return OrderOutcome(DONE, f"{len(refused):,} stay suspended; first {refused[0]}" if refused else "")


async def _give_each(
    db: Postgresql, crawl: RunningJob, cluster: str, order: GroupOrder
) -> OrderOutcome | GroupOrder:  # fmt: skip
    """Give an order for a prefix: for the next URIs under it that it fits, by the centre. Return its outcome, or how
    far it is now."""
    rows = await under(db, str(order.subject["prefix"]), cluster, _FITS[order.verb], order.last, _PAGE)
    number, refusal = order.given, order.refusal
    for row in rows:
        found = _changed(order, _ask(crawl, order.verb, key=row["key"] or row["uri"], crawl=row["crawl"]))
        number += found.state == DONE
        refusal = refusal or (found.reason and f"{row['uri']}: {found.reason}")
    if len(rows) == _PAGE:
        return order._replace(given=number, last=(rows[-1]["host"], rows[-1]["digest"]), refusal=refusal)
    return OrderOutcome(DONE if number else REFUSED, f"{number:,} URIs{f'; not {refusal}' if refusal else ''}")


async def under(
    db: Postgresql,
    prefix: str,
    cluster: str | None,
    statuses: Sequence[str] | None,
    after: tuple[str, bytes],
    most: int,
) -> list[Any]:
    """Rows of URIs under a SURT prefix, in their order after one: those of a cluster, or of all, that have
    one of some statuses."""
    hosts, path = _parts(prefix)
    query = (
        "SELECT u.* FROM hosts h JOIN uris u ON u.host = h.host WHERE h.surt LIKE $1 AND ($2::text IS NULL OR"
        " u.cluster = $2) AND (u.host, u.digest) > ($3, $4) AND ($7::text[] IS NULL OR u.status = ANY($7))"
        " AND ($5 = '' OR starts_with(substring(u.uri FROM '^[a-z]+://[^/]*(/.*)$'), $5))"
        " ORDER BY u.host, u.digest LIMIT $6"
    )
    return await db.rows(query, hosts, cluster, *after, path, most, statuses)


def check_prefix(prefix: str) -> None:
    """BadInput for what is not a SURT prefix."""
    _parts(prefix)


def _parts(prefix: str) -> tuple[str, str]:
    """The pattern of the hosts' SURTs and the begin of the path that a SURT prefix stands for; BadInput for another
    text. `http://(org,example,` is a domain, `http://(org,example,)/a/` a folder of a host."""
    head, paren, rest = prefix.partition("(")
    if not paren or head not in ("", "http://", "https://") or not rest:
        raise BadInput(prefix, "not a SURT prefix, such as 'http://(org,example,' or 'http://(org,example,)/a/'")
    labels, end, path = rest.partition(")")
    escaped = labels.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return (escaped if end else f"{escaped}%"), path


def answers(rows: Sequence[Any]) -> Iterator[dict[str, Json]]:
    """Orders as JSON."""
    for row in rows:
        ended = clock.text(row["ended"]) if row["ended"] else ""
        yield {
            "number": row["number"], "cluster": row["cluster"], "verb": row["verb"], "uris": row["uris"],
            "subject": json.loads(row["subject"]), "state": row["state"], "reason": row["reason"],
            "made": clock.text(row['made']), "ended": ended,
        }  # fmt: skip


async def order(db: Postgresql, number: int) -> dict[str, Json] | None:
    """An order, and what became of it; None for a number that none has."""
    return next(answers(await db.rows("SELECT * FROM orders WHERE number = $1", number)), None)
