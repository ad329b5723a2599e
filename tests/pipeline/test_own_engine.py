"""`kind=warcmill` in the place of `kind=heritrix`: the steps of the pulse, on a real crawl, with a kill on the way."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from line import Line, line_at
from sites.several_hosts import page, serve

from warcmill import layout
from warcmill.crawl.launch import folders, job_log
from warcmill.formats.logs import crawllog
from warcmill.markers.facts.pulse import Launched, Started
from warcmill.model import Launch
from warcmill.pulse import broken_launches

JOB, HOST, PAGES = "daily", "a.example", 40
SETTINGS = """\
allow_private = ["127.0.0.0/8"]
resolve = ["a.example=127.0.0.1"]

[politeness]
factor = 0
least = 0.1
most = 0.1
"""
CONFIGURATION = """
[engine.own]
kind=warcmill
jobs={job}

[job.{job}]
frequency=daily
start={start}

[feed]
jobs={job}
source={base}/feed.jsonl
settings={base}/settings.toml
contact=http://archive.example/
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    site = {(HOST, f"/{n or ''}"): page([f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES]) for n in range(PAGES)}
    with serve(site) as port:
        yield port


@pytest.fixture
def line(tmp_path: Path, port: int) -> Iterator[Line]:
    """A line whose one job was due an hour ago, by a feed of one site."""
    made = line_at(tmp_path)
    start = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    made.config.write_text(made.config.read_text() + CONFIGURATION.format(job=JOB, start=start, base=tmp_path))
    schedules = [{"startDate": "2026-01-01", "frequency": "DAILY"}]
    target = {"id": 1, "seeds": [f"http://{HOST}:{port}/"], "schedules": schedules}
    (tmp_path / "feed.jsonl").write_text(json.dumps(target) + "\n")
    (tmp_path / "settings.toml").write_text(SETTINGS)
    yield made
    if (found := holder(made)) and found.pid:
        os.kill(found.pid, signal.SIGKILL)


def days() -> str:
    """Yesterday and today, as the crontab has it."""
    now = datetime.now(UTC).date()
    return f"{now - timedelta(days=1)}-{now + timedelta(days=1)}"


def pulse(line: Line, task: str, *words: str) -> str:
    done = line.luigi("--module", "tasks.pulse", f"pulse.{task}", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def scan_for_launches(line: Line) -> Launch:
    """What cron runs; return the newest launch after it."""
    pulse(line, "ScanForLaunches", "--date-interval", days())
    last = job_log.last(line.folders["jobs"] / JOB)
    assert last
    return Launch.parse(JOB, last.launch)


def holder(line: Line) -> folders.Holder | None:
    return folders.holder(line.folders["jobs"] / JOB / "state")


def logged(line: Line) -> list[str]:
    found: list[str] = []
    for path in (line.folders["output"] / "logs" / JOB).rglob("crawl.log*"):
        if path.suffix != ".orphan":
            with path.open("rb") as stream:
                found += [line.uri for line in crawllog.lines(stream) if isinstance(line, crawllog.CrawlRecord)]
    return found


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def words(launch: Launch) -> tuple[str, ...]:
    return "--job", launch.job, "--launch-id", launch.id


def test_a_fed_crawl_is_started_checkpointed_killed_continued_and_archived(line: Line) -> None:
    first = scan_for_launches(line)
    assert scan_for_launches(line) == first, "beside a crawl that runs nothing is begun"
    started = Started.from_claim(line.state.require(layout.key("pulse.Started", first)).claim)
    assert started.targets == 1
    assert set(started.files) == {"crawl.toml", "seeds.txt", "surts.txt", "exclude.txt"}
    until(lambda: len(logged(line)) > 5)
    pulse(line, "CheckpointJob", *words(first), "--number", "1")
    alive = len(logged(line))
    until(lambda: len(logged(line)) > alive)
    running = holder(line)
    assert running
    os.kill(running.pid, signal.SIGKILL)
    until(lambda: holder(line) is None)
    why = line.warcmill("why", first.job, first.id).stdout
    assert "its process died in RUNNING; the next start or stop puts it in order" in why
    assert "warcmill close" not in why, "which refuses it"

    second = scan_for_launches(line)
    assert second > first
    continued = Started.from_claim(line.state.require(layout.key("pulse.Started", second)).claim).continues
    assert continued
    assert (continued.launch, continued.checkpoint.number) == (first, 2)
    assert scan_for_launches(line) == second
    until(lambda: holder(line) is None)
    pulse(line, "StopJob", *words(second))
    assert scan_for_launches(line) == second, "what has ended is not continued"
    again = line.warcmill("pulse", "start", JOB)
    assert (again.returncode, "nothing was started" in again.stdout) == (1, True), again.stdout
    found = logged(line)
    assert len(found) == len(set(found)) == PAGES + 2, "each page, its robots.txt and its host's address, once"

    assert line.scan(days()) == [0, 0]
    reconcile = line.warcmill("reconcile", days())
    assert (reconcile.returncode, "no gap" in reconcile.stdout) == (0, True), reconcile.stdout
    assert line.warcmill("doctor").returncode == 0


def test_a_start_that_broke_off_after_the_dead_launch_was_put_in_order_is_made_again(line: Line) -> None:
    first = scan_for_launches(line)
    until(lambda: len(logged(line)) > 3)
    running = holder(line)
    assert running
    os.kill(running.pid, signal.SIGKILL)
    until(lambda: holder(line) is None)
    due = broken_launches.due_of(first)
    pulse(line, "CrawlFeed", "--job", JOB, "--due", due)
    settings = line.config.parent / "settings.toml"
    settings.write_text("hopps = 1\n")  # so the start fails, when the launch has its end already
    failed = line.luigi("--module", "tasks.pulse", "pulse.ScanForLaunches", "--date-interval", days())
    assert failed.returncode != 0
    last = job_log.last(line.folders["jobs"] / JOB)
    assert last
    assert (last.launch, last.word) == (first.id, "FINISHED")
    settings.write_text(SETTINGS)
    second = scan_for_launches(line)
    assert Launched.from_claim(line.state.require(layout.due_key(JOB, due)).claim).launch == second > first
