"""warcmill group: see and keep a group of clusters: endless jobs whose URIs one PostgreSQL has."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Callable, Coroutine, Iterator, Mapping
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from commands.console.arguments import add_json, job
from commands.console.show import as_json, err, out
from warcmill.errors import BadConfig, BadInput, NotReady
from warcmill.model import Json

if TYPE_CHECKING:
    from warcmill.clients.postgresql import Postgresql
    from warcmill.clusters.books import ClusterBooks
    from warcmill.clusters.group import Group
    from warcmill.clusters.owning import KeptRules

LONG = 3600.0  # seconds for a query of all URIs
SUMMARY = "see and keep a group of clusters: endless jobs whose URIs one PostgreSQL has"
EPILOG = """\
examples:
  warcmill group web init
  warcmill group web status
  warcmill group web books
  warcmill group web explain https://www.example.org/
  warcmill group web move www.example.org web-west
  warcmill group web retire web-east --reason 'the data centre is closed' --gone
  warcmill group web scope scopes/spring --why 'two more sites'
  warcmill group web recover --cluster web-east
  warcmill group web recover --centre

A group is [group.NAME] of luigi.cfg: its jobs, each a cluster with a frontier of its own, and a
PostgreSQL, the centre. 'warcmill run updater JOB' beside each crawl writes what that does into
the centre; 'warcmill uri GROUP' looks at URIs there, and changes them. See docs/clusters.md.

init makes the tables, and the row of each job; run it again when a job was added to the group.
status shows each cluster: its URIs by status, the bytes of its journal that the centre has not
read, who updates it, and the orders that wait. books compares the centre with the journals of
the jobs that are on this machine, and names each difference. What a journal has beyond the
place of the centre is one too, unless an updater runs.

explain says which cluster has the host of a URL, by which rule of the group's 'rules', and since
when; of a host that is new, which would get it. move gives a host to a cluster: the old owner
lets go of it first, as soon as its crawl and its updater run. retire gives all hosts of a cluster
to heirs, by the rules, for good. It waits until the cluster has been cut off from the centre for
'alone' hours, after which it crawls nothing; --gone vouches that its machine is off before. With --lost its disk
is lost, too: what no stage with a files.verified has, and no other cluster, is fetched again.

scope puts surts.txt, exclude.txt and the keys hops, patterns, extensions and [traps] of crawl.toml
of a folder into the centre, as a new edition. Updaters write it into their jobs; status names the
clusters that have others. What a person has edited in a job is kept beside, as surts.txt.before.

recover --cluster orders from a cluster whose disk is lost all that the centre has of it, for its
next launch. recover --centre forgets what the journals on this machine have, so that updaters
read it again. Both say how much, and want the updater to be ended first.

--json (status): {"clusters": [{"cluster", "launch", "uris": {"Scheduled", ...}, "behind", ...}]};
books: {"clusters": [{"cluster", "uris", "behind", "differences": [{"uri", "journals",
"centre"}]}], "elsewhere", "miscounted"}; explain: {"known", "host", "cluster", "forbidden", "rule",
"since", "moving", "addresses"}; move: {"host", "cluster", "moves"}; retire: {"cluster", "hosts"};
scope: {"edition", "is_new"}; recover --cluster: {"cluster", "hosts", "waiting", "visited", "behind",
"updated"}; --centre: {"clusters": [{"cluster", "uris", "visits", "bytes", "only_here"}], "elsewhere"}

