"""A crawl on a real Redis, with a thousand bad days by chance, of ten seeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from crawls.redis_faults import BadDays

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
