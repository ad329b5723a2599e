"""Mirror a package index, and play a day of it: uploads, yanks, removals, a quarantine, pages that are away or lag, a
kill. In the end each page is asked for as of each serial, and compared with what the index said then.

Run by `scripts/demo --pypi`; with `--s3` the archive is in an S3 server. Index and server are on loopback, with real
files; they end with the demo, and what happened to them stays. A second run finds nothing new.
"""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from demo import BIN, RECONCILED, TROUBLE, kill, run

from servers import distributions, pins, process, serving
from servers.package_index import PackageIndex
from servers.serving import RunningServe
from servers.versitygw import ACCESS_KEY, BUCKET, Versitygw
from warcmill.crawl.launch import job_log
from warcmill.crawl.launch.folders import state_of

JOB = "packages"
MILLS, SAILS, VANE = "mills", "sails", "vane"  # projects of the demo's own
BEFORE_KILL, STUCK = 6, 60  # files that are sent before the kill; seconds that each later one takes
PATIENCE = 300  # seconds for a crawl
DATA = "python_distribution_data"
MOST_ROWS = 3  # printed of a dump
CRAWLED = rf" (WARNING|ERROR) |^warcmill:|^{JOB}: "
SCANNED = rf"{TROUBLE}|^pypi\.ScanFor|^  not dumped|^      (->|{JOB})|^scan "
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
concurrency=4

