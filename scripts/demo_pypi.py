"""Mirror a package index, and play a day of it: an upload, a yank, a removal, a page that is away, a kill.

Run by `scripts/demo --pypi`. The index is on loopback, with real files; it ends with the demo, and what happened to it
stays. A second run finds nothing new.
"""

from __future__ import annotations

import gzip
import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from demo import kill, run

from servers import distributions, pins
from servers.package_index import PackageIndex
from warcmill.crawl.launch import job_log
from warcmill.crawl.launch.folders import state_of

JOB = "packages"
SLOW, BEFORE_KILL = 0.3, 6  # seconds that each file takes; files before the kill
PATIENCE = 300  # seconds for a crawl
DATA = "python_distribution_data"
CONFIGURATION = """
[engine.packages]
kind=warcmill
jobs={job}
allow_private=127.0.0.0/8

[job.{job}]
frequency=daily
start={tomorrow}T00:00:00Z
overrun=wait

[pypi]
since=2016-01-01
jobs={job}
index={index}
contact={index}/
settings={settings}
"""
SETTINGS = """no_delay = true
retries = { times = 2, wait = 1.0 }
"""


def main(folder: Path) -> int:
    """Crawl all, play a day, crawl what changed, and dump both; return 0 if the archive reconciles."""
    began = time.monotonic()
    os.environ.pop("LUIGI_CONFIG_PATH", None)  # of another line; Luigi warns if its file does not exist yet
    index = _index(folder)
    with index.running():
        if not index.serial:
            sys.stdout.write("Real files for the index: the first time pip fetches them\n")
            sys.stdout.flush()
            index.populate()
        if not (folder / "luigi.cfg").exists():
            _make_line(folder, index)
        os.environ["LUIGI_CONFIG_PATH"] = str(folder / "luigi.cfg")
        if not dumps(folder):
            _crawl_all(folder, index)
            run("warcmill", "pypi", "provides", "yaml")
            _play(folder, index)
        _crawl_changes(folder)
        index.recover()  # the page that was away is there again
        _crawl_changes(folder)
        _ask(folder)
    code = run("warcmill", "reconcile", _days(), may_be=(0, 1))
    _where_to_look(folder, time.monotonic() - began)
    return code


def _index(folder: Path) -> PackageIndex:
    """The index of this demo, at the ports that it had before: addresses of its files are in the archive."""
    config = folder / "luigi.cfg"
    ports = pins.free(pins.PACKAGE_INDEX)
    kept = folder / "package-index" / "ports.json"
    if config.exists() and kept.exists():
        ports = json.loads(kept.read_text("utf-8"))
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(dict(ports)), "utf-8")
    return PackageIndex(kept.parent, ports)


def _make_line(folder: Path, index: PackageIndex) -> None:
    run("warcmill", "init", str(folder))
    settings = folder / "crawl-settings.toml"
    settings.write_text(SETTINGS, "utf-8")
    text = CONFIGURATION.format(
        job=JOB, tomorrow=datetime.now(UTC).date() + timedelta(days=1), index=index.url, settings=settings
    )
    print(f"{folder / 'luigi.cfg'} also gets the engine, the job and [pypi]", flush=True)
    with (folder / "luigi.cfg").open("a") as config:
        config.write(text)


def _crawl_all(folder: Path, index: PackageIndex) -> None:
    """Crawl all projects, with a kill on the way."""
    jobs = folder / "jobs"
    index.delay("/packages/", SLOW)
    run("warcmill", "pypi", "trigger_full", JOB)
    _until(lambda: _fetched(index) >= BEFORE_KILL)
    kill(state_of(jobs, JOB))
    index.recover()
    run("warcmill", "pypi", "trigger_full", JOB)
    _carry_on(folder)


def _play(folder: Path, index: PackageIndex) -> None:
    """A day of the index."""
    made = folder / "uploads"
    made.mkdir(exist_ok=True)
    index.upload(distributions.wheel(made, "yamlish", "1.0", {"yaml/__init__.py": b"", "yaml/more.py": b""}, ["six"]))
    index.upload(distributions.wheel(made, "six", "1.18.0"))
    index.yank("six", "1.17.0", "it broke the build")
    index.remove_project("wget")
    index.upload(distributions.wheel(made, "docopt", "0.7.0"))
    index.fail("/simple/docopt/", 503)
    print(
        "Of the index: yamlish and six 1.18.0 uploaded, six 1.17.0 yanked, wget removed; docopt answers 503", flush=True
    )


def _crawl_changes(folder: Path) -> None:
    run("warcmill", "pypi", "trigger_incremental", JOB)
    _carry_on(folder)


def _carry_on(folder: Path) -> None:
    """Once the crawl has ended: archive it, read its facts, dump and publish them; print the newest dump."""
    _until(lambda: (last := job_log.last(folder / "jobs" / JOB)) is not None and last.ended)
    run("warcmill", "scan", _days(), may_be=(0, 1))
    newest = dumps(folder)[-1]
    for path in sorted(newest.glob("*.json.gz")):
        for row in json.loads(gzip.decompress(path.read_bytes())):
            print(f"  {newest.name} {row['filename']}: {', '.join(row['modules'] or ())}", flush=True)


def _ask(folder: Path) -> None:
    """Ask the published data sets what the day has changed."""
    first = dumps(folder)[0].name.partition("-")[2]
    run("warcmill", "pypi", "provides", "yaml")
    run("warcmill", "pypi", "requires", "yamlish-1.0-py3-none-any.whl")
    run("warcmill", "pypi", "show", "six", "--as-of", first)
    run("warcmill", "pypi", "show", "six")
    run("warcmill", "pypi", "lag")


def dumps(folder: Path) -> list[Path]:
    """The windows that are dumped, in their order."""
    found = (folder / "store" / "dumps" / JOB / "v1" / "data_dumps" / DATA).glob("*-*")
    return sorted(found, key=lambda path: int(path.name.partition("-")[2]))


def _fetched(index: PackageIndex) -> int:
    return sum(request.path.startswith("/packages/") for request in index.requests())


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"demo: the crawl did not come that far in {PATIENCE} s")
        time.sleep(0.05)


def _days() -> str:
    today = datetime.now(UTC).date()
    return f"{today - timedelta(days=1)}-{today + timedelta(days=1)}"


def _where_to_look(folder: Path, seconds: float) -> None:
    print(f"""Done in {seconds:.1f} s. Where to look:
  {folder / "store" / "dumps" / JOB}    the dumps, by generation and window; the LevelDBs, by data set
  {folder / "store"}    the archive: WARCs of pages and files, logs
  export LUIGI_CONFIG_PATH={shlex.quote(str(folder / "luigi.cfg"))}
  warcmill pypi --help    warcmill verify --help""")
