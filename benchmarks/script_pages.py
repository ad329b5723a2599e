"""Crawl one site of 3,000 pages by a script of pyspider's, as a person types it, beside `warcmill crawl`: CPU alone.

Each page gives a result, and its 51 links are asked for. The site, the pages and the measure are those of
`benchmarks.crawl`. Then callbacks of 20 ms each by the processes of scripts: by two at a time beside one.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.crawl import ROUNDS, environment, site, typed
from benchmarks.processes import spent
from warcmill.scripts.walled.asking import ScriptAsker, ScriptText

PAGES, CALLBACKS = 3_000, 200
SCRIPT = """
from pyspider.libs.base_handler import *

class Handler(BaseHandler):
    def on_start(self):
        self.crawl("START", callback=self.page)

    def page(self, response):
        for link in response.doc("a[href]").items():
            self.crawl(link.attr.href, callback=self.page)
        return {"url": response.url, "title": response.doc("title").text()}
"""
BUSY = """
import time
from pyspider.libs.base_handler import *

class Handler(BaseHandler):
    def page(self, response):
        until = time.process_time() + 0.02
        while time.process_time() < until:
            pass
"""
HURRIED = """\
robots = "ignore"
[politeness]
factor = 0
least = 0
most = 0
respected = 0
by_address = false
"""


def rows() -> Iterator[tuple[str, ...]]:
    """What, ours, peer, ratio, target."""
    with site(PAGES) as url:
        rounds = [(_by_script(url), typed([url, "--no-delay"], PAGES).cpu) for _ in range(ROUNDS)]
    ours, plain = (median(side) for side in zip(*rounds, strict=True))
    ratio = median(mine / other for mine, other in rounds)
    what = f"script of {PAGES:,} pages, a result and 51 follows each"
    cost = f"{ours / PAGES * 1000:.2f} ms a page"
    yield what, cost, f"{plain / PAGES * 1000:.2f} ms our crawl", f"{ratio:.2f} x its CPU", "2 x"
    times = [(asyncio.run(_callbacks(2)), asyncio.run(_callbacks(1))) for _ in range(ROUNDS)]
    two, one = (median(side) for side in zip(*times, strict=True))
    faster = median(alone / both for both, alone in times)
    yield "callbacks of two processes", f"{two:.0f}/s", f"{one:.0f}/s one", f"{faster:.2f} x as fast", "1.7"


def _by_script(url: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "site.py").write_text(SCRIPT.replace("START", url))
        (folder / "crawl.toml").write_text(HURRIED)
        words = [sys.executable, "-m", "commands.main", "script", "run", "site.py", "--no-delay", "--config",
                 "crawl.toml", "--allow-private", "127.0.0.0/8"]  # fmt: skip
        found = spent(words, folder, environment()).cpu
        log = b"".join(path.read_bytes() for path in folder.rglob("results.jsonl*"))
        assert log.count(b"\n") == PAGES, f"{log.count(b'')} results of {PAGES} pages"
    return found


async def _callbacks(scripts: int) -> float:
    """Callbacks each second, of so many scripts that have one open each."""
    asker = ScriptAsker(script_walls=False)
    texts = {f"s{number}": BUSY for number in range(scripts)}
    task = {"taskid": "1", "url": "u", "process": {"callback": "page"}}
    fields = {"status_code": 200, "url": "u"}

    async def asked(name: str, number: int) -> None:
        for _ in range(number):
            found = await asker.run(ScriptText(name, texts), {**task, "project": name}, fields)
            assert not found.why, found.why

    try:
        await asyncio.gather(*(asked(name, 3) for name in texts))
        begun = time.perf_counter()
        await asyncio.gather(*(asked(name, CALLBACKS // scripts) for name in texts))
        return CALLBACKS / (time.perf_counter() - begun)
    finally:
        asker.close()
