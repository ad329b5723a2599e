"""Run the line from end to end with real servers: Heritrix crawls a site, HDFS keeps it, Solr has its text.

Run by `scripts/demo --servers`. The site and the servers, with luigid, are on
loopback. The servers stay up; `scripts/services down` ends them.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import demo_serve
from demo import run
from loopback_site import site

from servers import hdfs, heritrix, luigid, packages, solr

JOB, HOST = "demo", "127.0.0.1"  # a number needs no name server
PAGES_BEFORE_CHECKPOINT, PAGES = 5, 10
PATIENCE = 180  # seconds for the crawl to fetch that many: the shipped profile is polite, so slow
CONFIGURATION = """
[engine.demo]
kind=heritrix
url={url}
user={user}
password_file={password}
certificate={certificate}
jobs={job}

[job.{job}]
frequency=daily
start={today}T00:00:00Z

[feed]
jobs={job}
source={feed}
contact=http://{host}/
"""


def main(folder: Path) -> int:
    """Start the servers, crawl with a checkpoint in the middle, archive, and open a page; return 0 if it reconciles."""
    began = time.monotonic()
    sys.stdout.write("Starting Heritrix, HDFS, Solr and luigid; the first time they are downloaded\n")
    sys.stdout.flush()
    work = packages.default_work()
    engine, archive, text, scheduler = heritrix.up(work), hdfs.up(work), solr.up(work), luigid.up(work)
    os.environ.pop("LUIGI_CONFIG_PATH", None)  # of another line; Luigi warns if its file does not exist yet
    with site() as port:
        if not (folder / "luigi.cfg").exists():
            store = f"webhdfs://{archive.namenode_http}/{folder.name}?user={archive.user}"
            _make_line(folder, engine, store, port, f"scheduler_host={HOST}\nscheduler_port={scheduler.port}")
        os.environ["LUIGI_CONFIG_PATH"] = str(folder / "luigi.cfg")
        _crawl(engine.jobs)
    days = _days()
    _archive(days)
    config = folder / "luigi.cfg"
    demo_serve.index(config, days, f"{demo_serve.INDEX}solr={text.core}\n")
    run("warcmill", "status", days)
    code = run("warcmill", "reconcile", days, may_be=(0, 1))
    print(f"""
Done in {time.monotonic() - began:.0f} s. Where to look:
  {folder / "state"}       the markers, one a step
  {engine.jobs / JOB}      the job as Heritrix left it
  hdfs://{archive.namenode_http}/{folder.name}    the archive
  {text.core}/select?q=page    its text, as Solr has it
  {scheduler.visualiser}    every task, for ten minutes
  export LUIGI_CONFIG_PATH={shlex.quote(str(folder / "luigi.cfg"))}
  warcmill files --help      warcmill verify --help      warcmill serve      scripts/services down""")
    demo_serve.open_page(config, "page")
    return code


def _make_line(folder: Path, engine: heritrix.HeritrixServer, store: str, port: int, scheduler: str) -> None:
    run("warcmill", "init", str(folder), "--output", str(engine.jobs), "--layout", "job-first", "--store", store)
    feed = folder / "feed.jsonl"
    schedule = {"startDate": "2026-01-01", "frequency": "DAILY"}
    target = {"id": 1, "title": "A site", "seeds": [f"http://{HOST}:{port}/"], "schedules": [schedule]}
    feed.write_text(json.dumps(target) + "\n")
    keys = {"url": engine.url, "user": engine.user, "certificate": engine.certificate}
    keys |= {"password": engine.folder / "password", "today": datetime.now(UTC).date()}
    text = CONFIGURATION.format(**keys, job=JOB, host=HOST, feed=feed)
    config = folder / "luigi.cfg"
    config.write_text(config.read_text().replace("local_scheduler=true", scheduler) + text)


def _crawl(jobs: Path) -> None:
    """Crawl once a day: a second run on the same day finds it done."""
    run("warcmill", "feed", "check", str(Path(os.environ["LUIGI_CONFIG_PATH"]).parent / "feed.jsonl"))
    before = _launches(jobs)
    run("warcmill", "pulse", "start", JOB)
    begun = sorted(_launches(jobs) - before)
    if begun:
        log = jobs / JOB / begun[0] / "logs" / "crawl.log"
        _until(lambda: _lines(log) >= PAGES_BEFORE_CHECKPOINT)
        run("warcmill", "pulse", "checkpoint", JOB)
        _until(lambda: _lines(log) >= PAGES - PAGES_BEFORE_CHECKPOINT)
        run("warcmill", "pulse", "stop", JOB)


def _launches(jobs: Path) -> set[str]:
    job = jobs / JOB
    return {path.name for path in job.iterdir() if path.name.isdigit()} if job.exists() else set()


def _lines(log: Path) -> int:
    return log.read_bytes().count(b"\n") if log.exists() else 0


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            sys.exit(f"demo: the crawl did not come that far in {PATIENCE} s; look at 'scripts/services logs heritrix'")
        time.sleep(0.5)


def _days() -> str:
    today = datetime.now(UTC).date()
    return f"{today - timedelta(days=1)}-{today + timedelta(days=1)}"


def _archive(days: str) -> None:
    run("luigi", "--module", "tasks.output", "output.ScanForOutputs", "--date-interval", days)
    run("luigi", "--module", "tasks.files", "files.ScanForOutputFiles", "--date-interval", days)
    run("luigi", "--module", "tasks.reports", "reports.ScanForReports", "--date-interval", days)
