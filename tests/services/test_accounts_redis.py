"""The accounts in a real Redis: what all accounts do, their copy on the job's machine, and a Redis that was emptied."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis
from requesting.accounts_conformance import *  # noqa: F403 - the tests of all accounts
from requesting.accounts_conformance import KEY, message

from servers.redis import RedisServer
from warcmill.crawl.frontier.link import RedisLink, RedisPlace
from warcmill.requests.accounts import DomainRate
from warcmill.requests.accounts.file import FileAccounts
from warcmill.requests.accounts.over_redis import RedisAccounts

_numbers = itertools.count()


class OfRedis:
    """The keys of one job, which is new."""

    def __init__(self, server: RedisServer) -> None:
        self.server, self.prefix = server, f"accounts{next(_numbers)}"
        self.opened: list[RedisAccounts] = []

    def open(self, clock: Callable[[], float] | None = None) -> RedisAccounts:
        link = RedisLink(RedisPlace(self.server.url, prefix=self.prefix), "job", clock)
        self.opened.append(RedisAccounts(link))
        return self.opened[-1]

    def empty(self) -> None:
        """Remove all keys, as a Redis that has lost its disk."""
        with Redis.from_url(self.server.url) as client:
            client.delete(*client.keys(f"{self.prefix}:*"))


@pytest.fixture
def place(redis: RedisServer) -> Iterator[OfRedis]:
    found = OfRedis(redis)
    yield found
    for one in found.opened:
        one.close()


def test_a_redis_that_was_emptied_is_filled_from_the_copy(place: OfRedis, tmp_path: Path) -> None:
    accounts, copy = place.open(), FileAccounts(tmp_path / "copy")
    copy.ban("before.example", banned=True)  # of the time when the job was on one machine
    accounts.keep_in(copy)
    for number in range(1200):
        accounts.stop(KEY._replace(crawlid=f"c{number} é"))
    accounts.set_rate("a.example", DomainRate(5, 60, 0.5))
    accounts.set_rate("b.example", DomainRate(5, 60, 0.5))
    accounts.set_rate("b.example", None)
    accounts.expire(KEY, 1_900_000_000)
    accounts.put_aside(message("t@2"), KEY, stops=True, most=9)
    accounts.put_aside(message("t@1"), KEY, stops=True, most=9)
    accounts.end_aside("t@2")
    accounts.keep_in(copy)
    place.empty()
    accounts.stop(KEY._replace(crawlid="meanwhile"))
    accounts.ban("before.example", banned=False)
    assert not accounts.policy().rates
    accounts.keep_in(copy)
    assert accounts.policy().rates == {"a.example": DomainRate(5, 60, 0.5)}
    assert accounts.policy().bans == set()
    assert accounts.expires([KEY]) == {KEY: 1_900_000_000}
    assert all(accounts.is_stopped(KEY._replace(crawlid=one)) for one in ("c0 é", "c1199 é", "meanwhile"))
    assert accounts.claim_aside() == [message("t@1")]
    before = copy.changes()
    accounts.keep_in(copy)
    assert copy.changes() == before
    with Redis.from_url(place.server.url) as client:
        assert client.zcard(f"{place.prefix}:job:accounts:log") == 0
    copy.close()
