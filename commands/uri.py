"""warcmill uri: look at the URIs of a group of clusters, and change them."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commands.console.arguments import add_json, job
from commands.console.show import as_json, out
from warcmill.errors import BadInput, NotReady, Unavailable
from warcmill.model import Json

if TYPE_CHECKING:
    from warcmill.clients.postgresql import Postgresql
    from warcmill.clusters.group import Group

SUMMARY = "look at the URIs of a group of clusters, and change them"
EPILOG = """\
examples:
  warcmill uri web get https://example.org/report.pdf
  warcmill uri web history https://example.org/report.pdf
  warcmill uri web list --status Failed --limit 20
  warcmill uri web list --prefix 'http://(org,example,' --cluster web-east
  warcmill uri web add https://example.org/report.pdf https://example.org/
  warcmill uri web load urls.txt
  warcmill uri web suspend --site slow.example.org
  warcmill uri web resume --site slow.example.org
  warcmill uri web suspend --prefix 'http://(org,example,www,)/calendar/'
  warcmill uri web remove https://example.org/calendar?day=1
  warcmill uri web rate --site example.org --hits 10 --window 60
  warcmill uri web order 17

get, history and list ask the centre of the group, which has what the updaters have read. get
asks a crawl on this machine too if the URI is in flight, which is in no table. All others put an
order into the centre, and print its number. The updater of the cluster that has the host gives
it to the crawl, with a second of delay; while none runs it waits. 'order NUMBER' says waiting,
done, or refused with the reason. A host that no cluster has is the first one's of the group.

load reads a file of URLs, a line each, and makes an order of 500; the same command again
continues where it was. A suspended site and a rate stay so over launches. A prefix is a SURT;
its orders are for the URIs that the centre has under it.

--json: get: one URI; history: {"visits": [...]}; list: {"uris": [...], "next"}; order: one
order; all others {"orders": [NUMBER, ...]}; load: {"lines", "new", "bad": [{"line", "why"}], "orders"}

