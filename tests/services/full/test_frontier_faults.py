"""A crawl on a real Redis, with a thousand bad days by chance, of ten seeds; and some on one that is far."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from crawls.redis_faults import BadDays

from benchmarks.far import far
from servers import pins
from servers import redis as redis_server


@pytest.mark.parametrize("seed", range(10))
def test_bad_days_lose_nothing(seed: int, work: Path, tmp_path: Path, tell: Callable[[str], None]) -> None:
    server = redis_server.at(work / tmp_path.name, pins.free(pins.REDIS))
    server.start()
    try:
        days = BadDays(server, tmp_path, seed)
        assert days.run(100) == [], days.met
        tell(f"seed {seed}: {dict(sorted(days.met.items()))}")
    finally:
        server.stop()


@pytest.mark.parametrize("seed", range(2))
def test_bad_days_of_a_redis_that_is_far_lose_nothing(seed: int, work: Path, tmp_path: Path) -> None:
    server = redis_server.at(work / tmp_path.name, pins.free(pins.REDIS))
    server.start()
    try:
        with far(server.port, 0.04) as away:
            days = BadDays(server, tmp_path, seed, away.url)
            assert days.run(50) == [], days.met
    finally:
        server.stop()