[serve]
port={port}
replay=false
"""
SETTINGS = """no_delay = true
retries = { times = 2, wait = 1.0 }
"""


def main(folder: Path, *, s3: bool = False) -> int:
    """Crawl all, play a day, crawl what changed, dump all anew, and continue there; return 0 if it reconciles."""
    began = time.monotonic()
    os.environ.pop("LUIGI_CONFIG_PATH", None)  # of another line; Luigi warns if its file does not exist yet
    index, config = _index(folder), folder / "luigi.cfg"
    with ExitStack() as running:
        running.enter_context(index.running())
        if not index.serial:
            print("Real files for the index: pip fetches them, the first time", flush=True)
            index.populate()
            for project in (MILLS, SAILS, VANE):
                index.upload(distributions.wheel(folder / "package-index", project, "1.0"))
        server = _s3(folder) if s3 else None
        if server:
            process.end_in_order()
            running.callback(server.stop)
        if not config.exists():
            _make_line(folder, index, server)
        os.environ["LUIGI_CONFIG_PATH"] = str(config)
        if not dumps(folder):
            _crawl_all(folder, index)
            run("warcmill", "pypi", "provides", "yaml")
            run("warcmill", "pypi", "lag")
        print("$ warcmill serve &", flush=True)
        pages = running.enter_context(serving.serving(config, config.with_name("serve.log")))
        if not dumps(folder, 2):
            _play_and_dump_anew(folder, index, pages)
        _crawl_changes(folder)
        _ask(folder, pages)
        _compare(folder, index, pages)
        code = run("warcmill", "reconcile", _days(), may_be=(0, 1), shown=RECONCILED)
        _where_to_look(folder, time.monotonic() - began)
        if sys.stdout.isatty():
            print(f"Open it in a browser: {pages.entrance}\nCtrl-C ends it, the index, and the S3 server", flush=True)
            with suppress(KeyboardInterrupt):
                pages.process.wait()
    return code


def _index(folder: Path) -> PackageIndex:
    """The index of this demo, at the ports that it had before: addresses of its files are in the archive."""
    return PackageIndex(folder / "package-index", _ports(folder / "package-index", pins.PACKAGE_INDEX))


def _s3(folder: Path) -> Versitygw:
    """The S3 server of this demo, at the port that luigi.cfg has."""
    print("The archive is in versitygw, an S3 server; Go compiles it, the first time: some minutes", flush=True)
    return Versitygw(folder / "s3", _ports(folder / "s3", pins.VERSITYGW)).up()


def _ports(home: Path, wanted: Mapping[str, int]) -> Mapping[str, int]:
    kept, config = home / "ports.json", home.parent / "luigi.cfg"
    if config.exists() and kept.exists():
        return dict(json.loads(kept.read_text("utf-8")))
    ports = pins.free(wanted)
    home.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(dict(ports)), "utf-8")
    return ports


def _make_line(folder: Path, index: PackageIndex, server: Versitygw | None) -> None:
    words = []
    if server:
        words = ["--store", f"s3://{BUCKET}/{JOB}", "--endpoint", server.endpoint, "--access-key", ACCESS_KEY]
        words += ["--secret-key-file", str(server.secret_key_file)]
    run("warcmill", "init", str(folder), *words)
    settings = folder / "crawl-settings.toml"
    settings.write_text(SETTINGS, "utf-8")
    (port,) = pins.free({"port": 0}).values()
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    text = CONFIGURATION.format(job=JOB, tomorrow=tomorrow, index=index.url, settings=settings, port=port)
    print(f"{folder / 'luigi.cfg'} also gets the engine, the job, [pypi] and [serve]", flush=True)
    with (folder / "luigi.cfg").open("a") as config:
        config.write(text)


def _crawl_all(folder: Path, index: PackageIndex) -> None:
    """Crawl all projects, with a kill on the way."""
    jobs = folder / "jobs"
    index.delay("/packages/", 0.1, times=BEFORE_KILL)
    index.delay("/packages/", STUCK)
    run("warcmill", "pypi", "trigger_full", JOB, shown=CRAWLED)
    _until(lambda: _fetched(index) >= BEFORE_KILL)
    kill(state_of(jobs, JOB))
    index.recover()
    run("warcmill", "pypi", "trigger_full", JOB, shown=CRAWLED)
    _carry_on(folder)


def _play_and_dump_anew(folder: Path, index: PackageIndex, pages: RunningServe) -> None:
    """Play a day, and crawl it; then dump all that is stored, as a generation that a last change follows."""
    first = int(dumps(folder)[0].name.partition("-")[2])
    made = folder / "uploads"
    made.mkdir(exist_ok=True)
    if index.serial == first:
        _play(made, index)
    _crawl_changes(folder)
    _play_on(index)
    _crawl_changes(folder)
    for serial in (first, index.serial):
        run("warcmill", "pypi", "show", "six", "--as-of", str(serial))
        for project in ("six", "yamlish"):
            _resolve(pages, serial, project)
    run("warcmill", "pypi", "dump_full", JOB, shown=CRAWLED + "|^generation")
    index.recover()
    _lag(index)
    index.upload(distributions.wheel(made, "yamlish", "1.1", {"yaml/__init__.py": b""}))
    print(f"At the index: docopt answers again, yamlish 1.1 is uploaded; {MILLS} lags", flush=True)


def _play(made: Path, index: PackageIndex) -> None:
    """A day of the index."""
    index.upload(distributions.wheel(made, "yamlish", "1.0", {"yaml/__init__.py": b"", "yaml/more.py": b""}, ["six"]))
    index.upload(distributions.wheel(made, "six", "1.18.0"))
    index.yank("six", "1.17.0", "it broke the build")
    index.remove_project("wget")
    index.upload(distributions.wheel(made, "docopt", "0.7.0"))
    index.fail("/simple/docopt/", 503)
    index.quarantine(SAILS)
    index.remove_file(MILLS, f"{MILLS}-1.0-py3-none-any.whl")
    index.upload(distributions.wheel(made, MILLS, "1.0", {f"{MILLS}.py": b"turning = True"}))
    index.yank(VANE, "1.0", "the wind turned")
    index.upload(distributions.wheel(made, MILLS, "1.1"))
    _lag(index)
    print(
        "At the index: yamlish 1.0, six 1.18.0 and docopt 0.7.0 are uploaded, six 1.17.0 is yanked, wget is removed;"
        f" the page of docopt answers 503; {SAILS} is in quarantine, {VANE} 1.0 yanked; {MILLS} 1.0 is removed and"
        " uploaded anew, 1.1 uploaded, while the serial of its page lags",
        flush=True,
    )


def _lag(index: PackageIndex) -> None:
    """Let a page have all its files, and the serial of before the last event."""
    project = index.project(MILLS)
    assert project, "it was uploaded first"
    index.lag_page(MILLS, project.serial - 1)


def _play_on(index: PackageIndex) -> None:
    """What begins once the day is crawled; not again where the demo was interrupted."""
    project = index.project(SAILS)
    if project and project.is_quarantined:
        index.clear_quarantine(SAILS)
        index.unyank(VANE, "1.0")
        print(f"At the index: the quarantine of {SAILS} is cleared, {VANE} 1.0 is unyanked", flush=True)


def _crawl_changes(folder: Path) -> None:
    run("warcmill", "pypi", "trigger_incremental", JOB, shown=CRAWLED)
    _carry_on(folder)


def _carry_on(folder: Path) -> None:
    """Once the crawl has ended: archive it, read its facts, dump and publish them; print the newest dump."""
    _until(lambda: (last := job_log.last(folder / "jobs" / JOB)) is not None and last.ended)
    run("warcmill", "scan", _days(), may_be=(0, 1), shown=SCANNED)
    newest = (dumps(folder, 2) or dumps(folder))[-1]
    rows: list[dict[str, Any]] = []
    for path in newest.glob("*.json.gz"):
        rows += json.loads(gzip.decompress(path.read_bytes()))
    rows.sort(key=lambda row: str(row["filename"]).lower())
    print(f"Dumped, of serials {newest.name}: {len(rows)} files", flush=True)
    for row in rows[:MOST_ROWS]:
        print(f"  {row['filename']}: {', '.join((row['modules'] or ())[:4]) or 'no modules known'}", flush=True)
    if len(rows) > MOST_ROWS:
        print("  …", flush=True)


def _resolve(pages: RunningServe, serial: int, project: str) -> None:
    """Let pip resolve a project as of a serial. The token is in no command line."""
    address = f"{pages.address}as-of/{serial}/simple/"
    print(f"$ pip install --dry-run --index-url {address.replace('://', '://any:TOKEN@')} {project}", flush=True)
    words = ["--disable-pip-version-check", "install", "--dry-run", "--ignore-installed", "--no-cache-dir", project]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": address.replace("://", f"://any:{pages.token}@")}
    done = subprocess.run(
        [BIN / "python", "-m", "pip", *words], env=environment, capture_output=True, text=True, check=False
    )
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("Would", "ERROR: No"))]
    if not said:
        sys.exit(f"demo: pip did not resolve {project}:\n{done.stdout}{done.stderr}")
    print("\n".join(said), flush=True)


def _ask(folder: Path, pages: RunningServe) -> None:
    """Ask the published data sets what the day has changed."""
    newest = dumps(folder, 2)[-1].name.partition("-")[2]
    run("warcmill", "pypi", "provides", "yaml")
    run("warcmill", "pypi", "requires", "yamlish-1.0-py3-none-any.whl")
    run("warcmill", "pypi", "requires", "--reverse", "idna")
    run("warcmill", "pypi", "lag")
    _resolve(pages, int(newest), "yamlish")


def _compare(folder: Path, index: PackageIndex, pages: RunningServe) -> None:
    """Ask for the page of each project that has changed, as of each serial, and compare it with what the index said."""
    first, newest = (int(dumps(folder)[0].name.partition("-")[2]), int(dumps(folder, 2)[-1].name.partition("-")[2]))
    said = {serial: shown for serial, shown in index.said().items() if first <= serial <= newest}
    names = sorted({name for shown in said.values() for name in shown})
    changed = [name for name in names if len({str(shown.get(name)) for shown in said.values()}) > 1]
    for serial, shown in said.items():
        for name in changed:
            if (found := _page(pages, serial, name)) != shown.get(name, {}):
                sys.exit(f"demo: {name} as of {serial} is {found}; the index had {shown.get(name, {})}")
    print(f"Serials {first} to {newest}: {', '.join(changed)} are answered at each as the index was", flush=True)


def _page(pages: RunningServe, serial: int, project: str) -> dict[str, str | None]:
    """The files of a project as of a serial, each with the reason for which it is yanked."""
    headers = {"Authorization": f"Bearer {pages.token}", "Accept": "application/vnd.pypi.simple.v1+json"}
    with closing(HTTPConnection(urlsplit(pages.address).netloc, timeout=PATIENCE)) as connection:
        connection.request("GET", f"/as-of/{serial}/simple/{project}/", headers=headers)
        answer = connection.getresponse()
        data = answer.read()
    if answer.status == HTTPStatus.NOT_FOUND:
        return {}
    yanked = {one["filename"]: one["yanked"] for one in json.loads(data)["files"]}
    return {name: None if why is False else "" if why is True else str(why) for name, why in yanked.items()}


def dumps(folder: Path, generation: int = 1) -> list[Path]:
    """The windows that are dumped in a generation, in their order. versitygw keeps objects as files."""
    stores = (folder / "store", folder / "s3/buckets" / BUCKET / JOB)
    places = (store / "dumps" / JOB / f"v{generation}" / "data_dumps" / DATA for store in stores)
    found = (path for place in places for path in place.glob("*-*"))
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
    generation = dumps(folder, 2)[-1].parents[2]
    print(f"""Done in {seconds:.1f} s. Where to look:
  {generation}    the newest dumps, by window of serials; the LevelDBs, by data set
  {generation.parents[2]}    the archive: WARCs of pages and files, logs
  {folder / "state"}    the markers, one a step
  export LUIGI_CONFIG_PATH={shlex.quote(str(folder / "luigi.cfg"))} PATH={shlex.quote(str(BIN))}:$PATH
  warcmill pypi --help    warcmill versions list --of modules""")
