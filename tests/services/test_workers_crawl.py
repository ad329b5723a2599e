"""A crawl on a real Redis by the process that leads and a worker: killed, stopped, checkpointed, with Redis emptied."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from crawls.redis_crawls import DEADLINE, JOB, Crawl, site
from redis import Redis

from servers.redis import RedisServer
from warcmill.crawl.control import control
from warcmill.crawl.launch.folders import CONTROL

PAGES = 60
Begin = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def crawl(redis: RedisServer, tmp_path: Path) -> Iterator[Crawl]:
    with site(PAGES) as port:
        found = Crawl(tmp_path, port, redis, tmp_path.name.replace("_", "-"), "workers = 3\n")
        yield found
        found.kill()


def left(process: subprocess.Popen[bytes]) -> int:
    """Ask a worker to leave; return its exit code."""
    process.terminate()
    return process.wait(DEADLINE)


def test_a_worker_that_is_killed_and_comes_back_leaves_each_page_once(crawl: Crawl) -> None:
    leader, worker = crawl.begin(), crawl.work("w1")
    for lines in (30, 80, 130):
        assert crawl.until(leader, lines, "w1"), crawl.told()
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        worker = crawl.work("w1")
    assert leader.wait(DEADLINE) == 0, crawl.told()
    assert left(worker) == 0, crawl.told()
    assert crawl.wrong(PAGES) == [], crawl.told()
    assert crawl.lines("w1") > 130


def test_a_checkpoint_and_a_stop_close_the_slices_of_all_under_one_name(crawl: Crawl) -> None:
    leader, worker = crawl.begin(), crawl.work("w1")
    assert crawl.until(leader, 30, "w1"), crawl.told()
    answer = control.ask(crawl.places.state(JOB) / CONTROL, "checkpoint")
    assert isinstance(answer, dict)
    stage = answer["checkpoint"]
    assert crawl.until(leader, 60, "w1"), crawl.told()
    crawl.stop()
    assert leader.wait(DEADLINE) == 0, crawl.told()
    assert crawl.last
    second = crawl.last.checkpoint
    logs = crawl.folder / "w1" / "output" / "logs" / JOB / crawl.last.launch
    assert {path.suffix for path in logs.glob("crawl.log*")} >= {f".{stage}", f".{second}"}
    assert not list((crawl.folder / "w1").rglob("*.open"))
    assert (logs / "crawl.log").read_text() == "", "it fetched after the last checkpoint"
    leader = crawl.begin()
    assert leader.wait(DEADLINE) == 0, crawl.told()
    assert left(worker) == 0, crawl.told()
    assert crawl.wrong(PAGES) == [], crawl.told()
    assert len([path for path in logs.parent.iterdir() if list(path.glob("crawl.log*"))]) == 2, "it joined both"


def test_an_emptied_redis_hears_the_journals_of_all(crawl: Crawl, redis: RedisServer) -> None:
    leader, worker = crawl.begin(), crawl.work("w1")
    assert crawl.until(leader, 50, "w1"), crawl.told()
    Redis(port=redis.port).flushall()
    assert leader.wait(DEADLINE) == 0, crawl.told()
    assert left(worker) == 0, crawl.told()
    assert crawl.lost_or_open(PAGES) == [], crawl.told()


def test_a_worker_that_leaves_gives_back_what_it_has_and_a_name_is_held_once(crawl: Crawl) -> None:
    leader, worker = crawl.begin(), crawl.work("w1")
    assert crawl.until(leader, 20, "w1"), crawl.told()
    other = crawl.work("w1", "elsewhere")
    assert other.wait(DEADLINE) == 5, crawl.told()
    assert "worker w1 on" in crawl.told()
    assert left(worker) == 0, crawl.told()
    assert not list((crawl.folder / "w1").rglob("*.open"))
    assert leader.wait(DEADLINE) == 0, crawl.told()
    assert crawl.wrong(PAGES) == [], crawl.told()


def test_workers_go_on_without_the_leader_and_the_next_one_ends_the_launch_with_them(crawl: Crawl) -> None:
    leader, worker = crawl.begin(), crawl.work("w1")
    assert crawl.until(worker, 20, "w1"), crawl.told()
    leader.kill()
    leader.wait()
    assert crawl.until(worker, crawl.lines("w1") + 30, "w1"), "it stopped with the leader"
    crawl.put_in_order()
    assert not list((crawl.folder / "w1").rglob("*.open")), "the launch ended before the worker had closed its WARC"
    leader = crawl.begin()
    assert leader.wait(DEADLINE) == 0, crawl.told()
    assert left(worker) == 0, crawl.told()
    assert crawl.wrong(PAGES) == [], crawl.told()


def test_a_silent_worker_holds_no_checkpoint_up_and_is_named(crawl: Crawl) -> None:
    crawl.query("checkpoint_wait=10")
    leader, worker = crawl.begin(), crawl.work("w1")
    assert crawl.until(leader, 20, "w1"), crawl.told()
    worker.send_signal(signal.SIGSTOP)
    answer = control.ask(crawl.places.state(JOB) / CONTROL, "checkpoint", 100.0)
    assert isinstance(answer, dict)
    assert "worker w1 on" in crawl.alerts()
    assert "is silent" in crawl.alerts()
    crawl.until_alert("is missing")
    worker.send_signal(signal.SIGCONT)
    assert leader.wait(DEADLINE) == 0, crawl.told()
    assert left(worker) == 0, crawl.told()
    assert crawl.lost_or_open(PAGES) == [], crawl.told()
