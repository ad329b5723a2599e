"""Calls of a crawl over a real Redis: answers, refusals, a crawl that is not there, hangs, or was killed."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from redis import Redis
from waiting import wait_for

from servers.redis import RedisServer
from warcmill.crawl.control import messages
from warcmill.crawl.control.calls import CallsOverRedis, RunningJob
from warcmill.crawl.frontier.link import RedisLink, RedisPlace
from warcmill.errors import BadInput, Conflict, NotReady, Unavailable

Reply = Callable[[bytes], Awaitable[bytes]]
_numbers = itertools.count()


@pytest.fixture
def place(redis: RedisServer) -> RedisPlace:
    return RedisPlace(redis.url, prefix=f"calls{next(_numbers)}")


@contextmanager
def crawl(place: RedisPlace, reply: Reply, *, killed: bool = False) -> Iterator[None]:
    """A process that listens, on a thread; if `killed`, it does not hang up."""
    ended = threading.Event()

    async def run() -> None:
        calls = CallsOverRedis(RedisLink(place, "job"), reply)
        calls.open()
        while not ended.is_set():
            await asyncio.sleep(0.02)
        if not killed:
            await calls.close()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        with Redis.from_url(place.url) as client:
            wait_for(lambda: client.exists(f"{place.prefix}:job:listens") == 1, lambda: "it does not listen")
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def asking(place: RedisPlace) -> Iterator[RunningJob]:
    job = RunningJob("job", None, place)
    try:
        yield job
    finally:
        job.close()


async def echo(line: bytes) -> bytes:
    request = json.loads(line)
    if request["verb"] == "stop":
        return messages.refusal(Conflict("job", "it stops"))
    if request["verb"] == "pause":
        await asyncio.sleep(3600)
    if request["verb"] == "checkpoint":
        await asyncio.sleep(1.0)
    return messages.answer(request)


def test_many_ask_at_once_and_each_has_its_answer(place: RedisPlace) -> None:
    found: dict[int, Any] = {}

    def ask(number: int) -> None:
        with asking(place) as job:
            found[number] = job.ask("get", uri=f"é {number}")

    with crawl(place, echo):
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(40)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert found == {number: {"verb": "get", "uri": f"é {number}"} for number in range(40)}
        with asking(place) as job, pytest.raises(Conflict, match="it stops"):
            job.ask("stop")
    with Redis.from_url(place.url) as client:
        assert client.keys(f"{place.prefix}:*") == []


def test_a_long_answer_keeps_no_other_waiting_and_is_given_though_the_crawl_ends(place: RedisPlace) -> None:
    taken: list[Any] = []
    begun = threading.Event()

    async def reply(line: bytes) -> bytes:
        if b"checkpoint" in line:
            begun.set()
        return await echo(line)

    with asking(place) as job:
        with crawl(place, reply):
            slow = threading.Thread(target=lambda: taken.append(job.ask("checkpoint")))
            slow.start()
            assert begun.wait(60)
            with asking(place) as other:
                assert other.ask("state") == {"verb": "state"}
            assert not taken
        slow.join()
    assert taken == [{"verb": "checkpoint"}]


def test_a_crawl_that_is_not_there_is_named_at_once(place: RedisPlace) -> None:
    with asking(place) as job:
        with pytest.raises(NotReady, match="no crawl of it runs"):
            job.ask("state")
        with crawl(place, echo):
            assert job.ask("state") == {"verb": "state"}
        with pytest.raises(NotReady, match="no crawl of it runs"):
            job.ask("state")


def test_a_request_that_no_process_takes_up_any_more_is_taken_back(place: RedisPlace) -> None:
    with asking(place) as job, Redis.from_url(place.url) as client:
        with crawl(place, echo, killed=True):
            pass
        ended = threading.Timer(1.0, lambda: client.delete(f"{place.prefix}:job:listens"))  # by its time
        ended.start()
        with pytest.raises(NotReady, match="no crawl of it runs"):
            job.ask("purge", crawl="c")
        ended.join()
        assert client.keys(f"{place.prefix}:job:call:*") == []
        with crawl(place, echo):  # the next launch does not do what was given up
            assert job.ask("state") == {"verb": "state"}


def test_a_request_that_is_over_is_not_begun_later(place: RedisPlace) -> None:
    with asking(place) as job, crawl(place, echo, killed=True):
        pass
    with asking(place) as job, pytest.raises(Unavailable, match="has not taken the request up within 1 s"):
        job.ask("purge", 1.0, crawl="c")


def test_an_answer_that_does_not_come_is_named(place: RedisPlace) -> None:
    with asking(place) as job, crawl(place, echo, killed=True):
        with pytest.raises(Unavailable, match="what became of the request is not known"):
            job.ask("pause", 1.0)
        assert job.ask("state") == {"verb": "state"}


def test_a_request_that_is_too_long_is_refused(place: RedisPlace) -> None:
    with asking(place) as job, crawl(place, echo), pytest.raises(BadInput, match="longer than"):
        job.ask("add", uris=["x" * messages.LINE])


def test_a_job_without_redis_elsewhere_is_named() -> None:
    with pytest.raises(NotReady, match="not crawled on this machine"):
        RunningJob("job", None).ask("state")
