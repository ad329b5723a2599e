"""Crawl one site whole, beside `wget --warc-file`: pages for each second of CPU of all processes, without politeness.

The site is on loopback: each page has 11 kB and 51 links, as that of the issue's probe. Its server is a process of its
own, and does not count.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.crawl_parts import PAGE
from warcmill.crawl.launch_folders import PAPERS
from warcmill.errors import NotReady
from warcmill.formats import surt
from warcmill.layout import SENTINEL

PAGES, LINKS, ROUNDS = 1_000, 51, 3
_WORDS = PAGE[PAGE.index(b"<p>") : -len(b"</ul></body></html>")].replace(b"href", b"data-was")
_TOML = """\
no_delay = true
robots = "ignore"
allow_private = ["127.0.0.0/8"]
[politeness]
factor = 0
least = 0
most = 0
respected = 0
by_address = false
"""


def rows() -> Iterator[tuple[str, str, str, str, str]]:
    """What, ours, peer, ratio, target."""
    if not shutil.which("wget"):
        raise NotReady("wget", "it is not installed; on Debian: apt-get install wget")
    with _site() as url:
        rounds = [(_ours(url), _by_wget(url)) for _ in range(ROUNDS)]
    ours, peer = (max(found) for found in zip(*rounds, strict=True))
    what = f"crawl of {PAGES:,} pages, {len(_page(0)) / 1000:.0f} kB and {LINKS} links each"
    yield what, f"{ours:.0f} a CPU s", f"{peer:.0f} a CPU s wget", f"{ours / peer:.2f} x", ">= 1.2 x"


def _ours(url: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = folder / "jobs/bench"
        job.mkdir(parents=True)
        (folder / "output").mkdir()
        for root in ("jobs", "output"):
            (folder / root / SENTINEL).write_text(json.dumps({"roots": [root]}))
        (job / "state").mkdir()
        toml, seeds, surts, _ = PAPERS
        (job / toml).write_text(_TOML)
        (job / seeds).write_text(url)
        (job / surts).write_text(surt.folder_prefix(url))
        words = [sys.executable, "-m", "warcmill.crawl.process", str(folder / "output"), str(folder / "jobs")]
        rate = _rate([*words, "kind-first", "bench", ""], folder)
        fetched = json.loads((job / "latest/summary.json").read_bytes())["documents"]
        assert fetched == PAGES, f"{fetched} of {PAGES} pages were fetched"
    return rate


def _by_wget(url: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        log = Path(name, "log")
        words = ["wget", "-r", "-l", "inf", "-e", "robots=off", "--delete-after", "-nv", "-o", str(log)]
        rate = _rate([*words, "--warc-file=bench", url], Path(name))
        fetched = log.read_text().count(" URL:")
        assert fetched == PAGES, f"wget fetched {fetched} of {PAGES} pages"
    return rate


def _rate(words: Sequence[str], folder: Path) -> float:
    """Pages for each second of CPU that a command and its children took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return PAGES / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _page(number: int) -> bytes:
    links = b"".join(b'<a href="/p/%d.html">x</a>' % ((number * LINKS + n + 1) % PAGES) for n in range(LINKS))
    return b"<!doctype html><html><head><title>News</title></head><body>" + links + _WORDS + b"</body></html>"


@contextmanager
def _site() -> Iterator[str]:
    """Serve the site while the block runs; yields its first URL."""
    ports: multiprocessing.Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=_serve, args=(ports,), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{ports.get(timeout=60)}/p/0.html"
    finally:
        server.terminate()
        server.join()


def _serve(ports: multiprocessing.Queue[int]) -> None:
    pages = [_page(number) for number in range(PAGES)]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                body = pages[int(head.split(b" ", 2)[1].rpartition(b"/")[2].partition(b".")[0])]
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body))
                writer.write(body)
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())
