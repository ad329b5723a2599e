"""Crawl one site whole, beside `wget --warc-file`: pages for each second of CPU of all processes, without politeness.

The site is on loopback: each page has 12 kB and 51 links. Its server is a process of its own, and does not count.
Start-up counts; 5,000 pages show how little that is of a longer crawl. Python may keep compiled modules, as an
installed one does: to compile them anew would be a fifth of the smaller crawl.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.crawl_parts import PAGE
from benchmarks.peers import FOLDER
from warcmill.crawl.launch.folders import PAPERS
from warcmill.errors import NotReady
from warcmill.formats import surt
from warcmill.layout import SENTINEL

PAGES, LONGER, LINKS, ROUNDS = 1_000, 5_000, 51, 3
COMPILED = FOLDER.parent / "compiled"
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


def rows() -> Iterator[tuple[str, ...]]:
    """What, ours, peer, ratio, target."""
    if not shutil.which("wget"):
        raise NotReady("wget", "it is not installed; on Debian: apt-get install wget")
    for pages in (PAGES, LONGER):
        with site(pages) as url:
            rounds = [(ours(url, pages), _by_wget(url, pages)) for _ in range(ROUNDS)]
        yield row(pages, [one for one, _ in rounds], [other for _, other in rounds], "wget", ">= 1.2 x")


def row(pages: int, ours: Sequence[float], peer: Sequence[float], name: str, target: str) -> tuple[str, ...]:
    """The best round of each side: what else runs only adds to a round."""
    what = f"crawl of {pages:,} pages, {len(_page(0, pages)) / 1000:.0f} kB and {LINKS} links each"
    best, others = max(ours), max(peer)
    return what, f"{best:.0f} a CPU s", f"{others:.0f} a CPU s {name}", f"{best / others:.2f} x", target


def ours(url: str, pages: int) -> float:
    """Crawl the site with the built-in crawler; pages for each second of CPU."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = ready(folder, url)
        words = [sys.executable, "-m", "warcmill.crawl.process", str(folder / "output"), str(folder / "jobs")]
        found = rate([*words, "kind-first", "bench", "", ""], folder, pages)
        fetched = json.loads((job / "latest/summary.json").read_bytes())["documents"]
        assert fetched == pages, f"{fetched} of {pages} pages were fetched"
    return found


def ready(folder: Path, url: str) -> Path:
    """Make the folders and the job of a crawl of the site; return the job's folder."""
    job = folder / "jobs/bench"
    (job / "state").mkdir(parents=True)
    (folder / "output").mkdir()
    for root in ("jobs", "output"):
        (folder / root / SENTINEL).write_text(json.dumps({"roots": [root]}))
    toml, seeds, surts, _ = PAPERS
    (job / toml).write_text(_TOML)
    (job / seeds).write_text(url)
    (job / surts).write_text(surt.folder_prefix(url))
    return job


def _by_wget(url: str, pages: int) -> float:
    with tempfile.TemporaryDirectory() as name:
        log = Path(name, "log")
        words = ["wget", "-r", "-l", "inf", "-e", "robots=off", "--delete-after", "-nv", "-o", str(log)]
        found = rate([*words, "--warc-file=bench", url], Path(name), pages)
        fetched = log.read_text().count(" URL:")
        assert fetched == pages, f"wget fetched {fetched} of {pages} pages"
    return found


def rate(words: Sequence[str | Path], folder: Path, pages: int) -> float:
    """Pages for each second of CPU that a command and its children took."""
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(COMPILED)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **compiled})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return pages / (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _page(number: int, pages: int) -> bytes:
    links = b"".join(b'<a href="/p/%d.html">x</a>' % ((number * LINKS + n + 1) % pages) for n in range(LINKS))
    return b"<!doctype html><html><head><title>News</title></head><body>" + links + _WORDS + b"</body></html>"


@contextmanager
def site(pages: int) -> Iterator[str]:
    """Serve a site of so many pages while the block runs; yields its first URL."""
    ports: multiprocessing.Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=_serve, args=(ports, pages), daemon=True)
    server.start()
    try:
        yield f"http://127.0.0.1:{ports.get(timeout=60)}/p/0.html"
    finally:
        server.terminate()
        server.join()


def _serve(ports: multiprocessing.Queue[int], number: int) -> None:
    pages = [_page(one, number) for one in range(number)]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                name = head.split(b" ", 2)[1].rpartition(b"/")[2].partition(b".")[0]
                status, body = (b"200 OK", pages[int(name)]) if name.isdigit() else (b"404 Not Found", b"")
                writer.write(b"HTTP/1.1 %s\r\nContent-Type: text/html\r\n" % status)
                writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())