exit codes: 0 done, or nothing differs, 1 the centre differs from a journal, or has no tables, or
it is too early for a move or to retire, 2 usage, 3 configuration, or tables of a newer version,
4 PostgreSQL does not answer, 5 the updater runs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """GROUP, and what to do."""
    parser.add_argument("group", type=job, metavar="GROUP", help="its name: that of [group.NAME]")
    actions = parser.add_subparsers(dest="action", required=True, metavar="|".join(ACTIONS))
    for name in ACTIONS:
        add_json(actions.add_parser(name, allow_abbrev=False))
    choices = actions.choices
    choices["explain"].add_argument("url", metavar="URL", help="a URL, or a host")
    choices["move"].add_argument("host", metavar="HOST", help="the host, without a port")
    choices["move"].add_argument("cluster", metavar="JOB", help="a job of the group")
    retired = choices["retire"]
    retired.add_argument("cluster", metavar="JOB", help="a job of the group")
    retired.add_argument("--reason", required=True, metavar="TEXT", help="why; 'status' shows it")
    retired.add_argument("--lost", action="store_true", help="its disk is lost: fetch again what the store has not")
    retired.add_argument("--gone", action="store_true", help="its machine is off: do not wait until it is alone")
    choices["scope"].add_argument("folder", type=Path, metavar="FOLDER", help="its surts.txt, exclude.txt, crawl.toml")
    choices["scope"].add_argument("--why", default="", metavar="TEXT", help="why; the centre keeps it")
    lost = choices["recover"].add_mutually_exclusive_group(required=True)
    lost.add_argument("--centre", action="store_true", help="the centre, from the journals on this machine")
    lost.add_argument("--cluster", metavar="JOB", help="the frontier of a job, from the centre")


def run(args: argparse.Namespace) -> int:
    """Do it."""
    import asyncio

    from tasks.config import groups

    return asyncio.run(ACTIONS[args.action](args, groups.group_named(args.group)))


async def _init(args: argparse.Namespace, found: Group) -> int:
    from warcmill.clusters import group

    is_new = await group.make(found)
    answer: dict[str, Json] = {"made": is_new, "clusters": [*found.jobs]}
    done = "the tables are made" if is_new else "all tables were there"
    _show(args, answer, f"group {found.name}: {done}; clusters {', '.join(found.jobs)}")
    return 0


async def _status(args: argparse.Namespace, kept: Group) -> int:
    from warcmill.clusters import group

    found = await group.status(kept)
    _show(args, {"clusters": [*found]}, *(line for one in found for line in _lines(one)))
    return 0


def _lines(one: Mapping[str, Json]) -> Iterator[str]:
    from warcmill.clusters import group

    uris = cast("dict[str, Json]", one["uris"])
    counts = ", ".join(f"{number:,} {name}" for name, number in uris.items())
    yield f"{one['cluster']}: {counts}; {one['hosts']:,} hosts"
    by = f"updated by {one['updater']}" if one["updater"] else "nobody updates it: warcmill run updater JOB"
    yield f"  {by}; {one['behind']:,} bytes of its journal are not read yet; {one['orders']:,} orders wait"
    for what in group.unread(one):
        yield f"  {what}"
    if one["retired"]:
        yield f"  retired {one['retired']}: {one['why']}"
    if one["moving"]:
        yield f"  {one['moving']:,} hosts leave it, or arrive there, just now"
    if one["updater_fault"]:
        yield f"  its updater has ended: {one['updater_fault']}"
    if one["rules_fault"]:
        yield f"  its rules have a fault, and the last good ones stay: {one['rules_fault']}"
    scope = cast("dict[str, Any]", one["scope"])
    if scope["newest"]:
        has = f"edition {scope['edition']} of the group's scope" if scope["edition"] else "a scope of its own"
        others = (
            "" if scope["edition"] == scope["newest"] or one["retired"] else f": others; {scope['newest']} is newest"
        )
        note = f". {scope['note']}" if scope["note"] else ""
        yield f"  it has {has}{others}{note}"
    if one["refused"]:
        yield f"  {one['refused']:,} moves were refused; the log of the updater names them"


async def _explain(args: argparse.Namespace, kept: Group) -> int:
    from tasks.config import groups
    from warcmill.clusters import group, owning

    host, rules = _host(args.url), _rules(kept)
    resolver = groups.resolver_of(next((job for job in kept.jobs if groups.is_here(job)), kept.jobs[0]))
    async with group.asked(kept) as db:
        found = await owning.explain(db, rules, resolver, host)
    whose = "is forbidden" if found["forbidden"] else f"is crawled by {found['cluster']}"
    since = f", since {found['since']}" if found["known"] else "; it is new, and this is what would be"
    moving = f"; it {found['moving']}, and nobody asks it until then" if found.get("moving") else ""
    addresses = cast("list[Json]", found["addresses"])
    known = ", ".join(map(str, addresses)) or "none is known"
    _show(args, found, f"{host} {whose}, by {found['rule']}{since}{moving}", f"  addresses: {known}")
    return 0


