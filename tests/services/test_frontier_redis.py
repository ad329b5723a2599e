"""The frontier in Redis: all that any frontier must do, from several holders at once too; and what it refuses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from frontier_conformance import *  # noqa: F403
from redis import Redis

from servers import pins
from servers import redis as redis_server
from servers.redis import RedisServer
from warcmill.crawl.frontier import dump
from warcmill.crawl.frontier.link import RedisLink, RedisPlace, read_place
from warcmill.crawl.frontier.redis import RedisFrontier
from warcmill.crawl.uri import make
from warcmill.errors import BadConfig, Conflict, Foreign

JOBS = count()


class There:
    """A frontier in a Redis: a job of its own for each test."""

    def __init__(self, server: RedisServer, folder: Path) -> None:
        self.now, self._server, self._folder, self._open = START, server, folder, []  # noqa: F405
        self.job = f"job{next(JOBS)}"

    def open(self) -> RedisFrontier:
        self.close()
        return self.another("writer")

    def another(self, writer: str, job: str = "") -> RedisFrontier:
        """One more holder."""
        frontier = RedisFrontier(self.link(job or self.job), writer=writer, now=lambda: self.now)
        self._open.append(frontier)
        return frontier

    def link(self, job: str) -> RedisLink:
        return RedisLink(RedisPlace(self._server.url), job, lambda: self.now)

    def open_snapshot(self, path: Path) -> RedisFrontier:
        link = self.link(f"{self.job}copy")
        dump.load(link.call, path, self.now)
        link.close()
        return self.another("writer", f"{self.job}copy")

    def new_path(self) -> Path:
        return self._folder / "copy.jsonl.gz"

    def close(self) -> None:
        while self._open:
            run(self._open.pop().close())  # noqa: F405


@pytest.fixture
def there(redis: RedisServer, tmp_path: Path) -> Iterator[There]:
    there = There(redis, tmp_path)
    yield there
    there.close()


def test_four_holders_at_once_lease_each_uri_once_and_keep_one_politeness(there: There) -> None:
    frontiers = [there.another(f"w{number}") for number in range(4)]
    wanted = [f"http://h{number % 17}.example/{number}" for number in range(600)]
    out = Counter[str]()

    async def crawl(frontier: RedisFrontier, name: str) -> list[str]:
        found: list[str] = []
        for begin in range(0, len(wanted), 50):
            await frontier.offer([make(uri) for uri in wanted[begin : begin + 50]])
        while leases := await frontier.lease(name, 5):
            found += [one.uri.uri for one in leases]
            out.update(one.gate.queue for one in leases)
            assert max(out.values()) == 1, "one lease of a queue at a time"
            out.subtract(one.gate.queue for one in leases)
            assert all(await frontier.finish([Finish(fetched(one)) for one in leases]))  # noqa: F405
        return found

    async def all_at_once() -> list[list[str]]:
        return await asyncio.gather(*(crawl(one, f"w{number}") for number, one in enumerate(frontiers)))

    found = run(all_at_once())  # noqa: F405
    rest = [page for one in frontiers for page in drain(one)]  # noqa: F405
    assert Counter(uri for one in found for uri in one) + Counter(make_name(page) for page in rest) == Counter(wanted)


def make_name(page: str) -> str:
    return f"http://{page.replace('/', '.example/', 1)}"


def test_a_finish_needs_the_token_of_its_lease(there: There) -> None:
    frontier = there.open()
    offer(frontier, "a/1")  # noqa: F405
    (one,) = lease(frontier)  # noqa: F405
    assert run(frontier.finish([Finish(fetched(one)._replace(token=one.token + 1))])) == [False]  # noqa: F405
    assert run(frontier.finish([Finish(one)])) == [True]  # noqa: F405


REFUSED = {
    "appendonly yes": ("--appendonly", "no"),
    "maxmemory-policy noeviction": ("--maxmemory-policy", "allkeys-lru"),
    "is a Redis Cluster": ("--cluster-enabled", "yes"),
    "is a replica": ("--replicaof", "127.0.0.1 1"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_redis_that_would_lose_what_it_was_told_is_refused_by_name(work: Path, why: str) -> None:
    ports = pins.free(pins.REDIS)
    if "Cluster" in why:
        ports = {"redis": ports["redis"] % 50_000 + 1024}  # its bus has the port 10,000 above
    server = redis_server.at(work / f"refused {why}", ports)
    server.start(*REFUSED[why])
    try:
        with pytest.raises(BadConfig, match=why):
            RedisFrontier(RedisLink(RedisPlace(server.url), "job"))
    finally:
        server.stop()


def test_a_key_of_another_type_and_another_version_are_named(there: There, redis: RedisServer) -> None:
    client = Redis(port=redis.port)
    client.set(f"warcmill:{there.job}:about", "x")
    with pytest.raises(Conflict, match="remove it, or set another prefix"):
        there.open()
    client.delete(f"warcmill:{there.job}:about")
    client.hset(f"warcmill:{there.job}:about", "version", "2")
    with pytest.raises(Foreign, match="of version 2, not 1"):
        there.open()


def test_a_place_is_read_and_what_is_wrong_with_it_is_named() -> None:
    place = read_place("frontier", "rediss://u@h.example:6380/2?prefix=lib", "/secret")
    assert place == RedisPlace("rediss://u@h.example:6380/2", "/secret", "lib")
    assert place.keys("daily") == "lib:daily:"
    assert read_place("frontier", place.words[1], "/secret") == place
    for url in ("http://h/", "redis://", "redis://h/x", "redis://:secret@h/0", "redis://h/0?a=b", "redis://h:x/0"):
        with pytest.raises(BadConfig) as error:
            read_place("frontier", url)
        assert "secret" not in str(error.value)


def test_a_script_cache_that_is_lost_is_filled_again(there: There, redis: RedisServer) -> None:
    frontier = there.open()
    offer(frontier, "a/1")  # noqa: F405
    Redis(port=redis.port).script_flush()
    assert names(lease(frontier)) == ["a/1"]  # noqa: F405
