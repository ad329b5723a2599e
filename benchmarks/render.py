"""10 pages of 20 parts each, rendered by a crawl, beside the same browser through a proxy that only passes on.

Both open one page after another, with the same waits for quiet; the peer judges nothing, records nothing and shares
nothing. The parts of a page are its own, so neither answers from what it has.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from warcmill.crawl.fetch.addresses import Judge
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.crawl.launch.launch import open_launch
from warcmill.crawl.render import (
    Answer,
    BrowserSettings,
    PageRequest,
    Refused,
    RenderedPage,
    RenderSettings,
    Wishes,
)
from warcmill.crawl.render.browser import Browser
from warcmill.crawl.render.proxy import Proxy, ProxyKeys

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/support"))

from crawls import crawled
from sites.several_hosts import Page, page, serve

Row = tuple[str, str, str, str, str]
PAGES, PARTS, RUNS = 10, 20, 3
HOST, AGENT = "a.example", "Warcmill/benchmark"
SANDBOX = bool(os.geteuid())
TARGET = "at most 1.5x"


def rows() -> Iterator[Row]:
    """The best time of each of some runs, from the first page to the last."""
    web = {(HOST, "/robots.txt"): Page(b"", "text/plain")}
    for number in range(PAGES):
        following = [f"/{number + 1}"] if number + 1 < PAGES else []
        path = f"/{number}" if number else "/"
        web[HOST, path] = page(following, *(f"/{number}/{part}.png" for part in range(PARTS)))
        web |= {(HOST, f"/{number}/{part}.png"): Page(os.urandom(20_000), "image/png") for part in range(PARTS)}
    with serve(web) as port:
        ours = min(_crawled(port) for _ in range(RUNS))
        bare = min(asyncio.run(_passed_on(port)) for _ in range(RUNS))
    what = f"render: {PAGES} pages of {PARTS} parts, by a crawl and by the bare browser"
    yield what, f"{ours:.2f} s", f"{bare:.2f} s", f"{ours / bare:.2f}x", TARGET


def _crawled(port: int) -> float:
    """Crawl the pages; the seconds from the first page to the end, without the start of the browser."""
    job = crawled.job(port, HOST, workers=1, render=RenderSettings(which="pages", sandbox=SANDBOX))
    job = replace(job, resolve={HOST: ("127.0.0.1",)})

    async def scenario(folder: Path) -> float:
        running = await open_launch(crawled.places(folder), job, crawled.LAUNCH)
        browser, proxy = running.kit.rendering.running()
        await _warm(browser, proxy)
        began = time.perf_counter()
        end = await running.crawl()
        took = time.perf_counter() - began
        await running.close(end)
        return took

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(scenario(Path(folder)))


async def _passed_on(port: int) -> float:
    """Open the pages one after another, and pass on what they ask for."""
    keys = ProxyKeys()
    browser, proxy = Browser(BrowserSettings(AGENT, SANDBOX), keys), Proxy(keys)
    with tempfile.TemporaryDirectory() as folder:
        fetcher = Fetcher(Judge(["127.0.0.0/8"]), FetchLimits(), AGENT, Path(folder))

        async def answer(request: PageRequest) -> Answer | Refused:
            found = await fetcher.fetch(FetchRequest(request.url, request.method), ["127.0.0.1"])
            if not isinstance(found, Exchange):
                return Refused(found.why)
            return Answer(found.status, tuple(found.fields.pairs), found.payload(), found.close)

        await _warm(browser, proxy)
        began = time.perf_counter()
        for number in range(PAGES):
            url = f"http://{HOST}:{port}/{number or ''}"
            async with proxy.page(answer) as opened:
                result = await browser.open(url, opened, Wishes())
            if not isinstance(result, RenderedPage):
                raise SystemExit(f"benchmark: {url} was not rendered: {result}")
        took = time.perf_counter() - began
        fetcher.close()
    await browser.close()
    return took


async def _warm(browser: Browser, proxy: Proxy) -> None:
    """Start the browser."""

    async def nothing(_: PageRequest) -> Answer | Refused:
        return Answer(200, (("content-type", "text/html"),), [b"<p>warm"], lambda: None)

    async with proxy.page(nothing) as opened:
        await browser.open("http://warm.example/", opened, Wishes())
