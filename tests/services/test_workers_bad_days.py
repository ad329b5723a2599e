"""Bad days of a worker on a real Redis: its disk full or gone, its network cut, its clock wrong, its leader killed."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from crawls.redis_crawls import DEADLINE, JOB, Crawl, site
from line import Line, line_at
from operating import clock_of_week
from storing import full_disk
from storing.cutting_proxy import proxy

from servers.redis import RedisServer
from warcmill.crawl.launch import folders
from warcmill.model import Launch

PAGES = 60
MISSING = 10  # seconds of silence


@pytest.fixture
def crawl(redis: RedisServer, tmp_path: Path) -> Iterator[Crawl]:
    with site(PAGES) as port:
        found = Crawl(tmp_path, port, redis, tmp_path.name.replace("_", "-"), "workers = 3\n")
        found.query(f"checkpoint_wait={MISSING}")
        yield found
        found.kill()


def ended(crawl: Crawl, leader: subprocess.Popen[bytes], worker: subprocess.Popen[bytes]) -> None:
    """Wait for the end of the launch, and let the worker leave; the books are right then."""
    assert leader.wait(DEADLINE) == 0, crawl.told()
    worker.terminate()
    assert worker.wait(DEADLINE) == 0, crawl.told()
    found = crawl.books()
    assert (found.differences, found.miscounted, found.unread) == ([], [], [])


def test_a_worker_whose_disk_is_full_goes_on_when_there_is_room(crawl: Crawl) -> None:
    full = crawl.folder / "full"
    path = os.pathsep.join(str(Path(full_disk.__file__).parent / one) for one in ("full_disk_from_the_start", "."))
    leader = crawl.begin()
    worker = crawl.work("w1", env={"PYTHONPATH": path, full_disk.VARIABLE: str(full)})
    assert crawl.until(leader, 30, "w1"), crawl.told()
    full.touch()
    crawl.until_said("No space left on device")
    lines = crawl.lines("w1")
    assert crawl.until(leader, crawl.lines() + 20), "the others wait for it"
    assert (crawl.lines("w1"), worker.poll()) == (lines, None), crawl.told()
    full.unlink()
    ended(crawl, leader, worker)
    assert crawl.lost_or_open(PAGES) == [], crawl.told()


def test_a_worker_whose_disk_is_gone_writes_nothing_beside_it_and_goes_on_when_it_is_back(crawl: Crawl) -> None:
    leader, worker = crawl.begin(), crawl.work("w1")
    assert crawl.until(leader, 30, "w1"), crawl.told()
    output, away = crawl.folder / "w1" / "output", crawl.folder / "w1" / "away"
    output.rename(away)
    output.mkdir()  # as the folder below a disk that is mounted no more
    crawl.until_said("mount the disk")
    assert crawl.until(leader, crawl.lines() + 20), "the others wait for it"
    assert (list(output.iterdir()), worker.poll()) == ([], None), crawl.told()
    output.rmdir()
    away.rename(output)
    ended(crawl, leader, worker)
    assert crawl.lost_or_open(PAGES) == [], crawl.told()


@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "silent"])
def test_a_worker_that_is_cut_off_from_redis_is_missing_and_comes_back(
    crawl: Crawl, redis: RedisServer, is_refused: bool
) -> None:
    passes = threading.Event()
    passes.set()
    with proxy("127.0.0.1", redis.port, watch=lambda _data: not passes.wait(DEADLINE)) as relay:
        leader = crawl.begin()
        worker = crawl.work("w1", url=crawl.url.replace(f":{redis.port}", f":{relay.port}"))
        assert crawl.until(leader, 30, "w1"), crawl.told()
        relay.close() if is_refused else passes.clear()
        crawl.until_alert("is missing: no sign of life for 1")
        assert worker.poll() is None, crawl.told()
        relay.open() if is_refused else passes.set()
        ended(crawl, leader, worker)
    assert crawl.lost_or_open(PAGES) == [], crawl.told()


@pytest.mark.parametrize("hours", [-1, 1])
def test_the_clock_of_a_worker_may_be_wrong(crawl: Crawl, hours: int) -> None:
    clock = clock_of_week.SharedClock(crawl.folder, datetime.now(UTC) + timedelta(hours=hours))
    try:
        leader, worker = crawl.begin(), crawl.work("w1", env=clock.environment)
        assert crawl.until(leader, 30, "w1"), crawl.told()
        ended(crawl, leader, worker)
        assert crawl.wrong(PAGES) == [], crawl.told()
        assert "missing" not in crawl.alerts()
    finally:
        crawl.kill()
        clock_of_week.sweep()


CONFIG = """
[engine.own]
kind=warcmill
jobs={job}
frontier={url}

