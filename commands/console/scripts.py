"""The actions of `warcmill script`: run scripts, write one, check one, step through one.

`run` and `new` write the files of the job, and luigi.cfg when no engine lists the job yet.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commands.console import crawl_options
from commands.console.crawl import answers, left_at, name_left_out
from commands.console.luigi_cfg import engine_for, list_job
from commands.console.papers import open_papers
from commands.console.person import person
from commands.console.show import err, out
from tasks.config import engines, folders
from warcmill.base import clock
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.job import file
from warcmill.crawl.job.job import End
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch import job_log, reports
from warcmill.crawl.launch.folders import PAPERS
from warcmill.errors import BadConfig, BadInput, Busy, Conflict, Unavailable
from warcmill.formats.warc.writer import RecordPlace
from warcmill.model import Json

if TYPE_CHECKING:
    from warcmill.scripts.folder import ScriptFile
    from warcmill.scripts.visit import ScriptRun
    from warcmill.scripts.walled.asking import CallbackOutcome

INTERRUPTED = 130


def _run(args: argparse.Namespace) -> int:
    """Make a launch of the job, until only what scripts do every so often is left."""
    _check_extra()
    from warcmill.scripts import process
    from warcmill.scripts.walled import walls

    found = [_read(path) for path in args.files]
    if len({script.name for script in found}) < len(found):
        raise BadInput("FILE", "two of the files have one name, and so would their scripts; rename one")
    job = args.job or found[0].name
    config = folders.find() or crawl_options.new_archive(err)
    os.environ[folders.VARIABLE] = str(config)
    walls.check(walls=engines.has_script_walls())
    list_job(config, job)
    with closing(engine_for(job)) as engine:
        seen = engine.look(job)
        if seen.running:
            raise Busy(f"job {job}, launch {seen.launch_id},")
        if seen.died:
            engine.stop(job)
        _save(engine, job, process.files(_settings(args)), {script.name: script.text for script in found})
        checkpoint = left_at(engine, job, job_log.last(engine.places.job(job)))
        if checkpoint:
            err(f"{job}: continues from {checkpoint}")
        follows = "" if checkpoint else engine.follows(job)
        heard = _Heard()
        end = process.run(
            engine.places, job, [script.name for script in found], checkpoint, follows, engine.allow_private,
            engines.script_walls(), engines.script_proxies(), heard.run, heard.result,
        )  # fmt: skip
        launch = engine.look(job).launch_id
        result = reports.read(engine.places.job(job) / launch)
    err(f"{job}: launch {launch}: {answers(result, each=True)}")
    with contextlib.redirect_stdout(sys.stderr):
        name_left_out(result)
    err(f"next: warcmill scan {clock.stamp_text(launch)[:10]}")
    if end.waits_until and end.end is not End.STOPPED:
        until = clock.text(datetime.fromtimestamp(end.waits_until, UTC))
        err(f"{job}: some tasks wait, the next until {until}; the same command continues")
    if end.end is End.STOPPED:
        err(f"{job}: stopped, with a checkpoint; the same command continues from there")
        return INTERRUPTED
    return int(heard.has_failed)


class _Heard:
    """Prints results as lines of JSON, and what scripts print beside them."""

    def __init__(self) -> None:
        self.has_failed = False

    def run(self, run: ScriptRun) -> None:
        """Print what a callback printed, and why it failed."""
        if text := run.outcome.log.strip():
            err(*text.splitlines())
        if run.outcome.why:
            self.has_failed = True
            err(f"{run.script}: {run.task.callback} of {run.task.url} failed: {run.outcome.why}")

    def result(self, value: Mapping[str, Json], place: RecordPlace | None) -> None:
        """Print a result with the place of its page."""
        where = {"warc": place.name, "offset": place.offset} if place else {}
        out(json.dumps({**value, **where}, ensure_ascii=False, sort_keys=True))


def _new(args: argparse.Namespace) -> int:
    """Write a script to begin with into a job, which is made if it is missing."""
    _check_extra()
    from warcmill.markers.papers import script_paper
    from warcmill.scripts import process
    from warcmill.scripts.folder import new

    job, name = args.script
    text = new(name, args.start)  # before a job is made for it
    config = folders.find() or crawl_options.new_archive(err)
    os.environ[folders.VARIABLE] = str(config)
    list_job(config, job)
    with closing(engine_for(job)) as engine:
        engine.check_service(job, file.SCRIPTS)
    papers = open_papers(job)
    newest = papers.settle()
    path = papers.folder / script_paper(name)
    if path.exists():
        raise Conflict(str(path), "it exists; choose another name, or edit it")
    files = {} if (papers.folder / CONFIGURATION).exists() else process.files({})
    papers.save(
        {**files, script_paper(name): text.encode()}, who=person(), why="warcmill script new",
        made_from=newest.number if newest else 0,
    )  # fmt: skip
    out(str(path))
    return 0


def _check(args: argparse.Namespace) -> int:
    """Load a script, and print what it says of itself."""
    found = asyncio.run(_with_asker(lambda asker, text: asker.about(text), args.file))
    answer = {
        "callbacks": found.callbacks, "crawl_config": found.crawl_config, "every": found.ticks,
        "name": args.file.stem, "on_start": found.starts, "undefined": found.undefined, "why": found.why,
    }  # fmt: skip
    if args.json:
        out(json.dumps(answer, ensure_ascii=False, sort_keys=True))
    elif found.why:
        err(f"{args.file}: it cannot be loaded", *(found.trace or found.why).splitlines())
    else:
        out(f"{args.file}: {', '.join(found.callbacks) or 'no callback'}")
        out(f"  on_start: {'yes' if found.starts else 'no: nothing begins'}; every {found.ticks or 'nothing'} seconds")
        if found.undefined:
            err(f"{args.file}: nothing defines {', '.join(found.undefined)}; a script of Python 2 is to be rewritten")
    return int(bool(found.why or found.undefined))


def _step(args: argparse.Namespace) -> int:
    """Run one callback of a script, and print all that came of it."""
    task = _task(args)
    url = str(task.get("url", ""))
    body = _bytes(args.page) if args.page else b""
    if not url.startswith("data:") and not args.page:
        raise BadInput(url, "a step asks no site; save the page and name it by --page FILE")
    fetch = task.get("fetch")
    save = fetch.get("save") if isinstance(fetch, dict) else None
    fields = {"status_code": 200, "url": url, "orig_url": url, "save": save}
    found = asyncio.run(_with_asker(lambda asker, text: asker.run(text, task, fields, body, debugger=True), args.file))
    answer = {name: getattr(found, name) for name in ("follows", "log", "messages", "results", "why")}
    if args.json:
        out(json.dumps(answer, ensure_ascii=False, sort_keys=True))
    else:
        _show(found)
    return int(bool(found.why))


def _show(found: CallbackOutcome) -> None:
    err(*found.log.splitlines())
    for one in found.follows:
        out(f"follow  {(one.get('process') or {}).get('callback', '__call__')}  {one.get('url')}")
        out(f"        {json.dumps(one, ensure_ascii=False, sort_keys=True)}")
    for to, text, _ in found.messages:
        out(f"message {to}  {json.dumps(text, ensure_ascii=False)}")
    for one in found.results:
        out(f"result  {json.dumps(one, ensure_ascii=False, sort_keys=True)}")
    if found.why:
        err(found.why)


def _task(args: argparse.Namespace) -> dict[str, Any]:
    if args.task:
        try:
            found = json.loads(args.task)
        except (ValueError, RecursionError) as error:
            raise BadInput("--task", f"it is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise BadInput("--task", "it is not a task: an object, as a step prints its follows")
        return {**found, "project": args.file.stem}
    callback = args.callback or "on_start"
    url = args.url or f"data:,{callback}"
    return {"taskid": callback, "project": args.file.stem, "url": url, "process": {"callback": callback}}


async def _with_asker(ask: Callable[..., Any], path: Path) -> Any:
    _check_extra()
    from warcmill.scripts.walled import walls
    from warcmill.scripts.walled.asking import ScriptAsker, ScriptText

    if config := folders.find():
        os.environ[folders.VARIABLE] = str(config)
    script = _read(path)
    has_walls = engines.has_script_walls()
    walls.check(walls=has_walls)
    beside = dict[str, str]()
    for one in filter(Path.is_file, path.parent.glob("*.py")):
        with contextlib.suppress(BadInput, Unavailable):  # it is not a script
            beside[one.stem] = _read(one).text
    asker = ScriptAsker(script_walls=has_walls)
    try:
        return await ask(asker, ScriptText(script.name, {**beside, script.name: script.text}))
    finally:
        asker.close()


def _check_extra() -> None:
    """BadConfig where what reads pages for scripts is not installed."""
    try:
        from warcmill.scripts.api import response  # noqa: F401
    except ImportError as error:
        raise BadConfig("script", f"{error.name} is missing; pip install 'warcmill[scripts]'") from error


def _read(path: Path) -> ScriptFile:
    from warcmill.scripts.folder import read

    return read(path)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unavailable(str(path), error.strerror or str(error)) from error


def _save(engine: WarcmillEngine, job: str, files: Mapping[str, bytes], texts: Mapping[str, str]) -> None:
    """Save scripts, and the files of a job of scripts, as an edition; a job that has rules keeps them. Conflict for one
    that crawls something else."""
    from warcmill.markers.papers import script_paper

    own = file.files_in(engine.places.job(job))
    if CONFIGURATION in own and file.described(own, job).service != file.SCRIPTS:
        raise Conflict(f"job {job}", "it crawls without scripts; choose another name by --job")
    rules = {name: own[name] for name in (file.SURTS, file.EXCLUDE) if name in own}
    wanted = {**files, **rules}
    file.parse(wanted, job)
    scripts = {script_paper(name): text.encode() for name, text in texts.items()}
    papers = open_papers(job)
    newest = papers.settle()
    changes = {**{name: wanted.get(name) for name in PAPERS}, **scripts}
    papers.save(changes, who=person(), why="warcmill script run", made_from=newest.number if newest else 0)
    engine.configure(job, wanted)


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """The keys of --config, with those of the options before them."""
    settings = crawl_options.settings(args)
    if args.no_sandbox:
        settings["render"] = {**settings.get("render", {}), "sandbox": False}
    if args.limit is not None:
        settings["limits"] = {**settings.get("limits", {}), "documents": args.limit}
    return settings


ACTIONS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "run": _run, "new": _new, "check": _check, "step": _step,
}  # fmt: skip
