"""Crawl a web on loopback with the built-in crawler, in a new folder, and read what it left."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from sites.several_hosts import Page
from warcio.archiveiterator import ArchiveIterator

from warcmill.crawl.job.job import End, Job, Retries
from warcmill.crawl.launch.folders import Places
from warcmill.crawl.launch.launch import Running, open_launch
from warcmill.crawl.policies.politeness import Politeness
from warcmill.crawl.policies.scope import CrawlScope, SurtPrefixes
from warcmill.crawl.visit.page_requests import OPENED
from warcmill.formats import surt
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.layout import SENTINEL
from warcmill.model import Launch

LAUNCH = Launch("news", "20261121081844")
LOOPBACK = ("127.0.0.0/8",)
Act = Callable[[Running], object]


def places(folder: Path) -> Places:
    """The roots of a line in a folder, adopted."""
    for name in ("jobs", "output"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / SENTINEL).write_text(json.dumps({"roots": [name]}))
    return Places(folder / "output", folder / "jobs")


def job(port: int, *hosts: str, **more: Any) -> Job:
    """A job that crawls some hosts of a web whole, without delay."""
    seeds = tuple(f"http://{host}:{port}/" for host in hosts)
    scope = CrawlScope(sites=SurtPrefixes(surt.surt(surt.canonical(seed)) for seed in seeds))
    plain = Job("news", seeds, scope=scope, allow_private=LOOPBACK, no_delay=True, retries=Retries(2, 0.01),
                politeness=Politeness(0.0, 0.0, 0.0), resolve=dict.fromkeys(hosts, ("127.0.0.1",)))  # fmt: skip
    return replace(plain, **more)


async def whole(folder: Path, job: Job, act: Act | None = None, launch: Launch = LAUNCH) -> tuple[End, Running]:
    """Crawl to the end; `act` is called when the launch is open."""
    running = await open_launch(places(folder), job, launch)
    if act:
        act(running)
    end = await running.crawl()
    await running.close(end)
    return end, running


def crawl(folder: Path, job: Job, act: Act | None = None, launch: Launch = LAUNCH) -> tuple[End, Running]:
    """The same, outside of a loop."""
    return asyncio.run(whole(folder, job, act, launch))


def lines(folder: Path, launch: Launch = LAUNCH) -> list[CrawlRecord]:
    """The lines of all crawl logs of a launch."""
    found: list[CrawlRecord] = []
    for path in sorted((folder / "output/logs" / launch.job / launch.id).glob("crawl.log*"), reverse=True):
        if path.suffix == ".orphan":
            continue
        with path.open("rb") as stream:
            for line in crawllog.lines(stream):
                assert isinstance(line, CrawlRecord), line
                found.append(line)
    return found


def statuses(folder: Path) -> dict[str, int | None]:
    """The status of each URI, without its port."""
    return {plain(line.uri): line.status for line in lines(folder)}


def plain(uri: str) -> str:
    scheme, slashes, rest = uri.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{host.partition(':')[0]}{slash}{path}"


def warcs(folder: Path, launch: Launch = LAUNCH) -> list[Path]:
    """The WARCs of a launch, without the files that a kill left behind."""
    found = (folder / "output/warcs" / launch.job / launch.id).iterdir()
    return sorted(path for path in found if path.suffix != ".orphan")


def records(paths: Iterable[Path]) -> list[tuple[str, str]]:
    """Type and URI of each record, as warcio reads them; it checks the digests."""
    found = []
    for path in paths:
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, check_digests="raise"):
                record.content_stream().read()
                found.append((record.rec_type, record.rec_headers.get_header("WARC-Target-URI") or ""))
    return found


def metadata(path: Path) -> dict[str, str]:
    """The text of each metadata record of a WARC, by URI."""
    with path.open("rb") as stream:
        return {
            record.rec_headers.get_header("WARC-Target-URI"): record.content_stream().read().decode()
            for record in ArchiveIterator(stream)
            if record.rec_type == "metadata"
        }


def unbalanced(folder: Path) -> list[str]:
    """What does not agree: each line with a record's place has that record, and each answer in a WARC its line. A page
    that a browser had before has a line more when it is opened."""
    logged = Counter(line.uri for line in lines(folder) if line.warc_filename and OPENED not in line.annotations)
    stored = Counter(uri for kind, uri in records(warcs(folder)) if kind in ("response", "revisit"))
    return [
        f"{uri}: {logged[uri]} lines, {stored[uri]} records" for uri in logged | stored if logged[uri] != stored[uri]
    ]


def told(folder: Path, log: str) -> str:
    """The text of one of the launch's logs."""
    return (folder / "output/logs" / LAUNCH.job / LAUNCH.id / log).read_text()


def left_out(folder: Path) -> list[tuple[str, Any]]:
    """The lines of scope.log: number, policy, decision and URI without its port; and what else it says."""
    rows = [line.split(" ", 5) for line in told(folder, "scope.log").splitlines()]
    return [(" ".join([*row[1:4], plain(row[4])]), json.loads(row[5])) for row in rows]


def web(*pages: tuple[str, str, Page]) -> dict[tuple[str, str], Page]:
    return {(host, path): page for host, path, page in pages}


def json_of(path: Path) -> Any:
    return json.loads(path.read_text())
