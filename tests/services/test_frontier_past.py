"""A real Redis that has lost what it knew of a launch that follows or continues: refused, rebuilt from the newest dump
and the journals, and compared with them."""

from __future__ import annotations

import asyncio
import shutil
import signal
from pathlib import Path

import pytest
from crawls.redis_crawls import DEADLINE, JOB, Crawl, go_on, site
from redis import Redis

from servers.redis import RedisServer
from warcmill.crawl.frontier import Begins
from warcmill.crawl.launch import past
from warcmill.crawl.launch.database import open_frontier, refuse_emptied
from warcmill.crawl.launch.folders import held
from warcmill.crawl.launch.repair import put_in_order
from warcmill.errors import Busy, NotReady

PAGES = 20


def killed(crawl: Crawl, lines: int) -> None:
    """Crawl so far, and die."""
    process = crawl.begin()
    try:
        assert crawl.until(process, lines), crawl.told()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def ordered(crawl: Crawl) -> None:
    with held(crawl.places.state(JOB)):
        asyncio.run(put_in_order(crawl.places, JOB))


def test_an_emptied_redis_under_a_launch_that_continues_is_refused_and_then_rebuilt(
    redis: RedisServer, tmp_path: Path
) -> None:
    with site(PAGES) as port:
        crawl = Crawl(tmp_path, port, redis, "continued")
        killed(crawl, 60)
        ordered(crawl)
        assert not crawl.books().differs
        killed(crawl, 160)
        Redis(port=redis.port).flushall()
        with pytest.raises(NotReady, match=f"'warcmill job {JOB} rebuild'"):
            ordered(crawl)
        assert crawl.rebuild() == []
        assert crawl.rebuild() == [], "it may be done again"
        ordered(crawl)
        assert not crawl.books().differs, crawl.books()
        assert go_on(crawl).wait(DEADLINE) == 0, crawl.told()
        assert crawl.wrong(PAGES) == [], crawl.told()
        assert not crawl.books().differs, crawl.books()


def test_an_older_redis_and_one_that_was_loaded_in_part_are_rebuilt(redis: RedisServer, tmp_path: Path) -> None:
    with site(PAGES) as port:
        crawl = Crawl(tmp_path, port, redis, "older")
        killed(crawl, 60)
        ordered(crawl)
        killed(crawl, 160)
        client = Redis(port=redis.port)
        for launch in ("20200101000000", f"{crawl.last.launch} partly"):
            client.hset(f"older:{JOB}:about", "launch", launch)
            with pytest.raises(NotReady, match="rebuild"):
                ordered(crawl)
            assert crawl.rebuild() == []
        ordered(crawl)
        assert not crawl.books().differs
        assert go_on(crawl).wait(DEADLINE) == 0, crawl.told()
        assert crawl.wrong(PAGES) == [], crawl.told()


def test_a_launch_that_follows_is_refused_before_it_begins(redis: RedisServer, tmp_path: Path) -> None:
    with site(2) as port:
        crawl = Crawl(tmp_path, port, redis, "followed")
        assert crawl.begin().wait(DEADLINE) == 0, crawl.told()
        before = crawl.books()
        Redis(port=redis.port).flushall()
        with pytest.raises(NotReady, match=f"nothing that begins with followed:{JOB}:.*'warcmill job {JOB} rebuild'"):
            refuse_emptied(JOB, crawl.places.frontier)
        assert crawl.books().differences
        assert crawl.rebuild() == []
        refuse_emptied(JOB, crawl.places.frontier)
        assert crawl.books() == before
        frontier, _ = open_frontier(crawl.places.database(JOB), JOB, crawl.places.frontier)
        asyncio.run(frontier.change(lambda change: change.begin("29990101000000", Begins.FOLLOWS)))
        asyncio.run(frontier.close())


def test_each_difference_is_named(redis: RedisServer, tmp_path: Path) -> None:
    with site(2) as port:
        crawl = Crawl(tmp_path, port, redis, "named")
        assert crawl.begin().wait(DEADLINE) == 0, crawl.told()
        frontier, _ = open_frontier(crawl.places.database(JOB), JOB, crawl.places.frontier)
        uri = f"http://h1.example:{port}/1"
        assert asyncio.run(frontier.remove("", [uri])) == 0
        asyncio.run(frontier.close())
        client = Redis(port=redis.port)
        (counts,) = client.keys(f"named:{JOB}:*:done")
        client.hincrby(counts, "m1:F", 3)
        found = crawl.books()
        assert [(one.uri, one.journals, one.frontier) for one in found.differences] == [(uri, "Parsed", "Removed")]
        assert found.miscounted == ["crawl '': Failed: the frontier has 0, and counts 3"]


def test_the_journals_of_workers_are_read_and_one_that_cannot_be_is_named(redis: RedisServer, tmp_path: Path) -> None:
    with site(60) as port:
        crawl = Crawl(tmp_path, port, redis, "crew", "workers = 3\n")
        killed(crawl, 40)
        ordered(crawl)
        leader, worker = crawl.begin(), crawl.work("w1")
        try:
            assert crawl.until(leader, 150, "w1"), crawl.told()
            with pytest.raises(Busy):
                past.rebuild(crawl.places, JOB, crawl.sources())
        finally:
            for process in (leader, worker):
                process.send_signal(signal.SIGKILL)
                process.wait()
        Redis(port=redis.port).flushall()
        (tmp_path / "w1").rename(tmp_path / "away")
        (unread,) = crawl.rebuild()
        assert unread.startswith("w1: "), unread
        assert "its disk is gone" in unread
        shutil.move(tmp_path / "away", tmp_path / "w1")
        assert crawl.rebuild() == []
        leader, worker = go_on(crawl), crawl.work("w1")
        try:
            assert leader.wait(DEADLINE) == 0, crawl.told()
            worker.terminate()
            assert worker.wait(DEADLINE) == 0, crawl.told()
        finally:
            worker.kill()
            leader.kill()
        assert crawl.lost_or_open(60) == [], crawl.told()  # what the worker had not sent yet is fetched again
        assert not crawl.books().differs, crawl.books()
