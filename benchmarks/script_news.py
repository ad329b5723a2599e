"""Follow 200 sites by a script each, with a tick each minute: how long an item that is published waits for its result.

Each site is a host on loopback of its own, and publishes at random, once a minute on average, for MINUTES minutes. An
item is stored when its line is in results.jsonl: its record is in the WARC then. Politeness is as shipped.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from benchmarks.crawl import environment
from warcmill.layout import SENTINEL
from warcmill.scripts import process
from warcmill.scripts.folder import ScriptStatus, set_row

SITES, MINUTES, LISTED = 200, float(os.environ.get("WARCMILL_BENCH_MINUTES", "6")), 20
ENOUGH, SHARE = 300.0, 0.99  # seconds, and the items that are stored by then
SCRIPT = """
from pyspider.libs.base_handler import *

class Handler(BaseHandler):
    @every(minutes=1)
    def on_start(self):
        self.crawl("START/", callback=self.index_page, age=30)

    def index_page(self, response):
        for link in response.doc("a").items():
            self.crawl(link.attr.href, callback=self.detail_page)

    @config(priority=2)
    def detail_page(self, response):
        return {"url": response.url, "title": response.doc("title").text()}
"""


class News(NamedTuple):
    """Seconds for which each item has waited that was stored, the number of those published, and seconds of CPU."""

    waited: Sequence[float]
    published: int
    cpu: float


def rows() -> Iterator[tuple[str, ...]]:
    """What, ours, peer, ratio, target."""
    found = _followed()
    share = sum(one <= ENOUGH for one in found.waited) / found.published
    what = f"{found.published:,} items of {SITES} sites, each asked once a minute"
    yield f"{what}, stored", f"{share:.2%}", "-", "within 300 s", f"{SHARE:.0%}"
    last = statistics.quantiles(found.waited, n=100)
    yield "from publication to result, half of them", f"{last[49]:.0f} s", "-", f"99 %: {last[98]:.0f} s", "300 s"
    yield "CPU of these scripts, of one core", f"{found.cpu / (MINUTES * 60):.0%}", "-", "-", "-"


def _followed() -> News:
    with tempfile.TemporaryDirectory() as name, _sites() as (port, begun):
        folder = Path(name)
        job = _job(folder, port)
        walls = "bubblewrap" if shutil.which("bwrap") else process.NONE
        words = [sys.executable, "-m", "warcmill.scripts.process", walls, str(folder / "output"), str(folder / "jobs"),
                 "kind-first", "news", "", ""]  # fmt: skip
        crawl = subprocess.Popen([sys.executable, "-m", "benchmarks.processes", *words], env=environment(),
                                 stdout=subprocess.PIPE, text=True)  # fmt: skip
        stored, end = dict[str, float](), begun + MINUTES * 60
        while time.time() < end + ENOUGH and crawl.poll() is None:
            time.sleep(0.25)
            _note(folder, stored)
            published = {url: at for site in range(SITES) for url, at in _items(site, port, begun) if at < end}
            if time.time() > end and published.keys() <= stored.keys():
                break
        os.kill(json.loads((job / "state/lock").read_bytes())["pid"], signal.SIGTERM)
        printed, _ = crawl.communicate()
        waited = [stored[url] - at for url, at in published.items() if url in stored]
        return News(waited, len(published), json.loads(printed)[1])


def _note(folder: Path, stored: dict[str, float]) -> None:
    """Note when each result was seen first."""
    for log in folder.glob("output/logs/news/*/results.jsonl"):
        for line in log.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                stored.setdefault(json.loads(line)["value"]["url"], time.time())


def _job(folder: Path, port: int) -> Path:
    job = folder / "jobs/news"
    (job / "scripts").mkdir(parents=True)
    (folder / "output").mkdir()
    for root in ("jobs", "output"):
        (folder / root / SENTINEL).write_text(json.dumps({"roots": [root]}))
    for file, raw in process.files({"allow_private": ["127.0.0.0/8"]}).items():
        (job / file).write_bytes(raw)
    for site in range(SITES):
        (job / f"scripts/site{site}.py").write_text(SCRIPT.replace("START", f"http://{_host(site)}:{port}"))
        set_row(job, f"site{site}", {"status": ScriptStatus.RUNNING})
    return job


def _host(site: int) -> str:
    return f"127.0.{1 + site // 200}.{1 + site % 200}"


def _items(site: int, port: int, begun: float) -> list[tuple[str, float]]:
    """The items of a site: their addresses, and when each is published."""
    dice, at, found = random.Random(site), begun, list[tuple[str, float]]()
    while at < begun + MINUTES * 60:
        at += dice.expovariate(1 / 60)
        found.append((f"http://{_host(site)}:{port}/{len(found)}.html", at))
    return found


@contextmanager
def _sites() -> Iterator[tuple[int, float]]:
    """Serve the sites while the block runs; yields their port, and when they begin."""
    ports: multiprocessing.Queue[tuple[int, float]] = multiprocessing.Queue()
    server = multiprocessing.Process(target=_serve, args=(ports,), daemon=True)
    server.start()
    try:
        yield ports.get(timeout=60)
    finally:
        server.terminate()
        server.join()


def _serve(ports: multiprocessing.Queue[tuple[int, float]]) -> None:
    words = b"<p>" + b"Of what has happened, and of what has not. " * 100
    times = dict[str, list[tuple[str, float]]]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host = writer.get_extra_info("sockname")[0]
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                path, now = head.split(b" ", 2)[1].decode(), time.time()
                shown = [url for url, at in times[host] if at <= now]
                status, body = b"200 OK", b""
                if path == "/":
                    links = "".join(f'<a href="{url}">x</a>' for url in shown[-LISTED:])
                    body = f"<title>News</title>{links}".encode() + words
                elif any(url.endswith(path) for url in shown):
                    body = f"<title>Item {path}</title>".encode() + words
                else:
                    status = b"404 Not Found"
                writer.write(b"HTTP/1.1 %s\r\nContent-Type: text/html\r\n" % status)
                writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, _host(0), 0)
        port, begun = server.sockets[0].getsockname()[1], time.time() + 30
        for site in range(SITES):
            times[_host(site)] = _items(site, port, begun)
            if site:
                await asyncio.start_server(answer, _host(site), port)
        ports.put((port, begun))
        await server.serve_forever()

    asyncio.run(run())
