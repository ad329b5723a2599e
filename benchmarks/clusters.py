"""Measure the updater beside bare COPY and merge of the same changes: changes a CPU second, PostgreSQL's included.

    ./scripts/bench clusters

The journal is of a crawl whose pages have ten new links: for each a line, and one for the visit of the page with its
line in crawl.log. The updater reads, decompresses and parses it, counts hosts, checks moves, notes visits and the
place. The bare merge has the rows ready in memory: COPY into a temporary table, one INSERT ... ON CONFLICT DO UPDATE.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg

from servers import pins, postgresql, process
from servers.postgresql import PostgresqlServer
from warcmill.clients.postgresql import read_place
from warcmill.clusters import group
from warcmill.clusters.centre import NEWS, Centre, _row
from warcmill.clusters.following import ClusterJournals, Committed, JobJournals, JournalPlace
from warcmill.clusters.group import Group
from warcmill.clusters.news import News, batch_of
from warcmill.clusters.updater import MOST, Updater
from warcmill.crawl.books.files import CRAWL_LOG
from warcmill.crawl.control.calls import RunningJob
from warcmill.crawl.frontier import Intake, Offered, journal
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.uri import Status, Uri
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.model import Launch

PAGES, LINKS, HOSTS, GROUP = 40_000, 10, 1000, 32
JOB = "bench"
SETTLED = 2.0  # seconds until the server has counted the processes of connections that were closed
NEW = [Offered(Intake.NEW)] * LINKS
_COLUMNS = "host, digest, crawl, uri, key, hops, via, source, http_status, hash, address"
_TIMES = "download_at", "download_started", "download_finished"
_SET = ", ".join(f"{name} = excluded.{name}" for name in ("status", "http_status", "hash", "address", *_TIMES))
_MERGE = (
    f"INSERT INTO uris ({_COLUMNS}, {', '.join(_TIMES)}, status, cluster, last_update, launch, journal)"
    f" SELECT {_COLUMNS}, {', '.join(f'to_timestamp({name})' for name in _TIMES)}, coalesce(otherwise, 'Parsed'),"
    " 'bench', now(), '', 1"
    f" FROM news ORDER BY host, digest ON CONFLICT (host, digest) DO UPDATE SET {_SET}, last_update = now()"
)
Row = tuple[str, str, str, str, str]


def rows() -> Iterator[Row]:
    """What, ours, the peer's, their ratio, the target."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server's user passes through it
        server = postgresql.up(Path(folder), pins.free(pins.POSTGRESQL))
        try:
            yield from asyncio.run(_measured(Path(folder), server))
        finally:
            server.stop()


async def _measured(folder: Path, server: PostgresqlServer) -> list[Row]:
    journals, changes = _written(folder), PAGES * (LINKS + 1)
    speeds = list[float]()
    for name in ("ours", "bare"):
        connection = await asyncpg.connect(server.url())
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()
        kept = Group("bench", read_place("centre", server.url(name)), (JOB,))
        await group.make(kept)
        before, begun = cpu_of(server), time.process_time()
        if name == "ours":
            await _update(kept, journals)
        else:
            begun += await _merge(server.url(name), journals)
        await asyncio.sleep(SETTLED)
        speeds.append(changes / (time.process_time() - begun + cpu_of(server) - before))
    ours, bare = speeds
    shown = f"{ours:,.0f}/CPU s", f"{bare:,.0f}/CPU s COPY, merge"
    return [(f"updater, {changes:,} changes of a journal", *shown, f"{ours / bare:.2f} x as fast", "0.5")]


def _written(folder: Path) -> ClusterJournals:
    """The journal of a launch that has ended."""
    places, launch = Places(folder / "output", folder / "jobs"), Launch(JOB, "20261129000000")
    logs = places.folders(launch).logs
    logs.mkdir(parents=True)
    places.folders(launch).own.mkdir(parents=True)
    number = length = 0
    with (logs / journal.NAME).open("wb") as out, (logs / CRAWL_LOG).open("wb") as log:
        for first in range(0, PAGES, GROUP):
            lines = list[str]()
            for page in range(first, min(first + GROUP, PAGES)):
                found, visit = uri_of(page), uri_of(page)
                visit.status, visit.http_status, visit.download_finished = Status.PARSED, 200, 1.79e9 + page
                visit.host_ip = "192.0.2.1"
                lines.append(journal.visited(visit, b"h" * 25))
                links = [uri_of(number + one + 1, found.uri) for one in range(LINKS)]
                number += LINKS
                lines += journal.offered(links, NEW, 0.0)
                length += log.write(_line(visit))
            out.write(journal.group(lines, {CRAWL_LOG: length}))
    committed = Committed(RunningJob(JOB, folder / "none"))
    return ClusterJournals(JobJournals(places, JOB, committed), [], committed)


def _line(uri: Uri) -> bytes:
    began = uri.download_finished - 0.5
    line = CrawlRecord(
        crawllog.moment(uri.download_finished), 200, 5000, uri.uri, "LL", uri.uri, "text/html", "#001",
        crawllog.begun(began, began + 0.5), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", uri.uri, (), 5200,
    )  # fmt: skip
    return crawllog.render(line, "bench-20261129000000000-00000-1~bench~0.warc.gz", 123_456_789)


def uri_of(number: int, via: str = "") -> Uri:
    """A URI of 56 letters."""
    host = f"www.host{number % HOSTS:04}.example"
    text = f"http://{host}/archive/{number:09}/article.html"
    return Uri(text, text, host, hops="LL", via=via, source=f"http://{host}/")


async def _update(kept: Group, journals: ClusterJournals) -> None:
    updater = Updater(kept, journals, RunningJob(JOB, Path("/none")))
    centre = await Centre.open(kept.centre, kept.name, JOB)
    while await updater.step(centre):
        pass
    await centre.close()


async def _merge(url: str, journals: ClusterJournals) -> float:
    """Merge the same rows; return the CPU seconds in which they were made ready."""
    connection: Any = await asyncpg.connect(url)
    await connection.execute(NEWS)
    places, spent = dict[str, JournalPlace](), 0.0
    while True:
        begun = time.process_time()
        batch = batch_of(journals.after(places, {}), MOST)
        news = [one for one in batch.news if isinstance(one, News)] if batch else []
        ready = [_row(uri) for one in news for uri in one.uris.values()]
        spent += time.process_time() - begun
        if batch is None:
            break
        places = {name: one.place for name, one in batch.read.items()}
        async with connection.transaction():
            await connection.copy_records_to_table("news", records=ready)
            await connection.execute(_MERGE)
    await connection.close()
    return spent


def cpu_of(server: PostgresqlServer) -> float:
    """The CPU seconds of the server and all its processes, those that have ended too."""
    found = process.running(server.folder, server.name)
    assert found
    pids = [found.pid, *(one.pid for one in process.descendants(found))]
    fields = list[list[str]]()
    for pid in pids:
        with suppress(FileNotFoundError):  # it has ended, and is counted with its parent
            fields.append(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split())
    own = sum(int(one[11]) + int(one[12]) for one in fields)
    return (own + sum(int(one) for one in fields[0][13:15])) / os.sysconf("SC_CLK_TCK")
