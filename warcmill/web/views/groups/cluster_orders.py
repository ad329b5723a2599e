"""The views that give orders to a group of clusters, for programs in JSON and for the forms of its pages; and its URIs
in lists, for programs. They write to the group's PostgreSQL, by the functions of `warcmill uri`.

A curator gives orders; one that removes URIs is an operator's. An order of a form is made once, by the form's token; a
program names what is made once by Idempotency-Key.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from io import BytesIO
from typing import TypeVar
from urllib.parse import unquote

import msgspec

from warcmill.clusters import group as groups
from warcmill.clusters import looking
from warcmill.clusters import orders as kept
from warcmill.clusters.orders import OrderRequest
from warcmill.crawl.uri import canonical
from warcmill.errors import BadInput, Conflict
from warcmill.model import Json
from warcmill.web.access import Role
from warcmill.web.request import Answer, Asked, MovedTo, RefusedRequest, ShownPage
from warcmill.web.views.groups.clusters import (
    HIDDEN,
    MOST,
    NUMBER,
    PAGE,
    SECONDS,
    ShownGroup,
    of_group,
    order_list,
    status_of,
)

LIMIT = 100  # URIs of a list, where a program asks for no other number
LOAD_SECONDS = 25.0  # for a file; what is in the centre then stays, and the same file continues
BAD_LINES = 1000  # of a file, after which the rest is not read
log = logging.getLogger(__name__)
T = TypeVar("T")


class _Added(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The URIs that a program posts to have them added."""

    uris: tuple[str, ...]


async def _uris(asked: Asked, shown: ShownGroup) -> Answer:
    """Some URIs by host; posted: the order that adds URIs."""
    if asked.document is not None:
        return await _ordered(asked, shown, OrderRequest("add", _decoded(asked.document, _Added).uris))
    names, limit = asked.fields, asked.fields.get("limit", str(LIMIT))
    if not NUMBER.fullmatch(limit) or not 1 <= int(limit) <= MOST:
        raise BadInput("limit", f"it is not a number from 1 to {MOST}")
    status, place = status_of(asked), names.get("after", "")
    found, shows_all = list[Mapping[str, Json]](), asked.sees_hidden or not asked.hidden
    async with groups.asked(shown.group, SECONDS) as db:
        while True:
            rows, place = await looking.listed(
                db, status=status, host=names.get("host") or None, cluster=names.get("cluster") or None,
                prefix=names.get("prefix") or None, after=place, limit=int(limit),
            )  # fmt: skip
            found += [row for row in rows if shows_all or asked.hidden.without([row])]
            if not place or len(found) >= int(limit):
                break
            if not shows_all and asked.hidden.are_in(host := place.rpartition(":")[0]):
                place = f"{host}:{'ff' * 64}"  # past all of it
    is_more = bool(place) or len(found) > int(limit)
    found = found[: int(limit)]
    return ShownPage({"uris": [*map(dict, found)], "next": looking.place_of(found[-1]) if found and is_more else ""})


async def _history(asked: Asked, shown: ShownGroup) -> Answer:
    """The newest visits of a URI, the oldest of them first."""
    url, crawl, key = canonical(asked.fields.get("url", "").strip()), *map(asked.fields.get, ("crawl", "key"))
    if not asked.sees_hidden and asked.hidden.are_in(url):
        return HIDDEN
    async with groups.asked(shown.group, SECONDS) as db:
        visits = await looking.history(db, url, crawl or "", key or "", MOST)
    return ShownPage({"visits": [*visits]}, status=HTTPStatus.OK if visits else HTTPStatus.NOT_FOUND)


async def _orders(asked: Asked, shown: ShownGroup) -> Answer:
    """The orders of a group; posted: an order."""
    if asked.method != "POST":
        return await order_list(asked, shown)
    if asked.document is not None:
        return await _ordered(asked, shown, _decoded(asked.document, OrderRequest))
    return await _ordered(asked, shown, _of_form(asked.fields))


async def _ordered(asked: Asked, shown: ShownGroup, wanted: OrderRequest) -> Answer:
    """Put an order into the centre; return its numbers, or move a browser to its page."""
    if wanted.act == "remove" and asked.user.role < Role.OPERATOR:
        why = f"to remove URIs needs the role operator; yours is {asked.user.role.word}; suspend them instead"
        return RefusedRequest(HTTPStatus.FORBIDDEN, why, "act")
    wanted.subject()  # what is wrong with it is wrong while the centre is away, too
    once = asked.once and f"{asked.user.name} {asked.once}"
    if asked.form:  # the forms of a page have one token, and an order each
        once = f"form {asked.form} {wanted!r}"
    try:
        async with groups.asked(shown.group, SECONDS) as db:
            numbers = await kept.make(db, wanted, shown.group.jobs[0], once)
    except Conflict as error:
        return RefusedRequest(HTTPStatus.CONFLICT, str(error), error.path)
    log.info("group %s: %s ordered to %s: %s", shown.name, asked.user.name, wanted.act, numbers)
    if asked.document is not None:
        return ShownPage({"orders": [*numbers]}, status=HTTPStatus.ACCEPTED)
    return MovedTo(shown.order(numbers[0]) if len(numbers) == 1 else shown.orders(before=str(max(numbers) + 1)))


def _decoded(document: bytes, type_: type[T]) -> T:
    """Parse a document of a program; BadInput with what is wrong with it."""
    try:
        return msgspec.json.decode(document, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput("the document", str(error) or "it is not JSON") from error


def _of_form(fields: Mapping[str, str]) -> OrderRequest:
    """The order of a form: `uris` are its lines, `crawl` and `key` are percent-encoded; an empty one was not typed."""
    known = {*OrderRequest.__struct_fields__} - {"uris"}
    typed: dict[str, object] = {name: text.strip() for name, text in fields.items() if name in known and text.strip()}
    typed |= {name: unquote(fields[name]) for name in ("crawl", "key") if name in typed}
    uris = [*filter(None, map(str.strip, fields.get("uris", "").splitlines()))]
    try:
        return msgspec.convert({"act": "", **typed, "uris": uris}, OrderRequest, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput("the form", str(error)) from error


async def _order(asked: Asked, shown: ShownGroup) -> Answer:
    """An order, and what became of it."""
    number = asked.names["number"]
    if NUMBER.fullmatch(number):
        async with groups.asked(shown.group, SECONDS) as db:
            if found := await kept.order(db, int(number)):
                return ShownPage(found, {"of": shown, "most": PAGE})
    return RefusedRequest(HTTPStatus.NOT_FOUND, f"group {shown.name} has no order of this number", f"order {number}")


async def _load(asked: Asked, shown: ShownGroup) -> Answer:
    """Put a file of URLs into the centre: each part once, however often it is sent."""
    async with groups.asked(shown.group, SECONDS) as db:
        done = await kept.load(db, BytesIO(asked.document or b""), shown.group.jobs[0], BAD_LINES)
    log.info("group %s: %s loaded %d URIs, %d of them new", shown.name, asked.user.name, done.uris, done.new)
    return ShownPage(done.json(), status=HTTPStatus.ACCEPTED)


uris, history, orders, order = map(of_group, (_uris, _history, _orders, _order))
load = of_group(_load, LOAD_SECONDS)
