"""A process that is far from its Redis: it waits for no answer that it does not need, and loses nothing by that."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawls.frontier_conformance import ALL, FREE, fetched, run
from crawls.redis_crawls import DEADLINE, Crawl, site
from redis import Redis

from benchmarks.far import FarPort, far
from servers.redis import RedisServer
from warcmill.crawl.frontier import Finish, Lease, Rate
from warcmill.crawl.frontier.far import leases
from warcmill.crawl.frontier.link import RedisLink, RedisPlace
from warcmill.crawl.frontier.redis import RedisFrontier
from warcmill.crawl.uri import make

ROUND_TRIP = 0.03
PAGES = [f"http://h{number}.example/" for number in range(400)]
PATIENCE = 60.0


@pytest.fixture
def away(redis: RedisServer) -> Iterator[FarPort]:
    with far(redis.port, ROUND_TRIP) as port:
        yield port


def open_at(url: str, job: str, writer: str = "w") -> RedisFrontier:
    return RedisFrontier(RedisLink(RedisPlace(url), job), writer=writer)


def calls_of(redis: RedisServer) -> int:
    """The number of calls of scripts that Redis has had."""
    found = Redis(port=redis.port).info("commandstats").get("cmdstat_evalsha", {"calls": 0})
    return int(found["calls"])


async def end(frontier: RedisFrontier, found: list[Lease]) -> None:
    """End visits, as the books do: the change is durable, and Redis hears it."""
    await frontier.change(lambda change: change.finish([Finish(fetched(one)) for one in found]))


async def hurry(frontier: RedisFrontier) -> list[str]:
    """Visit pages until the rate is such that leases are taken ahead; return these pages."""
    done: list[str] = []
    while not frontier._leases.ahead:
        found = await frontier.lease("w", 8)
        assert found, "all were visited before one was taken ahead"
        done += [one.uri.uri for one in found]
        await end(frontier, found)
    return done


def test_changes_and_leases_wait_for_no_answer_and_each_page_is_leased_once_by_few_calls(
    redis: RedisServer, away: FarPort
) -> None:
    before = calls_of(redis)

    async def crawl() -> list[str]:
        frontier = open_at(away.url, "waits")
        await frontier.set_rate(ALL, FREE)
        await frontier.offer([make(uri) for uri in PAGES])
        done = await hurry(frontier)
        with away.silent():
            for _ in range(frontier._leases.ahead):
                found = await asyncio.wait_for(frontier.lease("w", 1), PATIENCE)
                done += [one.uri.uri for one in found]
                await asyncio.wait_for(end(frontier, found), PATIENCE)
        while not await frontier.is_empty():
            found = await frontier.lease("w", 50)
            done += [one.uri.uri for one in found]
            await end(frontier, found)
        assert (frontier.leased, frontier._sender.size) == (0, 0)
        await frontier.close()
        return done

    assert Counter(run(crawl())) == Counter(PAGES)
    assert calls_of(redis) - before < len(PAGES) / 2


def test_a_lease_that_was_taken_ahead_and_not_used_is_given_back(
    redis: RedisServer, away: FarPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "KEPT", 0.0)

    async def crawl() -> int:
        frontier, other = open_at(away.url, "unused"), open_at(redis.url, "unused", "other")
        await frontier.set_rate(ALL, FREE)
        await frontier.offer([make(uri) for uri in PAGES])
        left = len(PAGES) - len(await hurry(frontier))
        async with asyncio.timeout(PATIENCE):
            while left:  # the other gets all
                left -= len(found := await other.lease("o", 50))
                await end(other, found)
                await asyncio.sleep(0)
        assert (frontier.leased, frontier._leases.ahead) == (0, 0)
        for one in (frontier, other):
            await one.close()
        return left

    assert run(crawl()) == 0


def test_nothing_is_taken_ahead_where_a_window_of_time_counts(away: FarPort) -> None:
    async def crawl() -> None:
        frontier = open_at(away.url, "window")
        await frontier.set_rate(ALL, Rate(100, 1.0, at_once=None))
        await frontier.offer([make(uri) for uri in PAGES])
        for _ in range(20):
            await end(frontier, found := await frontier.lease("w", 8))
            assert (len(found), frontier._leases.ahead) == (8, 0)
        await frontier.close()

    run(crawl())


def test_a_far_worker_is_killed_and_leaves_each_page_once(redis: RedisServer, away: FarPort, tmp_path: Path) -> None:
    pages = 20
    with site(pages) as port:
        crawl = Crawl(tmp_path, port, redis, "far")
        crawl.query("leads_only=true")
        leader, worker = crawl.begin(), crawl.work("w1", url=f"{away.url}?prefix=far")
        try:
            assert crawl.until(leader, 150, "w1"), crawl.told()
            worker.send_signal(signal.SIGKILL)
            worker.wait()
            worker = crawl.work("w1", url=f"{away.url}?prefix=far")
            assert leader.wait(DEADLINE) == 0, crawl.told()
            worker.terminate()
            assert worker.wait(DEADLINE) == 0, crawl.told()
            assert crawl.wrong(pages) == [], crawl.told()
        finally:
            crawl.kill()
