"""A crawl on a real Redis, with a hundred bad days by chance: no page is lost, and the books are right after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crawls.redis_faults import BadDays

from servers import pins
from servers import redis as redis_server
from servers.redis import RedisServer

NUMBER, SEED = 100, 27


@pytest.fixture
def server(work: Path, tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis of its own: it is killed, and its files are replaced."""
    made = redis_server.at(work / tmp_path.name, pins.free(pins.REDIS))
    made.start()
    yield made
    made.stop()


def test_a_hundred_bad_days_lose_nothing(server: RedisServer, tmp_path: Path) -> None:
    days = BadDays(server, tmp_path, SEED)
    assert days.run(NUMBER) == [], days.met
    assert len(days.met) == 10, days.met
