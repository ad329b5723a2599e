"""Crawl a site of fifty hosts over a Redis that is near, and 100 ms away; and by one process beside two, for a minute.

All pages of a row are those of one crawl: pages a second from the first to the last, the CPU of all processes of it,
Redis and start-up too, and its calls to Redis. Both sides of a ratio are measured in turns, as other work on the
machine changes from minute to minute: compare the ratios alone. Two processes need a core each, and the site and Redis
have theirs too. WARCMILL_BENCH_PAGES: the pages of each host, 40 for a quick look.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from statistics import median

from benchmarks.crawl import sites
from benchmarks.crawl_workers import WorkersCrawl, crawled
from benchmarks.far import HOST, FarPort, far
from servers import pins
from servers import redis as redis_server
from servers.redis import RedisServer

HOSTS, EACH, ROUNDS, ROUND_TRIP = 50, int(os.environ.get("WARCMILL_BENCH_PAGES", "1000")), 3, 0.1


def rows() -> Iterator[tuple[str, ...]]:
    """The rows: name, ours, peer, ratio, target."""
    with tempfile.TemporaryDirectory() as name, sites(EACH, HOSTS) as urls:
        server = redis_server.at(Path(name), pins.free(pins.REDIS))
        server.start()
        try:
            rounds = [
                [_crawl(server, urls, one) for one in ((1, 0.0), (1, ROUND_TRIP), (2, 0.0))] for _ in range(ROUNDS)
            ]
        finally:
            server.stop()
    near, away, two = ([one[place] for one in rounds] for place in range(3))
    what = f"crawl of {HOSTS * EACH:,} pages of {HOSTS} hosts"
    yield f"{what}, Redis 100 ms away", _rate(away), f"{_rate(near)} near", _times(away, near), ">= 150/s"
    yield "the same, CPU", _cpu(away), f"{_cpu(near)} near", _ratio(away, near, "cpu"), "-"
    yield "the same, calls to Redis a page", _calls(away), f"{_calls(near)} near", _ratio(away, near, "calls"), "-"
    yield f"{what}, two workers", _rate(two), f"{_rate(near)} one", _times(two, near), ">= 1.6 x"
    yield "the same, CPU", _cpu(two), f"{_cpu(near)} one", _ratio(two, near, "cpu"), "1.1 x"
    yield "the same, calls to Redis a page", _calls(two), f"{_calls(near)} one", _ratio(two, near, "calls"), "1 x"


def _crawl(server: RedisServer, urls: list[str], how: tuple[int, float]) -> WorkersCrawl:
    processes, round_trip = how
    with far(server.port, round_trip) if round_trip else nullcontext(FarPort(server.port, 0)) as way:
        return crawled(server.port, f"redis://{HOST}:{way.port}/0", urls, HOSTS * EACH, processes)


def _rate(found: list[WorkersCrawl]) -> str:
    return f"{median(one.rate for one in found):.0f}/s"


def _cpu(found: list[WorkersCrawl]) -> str:
    return f"{median(one.cpu for one in found) * 1000:.2f} ms a page"


def _calls(found: list[WorkersCrawl]) -> str:
    return f"{median(one.calls for one in found):.2f}"


def _times(found: list[WorkersCrawl], others: list[WorkersCrawl]) -> str:
    return f"{median(one.rate / other.rate for one, other in zip(found, others, strict=True)):.2f} x as fast"


def _ratio(found: list[WorkersCrawl], others: list[WorkersCrawl], name: str) -> str:
    return f"{median(getattr(a, name) / getattr(b, name) for a, b in zip(found, others, strict=True)):.2f} x"
