"""warcmill job: edit a job of the built-in crawler; look at its running crawl, and steer it."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from commands.console import frontiers
from commands.console.arguments import add_json, job, reason
from commands.console.show import as_json, err, out
from tasks.config import engines
from warcmill.crawl.control import control
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.frontier.crew import Crew, RetiredWorker, WorkerSigns
from warcmill.crawl.frontier.link import RedisLink
from warcmill.errors import BadConfig
from warcmill.model import Json

SUMMARY = "edit a job of the built-in crawler; look at its running crawl, and steer it"
EPILOG = """\
examples:
  warcmill job daily edit
  warcmill job daily edit --from form.toml --why "no calendars"
  warcmill job daily try --from form.toml
  warcmill job daily try --crawl --pages 20
  warcmill job daily history
  warcmill job daily undo
  warcmill job daily rename "News of the region"
  warcmill job daily delete
  warcmill job daily state
  warcmill job daily watch
  warcmill job daily pause
  warcmill job daily resume
  warcmill job daily add https://example.org/report.pdf
  warcmill job daily suspend --site slow.example.org
  warcmill job daily resume --site slow.example.org
  warcmill job daily remove https://example.org/calendar?day=1
  warcmill job daily list --limit 20
  warcmill job daily recent
  warcmill job daily active
  warcmill job daily hosts
  warcmill job daily rate --site example.org --hits 10 --window 60
  warcmill job daily rate --site example.org --none
  warcmill job daily dump frontier.jsonl.gz
  warcmill job daily load frontier.recover.gz --dry-run
  warcmill job daily rebuild
  warcmill job daily books
  warcmill job daily workers
  warcmill job daily leave-out example.org/calendar
  warcmill job daily leave-out --rule "*/print/*"
  warcmill job daily set --documents 5000 --seconds "2 h" --least 1 --keep
  warcmill job daily retry --missed
  warcmill job daily retire w2 --reason "its disk is broken"

A crawl is asked by the control socket in its folder, on the machine where it runs; one whose
frontier is in Redis from any machine, whose luigi.cfg names that in the [engine.NAME] of the
job. workers and retire ask Redis alone, and need no crawl. pause lets the
downloads under way end and begins no more; resume continues. suspend and resume of a URI or
of a site (host, and port where it is not the usual one) hold for what waits; remove takes
it away for good. checkpoint and stop are for a person at this machine: 'warcmill pulse'
takes the same steps, and writes their markers. retire declares a worker dead whose machine or
disk is lost: the URIs that it had are fetched by others, the launch ends without it, and a
worker of that name is refused from then on.

dump writes all that the frontier has into a new file, also while no crawl runs. load has a
running crawl take a dump, a list of URLs, or the frontier.recover.gz of a launch. rebuild
fills a Redis that has lost what it knew, from the newest checkpoint and the journals; books
compares the frontier with them. retry, of a job that does not run, begins a launch that
asks again for some URLs, or for all that the newest launch missed, and for what waits:
'warcmill report JOB --missed' lists them. What is out of the scope is counted, and not asked.

edit prints the form of a job: its title, addresses, what to keep, what to leave out, limits,
browser, pace, schedule. With --from it saves the fields in FILE, TOML or JSON, as an edition
of the job's papers: who, when, why; a field that FILE lacks stays. What the form has no field
for, and each comment of crawl.toml, stays too. Whole papers are the fields crawl_toml,
seeds_txt, surts_txt and exclude_txt. --new makes the job. If the job runs, it prints what
counts at once, and what waits for the next launch. try judges the newest launch by the edited
rules, from its crawl log, and asks no site: what they would leave out, by which rule, and
what they would take. try --crawl asks for some pages instead, at most 50 and for ten minutes: it
crawls as a launch would, by the same pace, robots.txt and inside addresses, and lists what was
got, what each rule left out, and what would be next. Nothing of it is archived, and no launch
knows of it; the report and three pictures of pages that were rendered are kept in web/files of
the state for some days. It gives way to the job's own crawl. history lists the editions; undo
goes back to the one before, or to --edition, as a new one. rename gives the job another title;
its name stays, as launches have it. delete takes it out of the list, and ends its schedule: an
edition without papers, which undo goes back from. What it has archived stays.
leave-out adds a rule to what the job leaves out, as an edition. set changes limits or the pace of
the running launch at once, and with --keep those of the job.

