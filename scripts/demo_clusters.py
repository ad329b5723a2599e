"""Crawl twenty hosts by two clusters of a group; one burns down half-way, and the other takes over its work.

Run by `scripts/demo --clusters 2`. PostgreSQL, the hosts and both clusters are on this machine. Each cluster has a line
of its own, as in a data centre of its own. The hosts' own log is the judge: a cluster is known by its User-Agent, and
nobody asks for a page of the other's hosts, until those are its own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from demo import BIN, RECONCILED, SCANNED, kill, run
from demo_workers import TwentyHosts

from servers import pins, postgresql
from warcmill.crawl.launch.folders import state_of

GROUP = "web"
EAST, WEST = "web-east", "web-west"
HOSTS = [f"127.0.{1 + number % 2}.{number + 1}" for number in range(20)]
PAGES = 100  # of each host
PATIENCE = 300.0  # seconds
PULSED = r"^web-|ERROR|^warcmill:"
RULES = f"""\
default = "{EAST}"

[[rule]]
network = "127.0.2.0/24"
cluster = "{WEST}"
"""
LINE = """
[engine.crawl]
kind=warcmill
jobs={job}

[group.{group}]
centre={centre}
jobs={east}, {west}
rules={rules}
"""
TOML = """\
endless = true
allow_private = ["127.0.0.0/8"]
contact = "http://{job}.example/"

[politeness]
factor = 0
least = 0.05
most = 0.05
"""


class LinkedHosts(TwentyHosts):
    """Hosts whose pages link to more of their own, and to the same page of two others. `by`: who asked for each."""

    def __init__(self) -> None:
        super().__init__(HOSTS)
        self.by: dict[str, list[str]] = {}

    def note(self, host: str, path: str, agent: str) -> None:
        """Note who asked for a page."""
        if path != "/robots.txt":
            self.by.setdefault(f"{host}{path}", []).append(EAST if EAST in agent else WEST)

    def body(self, host: str, path: str) -> bytes | None:
        """The answer to a path; None for none."""
        number = int(path[1:]) if re.fullmatch(r"/\d+", path) else PAGES
        if number >= PAGES:
            return None
        place = HOSTS.index(host)
        others = [f"http://{HOSTS[(place + step) % len(HOSTS)]}:{self.port}/{number}" for step in (1, 7)]
        own = [f"/{n}" for n in (2 * number + 1, 2 * number + 2) if n < PAGES]
        return f"<title>{number}</title>{''.join(f'<a href={link}>{link}</a> ' for link in [*own, *others])}".encode()


def main(folder: Path, **_: bool) -> int:
    """Crawl, lose a cluster, let the other finish; return 0 if the judge, the books and the line find no fault."""
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for name in (EAST, WEST):
        shutil.rmtree(name, ignore_errors=True)  # of a demo before: its centre is gone, too
    site = LinkedHosts()
    with site.running(), TemporaryDirectory(prefix="warcmill-") as place:
        Path(place).chmod(0o755)  # for nobody, as whom PostgreSQL runs where this is root
        centre = postgresql.at(Path(place), pins.free({"postgresql": 0}))
        print("PostgreSQL starts, the centre of the group", flush=True)
        centre.start()
        try:
            return _story(folder, site, centre.url())
        finally:
            centre.stop()


def _story(folder: Path, site: LinkedHosts, centre: str) -> int:
    (folder / "rules.toml").write_text(RULES)
    for job in (EAST, WEST):
        _at(folder, job)
        run("warcmill", "init", job, shown="is written")
        _configure(folder / job, job, centre, site.port)
    run("warcmill", "group", GROUP, "init")
    east = _updater(folder, EAST)
    with _ended(_updater(folder, WEST)):
        with _ended(east):
            for job in (EAST, WEST):
                _at(folder, job)
                run("warcmill", "pulse", "start", job, "--again", shown=PULSED)
            _wait(lambda: len(site.by) >= len(HOSTS) * PAGES // 2, "half of the pages")
            run("warcmill", "group", GROUP, "status")
            print(f"$ kill -KILL {east.pid}    # the updater of {EAST}", flush=True)
            east.kill()
            kill(state_of(folder / EAST / "jobs", EAST))
        print(f"$ rm -r {EAST}    # its jobs, its state and its store", flush=True)
        shutil.rmtree(folder / EAST)
        lost = {page for page, who in site.by.items() if EAST in who}
        why = "the data centre burnt down"
        run("warcmill", "group", GROUP, "retire", EAST, "--reason", why, "--gone", "--lost")
        _wait(lambda: len(site.by) == len(HOSTS) * PAGES and not _waits(), "rest of the pages")
        run("warcmill", "group", GROUP, "status")
        run("warcmill", "pulse", "stop", WEST, shown=PULSED)
        _wait(lambda: not _behind(), "end of the journal in the centre")
    code = run("warcmill", "group", GROUP, "books", may_be=(0, 1))
    run("warcmill", "scan", shown=SCANNED)
    code |= run("warcmill", "reconcile", may_be=(0, 1), shown=RECONCILED)
    return code | _judged(folder, site, lost)


def _at(folder: Path, job: str) -> None:
    """The commands that follow are of this cluster's line."""
    os.environ["LUIGI_CONFIG_PATH"] = str(folder / job / "luigi.cfg")
    print(f"    in the line of {job}:", flush=True)