[job.{job}]
frequency=daily
start={start}

[writer.w1]
root={folder}/w1/output
jobs={job}
layout=kind-first
"""


def on_line(crawl: Crawl) -> Line:
    """A line whose engine crawls it, and that takes what its worker writes."""
    line = line_at(crawl.folder)
    text = line.config.read_text().replace(f"{crawl.folder}/output/jobs", f"{crawl.folder}/jobs")
    start = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    line.config.write_text(text + CONFIG.format(job=JOB, url=crawl.url, folder=crawl.folder, start=start))
    return line


def do(line: Line, *words: str, code: int = 0) -> str:
    done = line.warcmill(*words)
    assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def killed_leader(crawl: Crawl, line: Line, worker: subprocess.Popen[bytes]) -> Launch:
    """Launch it, and kill the process that leads when its worker has fetched some; return the launch."""
    do(line, "init", "--adopt", "writer.w1")
    do(line, "pulse", "start", JOB)
    assert crawl.until(worker, 30, "w1"), crawl.told()
    holder = folders.holder(crawl.places.state(JOB))
    assert holder, crawl.told()
    assert holder.pid, crawl.told()
    os.kill(holder.pid, signal.SIGKILL)
    while folders.holder(crawl.places.state(JOB)):
        time.sleep(0.05)
    return Launch.parse(JOB, holder.launch)


@pytest.fixture
def line(crawl: Crawl) -> Iterator[Line]:
    yield on_line(crawl)
    with suppress(AttributeError, ProcessLookupError):
        os.kill(folders.holder(crawl.places.state(JOB)).pid, signal.SIGKILL)  # type: ignore[union-attr]


def test_a_stop_ends_a_launch_with_its_workers_when_its_leader_was_killed(crawl: Crawl, line: Line) -> None:
    worker = crawl.work("w1")
    launch = killed_leader(crawl, line, worker)
    assert crawl.until(worker, crawl.lines("w1") + 20, "w1"), "it stopped with the leader"
    do(line, "pulse", "stop", JOB)
    assert not list(crawl.folder.rglob("*.open")), "the launch ended before the worker had closed its WARC"
    worker.terminate()
    assert worker.wait(DEADLINE) == 0, crawl.told()
    do(line, "scan", f"{launch.day}")
    assert f"{JOB}/{launch.id} confirmed" in do(line, "reconcile", f"{launch.day}")


def test_visits_of_a_worker_that_is_retired_while_nobody_leads_are_a_finding(crawl: Crawl, line: Line) -> None:
    worker = crawl.work("w1")
    launch = killed_leader(crawl, line, worker)
    worker.kill()
    worker.wait()
    do(line, "job", JOB, "retire", "w1", "--reason", "its disk is broken")
    do(line, "pulse", "stop", JOB)
    line.warcmill("scan", f"{launch.day}")
    assert "lost visits" in do(line, "reconcile", f"{launch.day}", code=1)
    do(line, "accept", "worker:w1", "--launch", JOB, launch.id, "--reason", "fetched again")
    do(line, "reconcile", f"{launch.day}")