exit codes: 0 done, 1 the URI or the order is not known, the order was refused, or a line of the
file was, 2 usage, 3 configuration, 4 PostgreSQL does not answer
"""
MOST_SHOWN = 100  # bad lines
STATUSES = ("Scheduled", "Suspended", "Parsed", "Failed", "Removed")
TARGET = ("suspend", "resume", "remove")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """GROUP, and what to do, with its own arguments."""
    parser.add_argument("group", type=job, metavar="GROUP", help="its name: that of [group.NAME]")
    actions = parser.add_subparsers(dest="action", required=True, metavar="|".join(ACTIONS))
    for name in ACTIONS:
        add_json(actions.add_parser(name, allow_abbrev=False))
    choices = actions.choices
    for name in ("get", "history"):
        choices[name].add_argument("uri", metavar="URL", help="what to look up")
        choices[name].add_argument("--crawl", default="", metavar="NAME", help="its namespace; by default ''")
    choices["add"].add_argument("uris", nargs="+", metavar="URL", help="what to fetch")
    choices["load"].add_argument("file", type=Path, metavar="FILE", help="URLs, a line each")
    choices["order"].add_argument("number", type=int, metavar="NUMBER", help="the number of an order")
    for name in TARGET:
        what = choices[name].add_mutually_exclusive_group(required=True)
        what.add_argument("uri", nargs="?", metavar="URL", help="a URL")
        what.add_argument("--site", metavar="NAME", help="all that waits of a host, and what comes")
        what.add_argument("--prefix", metavar="SURT", help="what the centre has under it")
        choices[name].add_argument("--crawl", default="", metavar="NAME", help="the URL's namespace; by default ''")
        choices[name].add_argument("--key", default="", metavar="TEXT", help="the text by which the URL is known there")
    listed = choices["list"]
    listed.add_argument("--status", choices=STATUSES, help="only those")
    listed.add_argument("--host", metavar="NAME", help="only its URIs")
    listed.add_argument("--cluster", metavar="JOB", help="only its URIs")
    listed.add_argument("--prefix", metavar="SURT", help="only what is under it")
    listed.add_argument("--limit", type=int, default=100, metavar="NUMBER", help="how many; by default 100")
    listed.add_argument("--after", default="", metavar="PLACE", help="the 'next' of the list before")
    _add_rate(choices["rate"])


def _add_rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--site", required=True, metavar="NAME", help="a host, and port where it is not the usual one")
    parser.add_argument("--hits", type=int, metavar="NUMBER", help="at most so many requests")
    parser.add_argument("--window", type=float, metavar="NUMBER", help="in any so many seconds, by default 1")
    parser.add_argument("--moderated", action="store_true", default=None, help="evenly apart")
    parser.add_argument("--at-once", type=int, metavar="NUMBER", help="at most so many at the same time; by default 1")
    parser.add_argument("--none", action="store_true", default=None, help="take its own rate away")


def run(args: argparse.Namespace) -> int:
    """Ask the centre, or put orders into it."""
    import asyncio

    from tasks.config import groups

    return asyncio.run(_run(args, groups.group_named(args.group)))


async def _run(args: argparse.Namespace, found: Group) -> int:
    from warcmill.clusters import group

    async with group.asked(found) as db:
        return await ACTIONS[args.action](args, db, found)


async def _get(args: argparse.Namespace, db: Postgresql, _: Group) -> int:
    from warcmill.clusters import looking

    found = await looking.get(db, _canonical(args.uri), args.crawl)
    if found and (now := _in_flight(str(found["cluster"]), args.uri, args.crawl)):
        found["status"] = now
    lines = [f"{name}: {value}" for name, value in (found or {}).items()]
    _show(args, found or {}, *(lines or [f"{args.uri}: the centre has never had it"]))
    return int(found is None)


def _in_flight(cluster: str, uri: str, crawl: str) -> str:
    """The status of a URI whose visit is under way, by the crawl that runs on this machine; '' of any other."""
    from contextlib import closing

    from tasks.config import engines

    if not engines.is_here(cluster):
        return ""
    with closing(engines.running_job(cluster)) as running:
        try:
            found: Any = running.ask("get", 5.0, uri=uri, crawl=crawl)
        except (NotReady, Unavailable):
            return ""
    status = str(found.get("status", ""))
    return status if status in ("Downloading", "Parsing") else ""


async def _history(args: argparse.Namespace, db: Postgresql, _: Group) -> int:
    from warcmill.clusters import looking

    found = await looking.history(db, _canonical(args.uri), args.crawl)
    _show(args, {"visits": [*found]}, *map(_visit, found), *([] if found else [f"{args.uri}: no visit of it is known"]))
    return int(not found)


def _visit(one: Mapping[str, Json]) -> str:
    where = f", {one['warc']} at {one['warc_offset']}" if "warc" in one else ""
    stage = f", {one['stage']}" if "stage" in one else ""
    what = f"{one['finished']} {one['status']} {one.get('http_status', '')}"
    return f"{what} by {one['cluster']} {one['launch']}{stage}{where}"


async def _list(args: argparse.Namespace, db: Postgresql, _: Group) -> int:
    from warcmill.clusters import looking

    if not 1 <= args.limit <= 10_000:
        raise BadInput("--limit", f"is {args.limit}; from 1 to 10000")
    found, after = await looking.listed(
        db, status=args.status, host=args.host, cluster=args.cluster, prefix=args.prefix, after=args.after,
        limit=args.limit,
    )  # fmt: skip
    lines = [f"{one['status']:<10} {one['cluster']} {one['uri']}" for one in found]
    _show(args, {"uris": [*found], "next": after}, *lines, *([f"more: --after {after}"] if after else []))
    return 0


async def _order(args: argparse.Namespace, db: Postgresql, _: Group) -> int:
    from warcmill.clusters import orders

    found = await orders.order(db, args.number)
    if found is None:
        _show(args, {}, f"there is no order {args.number}")
        return 1
    why = f": {found['reason']}" if found["reason"] else ""
    _show(args, found, f"order {args.number}, {found['verb']} by {found['cluster']}: {found['state']}{why}")
    return int(found["state"] == orders.REFUSED)


async def _add(args: argparse.Namespace, db: Postgresql, found: Group) -> int:
    return await _ordered(args, db, found, uris=tuple(args.uris))


async def _change(args: argparse.Namespace, db: Postgresql, found: Group) -> int:
    uris = (args.uri,) if args.uri else ()
    names = {"site": args.site or "", "prefix": args.prefix or "", "crawl": args.crawl, "key": args.key}
    return await _ordered(args, db, found, uris=uris, **names)


async def _rate(args: argparse.Namespace, db: Postgresql, found: Group) -> int:
    names = ("site", "hits", "window", "moderated", "at_once", "none")
    return await _ordered(args, db, found, **{name: getattr(args, name) for name in names})


async def _ordered(args: argparse.Namespace, db: Postgresql, found: Group, **fields: Any) -> int:
    from warcmill.clusters import orders

    numbers = await orders.make(db, orders.OrderRequest(args.action, **fields), found.jobs[0])
    lines = [f"order {number} waits: warcmill uri {found.name} order {number}" for number in numbers]
    _show(args, {"orders": [*numbers]}, *lines)
    return 0


async def _load(args: argparse.Namespace, db: Postgresql, found: Group) -> int:
    from warcmill.clusters import orders

    with args.file.open("rb") as file:
        done = await orders.load(db, file, found.jobs[0])
    bad = done.bad
    lines = [f"{args.file}, line {one.number}: {one.why}" for one in bad[:MOST_SHOWN]]
    lines += [f"... and {len(bad) - MOST_SHOWN:,} more"] if len(bad) > MOST_SHOWN else []
    states = ", ".join(f"{count:,} {state}" for state, count in done.orders.items())
    lines.append(
        f"{args.file}: {done.uris:,} URIs, {done.new:,} of them new, {len(bad):,} bad lines; orders: {states or 'none'}"
    )
    _show(args, done.json(), *lines)
    return int(bool(bad))


def _canonical(text: str) -> str:
    from warcmill.crawl.uri import canonical

    return canonical(text)


def _show(args: argparse.Namespace, answer: Mapping[str, Json], *lines: str) -> None:
    if args.json:
        print(as_json(dict(answer)))
    else:
        out(*lines)


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Any, Any], Awaitable[int]]] = {
    "get": _get, "history": _history, "list": _list, "add": _add, "load": _load, "suspend": _change,
    "resume": _change, "remove": _change, "rate": _rate, "order": _order,
}  # fmt: skip
"""Each action, which returns the exit code."""
