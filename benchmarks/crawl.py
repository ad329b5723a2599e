"""Crawl one site whole by `warcmill crawl`, as a person types it, beside `wget --warc-file`: CPU and elapsed time.

They are of all processes, also of the crawl's own, which detaches itself. Both crawl without politeness; a polite crawl
has its own row.

The site is on loopback: each page has 12 kB and 51 links. Its server is a process of its own, and does not count.
Start-up counts; a single page shows what it takes. Python may keep compiled modules, as an installed one does.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median

from benchmarks.crawl_parts import PAGE
from benchmarks.peers import FOLDER
from benchmarks.processes import Spent, spent
from warcmill.crawl.launch.folders import PAPERS
from warcmill.errors import NotReady
from warcmill.formats import surt
from warcmill.layout import SENTINEL

LINKS, ROUNDS = 51, 3
SIZES = {1: ("-", "-"), 3_000: ("1.5 x", "1.3 x"), 30_000: ("1 x", "1 x")}  # pages; the bounds of CPU and elapsed time
HOSTS, OF_EACH = 50, 60
_POLITE = "[politeness]\nfactor = 0\nleast = 1\n"
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
    for pages, bounds in SIZES.items():
        with site(pages) as url:
            rounds = [(typed([url, "--no-delay"], pages), _by_wget(url, pages)) for _ in range(ROUNDS)]
        for place, (name, bound) in enumerate(zip(("elapsed", "CPU"), reversed(bounds), strict=True)):
            mine, peer = (median(side[place] for side in sides) for sides in zip(*rounds, strict=True))
            ratio = median(one[place] / other[place] for one, other in rounds)
            what = f"crawl of {pages:,} pages, {name}"
            yield f"warcmill {what}", f"{mine:.2f} s", f"{peer:.2f} s wget", f"{ratio:.2f} x", bound
    with sites(OF_EACH, HOSTS) as urls, tempfile.NamedTemporaryFile("w", suffix=".toml") as polite:
        polite.write(_POLITE)
        polite.flush()
        pages = HOSTS * OF_EACH
        took = typed([*urls, "--job", "polite", "--config", polite.name], pages)
    what = f"the same of {HOSTS} hosts, each once a second"
    yield what, f"{took.cpu / pages * 1000:.1f} ms of CPU a page", "-", "-", "3 ms"


def typed(words: Sequence[str], pages: int) -> Spent:
    """Crawl as a person types it, into a new archive."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        typed = [sys.executable, "-m", "commands.main", "crawl", *words]
        found = spent([*typed, "--no-line", "--allow-private", "127.0.0.0/8"], folder, environment())
        (summary,) = folder.glob("archive/jobs/*/latest/summary.json")
        fetched = json.loads(summary.read_bytes())["documents"]
        assert fetched == pages, f"{fetched} of {pages} pages were fetched"
    return found


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


def _by_wget(url: str, pages: int) -> Spent:
    with tempfile.TemporaryDirectory() as name:
        log = Path(name, "log")
        words = ["wget", "-r", "-l", "inf", "-e", "robots=off", "--delete-after", "-nv", "-o", str(log)]
        found = spent([*words, "--warc-file=bench", url], Path(name), environment())
        fetched = log.read_text().count(" URL:")
        assert fetched == pages, f"wget fetched {fetched} of {pages} pages"
    return found


def rate(words: Sequence[str | Path], folder: Path, pages: int) -> float:
    """Pages for each second of CPU that a command took, with all that it started."""
    return pages / spent(words, folder, environment()).cpu


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(COMPILED), "LUIGI_CONFIG_PATH": ""}


def _page(number: int, pages: int) -> bytes:
    links = b"".join(b'<a href="/p/%d.html">x</a>' % ((number * LINKS + n + 1) % pages) for n in range(LINKS))
    return b"<!doctype html><html><head><title>News</title></head><body>" + links + _WORDS + b"</body></html>"


@contextmanager
def site(pages: int) -> Iterator[str]:
    """Serve a site of so many pages while the block runs; yields its first URL."""
    with sites(pages, 1) as (url,):
        yield url


@contextmanager
def sites(pages: int, hosts: int) -> Iterator[list[str]]:
    """Serve a site of so many pages at some hosts while the block runs; yields the first URL of each."""
    ports: multiprocessing.Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=_serve, args=(ports, pages, hosts), daemon=True)
    server.start()
    try:
        port = ports.get(timeout=60)
        yield [f"http://127.0.0.{number + 1}:{port}/p/0.html" for number in range(hosts)]
    finally:
        server.terminate()
        server.join()


def _serve(ports: multiprocessing.Queue[int], number: int, hosts: int) -> None:
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
        port = server.sockets[0].getsockname()[1]
        for other in range(1, hosts):
            await asyncio.start_server(answer, f"127.0.0.{other + 1}", port)
        ports.put(port)
        await server.serve_forever()

    asyncio.run(run())
