"""Crawl a site on loopback from a URL, with a kill on the way; run that and the bundled launch through the line; open a
page in replay.

Run by scripts/demo. Each step is a command that an operator would type, printed
before it runs; of what it prints, the demo shows what matters here.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import sample
from loopback_site import living_museum, slow_site

from commands.console.scanner import moving, show
from warcmill.crawl.launch import folders, job_log
from warcmill.crawl.launch.folders import state_of

HERE = Path(__file__).resolve().parent.parent
BIN = HERE / ".venv" / "bin"
DAY = "2026-11-21"
KINDS = {
    "--servers": "demo_servers", "--pypi": "demo_pypi", "--render": "demo_render", "--workers": "demo_workers",
    "--requests": "demo_requests", "--studio": "demo_studio", "--clusters": "demo_clusters",
}  # fmt: skip
MORE = {"--pypi": "--s3", "--requests": "--services"}  # the word that may follow
SITE, HOST = "site", "127.0.0.1"
MUSEUM = "127-0-0-1"  # the job that "Archive a site" makes of an address on loopback
BEFORE_KILL = 20  # documents
PATIENCE = 60  # seconds until the crawl has fetched so many
TROUBLE = "WARNING|ERROR|failed|^warcmill:"
SCANNED = rf"{TROUBLE}|^[a-z]+\.ScanFor|^  [a-z ]+:|^      (->|{sample.JOB})|^scan "
RECONCILED = rf"{TROUBLE}|^launch|^ +on |^total|accepted$|^  [a-z]|gaps?$"
PACKAGE = """
[package]
since=2016-01-01
organisation=National Library of Example
naan=12345
destination={destination}
"""


DOCUMENTS = """
[documents]
since=2016-01-01
watched={watched}
"""
WATCHED = """[
 {"id": 1, "title": "A curator's site", "seeds": ["http://docs.example/"], "watched": true},
 {"id": 2, "title": "A government", "seeds": ["http://gov.example/", "http://assets.gov.example/"], "watched": true}
]
"""


def main(words: list[str]) -> int:
    """Make the folder unless it exists, and bring it up to date; return 0 if the archive reconciles."""
    os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    kind, names = (words[0], words[1:]) if words and words[0] in KINDS else ("", words)
    more = MORE[kind] if names[:1] == [MORE.get(kind)] else ""
    names = names[1:] if more else names
    if kind in ("--workers", "--clusters") and names[:1] == ["2"]:  # their number; the one that leads included
        names = names[1:]
    if len(names) > 1 or any(name.startswith("-") for name in names):
        kinds = (f"{one} [{MORE[one]}]" if one in MORE else one for one in KINDS)
        print(f"usage: scripts/demo [{' | '.join(kinds)}] [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(names[0]).resolve() if names else HERE / f"demo{kind[1:]}{more[1:]}"
    if kind:
        words_of = {more[2:]: True} if more else {}
        return int(importlib.import_module(KINDS[kind]).main(folder, **words_of))  # it imports this module
    return _demo(folder)


def _demo(folder: Path) -> int:
    began = time.monotonic()
    os.environ.pop("LUIGI_CONFIG_PATH", None)  # of another line; Luigi warns if its file does not exist yet
    if not (folder / "luigi.cfg").exists():
        print(f"A crawl of {sample.JOB}, launch {sample.LAUNCH_ID}, as Heritrix left it, goes to {folder}/output")
        if not (folder / "output").exists():
            shutil.rmtree(folder / "output.part", ignore_errors=True)
            sample.lay_out(folder / "output.part").rename(folder / "output")
        command = ["warcmill", "init", str(folder), "--output", f"{folder}/output", "--jobs", f"{folder}/output/jobs"]
        run(*command, shown="is written")
    os.environ["LUIGI_CONFIG_PATH"] = str(folder / "luigi.cfg")
    if "\n[package]" not in (folder / "luigi.cfg").read_text():
        _switch_packages_on(folder)
        _switch_documents_on(folder)
    _crawl(folder / "output" / "jobs")
    days = f"{DAY}-{datetime.now(UTC).date() + timedelta(days=1)}"
    if run("warcmill", "scan", days, may_be=(0, 1), shown=SCANNED):  # a seed of the bundled crawl was not got
        command = ["warcmill", "accept", "--seeds", "--launch", sample.JOB, sample.LAUNCH_ID]
        run(*command, "--reason", "its host is gone", shown="^accepted")
    code = run("warcmill", "reconcile", days, may_be=(0, 1), shown=RECONCILED)
    import demo_serve  # noqa: PLC0415 - it imports this module

    run("warcmill", "documents", "list")
    run("warcmill", "search", "limited upload rights", "--site", "docs.example")
    _where_to_look(folder, time.monotonic() - began)
    # Its site is up again, and slow: a crawl of it that is started from a page can be watched and stopped. So is a
    # museum, for a curator's day: docs/start/archive-a-site.md.
    jobs = folder / "output" / "jobs"
    with slow_site(threading.Event(), port_before(jobs)), living_museum(port_before(jobs, MUSEUM)) as museum:
        demo_serve.open_page(folder / "luigi.cfg", "chapter 1 getting started", SITE, museum)
    return code


def _switch_packages_on(folder: Path) -> None:
    """SIPs for every launch, submitted to a folder."""
    section = PACKAGE.format(destination=folder / "preservation")
    print(f"{folder / 'luigi.cfg'} also gets [package]: a SIP of every launch, submitted to a folder")
    with (folder / "luigi.cfg").open("a") as config:
        config.write(section)
    run("warcmill", "init", "--adopt", "package", "--create")


def _switch_documents_on(folder: Path) -> None:
    """A curator's list of the documents of two sites."""
    watched = folder / "watched.json"
    watched.write_text(WATCHED)
    print(
        f"{folder / 'luigi.cfg'} also gets [documents]: a curator's list of new publications; {watched} has its sites"
    )
    with (folder / "luigi.cfg").open("a") as config:
        config.write(DOCUMENTS.format(watched=watched))


