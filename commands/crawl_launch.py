"""Crawl into an archive that is there: configure the job, begin or continue, show progress, run the line."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

from commands import crawl_config, crawl_end, crawl_missed, pulse, reconcile
from commands.crawl import SCOPES
from commands.crawl_progress import Shown
from commands.printing import err, out
from commands.scanner import log_file
from tasks import attended
from tasks.step import open_line
from warcmill.audit import survey
from warcmill.base import clock, disk
from warcmill.crawl import continues, job_file, last_launch, lock, reachable, restore, summary
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.job_text import HEAD, files
from warcmill.crawl.job_values import CONFIGURATION
from warcmill.crawl.last_launch import Last
from warcmill.crawl.launch_folders import CHECKPOINTS
from warcmill.errors import BadConfig, Busy, NotReady, Unavailable
from warcmill.markers import locks
from warcmill.model import Json, Launch, stamp_time
from warcmill.stores.file import FileStore

POLL = 0.25  # seconds between two looks at the crawl
INTERRUPTED = 130
PATIENCE = 10.0  # seconds that a crawler has to end, once its lock is free


class Asked(NamedTuple):
    """What is to be crawled: the job's name and files, and inside addresses that its engine may dial."""

    name: str
    files: Mapping[str, bytes]
    allow_private: tuple[str, ...] = ()


def asked_for(args: argparse.Namespace, *, is_new: bool) -> Asked:
    """Return what the words ask for; BadConfig if it cannot be crawled so. `is_new`: there is no archive yet."""
    name = args.job or crawl_config.job_of(args.urls[0])
    written = files(_settings(args), args.urls, SCOPES[args.scope])
    job_file.parse(written, name)
    if is_new:
        return Asked(name, written)
    with closing(crawl_config.engine_for(name)) as engine:
        _refuse_another_s(engine.places.job(name) / CONFIGURATION, name)
        return Asked(name, written, engine.allow_private)


def refused(asked: Asked) -> int:
    """Return the exit code of a crawl that no URL can begin, once each is named with the reason; 0 if one can."""
    against = asyncio.run(reachable.obstacles(job_file.parse(asked.files, asked.name), asked.allow_private))
    for seed, why in against.items():
        todo = reachable.remedy(why)
        err(f"{seed}: {why.why}{f'; {todo}' if todo else ''}")
    if not against:
        return 0
    err(f"{asked.name}: no URL can be fetched; nothing was begun")
    return 1 if all(why.final for why in against.values()) else Unavailable.exit_code


