"""The actions of `warcmill script` on the scripts of a job: set, start, visit again, delete, list."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from commands.console.luigi_cfg import engine_for
from commands.console.papers import look_at, open_papers
from commands.console.person import person
from commands.console.show import as_json, out
from tasks.config import engines
from warcmill.base.escapes import printable
from warcmill.crawl.job import file
from warcmill.crawl.launch.folders import STATE
from warcmill.errors import BadInput, NotReady
from warcmill.markers.editions import Edition
from warcmill.markers.papers import check_name, script_paper
from warcmill.model import Json, Launch
from warcmill.scripts import answers, trial
from warcmill.scripts.folder import ScriptFolder, ScriptPlace, ScriptStatus, forget_row, set_row
from warcmill.scripts.taskbook import TaskReader
from warcmill.scripts.trial import TriedPage
from warcmill.scripts.walled import walls
from warcmill.scripts.walled.asking import ScriptAsker, ScriptText

is_stamp = re.compile(r"[0-9]{14}").fullmatch
SECONDS = 120.0  # that a crawl has to answer
_SPANS = ("5m", "1h", "1d", "all")
_HEAD = ("group", "name", "status", "rate/burst", *_SPANS, "late", "watch")


def script_place(job: str) -> ScriptPlace:
    """A job of scripts on this machine; BadInput if it is missing."""
    section = engines.section_of(job)
    if not section or engines.kind_of(section) != engines.WARCMILL:
        raise BadInput(job, "no engine of ours crawls a job of this name")
    with closing(engines.own_engine(section)) as engine:
        places, folder = engine.places, engine.places.job(job)
        if file.described(file.files_in(folder), job).service != file.SCRIPTS:
            raise BadInput(job, "it crawls without scripts")
        launches = sorted((path.name for path in folder.iterdir() if is_stamp(path.name)), reverse=True)
        warcs = tuple(places.folders(Launch.parse(job, launch)).warcs for launch in launches)
        has_walls, proxies = engines.has_script_walls(), tuple(engines.script_proxies())
        return ScriptPlace(job, folder, warcs, engine.allow_private, has_walls, proxies)


def _set(args: argparse.Namespace) -> int:
    """Change the row of a script; a crawl that runs takes it within a second."""
    job, name = args.script
    status = args.status and ScriptStatus(args.status)
    look_at(job)
    given = {"status": status, "rate": args.rate, "burst": args.burst, "group": args.group}
    row = set_row(_folder(job), name, {key: value for key, value in given.items() if value is not None})
    group = f", {row.group}" if row.group else ""
    out(f"{job}/{name}: {row.status}, {row.rate:g} a second, {row.burst:g} at once{group}")
    return 0


def _start(args: argparse.Namespace) -> int:
    """Have a script called at its beginning, by the crawl that runs."""
    job, name = args.script
    begun = _asked(job, "begin", scripts=[name])["begun"]
    if not begun:
        raise NotReady(f"script {name}", f"it is not running: warcmill script set {job}/{name} --status RUNNING")
    out(f"{job}/{name}: begins")
    return 0


def _again(args: argparse.Namespace) -> int:
    """Have a task visited again, by the crawl that runs."""
    job, name = args.script
    found = TaskReader(_folder(job) / STATE).task(name, args.taskid)
    if found is None:
        raise BadInput(f"{job}/{name}", f"it has no task {printable(args.taskid)}")
    if not _asked(job, "again", script=name, task=found["task"])["taken"]:
        raise NotReady(f"task {printable(args.taskid)}", "its crawl refuses it, or visits it just now")
    out(f"{job}/{name}: {printable(str(found['url']))} is visited again")
    return 0


def _delete(args: argparse.Namespace) -> int:
    """Forget a script, its tasks and its results, now. The archive stays."""
    job, name = args.script
    check_name(name, f"{job}/{name}")
    papers = open_papers(job)
    newest = papers.settle()
    if newest is None or not (papers.folder / script_paper(name)).exists():
        raise BadInput(f"{job}/{name}", "there is no such script")
    papers.editions.check()  # before the crawl forgets it: without the store it cannot be deleted
    try:
        waited = _asked(job, "forget", script=name)["waited"]
    except NotReady as error:
        why = f"no crawl of it runs, which could forget {name}: warcmill pulse start {job}"
        raise NotReady(f"job {job}", why) from error
    why = "warcmill script delete"
    papers.save({script_paper(name): None}, who=person(), why=why, made_from=newest.number)
    forget_row(papers.folder, name)
    out(f"{job}/{name}: deleted; {waited} tasks of it waited. Its pages are in the archive, its texts are editions")
    return 0


def _list(args: argparse.Namespace) -> int:
    """List the scripts of a job, with counts and what a person should look at."""
    look_at(args.job)
    found = answers.listed(_folder(args.job), time.time())
    if args.json:
        print(as_json(found))
        return 0
    rows = [_HEAD, *(_row(one) for one in _dicts(found["scripts"]))]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    for row in rows:
        out("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for one in _dicts(found["unfit"]):
        out(f"{one['name']}: {one['why']}")
    for script in _dicts(found["scripts"]):
        for finding in _dicts(script["watch"]):
            where = f" {finding['callback']}" if finding["callback"] else ""
            out(f"{script['name']}{where} is {finding['state']}: {finding['why']}{_first(finding)}")
    return 0


def _tasks(args: argparse.Namespace) -> int:
    """List the tasks of a job's scripts that changed last."""
    job, _, name = args.what.partition("/")
    found: list[Json] = [*TaskReader(_folder(job) / STATE).tasks(name, status=args.status or "", limit=args.limit)]
    if args.json:
        print(as_json({"tasks": found}))
        return 0
    for one in _dicts(found):
        why = f"  {printable(str(one['why']))}" if one["why"] else ""
        url = printable(str(one["url"]))
        out(f"{one['status']:8} {one['script']}  {one['callback']}  {one['http'] or '-'}  {url}{why}")
    return 0