def _configure(line: Path, job: str, centre: str, port: int) -> None:
    """Write the job, and name the group."""
    own = line / "jobs" / job
    own.mkdir(parents=True)
    (own / "crawl.toml").write_text(TOML.format(job=job))
    (own / "surts.txt").write_text("+http://(\n")
    (own / "seeds.txt").write_text(f"http://{HOSTS[0 if job == EAST else 1]}:{port}/0\n")
    text = LINE.format(
        job=job, group=GROUP, centre=centre, east=EAST, west=WEST, rules=line.with_name("rules.toml"),
    )  # fmt: skip
    with (line / "luigi.cfg").open("a") as config:
        config.write(text)
    print(f"{line / 'luigi.cfg'} also gets:\n{text}", flush=True)


def _updater(folder: Path, job: str) -> subprocess.Popen[bytes]:
    """Start the updater of a cluster; its log is a file of its name."""
    print(f"$ warcmill run updater {job} &", flush=True)
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(folder / job / "luigi.cfg")}
    with (folder / f"{job}-updater.log").open("wb") as log:
        return subprocess.Popen([BIN / "warcmill", "run", "updater", job], env=env, stdout=log, stderr=log)


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _status() -> list[dict[str, Any]]:
    asked = [BIN / "warcmill", "group", GROUP, "status", "--json"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)["clusters"]
    return found


def _waits() -> int:
    """The URIs and orders that wait, by the centre."""
    return sum(one["uris"]["Scheduled"] + one["orders"] for one in _status())


def _behind() -> int:
    """The bytes of the journal of the cluster that is left which the centre has not read."""
    return next(int(one["behind"]) for one in _status() if one["cluster"] == WEST)


def _judged(folder: Path, site: LinkedHosts, lost: set[str]) -> int:
    """Print what the hosts' log says; return 0 if it has no fault, and each page is in a WARC of the store."""
    twice = {page for page, who in site.by.items() if len(who) > 1}
    records: set[str] = set()
    for warc in sorted((folder / WEST / "store").rglob("*.warc.gz")):
        done = subprocess.run([BIN / "warcmill", "cdxj", warc], capture_output=True, text=True, check=True)
        records |= {json.loads(line.split(" ", 2)[2])["url"] for line in done.stdout.splitlines()}
    lacking = {page for page in site.by if f"http://{page.replace('/', f':{site.port}/', 1)}" not in records}
    print(f"{len(site.by)} pages were asked for, {len(twice)} of them twice, {len(lost)} were of the lost cluster")
    print(f"{len(site.by) - len(lacking)} of them are records in the store of {WEST}", flush=True)
    for fault, pages in (("asked for twice, and were not lost", twice - lost), ("in no WARC", lacking)):
        if pages:
            print(f"demo: {len(pages)} pages are {fault}; first {min(pages)}", file=sys.stderr)
    return int(bool(twice - lost or lacking))


def _wait(true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        if time.monotonic() > deadline:
            sys.exit(f"demo: no {what} came in {PATIENCE:.0f} s; see the logs of the updaters")
        time.sleep(0.5)
