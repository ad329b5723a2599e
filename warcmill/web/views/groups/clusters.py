"""The views of groups of clusters: they ask the group's own store, its PostgreSQL, for some seconds, and no crawl.

A view only looks; the forms that it shows post orders (`cluster_orders`). Readers get neither hosts nor URIs that are
hidden; a place in a list is named by what is shown.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

from warcmill.clusters import group as groups
from warcmill.clusters import lists, looking, orders
from warcmill.clusters.group import Group
from warcmill.clusters.lists import HostPlace
from warcmill.clusters.tables import STATUSES
from warcmill.crawl.uri import canonical
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.model import Json
from warcmill.web.access import Role
from warcmill.web.actions import command
from warcmill.web.request import Answer, Asked, RefusedRequest, ShownPage
from warcmill.web.served import Served
from warcmill.web.views.search import way_to_record

PAGE = 50  # rows of a list
MOST = 1000  # hosts that are read for a page of a reader, who gets none that is hidden
SECONDS = 4.0  # until a centre that is silent, or slow, is given up; to connect, and for all queries of a view
AT_ONCE = 8  # requests that ask a centre; the others wait for a second, so that other pages have threads
URI_STATUSES = tuple(one.capitalize() for one in STATUSES)
STATES = (orders.WAITING, orders.DONE, orders.REFUSED)
_OPTIONS = [("", "any"), *((one, one) for one in URI_STATUSES)]
_PLACE = re.compile(r"([0-9]{1,18}):(.{0,300})", re.DOTALL)
_DIGEST = re.compile(r"(?:[0-9a-f]{2}){1,32}")
NUMBER = re.compile(r"[0-9]{1,18}")
_asking = threading.BoundedSemaphore(AT_ONCE)
log = logging.getLogger(__name__)


class ShownGroup(Struct, frozen=True):
    """A group that is looked at, and the ways to its pages. `form`: the token of the forms of a page, which post an
    order; '' for who may give none. `may_remove`: its user may take URIs away."""

    group: Group
    form: str = ""
    may_remove: bool = False

    @property
    def name(self) -> str:
        """Its name in luigi.cfg."""
        return self.group.name

    @property
    def path(self) -> str:
        """The path of its page."""
        return f"/groups/{self.name}"

    def cluster(self, name: str, **fields: str) -> str:
        """The address of a cluster's page."""
        return _address(f"{self.path}/clusters/{name}", fields)

    def host(self, name: str, **fields: str) -> str:
        """The address of a host's page."""
        return _address(f"{self.path}/hosts/{quote(name, safe='')}", fields)

    def uri(self, one: Mapping[str, Any]) -> str:
        """The address of a URI's page."""
        names = {"url": one["uri"], "crawl": one.get("crawl", ""), "key": one.get("key", "")}
        return _address(f"{self.path}/uri", names)

    def orders(self, **fields: str) -> str:
        """The address of a list of orders."""
        return _address(f"{self.path}/orders", fields)

    def order(self, number: int) -> str:
        """The address of an order's page."""
        return f"{self.path}/orders/{number}"

    def acts(self) -> list[tuple[str, str]]:
        """The changes that the user may choose from, each with its word in a form."""
        return [(one, one.capitalize()) for one in orders.CHANGES if one != "remove" or self.may_remove]

    def command(self, act: str, *words: str, **fields: str) -> str:
        """The command that gives the same order as a form."""
        options = [f"--{name}={value}" for name, value in fields.items() if value]
        return command(("uri", self.name, act, *options, *words))