async def _move(args: argparse.Namespace, kept: Group) -> int:
    from warcmill.clusters import group, owning

    host, _ = _host(args.host), _rules(kept)
    _refuse_unknown(args.cluster, kept)
    async with group.asked(kept) as db:
        moves = await owning.move(db, host, args.cluster)
    done = f"moves to {args.cluster}; 'warcmill group {kept.name} explain {host}' says when" if moves else "is there"
    _show(args, {"host": host, "cluster": args.cluster, "moves": moves}, f"{host} {done}")
    return 0


async def _retire(args: argparse.Namespace, kept: Group) -> int:
    from warcmill.clusters import group, owning

    rules = _rules(kept)
    _refuse_unknown(args.cluster, kept)
    assert kept.owned
    async with group.asked(kept, LONG) as db:
        found, alone = rules.read(), kept.owned.alone
        hosts = await owning.retire(
            db, found, rules.country, args.cluster, args.reason, alone, gone=args.gone,
            verified=await _verified(db, args.cluster) if args.lost else None,
        )  # fmt: skip
    _show(args, {"cluster": args.cluster, "hosts": hosts}, f"{args.cluster} is retired; {hosts:,} hosts go to others")
    return 0


async def _verified(db: Postgresql, cluster: str) -> list[tuple[str, str]]:
    """The launches and stages of a cluster that the store has, by their files.verified."""
    from tasks.line import open_line
    from warcmill import layout
    from warcmill.model import Launch, Stage

    state = open_line().state
    rows = await db.rows("SELECT launch, stage FROM journals WHERE cluster = $1 ORDER BY launch, journal", cluster)
    named = [(row["launch"], row["stage"]) for row in rows]
    return [
        (launch, stage) for launch, stage in named
        if state.holds(layout.step("verify", Launch.parse(cluster, launch), Stage.parse(stage)))
    ]  # fmt: skip


def _rules(kept: Group) -> KeptRules:
    from warcmill.clusters.owning import KeptRules

    if kept.owned is None:
        raise BadConfig(f"[group.{kept.name}] rules", "is not there: without rules no host has an owner")
    return KeptRules(kept.owned, kept.jobs)


def _refuse_unknown(cluster: str, kept: Group) -> None:
    if cluster not in kept.jobs:
        raise BadInput(cluster, f"is not a job of group {kept.name}; it has {', '.join(kept.jobs)}")


def _host(text: str) -> str:
    """The host of a URL, or a host, as the centre has it."""
    from warcmill.clusters.news import host_of
    from warcmill.crawl.uri import canonical

    return host_of(canonical(text if "://" in text else f"http://{text}/"))


async def _books(args: argparse.Namespace, kept: Group) -> int:
    found, elsewhere, wrong = await _compared(kept)
    clusters = list[Json]()
    lines = list[str]()
    differs = bool(wrong)
    for books, is_updated in found:
        is_behind = books.behind > 0 and not is_updated
        differs = differs or bool(books.differences) or is_behind
        named: list[Json] = [one._asdict() for one in books.differences]
        clusters.append(
            {"cluster": books.cluster, "uris": books.uris, "behind": books.behind, "differences": named}
        )  # fmt: skip
        for one in books.differences:
            there = f"{one.journals or 'nothing'} in the journals, {one.centre or 'nothing'} in the centre"
            lines.append(f"{books.cluster}: {one.uri}: {there}")
        if is_behind:
            todo = f"warcmill run updater {books.cluster}"
            lines.append(f"{books.cluster}: {books.behind:,} bytes of its journal are not in the centre: {todo}")
        lines.append(f"{books.cluster}: {books.uris:,} URIs, {len(books.differences):,} differences")
    answer: dict[str, Json] = {"clusters": clusters, "elsewhere": [*elsewhere], "miscounted": [*wrong]}
    _show(args, answer, *lines, *wrong)
    for name in elsewhere:
        err(f"{name}: its journals are not on this machine, and were not compared")
    return int(differs)


