"""Measure the frontier in a Redis: offers and leases a CPU second of both sides, bytes a waiting URI, time of a lease.

python -m benchmarks.frontier_redis PORT [QUEUED]       a Redis of its own: it is emptied
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator

from redis import Redis

from warcmill.crawl.frontier import Finish
from warcmill.crawl.frontier.link import RedisLink, RedisPlace
from warcmill.crawl.frontier.redis import RedisFrontier
from warcmill.crawl.uri import Status, Uri

QUEUED, HOSTS, BATCH, LEASES = 1_000_000, 1000, 20, 10_000


def uri(number: int) -> Uri:
    """A URI of 55 letters."""
    host = f"www.host{number % HOSTS:04}.example"
    text = f"http://{host}/archive/{number:09}/article.ht"
    return Uri(text, text, host)


async def measure(port: int, queued: int) -> Iterator[str]:
    """Fill a frontier; then lease and finish some."""
    redis, found = Redis(port=port), list[str]()
    redis.flushall()
    frontier = RedisFrontier(RedisLink(RedisPlace(f"redis://127.0.0.1:{port}/0"), "bench"), writer="bench")
    empty, begin = redis.info("memory")["used_memory"], _cpu(redis)
    for first in range(0, queued, BATCH):
        await frontier.offer([uri(number) for number in range(first, min(first + BATCH, queued))])
    found.append(f"offers: {queued / (_cpu(redis) - begin):,.0f} a CPU second")
    found.append(f"bytes of a waiting URI: {(redis.info('memory')['used_memory'] - empty) / queued:.0f}")
    begin, times = _cpu(redis), list[float]()
    for _ in range(0, LEASES, BATCH):
        start = time.perf_counter()
        leases = await frontier.lease("bench", BATCH)
        times.append(time.perf_counter() - start)
        for lease in leases:
            lease.uri.status = Status.PARSED
        await frontier.finish([Finish(lease, b"x" * 25) for lease in leases])
    times.sort()
    found.append(f"lease and finish: {LEASES / (_cpu(redis) - begin):,.0f} a CPU second")
    found.append(
        f"a lease of {BATCH}: {times[len(times) // 2] * 1000:.1f} ms, p99 {times[-len(times) // 100] * 1000:.1f}"
    )
    await frontier.close()
    return iter(found)


def _cpu(redis: Redis) -> float:
    """Seconds of CPU of both sides."""
    info = redis.info("cpu")
    return time.process_time() + float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


if __name__ == "__main__":
    port, queued = int(sys.argv[1]), int((sys.argv[2:] or [QUEUED])[0])
    print("\n".join(asyncio.run(measure(port, queued))))
