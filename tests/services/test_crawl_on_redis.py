"""A crawl whose frontier is in a real Redis: killed, with Redis killed and emptied under it, and it loses nothing."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import preloaded
import pytest
from crawls import crawled, killed_crawls
from crawls.call_trace import climbing, layers, traced
from crawls.redis_crawls import DEADLINE, HOSTS, JOB, Crawl, go_on, site
from msgspec.structs import replace
from redis import Redis

from servers import pins
from servers import redis as redis_server
from servers.redis import RedisServer
from warcmill.crawl.frontier import Begins
from warcmill.crawl.frontier.link import read_place
from warcmill.crawl.launch.database import open_frontier, restore
from warcmill.crawl.launch.launch import open_launch
from warcmill.errors import BadInput, NotReady


def test_a_crawl_that_is_killed_and_whose_redis_is_killed_has_each_page_once(
    redis: RedisServer, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """3,000 pages; its process killed 20 times, Redis 5 times."""
    pages, chance = 150, random.Random(1)
    total = len(HOSTS) * (pages + 3)
    with site(pages) as port:
        crawl = Crawl(tmp_path, port, redis, "show")
        kills = ["process"] * 20 + ["redis"] * 5
        chance.shuffle(kills)
        process = crawl.begin()
        for number, kill in enumerate(kills, 1):
            if not crawl.until(process, number * total // (len(kills) + 2)):
                break
            time.sleep(chance.random() / 4)
            if kill == "redis":
                redis.kill()
                time.sleep(chance.random())
                redis.start()
            else:
                process.send_signal(signal.SIGKILL)
                process.wait()
                process = go_on(crawl)
        assert process.wait(DEADLINE) == 0, crawl.told()
        assert number == len(kills), f"it ended before {kills[number - 1 :]}: {crawl.told()}"
        assert crawl.wrong(pages) == [], crawl.told()


def test_a_redis_that_is_emptied_hears_all_of_a_launch_again(redis: RedisServer, tmp_path: Path) -> None:
    pages = 20
    with site(pages) as port:
        crawl = Crawl(tmp_path, port, redis, "emptied")
        process = crawl.begin()
        assert crawl.until(process, 100)
        Redis(port=redis.port).flushall()
        assert process.wait(DEADLINE) == 0, crawl.told()
        assert crawl.wrong(pages) == [], crawl.told()
        alerts = "".join(path.read_text() for path in tmp_path.rglob("alerts.log"))
        assert "Redis has lost launch" in alerts


def test_a_launch_resumes_from_its_checkpoint_in_a_redis_that_was_emptied(redis: RedisServer, tmp_path: Path) -> None:
    pages = 20
    with site(pages) as port:
        crawl = Crawl(tmp_path, port, redis, "resumed")
        process = crawl.begin()
        assert crawl.until(process, 100)
        process.send_signal(signal.SIGKILL)
        process.wait()
        crawl.put_in_order()
        Redis(port=redis.port).flushall()
        assert crawl.begin().wait(DEADLINE) == 0, crawl.told()
        assert crawl.wrong(pages) == [], crawl.told()


def test_a_launch_whose_redis_was_emptied_past_its_journal_ends_and_blames_no_page(
    redis: RedisServer, tmp_path: Path
) -> None:
    pages = 40
    with site(pages) as port:
        crawl = Crawl(tmp_path, port, redis, "blamed")
        process = crawl.begin()
        assert crawl.until(process, 100)
        crawl.stop()
        assert process.wait(DEADLINE) == 0, crawl.told()
        process = crawl.begin()
        assert crawl.until(process, crawl.lines() + 50)
        Redis(port=redis.port).flushall()
        assert process.wait(DEADLINE) == 1, crawl.told()
        assert "is older than the journal" in crawl.told()
        assert crawl.rebuild() == []
        assert go_on(crawl).wait(DEADLINE) == 0, crawl.told()
        assert crawl.lost_or_open(pages) == [], crawl.told()
        assert [line.uri for line in killed_crawls.lines(tmp_path) if line.status == -5] == []


def test_a_checkpoint_that_was_loaded_in_part_is_not_followed(redis: RedisServer, tmp_path: Path) -> None:
    with site(2) as port:
        crawl = Crawl(tmp_path, port, redis, "part")
        assert crawl.begin().wait(DEADLINE) == 0, crawl.told()
    copy, place = tmp_path / "copy.jsonl.gz", read_place("u", f"{redis.url}?prefix=part")
    row = json.dumps({"uri": "http://a.example/", "queue": "a.example"})
    copy.write_bytes(gzip.compress(f'{{"dump": 1}}\n{row}\n'.encode() * 300)[:-9])
    with pytest.raises(BadInput, match="cannot be read"):
        restore(JOB, "20261126000000", copy, place)
    frontier, _ = open_frontier(crawl.places.database(JOB), JOB, place)
    try:
        with pytest.raises(NotReady, match="only a part of a dump"):
            asyncio.run(frontier.change(lambda change: change.begin("20261126000001", Begins.FOLLOWS)))
    finally:
        asyncio.run(frontier.close())


def test_while_redis_is_away_the_crawl_waits_and_then_goes_on(redis: RedisServer, tmp_path: Path) -> None:
    pages = 20
    with site(pages) as port:
        crawl = Crawl(tmp_path, port, redis, "away")
        process = crawl.begin()
        assert crawl.until(process, 100)
        redis.kill()
        time.sleep(3)
        assert process.poll() is None, crawl.told()
        redis.start()
        assert process.wait(DEADLINE) == 0, crawl.told()
        assert crawl.wrong(pages) == [], crawl.told()
        alerts = "".join(path.read_text() for path in tmp_path.rglob("alerts.log"))
        assert "Redis does not answer" in alerts
        assert "Redis is back" in alerts


def test_a_redis_that_is_set_back_is_resent_from_what_it_heard_itself(work: Path, tmp_path: Path) -> None:
    """Redis comes back from an older copy, and the crawler was killed: a note on this disk would say all was heard."""
    pages = 20
    server = redis_server.at(work / "set back", pins.free(pins.REDIS))
    server.start()
    try:
        with site(pages) as port:
            crawl = Crawl(tmp_path, port, server, "back")
            process = crawl.begin()
            assert crawl.until(process, 100)
            server.stop()
            shutil.copytree(server.folder / "appendonlydir", tmp_path / "older")
            server.start()
            assert crawl.until(process, 250), crawl.told()
            process.send_signal(signal.SIGKILL)
            process.wait()
            server.kill()
            heard = crawl.lines()
            shutil.rmtree(server.folder / "appendonlydir")
            shutil.copytree(tmp_path / "older", server.folder / "appendonlydir")
            server.start()
            assert go_on(crawl).wait(DEADLINE) == 0, crawl.told()
            assert heard >= 250
            assert crawl.wrong(pages) == [], crawl.told()
    finally:
        server.stop()


def test_warcmill_crawl_on_redis_goes_through_the_line_and_reconciles(redis: RedisServer, tmp_path: Path) -> None:
    hosts = [word for host in HOSTS[:2] for word in ("--resolve", f"{host}=127.0.0.1")]
    with site(5) as port:
        urls = [f"http://{host}:{port}/" for host in HOSTS[:2]]
        options = ["--allow-private", "127.0.0.0/8", "--no-delay", *hosts, "--job", "shared"]
        where = ["--frontier", f"{redis.url}?prefix=whole"]
        done = preloaded.run("commands.main", "crawl", *urls, *options, *where, env=dict(os.environ), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = preloaded.run("commands.main", "reconcile", "--json", env=dict(os.environ), folder=tmp_path / "archive")
    assert found.returncode == 0, found.stdout + found.stderr
    (launch,) = json.loads(found.stdout)["launches"]
    assert (launch["job"], launch["gaps"]) == ("shared", []), launch
    assert Redis(port=redis.port).hget("whole:shared:about", "launch")


def test_a_crawl_on_redis_keeps_no_uri_in_its_own_database(redis: RedisServer, tmp_path: Path) -> None:
    with site(2) as port:
        crawl = Crawl(tmp_path, port, redis, "alone")
        assert crawl.begin().wait(DEADLINE) == 0, crawl.told()
        assert crawl.wrong(2) == []
        assert Redis(port=redis.port).hget(f"alone:{JOB}:about", "launch").decode() == crawl.last.launch


def test_a_uri_over_redis_takes_a_short_way(redis: RedisServer, tmp_path: Path) -> None:
    """A page of a known site: bounds with some room, and not the figures of today."""

    async def crawl(port: int) -> None:
        places = replace(crawled.places(tmp_path), frontier=read_place("url", f"{redis.url}?prefix=traced"))
        running = await open_launch(places, crawled.job(port, HOSTS[0], workers=1), crawled.LAUNCH)
        await running.close(await running.crawl())

    with site(3) as port, traced("RedisFrontier.lease") as found:
        asyncio.run(crawl(port))
    is_climb = climbing(layers())
    _, page, *_ = found
    text = page.text(is_climb)
    assert len(page.modules) <= 58, text
    assert len(page.pairs) <= 116, text
    assert len(page.climbs(is_climb)) <= 4, text