def _results(args: argparse.Namespace) -> int:
    """Print the newest result of each task."""
    job, _, name = args.what.partition("/")
    for text in answers.results(_folder(job), name, args.format, args.after):
        sys.stdout.write(text)
    return 0


def _try(args: argparse.Namespace) -> int:
    """Run the present text of a script over the last pages that it has read, and print the fields that differ."""
    job, name = args.script
    look_at(job)
    place = script_place(job)
    scripts = ScriptFolder(place.folder)
    scripts.look()
    if name not in scripts.all:
        raise BadInput(f"{job}/{name}", scripts.unfit.get(name, "there is no such script"))
    walls.check(walls=place.has_walls)
    book, text = TaskReader(place.folder / STATE), ScriptText(name, scripts.texts)

    async def tried() -> list[TriedPage]:
        asker = ScriptAsker(script_walls=place.has_walls)
        try:
            with TemporaryDirectory() as scratch:
                find = trial.finder(place.warcs)
                return [one async for one in trial.pages(asker, text, book, find, Path(scratch), args.last)]
        finally:
            asker.close()

    found = asyncio.run(tried())
    if args.json:
        print(as_json({"pages": [one.answer for one in found]}))
    else:
        for one in found:
            out(f"{one.callback}  {one.url}  {one.why or _shown(one)}")
        worse = sum(one.is_worse for one in found)
        out(f"{job}/{name}: {len(found)} pages, {worse} of them worse than before; no site was asked")
    return int(any(one.is_worse for one in found))


def _history(args: argparse.Namespace) -> int:
    """List the editions of a script, the newest first."""
    job, name = args.script
    paper = script_paper(name)
    look_at(job)
    found = [*open_papers(job).editions.of(paper)]
    if not found:
        raise BadInput(f"{job}/{name}", "no edition has such a script")
    if args.json:
        print(as_json({"editions": [_edition(one, paper) for one in found]}))
        return 0
    for one in found:
        removed = "" if one.digest(paper) else "  removed"
        made_from = f"  from {one.made_from}" if one.made_from else ""
        out(f"{one.number:6}  {one.time}  {one.who or '-'}{made_from}{removed}  {one.why}")
    return 0


def _edition(one: Edition, paper: str) -> Json:
    found: dict[str, Json] = {name: getattr(one, name) for name in ("number", "time", "who", "why", "made_from")}
    return {**found, "sha256": one.digest(paper)}


def _show(args: argparse.Namespace) -> int:
    """Print the text of a script, as an edition has it."""
    job, name = args.script
    look_at(job)
    editions = open_papers(job).editions
    newest = editions.newest()
    number = args.edition or (newest.number if newest else 0)
    if not number:
        raise BadInput(f"{job}/{name}", "no edition has such a script")
    text = editions.text(number, script_paper(name))
    if sys.stdout.isatty():
        out(*text.decode("utf-8-sig").splitlines())
    else:
        sys.stdout.buffer.write(text)
    return 0


def _shown(one: TriedPage) -> str:
    changed = [f"{name}: {_short(before)} -> {_short(after)}" for name, before, after in one.fields]
    same = [f"{name}: empty, as before" for name in one.empty if name not in {name for name, _, _ in one.fields}]
    return "; ".join([*changed, *same]) or ("the same" if one.after is not None else f"{one.follows} follows")


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    counts = one["counts"]
    sums = ["/".join(str(counts[span][kind]) for kind in ("success", "retry", "failed")) for span in _SPANS]
    late = f"{one['late_seconds']} s" if one["late_seconds"] else ""
    watch = ", ".join(sorted({finding["state"] for finding in one["watch"]}))
    return (one["group"], one["name"], one["status"], f"{one['rate']}/{one['burst']}", *sums, late, watch)


def _first(finding: Mapping[str, Any]) -> str:
    return f"; first {printable(str(finding['url']))}" if finding["url"] else ""


def _dicts(found: Json) -> list[dict[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _folder(job: str) -> Path:
    with closing(engine_for(job)) as engine:
        return engine.places.job(job)


def _asked(job: str, verb: str, **fields: Json) -> dict[str, Any]:
    with closing(engines.running_job(job)) as crawl:
        found = crawl.ask(verb, SECONDS, **fields)
    return found if isinstance(found, dict) else {}


ACTIONS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "set": _set, "start": _start, "again": _again, "delete": _delete, "list": _list, "tasks": _tasks,
    "results": _results, "try": _try, "history": _history, "show": _show,
}  # fmt: skip