--json: what the crawl answers, as one document; for watch a document a line. state:
{"state", "launch", "done", "queued", ...}; add: {"answers": [{"uri", "answer", "why"}]};
list: {"uris": [{"uri", "queue", "status", ...}], "next"}; get: as one of the uris;
edit: the fields, each a text; with --from: {"at_once", "changed", "edition", "job", "said",
"waits"}; try: {"asked", "behind", "launch", "left_out": [{"rule", "number", "first"}],
"left_out_number", "refused", "scope_log", "taken", "whole"}; try --crawl: {"began", "ended",
"failed": [{"url", "why"}], "job", "left_out": [{"rule", "number", "first"}], "most", "next",
"pages": [{"url", "status", "type", "size", "title", "picture"}], "parts", "robots"}; history: {"editions":
[{"number", "time", "who", "why", "made_from", "papers"}]}; undo: {"changed", "edition"};
rename: as edit; delete: {"job", "said"};
leave-out: {"edition", "new", "rule"}; set: {"documents", "bytes", "seconds", "least_ms"}
workers: {"workers": [{"name", "state", "host", "version", "leases", "per_minute", ...}]}

exit codes: 0 done, 1 no crawl of the job runs, it refused, the URI is not known, a field
cannot be taken, somebody else has saved the job meanwhile, or there is nothing to go back to,
2 usage, 3 configuration, also of a job to be deleted that something there points to, 4 the
crawl does not answer, 5 a crawl or a trial of the job runs
"""

LONG = 3600.0  # seconds for a checkpoint, or for a download to end
TARGET = ("resume", "suspend", "remove")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """JOB, and what to do, with its own arguments."""
    parser.add_argument("job", type=job, metavar="JOB", help="the crawl's name")
    names = (*ACTIONS, *OF_WORKERS, *frontiers.ACTIONS, *OF_PAPERS)
    actions = parser.add_subparsers(dest="action", required=True, metavar="|".join(names))
    for name in names:
        actions.add_parser(name, allow_abbrev=False)
        add_json(actions.choices[name])
    _add_targets(actions.choices)
    actions.choices["add"].add_argument("uris", nargs="+", metavar="URL", help="what to fetch")
    actions.choices["get"].add_argument("uri", metavar="URL", help="what to look up")
    for name in ("add", "get", "list", *TARGET):
        actions.choices[name].add_argument("--crawl", default="", metavar="NAME", help="its namespace; by default ''")
    listed = actions.choices["list"]
    listed.add_argument("--limit", type=int, default=100, metavar="NUMBER", help="how many; by default 100")
    listed.add_argument("--after", type=int, default=0, metavar="NUMBER", help="the 'next' of the list before")
    watched = actions.choices["watch"]
    watched.add_argument("--seconds", type=int, default=2, metavar="NUMBER", help="between two lines; by default 2")
    _add_rate(actions.choices["rate"])
    frontiers.add_arguments(actions.choices)
    _add_papers(actions.choices)
    actions.choices["retire"].add_argument("worker", type=job, metavar="WORKER", help="the name of a worker")
    actions.choices["retire"].add_argument(
        "--reason", type=reason, required=True, metavar="TEXT", help="how you know; kept among the reports"
    )


def _add_targets(choices: Mapping[str, argparse.ArgumentParser]) -> None:
    for name in TARGET:
        what = choices[name].add_mutually_exclusive_group(required=name != "resume")
        what.add_argument("uri", nargs="?", metavar="URL", help="a URL")
        what.add_argument("--site", metavar="NAME", help="all that waits of a host")


def _add_papers(choices: Mapping[str, argparse.ArgumentParser]) -> None:
    for name in ("edit", "try"):
        choices[name].add_argument(
            "--from", type=Path, dest="source", metavar="FILE", help="fields of the form, in TOML or JSON; - is stdin"
        )
    choices["edit"].add_argument("--new", action="store_true", help="make the job")
    tried = choices["try"]
    tried.add_argument("--crawl", action="store_true", help="ask for some pages, and archive nothing")
    tried.add_argument("--pages", type=int, metavar="NUMBER", help="of --crawl: at most so many, 50 by default")
    tried.add_argument("--new", action="store_true", help="of --crawl: the job is not made yet")
    tried.add_argument("--id", default="", metavar="ID", help="of --crawl: the name of its folder; pages give one")
    choices["undo"].add_argument("--edition", type=int, default=0, metavar="NUMBER", help="back to this one")
    choices["rename"].add_argument("title", metavar="TEXT", help="its title, for people")
    for name in ("edit", "undo"):
        choices[name].add_argument("--why", default="", metavar="TEXT", help="kept with the edition")

    left = choices["leave-out"]
    left.add_argument("rule", metavar="URL", help="the beginning of a URL, a host, or a SURT prefix")
    left.add_argument(
        "--rule", action="store_true", dest="is_rule", help="it is a word, wildcards, or re: and an expression of RE2"
    )
    limited = choices["set"]
    limited.add_argument("--documents", metavar="NUMBER", help="at most so many; 0: no limit")
    limited.add_argument("--bytes", metavar="TEXT", help="at most so many, as '10 GB'")
    limited.add_argument("--seconds", metavar="TEXT", help="at most so long, as '2 h'")
    limited.add_argument("--least", metavar="NUMBER", help="seconds between two requests to a host")
    limited.add_argument("--keep", action="store_true", help="save it as an edition of the job, too")


def _add_rate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--site", default="", metavar="NAME", help="by default all that have no rate of their own")
    parser.add_argument("--hits", type=int, metavar="NUMBER", help="at most so many requests")
    parser.add_argument("--window", type=float, metavar="NUMBER", help="in any so many seconds, by default 1")
    parser.add_argument("--moderated", action="store_true", default=None, help="evenly apart")
    parser.add_argument("--at-once", type=int, metavar="NUMBER", help="at most so many at the same time; by default 1")
    parser.add_argument("--none", action="store_true", default=None, help="take its own rate away")


def run(args: argparse.Namespace) -> int:
    """Ask the crawl, or the Redis of its frontier; print what it answers."""
    if args.action in frontiers.ACTIONS:
        return frontiers.ACTIONS[args.action](args)
    if args.action == "try" and (args.crawl or args.new or args.id or args.pages is not None):
        return _crawl_some(args)
    if args.action in OF_PAPERS:
        from commands.console import job_papers  # it imports what crawls, which others do without

        return job_papers.ACTIONS[args.action](args)
    answer: Any
    if args.action in OF_WORKERS:
        answer = asyncio.run(_of_workers(args))
        if args.json:
            print(as_json(answer))
        else:
            out(*OF_WORKERS[args.action](args, answer))
        return 0
    with closing(engines.running_job(args.job)) as crawl:
        if args.action == "watch":
            return _watch(crawl, args)
        seconds = LONG if args.action in ("checkpoint", "pause") else control.SECONDS
        answer = crawl.ask(args.action, seconds, **_fields(args))
    if args.json:
        print(as_json(answer))
    else:
        out(*ACTIONS[args.action](args, answer))
    return _code(args.action, answer)


def _crawl_some(args: argparse.Namespace) -> int:
    if not args.crawl:
        err("warcmill job: --pages, --new and --id are for try --crawl")
        return 2
    from commands.console import trial  # it imports what crawls, too

    return trial.run(args)


async def _of_workers(args: argparse.Namespace) -> dict[str, Json]:
    """Ask Redis of the workers of a job, or declare one dead."""
    section = engines.section_of(args.job)
    place = engines.frontier_of(section) if section else None
    if place is None:
        where = f"[{section}]" if section else "an [engine.NAME]"
        raise BadConfig("frontier", f"{where} of job {args.job} has none, so it has no workers; see docs/commands.md")
    crew = Crew(RedisLink(place, args.job))
    try:
        if args.action == "retire":
            dead = await crew.retire(args.worker, args.reason)
            return dead._asdict()
        retired = {one.name: one for one in await crew.retired()}
        found = [_shown(one, place.checkpoint_wait, retired.get(one.name)) for one in (await crew.workers())[1]]
        return {"workers": [*found]}
    finally:
        crew.close()


def _shown(one: WorkerSigns, wait: int, retired: RetiredWorker | None) -> dict[str, Json]:
    """A worker as it is shown: `waits` has no launch open, `missing` gives no sign of life."""
    state = "left" if one.has_left else "waits" if not one.is_open else "crawls"
    if one.age >= wait and not one.has_left:
        state = "missing"
    about = {name: one.about.get(name, "") for name in ("host", "version")}
    counts = {name: one.about.get(name, 0) for name in ("pid", "per_minute", "documents")}
    return {
        "name": one.name, "state": "retired" if retired else state, "launch": one.launch if one.is_open else "",
        "leases": one.leases, "last_sign": None if one.has_left else round(one.age), **about, **counts,
        "reason": retired.reason if retired else "",
    }  # fmt: skip


def _workers(args: argparse.Namespace, answer: Any) -> Iterator[str]:
    for one in answer["workers"]:
        sign = "" if one["last_sign"] is None else f", last sign {one['last_sign']} s ago"
        why = f": {one['reason']}" if one["reason"] else ""
        yield f"{one['name']}: {one['state']} on {one['host']}, version {one['version']}{sign}{why}"
        yield f"  {one['leases']} leases, {one['per_minute']} URIs a minute, {one['documents']:,} documents"
    if not answer["workers"]:
        yield f"{args.job} has no workers"


def _retired(args: argparse.Namespace, answer: Any) -> Iterator[str]:
    yield f"{args.worker} on {answer['host']} is retired: {answer['visits']:,} visits since its last stage have no file"


def _fields(args: argparse.Namespace) -> dict[str, Json]:
    given = {name: value for name, value in vars(args).items() if name not in ("job", "action", "json")}
    return {name: value for name, value in given.items() if value not in (None, "")}


def _watch(crawl: RunningJob, args: argparse.Namespace) -> int:
    for state in crawl.watch(args.seconds):
        if args.json:
            print(json.dumps(state, sort_keys=True), flush=True)
        else:
            out(", ".join(f"{name} {text}" for name, text in _members(state)))
    return 0


def _code(action: str, answer: Any) -> int:
    """1 when something was not done: a URI was refused, or is not known."""
    if action == "add":
        return int(any(one["answer"] == "refused" for one in answer["answers"]))
    if action == "get":
        return int(not answer)
    return int(0 in (answer.get("changed"), answer.get("removed")))


def _said(text: str) -> Callable[[argparse.Namespace, Any], list[str]]:
    return lambda args, answer: [text.format(args=args, **answer)]


def _state(_: argparse.Namespace, answer: Any) -> Iterator[str]:
    yield from (f"{name}: {text}" for name, text in _members(answer))


def _added(_: argparse.Namespace, answer: Any) -> Iterator[str]:
    for one in answer["answers"]:
        yield f"{one['answer']:<7} {one['uri']}{': ' + one['why'] if 'why' in one else ''}"


def _changed(args: argparse.Namespace, answer: Any) -> Iterator[str]:
    what, number = args.site or args.uri, answer.get("changed", answer.get("removed"))
    if what is None:
        yield f"{args.job} continues"
    elif number == 0:
        yield from answer.get("refused", [f"{what}: nothing of it waits"])
    elif args.action == "remove":
        yield f"{what}: {number} removed"
    else:
        yield f"{what} is suspended" if args.action == "suspend" else f"{what} is resumed"
        yield from (f"it stays suspended: {one}" for one in answer.get("refused", ()))


def _got(args: argparse.Namespace, answer: Any) -> Iterator[str]:
    yield from (f"{name}: {text}" for name, text in _members(answer))
    if not answer:
        yield f"{args.uri}: the crawl has never taken it"


def _listed(args: argparse.Namespace, answer: Any) -> Iterator[str]:
    for one in answer["uris"]:
        yield f"{one['status']:<11} {one['uri']}"
    if answer["next"]:
        yield f"more: warcmill job {args.job} list --after {answer['next']}"


def _recent(args: argparse.Namespace, answer: Any) -> Iterator[str]:
    for one in answer["pages"]:
        yield f"{one['time']}  {one['status']:>5}  {one['size']:>12,}  {one['type'] or '-':<24}  {one['uri']}"
    if not answer["pages"]:
        yield f"{args.job} has brought no page yet"


def _active(args: argparse.Namespace, answer: Any) -> Iterator[str]:
    for one in answer["uris"]:
        yield f"{one['seconds']:>6,} s  {one['uri']}"
    if more := answer["number"] - len(answer["uris"]):
        yield f"and {more:,} more"
    if answer["elsewhere"]:
        yield f"other processes fetch {answer['elsewhere']:,} more"
    if not answer["number"]:
        yield f"{args.job} fetches nothing now"


def _hosts(args: argparse.Namespace, answer: Any) -> Iterator[str]:
    for one in answer["hosts"]:
        numbers = (one["waiting"], one["done"], one["failed"], one["status"])
        yield "".join(f"{'-' if number is None else f'{number:,}':>12}" for number in numbers) + f"  {one['host']}"
    if answer["hosts"]:
        yield f"{args.job}: URIs that wait, that are done, that failed, and the last status, by host"
    if answer["why"]:
        yield answer["why"]
    elif not answer["whole"]:
        yield f"{answer['counted']:,} of what waits are counted yet; ask again for more"


def _members(answer: Any) -> list[tuple[str, str]]:
    """The members of an answer as text, without those that are empty."""
    shown = ((name, _text(value)) for name, value in sorted(answer.items()))
    return [(name, text) for name, text in shown if text]


def _text(value: Json) -> str:
    """A value as people read it; a table as `200 36, 404 1`."""
    return ", ".join(f"{name} {one}" for name, one in value.items()) if isinstance(value, dict) else str(value)


OF_PAPERS = ("edit", "try", "history", "undo", "leave-out", "set", "rename", "delete")
"""The actions on the papers of a job, which need no crawl; set does, without --keep."""

OF_WORKERS: Mapping[str, Callable[[argparse.Namespace, Any], Any]] = {"workers": _workers, "retire": _retired}
"""The actions that ask the Redis of the frontier, and the text of the answer to each."""

ACTIONS: Mapping[str, Callable[[argparse.Namespace, Any], Any]] = {
    "state": _state,
    "watch": _state,
    "pause": _said("{args.job} is paused; next: warcmill job {args.job} resume"),
    "resume": _changed,
    "checkpoint": _said("{args.job} has taken {checkpoint}"),
    "stop": _said("{args.job} is stopping"),
    "add": _added,
    "suspend": _changed,
    "remove": _changed,
    "get": _got,
    "list": _listed,
    "recent": _recent,
    "active": _active,
    "hosts": _hosts,
    "rate": _said("the rate is set"),
}
"""The actions, and the text of the answer to each."""
