"""Orders: changes that wait in the centre for a cluster, by number, and what became of each. Talks to PostgreSQL, and
to the crawl.

An order is given to the running crawl by its control, which may be done twice without a second effect: after a kill in
between it is given again. While no crawl runs it waits. One for a SURT prefix is given URI by URI, of those that the
centre has under it then. `ordering` makes orders, as persons and programs ask for them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from warcmill.base import clock
from warcmill.clients.postgresql import Postgresql
from warcmill.clusters.centre import Centre
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.uri import Status
from warcmill.errors import BadInput, Conflict, NotReady, Unavailable
from warcmill.model import Json

WAITING, DONE, REFUSED = "waiting", "done", "refused"
TAKE, VISITED = "take", "visited"  # that the centre orders itself
CHANGES = ("suspend", "resume", "remove")  # of URIs, a site, or a prefix
VERBS = ("add", *CHANGES, "rate")
SECONDS = 60.0  # for the crawl to answer
AT_ONCE = 20  # orders that are given before the journal is looked at again
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
    """What a subject names to the crawl: a URI by its key, where that is another text."""
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