def _address(path: str, fields: Mapping[str, str]) -> str:
    given = {name: value for name, value in fields.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


View = Callable[[Served, Asked], Answer]
GroupView = Callable[[Asked, ShownGroup], Coroutine[Any, Any, Answer]]


def of_group(view: GroupView, seconds: float = SECONDS) -> View:
    """A view of a group: 404 where luigi.cfg has none of the name, NotReady while its centre does not answer."""

    def found(served: Served, asked: Asked) -> Answer:
        name = asked.names["group"]
        if name not in served.groups():
            why = "luigi.cfg has no group of clusters of this name"
            return RefusedRequest(HTTPStatus.NOT_FOUND, why, f"group {name}")
        _check_texts(asked)
        shown, centre = ShownGroup(served.group_named(name)), f"the centre of group {name}"
        if asked.user.role >= Role.CURATOR:
            form = served.forms.new(asked.user, shown.orders())
            shown = ShownGroup(shown.group, form, asked.user.role >= Role.OPERATOR)
        if not _asking.acquire(timeout=1):
            raise NotReady(centre, f"{AT_ONCE} others ask it, and wait; try again in some seconds")
        try:
            return asyncio.run(_within(seconds, view(asked, shown)))
        except (Unavailable, TimeoutError) as error:
            log.warning("%s: %s", asked.path, str(error) or "not within the seconds that a page has")
            what = "the clusters crawl on, try again in a minute"
            if asked.method == "POST":
                what = "whether this was taken is not known: send the same again, a program with its Idempotency-Key"
            why = f"PostgreSQL did not answer within {seconds:.0f} s; {what}"
            raise NotReady(centre, f"{why}. {error}" if asked.sees_hidden and str(error) else why) from error
        finally:
            _asking.release()

    return found


def _check_texts(asked: Asked) -> None:
    """BadInput for a text that no PostgreSQL has."""
    for name, text in {**asked.names, **asked.fields}.items():
        if "\0" in text or text.encode("utf-8", "replace").decode() != text:
            raise BadInput(name, "it has a character that is in no name and no URL")


async def _within(seconds: float, answer: Coroutine[Any, Any, Answer]) -> Answer:
    async with asyncio.timeout(seconds):
        return await answer


def all_groups(served: Served, _: Asked) -> Answer:
    """The groups of luigi.cfg. No centre is asked, so that one that is away is in nobody's way."""
    found = [served.group_named(name) for name in served.groups()]
    if not found:
        return RefusedRequest(HTTPStatus.NOT_FOUND, "luigi.cfg has no group of clusters: no section [group.NAME]")
    answer: list[Json] = [{"group": one.name, "clusters": [*one.jobs]} for one in found]
    return ShownPage({"groups": answer}, {"groups": [ShownGroup(one) for one in found]})


async def _group(_: Asked, shown: ShownGroup) -> Answer:
    """Each cluster: its URIs by status, what has waited longest, its lag, its updater, the orders that wait."""
    found = await _clusters(shown)
    return ShownPage({"clusters": [*found]}, {"of": shown, "statuses": URI_STATUSES})


async def _clusters(shown: ShownGroup) -> list[dict[str, Json]]:
    """The clusters as `group status` has them, each with the URI that has waited longest."""
    found = await groups.status(shown.group, SECONDS)
    async with groups.asked(shown.group, SECONDS) as db:
        oldest = await lists.oldest(db)
    return [{**one, "oldest": oldest.get(str(one["cluster"]))} for one in found]


async def _cluster(asked: Asked, shown: ShownGroup) -> Answer:
    """The hosts of a cluster, those with the most URIs first, with its row in the group."""
    name, status, domain = asked.names["cluster"], status_of(asked), asked.fields.get("domain", "").strip().lower()
    place = _host_place(asked.fields.get("before", ""))
    row = next((one for one in await _clusters(shown) if one["cluster"] == name), None)
    if row is None:
        return RefusedRequest(HTTPStatus.NOT_FOUND, f"group {shown.name} has no cluster of this name")
    is_filtered = bool(asked.hidden) and not asked.sees_hidden
    async with groups.asked(shown.group, SECONDS) as db:
        found = await lists.hosts(db, name, status, domain, place, MOST if is_filtered else PAGE + 1)
    if is_filtered:
        found = [one for one in found if not asked.hidden.are_in(one["host"])]
    rows, same = found[:PAGE], {"status": status or "", "domain": domain}
    last = f"{rows[-1]['number']}:{rows[-1]['host']}" if len(found) > PAGE else ""
    parts = {
        "of": shown, "statuses": URI_STATUSES, "options": _OPTIONS, "status": status or "", "domain": domain,
        "older": shown.cluster(name, **same, before=last) if last else "",
        "first": shown.cluster(name, **same) if "before" in asked.fields else "",
    }  # fmt: skip
    return ShownPage({"cluster": row, "hosts": [*rows], "before": last}, parts | {"unread": [*groups.unread(row)]})


async def _host(asked: Asked, shown: ShownGroup) -> Answer:
    """A host: its counts, and its URIs, of all statuses or one."""
    name, status, after = asked.names["host"], status_of(asked), asked.fields.get("after", "")
    if after and not _DIGEST.fullmatch(after):
        raise BadInput("after", "it is not a place in this list")
    if not asked.sees_hidden and asked.hidden.are_in(name):
        return HIDDEN
    async with groups.asked(shown.group, SECONDS) as db:
        row = await lists.host(db, name)
        if row is None:
            return RefusedRequest(HTTPStatus.NOT_FOUND, f"no cluster of group {shown.name} has had a URI of this host")
        found, end = await lists.uris(db, name, status, bytes.fromhex(after), PAGE)
    same = {"status": status or ""}
    parts = {
        "of": shown, "statuses": URI_STATUSES, "options": _OPTIONS, "status": status or "",
        "older": shown.host(name, **same, after=end) if end else "",
        "first": shown.host(name, **same) if after else "",
        "more": [(key, value) for key, value in row.items() if key not in ("host", "cluster", "uris", "surt")],
    }  # fmt: skip
    return ShownPage({"host": row, "uris": [*found], "next": end}, parts)


async def _uri(asked: Asked, shown: ShownGroup) -> Answer:
    """A URI: its row, its visits, and the orders for it."""
    typed = asked.fields.get("url", "").strip()
    if not typed and not asked.in_json:
        return ShownPage({}, {"of": shown, "url": ""})
    uri, crawl, key = canonical(typed), asked.fields.get("crawl", ""), asked.fields.get("key", "")
    if not asked.sees_hidden and asked.hidden.are_in(uri):
        return HIDDEN
    async with groups.asked(shown.group, SECONDS) as db:
        row = await looking.get(db, uri, crawl, key)
        visits = await looking.history(db, uri, crawl, key, PAGE)
        about = await lists.orders_for(db, uri, crawl, PAGE)
    status = HTTPStatus.OK if row or about else HTTPStatus.NOT_FOUND
    parts = {
        "of": shown, "url": uri, "crawl": crawl, "key": key, "most": PAGE,
        "captures": [
            f"/{way_to_record(uri, str(one['warc']), int(str(one['warc_offset'])))}" if "warc_offset" in one else ""
            for one in visits
        ],
    }  # fmt: skip
    return ShownPage({"uri": row or {}, "visits": [*visits], "orders": [*about]}, parts, status)


async def order_list(asked: Asked, shown: ShownGroup) -> Answer:
    """The orders of a group, the newest first: of all states or one, of all clusters or one."""
    state, cluster, before = (asked.fields.get(name, "") for name in ("state", "cluster", "before"))
    if state not in ("", *STATES):
        raise BadInput("state", f"it is not one of {', '.join(STATES)}")
    if before and not NUMBER.fullmatch(before):
        raise BadInput("before", "it is not the number of an order")
    async with groups.asked(shown.group, SECONDS) as db:
        found, last = await lists.orders(db, state or None, cluster or None, int(before or 0), PAGE)
    same = {"state": state, "cluster": cluster}
    parts = {
        "of": shown, "options": [("", "all"), *((one, one) for one in STATES)], "state": state, "cluster": cluster,
        "older": shown.orders(**same, before=str(last)) if last else "",
        "first": shown.orders(**same) if before else "",
    }  # fmt: skip
    return ShownPage({"orders": [*found], "before": last}, parts)


HIDDEN = RefusedRequest(HTTPStatus.NOT_FOUND, "the archive does not show this address")


def status_of(asked: Asked) -> str | None:
    """The status that is asked for; None for all."""
    status = asked.fields.get("status", "")
    if status not in ("", *URI_STATUSES):
        raise BadInput("status", f"it is not one of {', '.join(URI_STATUSES)}")
    return status or None


def _host_place(text: str) -> HostPlace:
    """A place in the hosts of a cluster."""
    match = _PLACE.fullmatch(text)
    if text and not match:
        raise BadInput("before", "it is not a place in this list")
    return HostPlace(int(match[1]), match[2]) if match else HostPlace()


group, cluster, host, uri = map(of_group, (_group, _cluster, _host, _uri))
