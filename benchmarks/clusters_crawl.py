"""Measure the CPU of a page that is crawled in a group, with its updater and PostgreSQL, beside the same crawl alone.

    ./scripts/bench clusters_crawl

The site and the job are those of `benchmarks.crawl`, without politeness: 12 kB and 51 links a page. The job is
endless on both sides; in the group its host has an owner, by rules. CPU is that of all processes from their start
until the last page is in the centre, by turns; the site's server does not count. An updater that waits costs some
too.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg

from benchmarks.clusters import SETTLED, cpu_of
from benchmarks.crawl import environment, ready, site
from servers import pins, postgresql
from servers.postgresql import PostgresqlServer
from warcmill.clients.postgresql import read_place
from warcmill.clusters import group
from warcmill.clusters.following import JobJournals
from warcmill.clusters.group import Group
from warcmill.clusters.owning import RulesPlace
from warcmill.clusters.updater import Updater
from warcmill.crawl.control import control
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.fetch.addresses import Resolver
from warcmill.crawl.launch.folders import CONTROL, OWNED, PAPERS, Places
from warcmill.errors import NotReady, Unavailable

JOB, PAGES, ROUNDS, POLL = "bench", 10_000, 2, 0.2
GROUPS = multiprocessing.get_context("spawn")


def rows() -> Iterator[tuple[str, ...]]:
    """What, ours, the peer's, their ratio, the bound."""
    with tempfile.TemporaryDirectory() as name, site(PAGES) as url:
        Path(name).chmod(0o755)  # the server's user passes through it
        server = postgresql.up(Path(name), pins.free(pins.POSTGRESQL))
        try:
            rounds = [(_in_group(server, url, number), _alone(url)) for number in range(ROUNDS)]
        finally:
            server.stop()
    ours, alone = (
        median(one) / PAGES * 1000 for one in zip(*[(sum(mine), peer) for mine, peer in rounds], strict=True)
    )
    ratio = median(sum(mine) / peer for mine, peer in rounds)
    crawl, updater, centre = (median(one) / PAGES * 1000 for one in zip(*[mine for mine, _ in rounds], strict=True))
    parts = f"crawl {crawl:.2f}, updater {updater:.2f}, PostgreSQL {centre:.2f}"
    print(f"ms a page: {parts}", file=sys.stderr)
    yield f"a page in a group, {PAGES:,} pages", f"{ours:.2f} ms", f"{alone:.2f} ms alone", f"{ratio:.2f} x", "1.25 x"


def _alone(url: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        return _crawled(Path(name), url, (), lambda: True)


def _in_group(server: PostgresqlServer, url: str, number: int) -> tuple[float, float, float]:
    """The seconds of CPU of the crawl, the updater and PostgreSQL."""
    with tempfile.TemporaryDirectory() as name:
        folder, database = Path(name), f"round{number}"
        kept = asyncio.run(_group(server, folder, database))
        before = cpu_of(server)
        updater = GROUPS.Process(target=_update, args=(kept, folder))
        updater.start()
        try:
            crawl = _crawled(folder, url, (OWNED,), lambda: asyncio.run(_has_all(kept)))
        finally:
            spent = _children()
            updater.terminate()
            updater.join()
        time.sleep(SETTLED)
        return crawl, _children() - spent, cpu_of(server) - before


def _crawled(folder: Path, url: str, more: tuple[str, ...], is_in_order: Callable[[], bool]) -> float:
    """Crawl the site until nothing waits; return the seconds of CPU of all processes of the crawl."""
    if not (folder / "jobs").exists():
        (folder / "jobs").mkdir()
    job, before = ready(folder, url), _children()
    path = job / PAPERS[0]
    path.write_text(f"endless = true\n{path.read_text()}")
    words = [sys.executable, "-m", "warcmill.crawl.process", str(folder / "output"), str(folder / "jobs")]
    crawl = subprocess.Popen([*words, "kind-first", JOB, "", "", *more], env=environment(), cwd=Path.cwd())
    socket = job / "state" / CONTROL
    while crawl.poll() is None:
        time.sleep(POLL)
        with suppress(NotReady, Unavailable):
            found: Any = control.ask(socket, "state")
            if found["documents"] >= PAGES and not found["queued"] and not found["under_way"] and is_in_order():
                control.ask(socket, "stop")
                break
    assert crawl.wait() == 0
    return _children() - before


async def _group(server: PostgresqlServer, folder: Path, database: str) -> Group:
    connection = await asyncpg.connect(server.url())
    await connection.execute(f"CREATE DATABASE {database}")
    await connection.close()
    rules = folder / "rules.toml"
    rules.write_text(f'default = "{JOB}"\n')
    kept = Group("bench", read_place("centre", server.url(database)), (JOB,), RulesPlace(rules))
    await group.make(kept)
    return kept


def _update(kept: Group, folder: Path) -> None:
    places = Places(folder / "output", folder / "jobs")
    crawl = RunningJob(JOB, folder / "jobs" / JOB / "state" / CONTROL)
    updater = Updater(kept, JobJournals(places, JOB, crawl), crawl, Resolver())

    async def run() -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, updater.ended.set)
        await updater.run(lambda _: None)

    asyncio.run(run())


async def _has_all(kept: Group) -> bool:
    async with group.asked(kept) as db:
        row = (await db.rows("SELECT sum(parsed) AS parsed, sum(scheduled) AS waits FROM hosts"))[0]
    return (row["parsed"] or 0) >= PAGES and not row["waits"]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
