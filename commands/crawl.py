"""warcmill crawl: crawl some sites with the built-in crawler, and bring what came into the archive.

MERGED commands/crawl.py: Edit luigi.cfg as it is, with its comments: list a job under [engine.crawl], schedule it
by [job.NAME].

MERGED commands/crawl.py: Crawl into an archive that is there: configure the job, begin or continue, show progress,
run the line.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from configparser import RawConfigParser
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from luigi.configuration import get_config

from commands import crawl_end, pulse, reconcile
from commands.console.progress import Shown
from commands.console.scanner import log_file
from commands.console.show import err, out
from tasks import logs
from tasks.config import engines, folders
from tasks.step import open_line
from warcmill.audit import survey
from warcmill.base import clock, disk
from warcmill.base.schedule import Frequency
from warcmill.crawl import durable
from warcmill.crawl.engine import WarcmillEngine
from warcmill.crawl.fetch import addresses
from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.job import file
from warcmill.crawl.job.text import HEAD, files
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.crawl.launch import checkpoint as continues
from warcmill.crawl.launch import checkpoint as restore
from warcmill.crawl.launch import folders as lock
from warcmill.crawl.launch import job_log, reachable, reports
from warcmill.crawl.launch.folders import CHECKPOINTS
from warcmill.crawl.launch.job_log import Last
from warcmill.crawl.uri import canonical
from warcmill.errors import BadConfig, BadInput, Busy, NotReady, Unavailable
from warcmill.formats.feed import Scope
from warcmill.markers import locks
from warcmill.model import Json, Launch, parse_job, stamp_time
from warcmill.stores.file import FileStore

SUMMARY = "crawl some sites, and bring what came into an archive in this folder"
EPILOG = """\
examples:
  warcmill crawl https://www.example.org/
  warcmill crawl https://www.example.org/news/ --limit 500 --job news
  warcmill crawl https://example.org/ --scope subdomains --hops 5
  warcmill crawl https://example.org/report.html --scope page
  warcmill crawl http://intranet.example/ --allow-private 10.20.0.0/16 --no-delay
  warcmill crawl https://www.example.org/ --config crawl.toml --no-line

The archive is that of LUIGI_CONFIG_PATH, or of luigi.cfg in this folder, or the folder
archive here, which is made when there is none. A job that has no engine yet is added to
luigi.cfg, in [engine.crawl]. The crawl runs in a process of its own, as 'warcmill pulse
start' begins it; this command shows its progress, then runs 'warcmill scan' for its day.

