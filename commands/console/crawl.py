"""One crawl from a terminal: configure the job, begin or continue it, show its progress, run the line, print the end.

Writes the files of the job, and luigi.cfg when no engine lists the job yet.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from commands.console import attached, chosen_job, crawl_options, pulse
from commands.console.chosen_job import ChosenJob
from commands.console.luigi_cfg import engine_for, job_of, list_job
from commands.console.scanner import log_file
from commands.console.show import as_json, counted, err, out
from tasks import logs
from tasks.audited import audited
from tasks.config.engines import scheduled
from tasks.config.settings import check_hardened
from tasks.line import OpenRoots, open_line
from warcmill.audit import findings, survey
from warcmill.audit.answers import comparison
from warcmill.audit.remedies import report_seeds
from warcmill.base import clock, disk
from warcmill.base.escapes import printable
from warcmill.base.progress import EVERY
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.fetch import login
from warcmill.crawl.frontier.link import examined, read_place
from warcmill.crawl.job import file
from warcmill.crawl.job.text import files
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch import checkpoint as checkpoints
from warcmill.crawl.launch import folders, job_log, reachability, reports
from warcmill.crawl.launch.job_log import Last
from warcmill.crawl.visit.offers import NEEDS_RENDER
from warcmill.errors import BadConfig, Busy, NotReady, Unavailable, WarcmillError
from warcmill.formats.feed import TargetScope
from warcmill.launches import cut_short
from warcmill.markers import locks
from warcmill.model import Json, Launch
from warcmill.stores.file import FileStore
from warcmill.stores.opening import open_folder
from warcmill.versions.search import title_of

LOOK = 1.0  # seconds between two looks at the crawl, which would ask it its figures too often
POLL = 0.25  # seconds between two looks at what cannot be waited for
INTERRUPTED = 130
PATIENCE = 10.0  # seconds that a crawler has to end, once its lock is free
FIRST_ERROR = "400"  # of statuses, which have three digits
PROFILES = "profiles"
SHOWN, FEW = 10, 2  # seeds that were not got, and as many on a terminal
_REPORT = "seeds-report.txt"


class CrawlPlan(NamedTuple):
    """A crawl to be made: the job's name and files, and inside addresses that its engine may dial.

    `is_found`: one of the job runs, or has ended while nobody watched, so that none is begun.
    """

    name: str
    files: Mapping[str, bytes]
    allow_private: tuple[str, ...] = ()
    is_found: bool = False
    scope: TargetScope = TargetScope.ROOT


def plan(args: argparse.Namespace, scope: TargetScope, *, is_new: bool) -> CrawlPlan:
    """The crawl that the words ask for; BadConfig if it cannot be crawled so. `is_new`: there is no archive yet.

    Conflict, or NotReady, if its job may not be crawled so, or not now.
    """
    written = files(_settings(args, args.cookies), args.urls, scope)
    file.parse(written, args.job or job_of(args.urls[0]))
    if args.cookies is not None:
        _refuse_others(args.cookies.absolute(), args.urls)
    if args.frontier:
        examined(read_place("--frontier", args.frontier))
    if is_new:
        return CrawlPlan(args.job or job_of(args.urls[0]), written, scope=scope)
    check_hardened()
    name = _chosen(args, written).name
    with closing(engine_for(name, args.frontier or "")) as engine:
        is_found = engine.look(name).running or attached.ended_unseen(engine, name)
        is_there = (engine.places.job(name) / CONFIGURATION).exists()
        if is_there and not is_found and (due := pulse.not_launched(open_line(), name)):
            raise NotReady(f"job {name}", due)
        return CrawlPlan(name, written, engine.allow_private, is_found, scope)


def _chosen(args: argparse.Namespace, written: Mapping[str, bytes]) -> ChosenJob:
    if args.job:
        return chosen_job.named(args.job, written, replaced=args.replace)
    return chosen_job.chosen([*dict.fromkeys(map(job_of, args.urls))], written)


def refused(plan: CrawlPlan) -> int:
    """The exit code of a crawl that no URL can begin, once each is named with the reason; 0 if one can, or need not."""
    if plan.is_found:
        return 0
    obstacles = asyncio.run(reachability.obstacles(file.parse(plan.files, plan.name), plan.allow_private))
    for seed, obstacle in obstacles.items():
        todo = reachability.remedy(obstacle)
        err(f"{seed}: {obstacle.why}{f'; {todo}' if todo else ''}")
    if not obstacles:
        return 0
    err(f"{plan.name}: no URL can be fetched; nothing was begun")
    return 1 if all(obstacle.final for obstacle in obstacles.values()) else Unavailable.exit_code


def name_routes(plan: CrawlPlan) -> None:
    """Name the seeds whose route no browser will open: without one, such a page is the same at each route."""
    for seed in reachability.unseen_routes(file.parse(plan.files, plan.name)):
        err(f"{seed}: {NEEDS_RENDER}")


def run(args: argparse.Namespace, config: Path, plan: CrawlPlan) -> int:
    """Crawl, then run the line; return the exit code."""
    written = plan.files
    name = _reserved(args, config, written)
    os.environ[logs.LOG] = log_file(open_line().state.store)
    if not args.verbose:
        os.environ[logs.ATTENDED] = "1"
    with closing(engine_for(name)) as engine:
        is_ours, stops = False, 0
        if not engine.look(name).running and (args.no_line or not attached.ended_unseen(engine, name)):
            is_ours, stops = _begun(engine, name, _with_login(args, name, plan), keeps=bool(args.replace))
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until `_watch` hears it
        launch = engine.look(name).launch_id
        if not is_ours:
            attached.greet(name, launch, _so_far(engine, name), runs=engine.look(name).running)
        if not args.no_line:
            attached.begun(engine, name, launch)
        interrupted = _watch(engine, name, stops, asks=not is_ours)
        if interrupted is None:
            return INTERRUPTED
        attached.seen(engine, name)
        seen = engine.look(name)
        if seen.died:
            err(f"{name}: {seen.words}; the same command does so, and continues")
            return seen.code or 1
        if seen.launch_id != launch:
            why = f"launch {launch} is not in its job.log any more: the folder was deleted or replaced while it ran"
            raise Unavailable(str(engine.places.job(name)), f"{why}. Put it back, then run the same command again")
        result = reports.read(engine.places.job(name) / launch)
        _name_answers(f"{name}: launch {launch}", result, is_brief=_is_brief(args) and not interrupted)
        if interrupted:
            cut = cut_short.of_folder(engine.places.folders(Launch(name, launch)).reports)
            words = cut.text if cut else "stopped, with a checkpoint"
            out(f"{name}: {words}; the same command continues")
            return INTERRUPTED
        # A crawl that is continued may have had all of it: its last part was stopped when nothing was left.
        had_all = checkpoints.continued_from(engine.places.job(name) / launch) and not result.get("failed")
        if not result.get("documents") and not had_all:
            name_refusals(name, result)
            return 1
        return _line(engine, name, args, result)


def _is_brief(args: argparse.Namespace) -> bool:
    """True where a person looks on: then at most ten lines follow the bar."""
    return sys.stdout.isatty() and not args.verbose


def _name_answers(what: str, result: Mapping[str, Json], *, is_brief: bool) -> None:
    """Print the answers of a launch by status. In brief the lines at the end have its documents."""
    if not is_brief or not result.get("documents"):
        out(f"{what}: {answers(result, each=True)}{'' if result.get('statuses') else ' (no answer at all)'}")


def _settings(args: argparse.Namespace, cookies: Path | None) -> dict[str, Any]:
    """The keys of --config, with those of the options before them; `cookies` is the file of a login."""
    settings = crawl_options.settings(args)
    if args.hops is not None:
        settings["hops"] = args.hops
    if args.render is not None:
        settings["render"] = {**settings.get("render", {}), "which": args.render}
    if args.no_sandbox:
        settings["render"] = {**settings.get("render", {}), "sandbox": False}
    if cookies is not None:
        settings["render"] = {**settings.get("render", {}), "cookies": str(cookies.absolute())}
    if args.limit is not None:
        settings["limits"] = {**settings.get("limits", {}), "documents": args.limit}
    return settings


def _refuse_others(cookies: Path, urls: Sequence[str]) -> None:
    """BadConfig for the cookies of a login that none of the URLs gets."""
    found = login.read(str(cookies), "--cookies")
    if not any(found.fitting(url, clock.steady()) for url in urls):
        names = ", ".join(found.domains[:FEW])
        more = f" and {len(found.domains) - FEW} more" if len(found.domains) > FEW else ""
        raise BadConfig(f"--cookies {cookies}", f"no URL gets a cookie of it: they are for {names}{more}")


def _with_login(args: argparse.Namespace, name: str, plan: CrawlPlan) -> Mapping[str, bytes]:
    """The files of the job. Its login is a copy of --cookies, beside the state: in no root, so in no backup."""
    if (cookies := args.cookies) is None:
        return plan.files
    profiles = open_line().state.store.base.parent / PROFILES
    kept = profiles / f"{name}.txt"
    try:
        profiles.mkdir(mode=0o700, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=profiles, prefix=f".{name}.", delete=False) as file:  # its owner's alone
            file.write(cookies.read_bytes())
            file.flush()
            os.fsync(file.fileno())
        made = cookies.stat().st_mtime_ns  # a cookie that a server has set since is newer
        os.utime(file.name, ns=(made, made))
        os.replace(file.name, kept)
    except OSError as error:
        raise Unavailable(str(profiles), disk.reason(error, profiles)) from error
    return files(_settings(args, kept), args.urls, plan.scope)


def _reserved(args: argparse.Namespace, config: Path, written: Mapping[str, bytes]) -> str:
    """Choose the job once more, and write the files of a new one: of two crawls of a host that begin at once, the
    second sees the job of the first. Return its name."""
    base = args.job or job_of(args.urls[0])
    return reserve(config, base, written, lambda: _chosen(args, written), args.frontier or "")


def reserve(
    config: Path, base: str, written: Mapping[str, bytes], choose: Callable[[], ChosenJob], frontier: str = ""
) -> str:
    """Choose a job, and write the files of a new one, while nobody else chooses one of this `base`. Return its name."""
    with locks.alone(open_line().state, f"jobs.{base}"):
        name, why = choose()
        if why:
            out(f"{name}: {why}")
        list_job(config, name, frontier)
        with closing(engine_for(name)) as engine:
            if not (engine.places.job(name) / CONFIGURATION).exists():
                engine.configure(name, written)
        return name


def look(args: argparse.Namespace, scope: TargetScope, *, is_new: bool) -> int:
    """Ask each URL once, and print what it answers; nothing is crawled. 1 if one does not answer, or is forbidden."""
    written = files(_settings(args, None), args.urls, scope)
    job = file.described(written, args.job or job_of(args.urls[0]))
    networks: Sequence[str] = ()
    if not is_new:
        with closing(engine_for(job.name)) as engine:
            networks = engine.allow_private
    looks = [asyncio.run(reachability.look(url.partition("#")[0], job, networks)) for url in args.urls]
    if args.json:
        print(as_json(reachability.looks_in_json(looks)))
    else:
        for one in looks:
            out(f"{one.url}: {one.status or one.why}{f', {one.type}' if one.type else ''}")
            out(*([f"  leads to {one.to}"] if one.to else []), *([f"  {one.robots}"] if one.robots else []))
    return int(any(not one.is_there or one.is_forbidden for one in looks))


def _so_far(engine: WarcmillEngine, name: str) -> str:
    """The figures of a crawl that runs; '' while it does not answer."""
    state = engine.state(name)
    return in_one_line(name, state).partition(": ")[2] if state else ""


def _begun(engine: WarcmillEngine, name: str, written: Mapping[str, bytes], *, keeps: bool) -> tuple[bool, int]:
    """Start the job; return whether it did not run yet, and 1 if Ctrl-C was pressed meanwhile, else 0. A crawl that
    runs by then is not left alone."""
    is_ours = True
    try:
        with _ctrl_c_waits(), locks.alone(open_line().state, f"crawl.{name}"):
            is_ours = _begin(engine, name, written, keeps=keeps)
    except KeyboardInterrupt:
        if not is_ours or not engine.look(name).running:
            raise
        _stop(engine, name, 1)
        return True, 1
    return is_ours, 0


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Have Ctrl-C wait, also in the programs that are started: a start that is broken off leaves a crawl without its
    marker."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _begin(engine: WarcmillEngine, name: str, written: Mapping[str, bytes], *, keeps: bool) -> bool:
    """Start the job: afresh, or from the checkpoint of a launch that was stopped or has died. False if it runs.

    A job that is scheduled has other settings for this crawl alone, unless it `keeps` them. The launch has papers of
    its own, so the job's are put back once it runs.
    """
    seen = engine.look(name)
    if seen.running:
        return False
    if seen.died:
        _pulse(engine, "stop", name)
    last = job_log.last(engine.places.job(name))
    before = file.files_in(engine.places.job(name))
    passing = () if keeps or name not in scheduled() else _new_settings(before, written)
    if passing:
        out(f"{name}: for this crawl alone, not for those of its schedule: {', '.join(passing)}")
    try:
        engine.configure(name, written)
        checkpoint = left_at(engine, name, last)
        if checkpoint:
            out(f"{name}: continues from {checkpoint}")
        _pulse(engine, "start", name, checkpoint)
    except WarcmillError:
        if passing or engine.look(name).launch_id == seen.launch_id:  # of this crawl alone; or none was launched
            with suppress(BadConfig):  # they had a fault
                engine.configure(name, before)
        raise
    if passing:
        engine.configure(name, before)
    return True


def _new_settings(before: Mapping[str, bytes], written: Mapping[str, bytes]) -> list[str]:
    """The settings in which a job's new files are unlike those that it has; none for those that cannot be read."""
    with suppress(KeyError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        old, new = (tomllib.loads(files[CONFIGURATION].decode()) for files in (before, written))
        return sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    return []


def left_at(engine: WarcmillEngine, name: str, last: Last | None) -> str:
    """The checkpoint to continue from; '' when the last launch left nothing, and for the first one."""
    if last is None or last.empty:
        return ""
    job, launch = engine.places.job(name), Launch(name, last.launch)
    newest = checkpoints.newest(job / folders.CHECKPOINTS, launch)
    for damaged in newest.passed_over:
        err(f"{name}: checkpoint {damaged}; it is passed over")
    if newest.checkpoint:
        if unlike := checkpoints.unlike(newest.checkpoint, job):
            out(f"{name}: begins afresh: checkpoint {newest.checkpoint.stage} has {unlike}")
            return ""
        return str(newest.checkpoint.stage)
    before = checkpoints.continued_from(job / last.launch)
    whole = engine.resumable(name, [before] if before else [])
    if not whole and (before or last.checkpoint):
        err(f"{name}: no whole checkpoint is left; it begins afresh, and what is in the archive stays there")
    return whole


def _pulse(engine: WarcmillEngine, action: str, name: str, checkpoint: str = "") -> None:
    """A step of pulse, as its own command takes it. A start is one more crawl: a checkpoint may be resumed twice."""
    code = pulse.start(name, resumed=checkpoint, again=True) if action == "start" else pulse.stop(name)
    if code:
        why = f"'warcmill pulse {action} {name}' ended with {code}; its error is above"
        if full := disk.full([*engine.places.roots, open_line().state.store.base]):
            raise Unavailable(str(full), f"its disk is full, and {why}. Make room, then run the same command again")
        seen = engine.look(name)
        raise Unavailable(f"job {name}", why) if seen.code == Unavailable.exit_code else NotReady(f"job {name}", why)


def _watch(engine: WarcmillEngine, name: str, stops: int, *, asks: bool = False) -> bool | None:
    """Show progress until the crawl has ended; True if a person ended it, by pressing Ctrl-C `stops` times or more.

    `asks`: another command began it, so the first Ctrl-C asks whether it is meant; None if the crawl is left running.
    """
    progress, pid = ProgressLine(name), 0
    while True:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            while holder := folders.holder(engine.places.state(name)):
                pid = holder.pid or pid
                progress.show(engine.state(name))
                _wait_for_end(pid, LOOK)
            if Path(f"/proc/{pid}").exists():  # its lock was taken from it: its end gives the reason
                _wait_for_end(pid, PATIENCE)
            if stops:
                _pulse(engine, "stop", name)  # its files are closed: this writes the marker
            progress.close()
            return bool(stops)
        except KeyboardInterrupt:
            progress.close()
            if asks and not stops and not attached.is_to_stop(name):
                return None
            stops += 1
            _stop(engine, name, stops)


def _wait_for_end(pid: int, seconds: float) -> None:
    """Wait until a process has ended, at most so many seconds."""
    try:
        process = os.pidfd_open(pid)
    except OSError:  # it has ended, or its number is not known yet
        time.sleep(POLL)
        return
    try:
        ends = select.poll()
        ends.register(process, select.POLLIN)
        ends.poll(seconds * 1000)
    finally:
        os.close(process)


def _stop(engine: WarcmillEngine, name: str, stops: int) -> None:
    """Send the signal that ends a crawl; the second time it lets nothing come to its end."""
    err(f"{name}: ends with a checkpoint; Ctrl-C again: at once" if stops == 1 else f"{name}: ends at once")
    holder = folders.holder(engine.places.state(name))
    if holder and holder.pid:
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(holder.pid, signal.SIGTERM)


def name_refusals(name: str, result: Mapping[str, Json]) -> None:
    """Name the policies that refused, or that nothing answered."""
    refused = cast("Mapping[str, int]", result.get("refused", {}))
    first = cast("Mapping[str, str]", result.get("refused_first", {}))
    err(f"{name}: nothing was fetched")
    for policy, number in refused.items():
        err(f"  {policy} refused {number}, first {first[policy]}")
    if result.get("failed") and not refused:
        err(f"  {result['failed']} got no answer, first {result['failed_first']}")


def _line(engine: WarcmillEngine, name: str, args: argparse.Namespace, result: Mapping[str, Json]) -> int:
    """Scan the day of the launch; print how the crawl ended, the page, the numbers, and where to look."""
    launch, is_brief = Launch.parse(name, engine.look(name).launch_id), _is_brief(args)
    days, places = attached.asked_for(engine, name).days(launch), engine.places.folders(launch)
    code = 0 if args.no_line else _scanned(launch, days, args.verbose, is_brief=is_brief)
    if not args.no_line and code < INTERRUPTED:
        attached.brought_in(engine, name)
    missed = report_missed(launch, places.reports, FEW if is_brief else SHOWN)
    first_url = args.urls[0]
    if args.no_line:
        _numbers(first_url, result, places.warcs, is_brief=is_brief)
        out(f"next: warcmill scan {days}")
    else:
        line = open_line()
        title = _title(line, first_url)
        more = f", and {counted(len(args.urls) - 1, 'URL', 'URLs')} more" if args.urls[1:] else ""
        _numbers(f"{first_url}{f' ({title})' if title else ''}{more}", result, places.warcs, is_brief=is_brief)
        out(*([] if is_brief else [f"  the archive: {line.settings.store}"]), "look at it: warcmill serve")
    if cut := cut_short.of_folder(places.reports):
        rest = "the same command continues" if cut.waiting else "a larger quota in its crawl.toml brings the rest"
        out(f"{name}: {cut.text}; {rest}")
    if code and (full := disk.full(_folders(engine))):
        err(f"{name}: the disk of {full} is full; make room, then: warcmill scan {days}")
        return Unavailable.exit_code
    return code or int(missed or any(one.is_finding for one in reports.bounds_of(result)))


def _folders(engine: WarcmillEngine) -> list[Path]:
    """The roots that are folders of this host."""
    line = open_line()
    store = [line.store.base] if isinstance(line.store, FileStore) else []
    return [*engine.places.roots, line.state.store.base, *store]


def _scanned(launch: Launch, days: str, verbose: bool, *, is_brief: bool) -> int:
    """Scan some days; return the exit code of this launch. In brief the table is not printed, nor that all is well."""
    words = [sys.executable, "-P", "-m", "commands.main", "scan", days, *(["--verbose"] if verbose else [])]
    with tempfile.TemporaryFile() as file:
        done = subprocess.run(words, stdout=file.fileno() if is_brief else None, check=False)  # noqa: S603
        file.seek(0)
        last = file.read().decode("utf-8", "replace").splitlines()[-1:]
    code = _code_of(launch, done.returncode)
    if code:
        out(*last)
    return code


def _code_of(launch: Launch, scanned: int) -> int:
    """The exit code for one launch of a day that was scanned: what else the day lacks is not a fault of this crawl."""
    if scanned not in (1, BadConfig.exit_code, Unavailable.exit_code, Busy.exit_code):
        return scanned
    line = open_line()
    own = comparison.worst(comparison.reports_of(audited(line), [launch]))
    if not own:
        out(f"{launch.job}: nothing of launch {launch.id} is missing; what is, is of other crawls of its day")
    return scanned if own and scanned in (BadConfig.exit_code, Busy.exit_code) else own


class ProgressLine:
    """The progress of one crawl, on stderr."""

    def __init__(self, name: str) -> None:
        self._name, self._last, self._is_terminal = name, time.monotonic(), sys.stderr.isatty()
        self._failed = ""

    def show(self, state: Mapping[str, Json]) -> None:
        """Show the state that a crawl reports of itself."""
        if not state:
            return
        self._show_failure(cast(str, state["failed_first"]))
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{in_one_line(self._name, state)}")
        elif time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            sys.stderr.write(f"{in_one_line(self._name, state)}\n")
        sys.stderr.flush()

    def _show_failure(self, failed: str) -> None:
        """Show the first fetch that got no answer, once: it is tried again, which may take minutes."""
        if failed and not self._failed:
            self._failed = failed
            self.close()
            sys.stderr.write(f"{self._name}: no answer yet, it is tried again: {printable(failed)}\n")

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def in_one_line(name: str, state: Mapping[str, Json]) -> str:
    """The progress of a crawl: documents without robots.txt, queued, rate, by status."""
    done, seconds = cast(int, state["documents"]), max(1, cast(int, state["seconds"]))
    statuses = cast("Mapping[str, int]", state["statuses"])
    by_status = ", ".join(f"{status}: {number}" for status, number in sorted(statuses.items()))
    kib = cast(int, state["bytes"]) >> 10
    figures = f"{done} documents, {state['queued']} queued, {done / seconds:.1f}/s, {kib} KiB"
    failed = f", {state['failed']} failed" if state["failed"] else ""
    return f"{name}: {str(state['state']).lower()}, {figures}{failed}" + (f" ({by_status})" if by_status else "")


def answers(result: Mapping[str, Json], *, each: bool = False) -> str:
    """The answers of a summary in words: documents, and apart from them errors, such as 404; `each`: by status too."""
    statuses = sorted(cast("Mapping[str, int]", result.get("statuses", {})).items())
    parts = []
    for one, more, is_error in (("document", "documents", False), ("error", "errors", True)):
        of_kind = {status: number for status, number in statuses if (status >= FIRST_ERROR) is is_error}
        by_status = ", ".join(f"{number} x {status}" for status, number in of_kind.items())
        if of_kind or not is_error:
            number = counted(sum(of_kind.values()), one, more)
            parts.append(f"{number} ({by_status})" if each and by_status else number)
    return ", ".join(parts)


def _numbers(what: str, result: Mapping[str, Json], warcs: Path, *, is_brief: bool) -> None:
    sizes = [path.stat().st_size for path in warcs.iterdir() if ".warc" in path.name] if warcs.is_dir() else []
    documents = answers(result)
    kept = f", {counted(len(sizes), 'WARC', 'WARCs')}, {sum(sizes):,} bytes: {warcs}" if sizes else ""  # else retired
    out(what, f"  {documents}{kept}")
    name_left_out(result, FEW if is_brief else None)


def name_left_out(result: Mapping[str, Json], most: int | None = None) -> None:
    """Print what bounds have left out of a launch, and pages that were not rendered, findings first."""
    cuts = sorted(reports.bounds_of(result), key=lambda one: not one.is_finding)
    out(*(f"  {one.text}" for one in cuts[:most]))
    out(*(f"  {one.text}" for one in reports.unrendered_of(result)[:most]))


def _title(line: OpenRoots, url: str) -> str:
    """The title of the page that the crawl began with; '' where no index has it, as the scan has reported."""
    try:
        return title_of(open_folder("index", line.settings.index), url) if line.settings.index else ""
    except WarcmillError:
        return ""


def report_missed(launch: Launch, reports: Path, most: int = SHOWN) -> bool:
    """Print the first seeds that were not got: as the line has listed them, else as the crawler's own report has them.
    Return whether there is any, or that is unknown."""
    line = open_line()
    seen = survey.load_markers(line.state, line.roots_of(launch.job), launch, line.wanted)
    listed = seen.marker(findings.WORD) is not None
    lost = (
        [(finding.name, finding.why) for finding in findings.still_open(seen)]
        if listed
        else _reported(reports / _REPORT)
    )
    if lost is None:
        out(f"Not known: what became of the seeds, as {reports / _REPORT} is not there: warcmill why {launch.job}")
        return True
    if lost:
        out("Not got:", *(f"  {name}: {why}" for name, why in lost[:most]))
    more = f"and {len(lost) - most:,} more" if len(lost) > most else ""
    every = f"all seeds: {report_seeds(launch)}" if lost and listed else ""
    if more or every:
        out(f"  {'; '.join(filter(None, (more, every)))}")
    return bool(lost)


def _reported(path: Path) -> list[tuple[str, str]] | None:
    """The seeds of a seeds-report whose code is not a success; None without one."""
    try:
        rows = [line.split(" ") for line in path.read_text("utf-8", "replace").splitlines()[1:]]
    except FileNotFoundError:
        return None
    codes = [(row[2], int(row[0])) for row in rows if len(row) > 2 and row[0].lstrip("-").isdigit()]
    return [(uri, "it was not tried" if code == 0 else f"code {code}") for uri, code in codes if not 200 <= code < 400]