async def _compared(kept: Group) -> tuple[list[tuple[ClusterBooks, bool]], list[str], list[str]]:
    """The books of each cluster that is here, and if it is being updated; the clusters elsewhere; wrong counts."""
    from tasks.config import groups
    from warcmill.clusters import books, group
    from warcmill.clusters.books import ClusterBooks

    found, elsewhere = list[tuple[ClusterBooks, bool]](), list[str]()
    async with group.asked(kept, LONG) as db:
        for one in kept.jobs:
            try:
                journals = groups.journals_of(one)
            except NotReady:
                elsewhere.append(one)
                continue
            found.append((await books.compare(db, journals), await group.is_updated(db, one)))
        return found, elsewhere, await books.miscounted(db)


async def _scope(args: argparse.Namespace, kept: Group) -> int:
    from warcmill.clusters import group, scopes

    found = scopes.read_folder(args.folder)
    machine, place = socket.gethostname(), args.folder.resolve()
    async with group.asked(kept) as db:
        edition = await scopes.keep(db, found, f"{getuser()} on {machine}", args.why, f"{machine}:{place}")
    done = "updaters write it into their jobs" if edition.is_new else "it is the newest, and nothing was done"
    _show(args, edition._asdict(), f"group {kept.name}: edition {edition.edition} of the scope; {done}")
    return 0


async def _recover(args: argparse.Namespace, kept: Group) -> int:
    from tasks.config import groups
    from warcmill.clusters import group, recovery

    if args.centre:
        return await _recover_centre(args, kept)
    _refuse_unknown(args.cluster, kept)
    if groups.is_here(args.cluster):
        groups.forget_owners(args.cluster)  # its disk may have come back from a copy, with older ones
    async with group.asked(kept, LONG) as db:
        found = await recovery.order_frontier(db, args.cluster, is_owned=kept.owned is not None)
    counts = f"{found.hosts:,} hosts, {found.waiting:,} URIs that wait, {found.visited:,} that were visited"
    lost = f"what its journal had after {found.updated or 'its begin'}, at least {found.behind:,} bytes"
    _show(
        args, found._asdict(), f"{found.cluster}: {counts}: they are ordered, for its next launch and its updater",
        f"  nobody knows {lost}; what it visited then is visited again",
    )  # fmt: skip
    return 0


async def _recover_centre(args: argparse.Namespace, kept: Group) -> int:
    from tasks.config import groups
    from warcmill.clusters import group, recovery
    from warcmill.clusters.following import ClusterJournals

    here, elsewhere = list[ClusterJournals](), list[str]()
    for one in kept.jobs:
        try:
            here.append(groups.journals_of(one))
        except NotReady:
            elsewhere.append(one)
    async with group.asked(kept, LONG) as db:
        found = await recovery.forget_rows(db, here)
    lines = list[str]()
    for rows in found:
        lines.append(
            f"{rows.cluster}: {rows.uris:,} URIs and {rows.visits:,} visits are forgotten, to be read again from"
        )
        lines.append(f"  {rows.bytes:,} bytes of journals: warcmill run updater {rows.cluster}")
        if rows.only_here:
            lines.append(f"  {rows.only_here:,} URIs stay that only the centre has; 'books' names them")
    _show(args, {"clusters": [one._asdict() for one in found], "elsewhere": [*elsewhere]}, *lines)
    for name in elsewhere:
        err(f"{name}: its journals are not on this machine, and its rows stay as they are")
    return 0


def _show(args: argparse.Namespace, answer: Mapping[str, Json], *lines: str) -> None:
    if args.json:
        print(as_json(dict(answer)))
    else:
        out(*lines)


ACTIONS: Mapping[str, Callable[[argparse.Namespace, Any], Coroutine[Any, Any, int]]] = {
    "init": _init,
    "status": _status,
    "books": _books,
    "explain": _explain,
    "move": _move,
    "retire": _retire,
    "scope": _scope,
    "recover": _recover,
}
"""Each action, which returns the exit code."""