--scope says what belongs to the crawl: root (all below the URL's folder, the default),
subdomains (the whole domain), plus1 (the page, and what it links to), page (the page
alone, with all its parts: styles, pictures, fonts, frames, scripts, and what these
embed; a feed calls it resource). What pages embed belongs to each, from any host.
robots.txt is obeyed, and a host is asked again only after some seconds.

Ctrl-C ends the crawl with a checkpoint; the same command continues from there. Ctrl-C
twice: at once, and what was under way is fetched again. --config takes the keys of a
crawl.toml; the options go before it.

exit codes: 0 crawled, and nothing of this launch is missing in the archive, 1 no URL may
be fetched, nothing was, or the launch has a gap, 2 usage, 3 configuration, 4 a disk or a
server did not answer, 5 the job runs already, 130 after Ctrl-C
"""

SCOPES = {"root": Scope.ROOT, "subdomains": Scope.SUBDOMAINS, "plus1": Scope.PLUS1, "page": Scope.RESOURCE}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """URL..., what belongs to the crawl, when it ends, and what it may reach."""
    parser.add_argument("urls", nargs="+", type=_url, metavar="URL", help="where to begin")
    parser.add_argument(
        "--scope", choices=list(SCOPES), type=_scope, default="root", help="what belongs to it (default: root)"
    )
    parser.add_argument("--hops", type=_whole, metavar="NUMBER", help="at most so many links from a URL (default: 20)")
    parser.add_argument("--limit", type=_whole, metavar="NUMBER", help="at most so many documents (default: no limit)")
    parser.add_argument("--job", type=_job, metavar="NAME", help="its name (default: the first URL's host)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="a crawl.toml with further settings")
    parser.add_argument("--no-line", action="store_true", help="only crawl: 'warcmill scan' does the rest later")
    parser.add_argument("--verbose", action="store_true", help="show the log of the steps too")
    parser.add_argument(
        "--allow-private", type=_networks, default=[], metavar="NETWORK",
        help="inside addresses that may be dialled, such as 10.20.0.0/16",
    )  # fmt: skip
    parser.add_argument("--no-delay", action="store_true", help="do not wait between fetches from those")
    parser.add_argument(
        "--resolve", action="append", type=_resolved, default=[], metavar="HOST=ADDRESS",
        help="the address of a host, instead of asking a name server; may be repeated",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Refuse what cannot be crawled, before anything is written; then find or make the archive, and crawl into it."""
    if args.no_delay and not args.allow_private:
        sys.stderr.write("warcmill crawl: --no-delay is for the addresses that --allow-private names\n")
        return 2

    config = folders.find()
    begin = asked_for(args, is_new=config is None)
    if code := refused(begin):
        return code
    config = config or _made()
    os.environ[folders.VARIABLE] = str(config)
    from luigi.configuration import add_config_path  # noqa: PLC0415

    add_config_path(str(config))
    return run_launch(args, config, begin)


def _made() -> Path:
    """The luigi.cfg of a new archive in this folder."""
    folder = Path(folders.ARCHIVE).absolute()
    words = [sys.executable, "-m", "commands.main", "init", str(folder)]
    if subprocess.run(words, stdout=subprocess.DEVNULL, check=False).returncode:  # noqa: S603 our own words
        raise BadConfig("archive", f"{folder} could not be made; its error is above")
    out(f"made a new archive: {folder}")
    return folder / "luigi.cfg"


def _scope(text: str) -> str:
    """One of our words; what a feed calls `resource` is `page` here."""
    return "page" if text == Scope.RESOURCE else text


def _url(text: str) -> str:
    try:
        return canonical(text if "://" in text else f"https://{text}")
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number")
    return int(text)


def _job(text: str) -> str:
    try:
        return parse_job(text)
    except BadInput as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _networks(text: str) -> list[str]:
    found = [one for part in text.split(",") if (one := part.strip())]
    try:
        Judge(found)
    except BadConfig as error:
        raise argparse.ArgumentTypeError(error.why) from error
    return found


def _resolved(text: str) -> str:
    try:
        addresses.parse_fixed([text])
    except BadConfig as error:
        raise argparse.ArgumentTypeError(error.why) from error
    return text


SECTION = "engine.crawl"
_LONGEST = 63


def job_of(url: str) -> str:
    """A job's name from a URL's host: `www-example-org`."""
    host = urlsplit(url).hostname or ""
    name = re.sub(r"[^A-Za-z0-9]+", "-", host).strip("-")[:_LONGEST]
    return name or "crawl"


def engine_for(name: str) -> WarcmillEngine:
    """The engine that crawls a job, or will when it is listed; BadConfig for another's. Nothing is written yet."""
    section = engines.section_of(name)
    if section and engines.kind_of(section) != engines.WARCMILL:
        raise BadConfig(f"[{section}] kind", f"job {name} is another engine's; choose a name by --job")
    return engines.own_engine(section or SECTION)


def list_job(config: Path, name: str) -> None:
    """Add a job that no engine crawls to [engine.crawl] of luigi.cfg, and read that again."""
    if engines.section_of(name):
        return
    with locks.alone(open_line().state, config.name):
        get_config().reload()  # another command may just have added this job, or another
        if not engines.section_of(name):
            durable.replace(config.resolve(), with_job(config.read_text("utf-8"), name).encode())
            get_config().reload()


def with_job(text: str, name: str) -> str:
    """A luigi.cfg with a job more in [engine.crawl], which is added when it is not there."""
    head = re.search(rf"^\[{re.escape(SECTION)}\][ \t]*$", text, re.MULTILINE)
    if not head:
        return f"{text.rstrip()}\n\n[{SECTION}]\nkind={engines.WARCMILL}\njobs={name}\n"
    end = re.compile(r"^\[", re.MULTILINE).search(text, head.end())
    part = text[head.end() : end.start() if end else len(text)]
    jobs = re.search(r"^jobs[ \t]*=[ \t]*(.*)$", part, re.MULTILINE)
    if not jobs:
        raise BadConfig(f"[{SECTION}] jobs", "is not set; add the jobs that it crawls, separated by commas")
    at = head.end() + jobs.end()
    return f"{text[:at].rstrip()},{name}{text[at:]}"


def scheduled(text: str, name: str, frequency: Frequency, start: str) -> str:
    """A luigi.cfg with this [job.NAME], in place of the one that it may have."""
    keys = {"frequency": str(frequency).lower(), "start": start}
    section = _section(text, name)
    if not section:
        return f"{text.rstrip()}\n\n[job.{name}]\n" + "".join(f"{key}={value}\n" for key, value in keys.items())
    first, last = section
    head, *lines = text[first:last].splitlines(keepends=True)
    for key, value in keys.items():
        lines = [line for line in lines if not re.match(rf"{key}\s*[=:]", line)]
        lines.insert(0 if key == "frequency" else 1, f"{key}={value}\n")
    return text[:first] + head.rstrip("\n") + "\n" + "".join(lines) + text[last:]


def unscheduled(text: str, name: str) -> str:
    """A luigi.cfg without [job.NAME]. Comments above the next section stay: they are of that one."""
    section = _section(text, name)
    if not section:
        return text
    first, last = section
    lines = text[first:last].splitlines(keepends=True)
    while len(lines) > 1 and (not lines[-1].strip() or lines[-1].lstrip().startswith(("#", ";"))):
        last -= len(lines.pop())
    return f"{text[:first].rstrip()}\n\n{text[last:].lstrip()}".rstrip() + "\n"


def _section(text: str, name: str) -> tuple[int, int] | None:
    """Where [job.NAME] is in a luigi.cfg: from its head to the next one's; None if there is none."""
    head = re.search(rf"^\[job\.{re.escape(name)}\]", text, re.MULTILINE)
    if not head:
        return None
    end = re.compile(r"^\[", re.MULTILINE).search(text, head.end())
    return head.start(), end.start() if end else len(text)


def edit(config: Path, change: Callable[[str], str], expected: Mapping[str, Mapping[str, str] | None]) -> bool:
    """Change luigi.cfg, and have Luigi read it again; return whether it is another one now.

    `expected`: the sections that it changes, and what they then hold (None: there is none). BadConfig, and nothing is
    written, if anything else would change, as in a file that is written in an unusual way.
    """
    with locks.alone(open_line().state, config.name):
        before = config.read_text("utf-8")
        after = change(before)
        if after == before:
            return False
        ours, theirs = _parsed(after), _parsed(before)
        theirs = {name: keys for name, keys in theirs.items() if name not in expected}
        theirs |= {name: dict(keys) for name, keys in expected.items() if keys is not None}
        if ours != theirs:
            raise BadConfig(
                str(config), f"edit {' and '.join(f'[{name}]' for name in expected)} by hand: it is unusual"
            )
        durable.replace(config.resolve(), after.encode())
        get_config().reload()
    return True


def _parsed(text: str) -> dict[str, dict[str, str]]:
    parser = RawConfigParser(strict=False)
    parser.read_string(text)
    return {name: dict(parser.items(name)) for name in parser.sections()}


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
    name = args.job or job_of(args.urls[0])
    written = files(_settings(args), args.urls, SCOPES[args.scope])
    file.parse(written, name)
    if is_new:
        return Asked(name, written)
    with closing(engine_for(name)) as engine:
        _refuse_another_s(engine.places.job(name) / CONFIGURATION, name)
        return Asked(name, written, engine.allow_private)


def refused(asked: Asked) -> int:
    """Return the exit code of a crawl that no URL can begin, once each is named with the reason; 0 if one can."""
    against = asyncio.run(reachable.obstacles(file.parse(asked.files, asked.name), asked.allow_private))
    for seed, why in against.items():
        todo = reachable.remedy(why)
        err(f"{seed}: {why.why}{f'; {todo}' if todo else ''}")
    if not against:
        return 0
    err(f"{asked.name}: no URL can be fetched; nothing was begun")
    return 1 if all(why.final for why in against.values()) else Unavailable.exit_code


def run_launch(args: argparse.Namespace, config: Path, asked: Asked) -> int:
    """Crawl, then run the line; return the exit code."""
    name, written = asked.name, asked.files
    list_job(config, name)
    os.environ[logs.LOG] = log_file(open_line().state.store)
    if not args.verbose:
        os.environ[logs.ATTENDED] = "1"
    with closing(engine_for(name)) as engine:
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
    last = job_log.last(engine.places.job(name))
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
    before = continues.continued_from(job / last.launch)
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
    found = reports.read(engine.places.job(name) / launch)
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
    missed = crawl_end.report(launch, folders.reports)
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
