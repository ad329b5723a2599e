"""Crawl one site whole by processes over a Redis: CPU a page beside the embedded crawler, and pages a second of two.

The site and the job are those of `benchmarks.crawl`, without politeness. CPU is that of all processes, Redis and
start-up too; the site's server does not count. The site is of one host, whose gate lets all go at once. Pages a second
are counted from the first page to the last; two processes need a core each, and the site and Redis have theirs too:
`docs/benchmarks.md` has the load with the figures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from redis import Redis

from benchmarks.crawl import COMPILED, ours, ready, site
from servers import pins
from servers import redis as redis_server
from servers.redis import RedisServer
from warcmill.crawl.frontier.link import PREFIX
from warcmill.formats import surt
from warcmill.formats.logs import crawllog

PAGES, ROUNDS, JOIN_SECONDS = 5_000, 3, 60.0


class WorkersCrawl(NamedTuple):
    """A crawl: pages a second, and of each page the seconds of CPU, and the calls to Redis."""

    rate: float
    cpu: float
    calls: float


def rows() -> Iterator[tuple[str, ...]]:
    """The rows: name, ours, peer, ratio, target."""
    with tempfile.TemporaryDirectory() as name, site(PAGES) as url:
        server = redis_server.at(Path(name), pins.free(pins.REDIS))
        server.start()
        try:
            rounds = [(ours(url, PAGES), _of_two(server, url, 1), _of_two(server, url, 2)) for _ in range(ROUNDS)]
        finally:
            server.stop()
    alone, shared = max(one for one, _, _ in rounds), max(one[0] for _, one, _ in rounds)
    what = f"crawl of {PAGES:,} pages, frontier in Redis"
    yield what, f"{shared:.0f} a CPU s", f"{alone:.0f} a CPU s embedded", f"{alone / shared:.2f} x its CPU", "<= 1.5 x"
    both = max(two[0] for _, _, two in rounds)
    yield (
        f"{what}, two workers",
        f"{both:.0f} a CPU s",
        f"{shared:.0f} a CPU s one",
        f"{shared / both:.2f} x its CPU",
        "-",
    )
    one, two = max(found[1] for _, found, _ in rounds), max(found[1] for _, _, found in rounds)
    yield f"{what}, two workers", f"{two:.0f}/s", f"{one:.0f}/s by one", f"{two / one:.2f} x", ">= 1.6 x"


def _of_two(server: RedisServer, url: str, processes: int) -> tuple[float, float]:
    """Crawl the site by so many processes; pages for each second of CPU, and of time."""
    found = crawled(server.port, server.url, [url], PAGES, processes, at_once=1000)
    return 1 / found.cpu, found.rate


def crawled(
    port: int, way: str, urls: Sequence[str], pages: int, processes: int, at_once: int = 0
) -> WorkersCrawl:  # fmt: skip
    """Crawl sites by so many processes over the Redis at a port of this machine, by a way to it. `at_once`: how many
    URIs of a host, where the first process would hold all else."""
    redis = Redis(port=port)
    redis.flushall()
    redis.config_resetstat()
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(COMPILED)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = ready(folder, urls[0])
        (job / "seeds.txt").write_text("\n".join(urls))
        (job / "surts.txt").write_text("\n".join(map(surt.folder_prefix, urls)))
        if at_once:
            with (job / "crawl.toml").open("a") as file:
                file.write(f"at_once = {at_once}\n")
        begin, workers = _cpu(redis), []
        for number in range(2, processes + 1):
            (folder / f"w{number}").mkdir()
            words = [sys.executable, "-m", "commands.main", "run", "worker", "bench", "--name", f"w{number}"]
            words += ["--frontier", way, "--output", str(folder / f"w{number}")]
            workers.append(subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL))
            _wait_for_sign(redis, f"w{number}")
        words = [sys.executable, "-m", "warcmill.crawl.process", "--frontier", way, ""]
        words += [str(folder / "output"), str(folder / "jobs"), "kind-first", "bench", "", ""]
        subprocess.run(words, check=True, env=env, stdout=subprocess.DEVNULL)
        for worker in workers:
            worker.terminate()
            worker.wait()
        took = _cpu(redis) - begin
        logs = [path for path in folder.rglob("crawl.log") if path.stat().st_size]
        moments = sorted(moment for path in logs for moment in _moments(path))
    assert len(moments) == pages, f"{len(moments)} of {pages} pages were fetched"
    assert len(logs) == processes, "a worker has fetched nothing"
    calls = redis.info("commandstats")["cmdstat_evalsha"]["calls"]
    return WorkersCrawl(pages / (moments[-1] - moments[0]), took / pages, calls / pages)


def _moments(path: Path) -> Iterator[float]:
    with path.open("rb") as stream:
        for line in crawllog.lines(stream):
            if isinstance(line, crawllog.CrawlRecord) and line.uri.startswith("http"):
                yield datetime.fromisoformat(line.logged).timestamp()


def _cpu(redis: Redis) -> float:
    """Seconds of CPU of Redis, and of the processes that have ended."""
    info, ended = redis.info("cpu"), os.times()
    return float(info["used_cpu_user"] + info["used_cpu_sys"]) + ended.children_user + ended.children_system


def _wait_for_sign(redis: Redis, worker: str) -> None:
    deadline = time.monotonic() + JOIN_SECONDS
    while not redis.hexists(f"{PREFIX}:bench:workers", worker):
        assert time.monotonic() < deadline, f"{worker} gives no sign of life"
        time.sleep(0.05)