def run(args: argparse.Namespace, config: Path, asked: Asked) -> int:
    """Crawl, then run the line; return the exit code."""
    name, written = asked.name, asked.files
    crawl_config.list_job(config, name)
    os.environ[attended.LOG] = log_file(open_line().state.store)
    if not args.verbose:
        os.environ[attended.ATTENDED] = "1"
    with closing(crawl_config.engine_for(name)) as engine:
        stops = _begun(engine, name, written)
        launch = engine.look(name).launch_id
        interrupted = _watch(engine, name, stops)
        seen = engine.look(name)
        if seen.died:
            err(f"{name}: {seen.words}; the same command does so, and continues")
            return seen.code or 1
        if seen.launch_id != launch:
            why = f"launch {launch} is not in its job.log any more: the folder was deleted or replaced while it ran"
            raise Unavailable(str(engine.places.job(name)), f"{why}. Put it back, then run the same command again")
        found = _result(engine, name)
        if interrupted:
            out(f"{name}: stopped, with a checkpoint; the same command continues from there")
            return INTERRUPTED
        if not found.get("documents"):
            _say_why(name, found)
            return 1
        return _line(engine, name, args, found)


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    """The keys of --config, with those of the options before them."""
    found: dict[str, Any] = {}
    if args.config:
        try:
            found = tomllib.loads(args.config.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadConfig("--config", f"{args.config}: {error}") from error
    given = {"allow_private": args.allow_private, "no_delay": args.no_delay, "resolve": args.resolve}
    found |= {key: value for key, value in given.items() if value}
    if args.hops is not None:
        found["hops"] = args.hops
    if args.limit is not None:
        found["limits"] = {**found.get("limits", {}), "documents": args.limit}
    return found


def _begun(engine: WarcmillEngine, name: str, written: Mapping[str, bytes]) -> int:
    """Start the job; return 1 if Ctrl-C was pressed meanwhile, else 0. A crawl that runs by then is not left alone."""
    try:
        with _ctrl_c_waits(), locks.alone(open_line().state, f"crawl.{name}"):
            _begin(engine, name, written)
    except KeyboardInterrupt:
        if not engine.look(name).running:
            raise
        _stop(engine, name, 1)
        return 1
    return 0


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Have Ctrl-C wait, also in the programs that are started: a start that is broken off leaves a crawl without its
    marker."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _begin(engine: WarcmillEngine, name: str, written: Mapping[str, bytes]) -> None:
    """Start the job: afresh, or from the checkpoint of a launch that was stopped or has died."""
    seen = engine.look(name)
    if seen.running:
        raise Busy(f"job {name}, launch {seen.launch_id},")
    if seen.died:
        _pulse(engine, "stop", name)
    last = last_launch.last(engine.places.job(name))
    _refuse_another_s(engine.places.job(name) / CONFIGURATION, name)
    engine.configure(name, written)
    checkpoint = _left_at(engine, name, last)
    if checkpoint:
        out(f"{name}: continues from {checkpoint}")
    _pulse(engine, "start", name, checkpoint)


def _refuse_another_s(configuration: Path, name: str) -> None:
    """BadConfig for a crawl.toml that a person wrote: it is not written over."""
    if configuration.exists() and not configuration.read_text("utf-8", "replace").startswith(HEAD):
        why = f"job {name} has one of its own; 'warcmill pulse start {name} --again' crawls it, or choose another --job"
        raise BadConfig(str(configuration), why)


def _left_at(engine: WarcmillEngine, name: str, last: Last | None) -> str:
    """The checkpoint to continue from; '' when the last launch left nothing, and for the first one."""
    if last is None or last.empty:
        return ""
    job, launch = engine.places.job(name), Launch(name, last.launch)
    found = restore.newest(job / CHECKPOINTS, launch)
    for what in found.passed_over:
        err(f"{name}: checkpoint {what}; it is passed over")
    if found.checkpoint:
        return str(found.checkpoint.stage)
    before = continues.read(job / last.launch)
    whole = engine.resumable(name, [before] if before else [])
    if not whole and (before or last.checkpoint):
        err(f"{name}: no whole checkpoint is left; it begins afresh, and what is in the archive stays there")
    return whole


def _pulse(engine: WarcmillEngine, action: str, name: str, checkpoint: str = "") -> None:
    """A step of pulse, as its own command takes it. A start is one more crawl: a checkpoint may be resumed twice."""
    args = argparse.Namespace(action=action, job=name, due=None, again=action == "start", checkpoint=checkpoint or None)
    if code := pulse.run(args):
        why = f"'warcmill pulse {action} {name}' ended with {code}; its error is above"
        if full := disk.full([*engine.places.roots, open_line().state.store.base]):
            raise Unavailable(str(full), f"its disk is full, and {why}. Make room, then run the same command again")
        seen = engine.look(name)
        raise Unavailable(f"job {name}", why) if seen.code == Unavailable.exit_code else NotReady(f"job {name}", why)


def _watch(engine: WarcmillEngine, name: str, stops: int) -> bool:
    """Show progress until the crawl has ended; whether a person ended it, by pressing Ctrl-C `stops` times or more."""
    shown, pid = Shown(name), 0
    while True:
        try:
            while engine.look(name).running:
                holder = lock.holder(engine.places.state(name))
                pid = holder.pid if holder and holder.pid else pid
                shown.show(engine.state(name))
                time.sleep(POLL)
            _until_gone(pid)
            if stops:
                _pulse(engine, "stop", name)  # its files are closed: this writes the marker
            shown.close()
            return bool(stops)
        except KeyboardInterrupt:
            stops += 1
            _stop(engine, name, stops)


def _until_gone(pid: int) -> None:
    """Wait for a process whose lock is free: if that was taken from it, its end gives the reason."""
    deadline = time.monotonic() + PATIENCE
    while pid and Path(f"/proc/{pid}/exe").exists() and time.monotonic() < deadline:
        time.sleep(POLL)


def _stop(engine: WarcmillEngine, name: str, stops: int) -> None:
    """Send the signal that ends a crawl; the second time it lets nothing come to its end."""
    err(f"{name}: ends with a checkpoint; Ctrl-C again: at once" if stops == 1 else f"{name}: ends at once")
    holder = lock.holder(engine.places.state(name))
    if holder and holder.pid:
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(holder.pid, signal.SIGTERM)


def _result(engine: WarcmillEngine, name: str) -> Mapping[str, Json]:
    launch = engine.look(name).launch_id
    found = summary.read(engine.places.job(name) / launch)
    answers = crawl_end.answers(found, each=True)
    out(f"{name}: launch {launch}: {answers}{'' if found.get('statuses') else ' (no answer at all)'}")
    return found


def _say_why(name: str, found: Mapping[str, Json]) -> None:
    """Name the policies that refused, or that nothing answered."""
    refused = cast("Mapping[str, int]", found.get("refused", {}))
    first = cast("Mapping[str, str]", found.get("refused_first", {}))
    err(f"{name}: nothing was fetched")
    for policy, number in refused.items():
        err(f"  {policy} refused {number}, first {first[policy]}")
    if found.get("failed") and not refused:
        err(f"  {found['failed']} got no answer, first {found['failed_first']}")


def _line(engine: WarcmillEngine, name: str, args: argparse.Namespace, found: Mapping[str, Json]) -> int:
    launch = Launch.parse(name, engine.look(name).launch_id)
    folders = engine.places.folders(launch)
    code = 0 if args.no_line else _code_of(launch, _scan(clock.stamp_text(launch.id)[:10], args.verbose))
    missed = crawl_missed.report(launch, folders.reports)
    if args.no_line:
        crawl_end.show_unscanned(launch, args.urls, found, folders.warcs)
    else:
        crawl_end.show(open_line(), launch, args.urls, found, folders.warcs)
    if code and (full := disk.full(_folders(engine))):
        err(f"{name}: the disk of {full} is full; make room, then: warcmill scan {clock.stamp_text(launch.id)[:10]}")
        return Unavailable.exit_code
    return code or int(missed)


def _folders(engine: WarcmillEngine) -> list[Path]:
    """The roots that are folders of this host."""
    line = open_line()
    store = [line.store.base] if isinstance(line.store, FileStore) else []
    return [*engine.places.roots, line.state.store.base, *store]


def _code_of(launch: Launch, scanned: int) -> int:
    """The exit code for one launch of a day that was scanned: what else the day lacks is no fault of this crawl."""
    if scanned not in (1, BadConfig.exit_code, Unavailable.exit_code, Busy.exit_code):
        return scanned
    line, day = open_line(), stamp_time(launch.id).date()
    found = survey.find(line.state, line.rootmap, day, day + timedelta(days=1))
    own = reconcile.exit_code(reconcile.reports_of(line, replace(found, launches=(launch,))))
    if not own:
        out(f"{launch.job}: nothing of launch {launch.id} is missing; what is, is of other crawls of its day")
    return scanned if own and scanned in (BadConfig.exit_code, Busy.exit_code) else own


def _scan(day: str, verbose: bool) -> int:
    words = ["scan", day, *(["--verbose"] if verbose else [])]
    return subprocess.run([sys.executable, "-m", "commands.main", *words], check=False).returncode  # noqa: S603
