"""warcmill doctor: is everything in place for the line to run here?"""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import luigi
from luigi.interface import core
from rich.text import Text

from commands import doctor_more as more
from commands.arguments import add_json
from commands.doctor_engines import check_engines
from commands.show import as_json, console, lines, printable
from tasks import engines, feeds, places
from tasks.settings import Settings, check_hardened, settings
from warcmill.errors import BadConfig, WarcmillError
from warcmill.health import Check, Level, check_clock, check_jobs, check_profile, check_remote, check_roots
from warcmill.layout import SENTINEL
from warcmill.model import Json, Root
from warcmill.stores.places import is_remote

SUMMARY = "check that this machine, the configuration and the roots are fit to run"
EPILOG = """\
examples:
  warcmill doctor
  warcmill doctor --notice
  warcmill doctor --json | jq -r '.checks[] | select(.level != "ok") | .todo'

Looks at the configuration, the versions, the roots (there, readable; state and store
also writable, with hard links, room and no litter), the clock, roots that hold no
launch and what lies there instead, symbolic links that are not followed, sections and
keys of luigi.cfg that nobody reads, files of secrets that others can read, whether
several workers can run, luigid where one is configured, where notices go, and the
configuration of every job that an engine of luigi.cfg crawls. The roots of the engines
are never written to. In state and store a small file is made and removed again.

--json: {"checks": [{"name", "level": ok, warn or fail, "text", "todo"}]}

exit codes: 0 fit (there may be warnings), 1 something would fail, 2 usage,
3 configuration: nothing would start
"""
STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}
PYTHONS = ((3, 11), (3, 13))
LUIGI = "3.8."
PATIENCE = 3  # seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--notice, --json."""
    parser.add_argument("--notice", action="store_true", help="send a notice, marked as a test, to where they go")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check everything; print; the worst decides."""
    checks, code = list(versions()), 0
    try:
        found = settings()
        found.sites()
        check_hardened()
    except BadConfig as error:
        checks.append(Check("configuration", Level.FAIL, str(error), "warcmill init FOLDER shows how it should be"))
        code = 3
    else:
        checks += [*configured(found), *fitness(found), *more.all_of(found, args.notice)]
        checks += [*profiles(found), *check_engines(), scheduler()]
    if args.json:
        print(as_json({"checks": [_json(check) for check in checks]}))
    else:
        lines(console(), *_texts(checks))
    return code or int(any(check.level is Level.FAIL for check in checks))


def versions() -> Iterator[Check]:
    """Python's and Luigi's."""
    python = sys.version_info[:2]
    level = Level.OK if PYTHONS[0] <= python <= PYTHONS[1] else Level.WARN
    todo = "" if level is Level.OK else "use Python 3.11, 3.12 or 3.13"
    yield Check("python", level, sys.version.split()[0], todo)
    known = luigi.__version__.startswith(LUIGI)
    todo = "" if known else f"install Luigi {LUIGI}x"
    yield Check("luigi", Level.OK if known else Level.WARN, luigi.__version__, todo)


def configured(found: Settings) -> Iterator[Check]:
    """Which file was read, and that it is hardened."""
    path = os.environ.get("LUIGI_CONFIG_PATH")
    text = f"hardened; {path or 'luigi.cfg of this folder'}"
    if path:
        yield Check("configuration", Level.OK, text)
    else:
        todo = "export LUIGI_CONFIG_PATH: from another folder Luigi would find no configuration"
        yield Check("configuration", Level.WARN, f"{text}; LUIGI_CONFIG_PATH is not set", todo)
    if found.retire:
        yield Check("retire", Level.OK, "is on: WARCs are removed from the output root once they are read back")


def fitness(found: Settings) -> Iterator[Check]:
    """The roots and the clock."""
    where: dict[Root, str] = {
        "output": found.output,
        "jobs": found.jobs,
        "state": found.state,
        "store": found.store,
    }
    folders = {root: Path(place) for root, place in where.items() if not is_remote(place)}
    yield from check_roots(folders, found.retire)
    yield from (check_remote(root, url, found.access) for root, url in where.items() if is_remote(url))
    for section in places.named():
        yield from _of_section(found, section)
    sentinel = Path(found.state) / SENTINEL
    if sentinel.exists():
        yield check_clock(sentinel)


def _of_section(found: Settings, section: str) -> Iterator[Check]:
    """The roots that an engine or another writer has of its own."""
    roots = {root: place for place, some in places.roots_of(section).items() for root in some}
    folders = {root: Path(place) for root, place in roots.items() if not is_remote(place)}
    remote = (check_remote(root, place, found.access) for root, place in roots.items() if is_remote(place))
    for check in (*check_roots(folders, found.retire), *remote):
        todo = f"make it reachable, or correct luigi.cfg; a new root: warcmill init --adopt {section}"
        lost = check.level is Level.FAIL and check.name.startswith("root ")
        yield replace(check, name=f"{check.name} [{section}]", todo=todo if lost else check.todo)


def profiles(found: Settings) -> Iterator[Check]:
    """What the jobs that this line starts are crawled by."""
    try:
        jobs = engines.crawled()
        if feeds.configured().jobs:
            yield check_profile(
                "profile", feeds.profile().encode(), feeds.configured().profile or "the shipped profile"
            )
            feeds.source()
            for job in feeds.jobs():
                feeds.recipe(found, job)
    except WarcmillError as error:
        yield Check("crawls", Level.FAIL, str(error), "correct luigi.cfg")
        return
    for job in jobs:
        try:
            root = found.sites().of(job).jobs
        except WarcmillError:
            continue  # told as the root's
        yield from check_jobs(root, [job])


def scheduler() -> Check:
    """Whether luigid answers, where one is configured: without it every luigi waits for minutes, then fails."""
    config = core()
    if config.local_scheduler:
        return Check("scheduler", Level.OK, "each luigi schedules for itself")
    url = urlsplit(config.scheduler_url) if config.scheduler_url else None
    host = (url.hostname or "") if url else config.scheduler_host
    port = (url.port or 80) if url else config.scheduler_port
    try:
        socket.create_connection((host, port), PATIENCE).close()
    except OSError as error:
        todo = "start luigid there, or set local_scheduler=true in [core]"
        return Check("scheduler", Level.FAIL, f"no luigid at {host}:{port}: {error.strerror or error}", todo)
    return Check("scheduler", Level.OK, f"luigid answers at {host}:{port}")


def _texts(checks: list[Check]) -> Iterator[Text]:
    width = max(len(check.name) for check in checks)
    for check in checks:
        text = f"{check.name:<{width}}  {printable(check.text)}"
        yield Text.assemble((f"{check.level:<5}", STYLES[check.level]), text)
        if check.todo:
            yield Text(f"     {'':<{width}}  -> {printable(check.todo)}", style="cyan")


def _json(check: Check) -> dict[str, Json]:
    return {"name": check.name, "level": str(check.level), "text": check.text, "todo": check.todo}