def _crawl(jobs: Path) -> None:
    """Crawl a site from its URL, take a checkpoint, kill the crawl, and continue it; once."""
    last = job_log.last(jobs / SITE)
    if last and last.ended and last.empty:
        return
    hurry = threading.Event()
    with slow_site(hurry, port_before(jobs)) as port:
        command = ["warcmill", "crawl", f"http://{HOST}:{port}/", "--job", SITE]
        command += ["--hops", "200", "--allow-private", "127.0.0.0/8", "--no-delay", "--no-line"]
        print(f"$ {' '.join(command)} &", flush=True)
        with subprocess.Popen(command) as crawl:
            lines = jobs.parent / "logs" / SITE
            _until(lambda: crawl.poll() is not None or _logged(lines) >= BEFORE_KILL)
            run("warcmill", "job", SITE, "checkpoint")
            kill(state_of(jobs, SITE))
        hurry.set()
        run(*command)


def port_before(jobs: Path, job: str = SITE) -> int:
    """The port of a demo that broke off, where its crawl continues; 0 for any."""
    seeds = jobs / job / "seeds.txt"
    return urlsplit(seeds.read_text().strip()).port or 0 if seeds.exists() else 0


def _logged(logs: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in logs.rglob("crawl.log*"))


def kill(state: Path) -> None:
    """Kill the process that crawls, as a machine that fails does."""
    if holder := folders.holder(state):
        print(f"$ kill -KILL {holder.pid}", flush=True)
        os.kill(holder.pid, signal.SIGKILL)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"demo: the crawl did not come that far in {PATIENCE} s")
        time.sleep(0.05)


def run(*command: str, may_be: tuple[int, ...] = (0,), shown: str = "") -> int:
    """Print a command, and run it. `shown`: print only lines in which this is found, as soon as they come."""
    print(f"$ {shlex.join(command)}", flush=True)
    code = _shown(command, re.compile(shown)) if shown else subprocess.run(command, check=False).returncode
    if code not in may_be:
        sys.exit(f"demo: '{' '.join(command)}' ended with exit code {code}")
    return code


def _shown(command: tuple[str, ...], pattern: re.Pattern[str]) -> int:
    with (
        moving(f"{command[1]} …") as bar,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process,
    ):
        for line in process.stdout or ():
            if pattern.search(line) and bar:
                show(line.rstrip(), bar)
            elif pattern.search(line):
                print(line, end="", flush=True)
    return process.returncode


def _where_to_look(folder: Path, seconds: float) -> None:
    launch = f"{sample.JOB}/{sample.LAUNCH_ID}"
    print(f"""Done in {seconds:.1f} s. Run it again: it will find nothing left to do. Where to look:
  {folder / "state" / DAY[:7] / launch}    the markers, one a step
  {folder / "store"}    the archive: WARCs, the viral WARC apart, the logs in one zip, the SIP
  {folder / "preservation"}    where the SIPs were submitted, and verified
  export LUIGI_CONFIG_PATH={shlex.quote(str(folder / "luigi.cfg"))} PATH={shlex.quote(str(BIN))}:$PATH
  warcmill why {sample.JOB} {sample.LAUNCH_ID}    warcmill files {DAY}    warcmill verify {DAY}    warcmill serve""")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
