"""A page for another engine: each of its requests is made once, and a fault of ours is never a page that is done."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from sites.several_hosts import Page, serve
from warcio.archiveiterator import ArchiveIterator

from warcmill.crawl.beside.page import NotFetched, PageRenderer, PageResult, rendering
from warcmill.crawl.fetch.addresses import Resolver
from warcmill.crawl.fetch.exchange import Exchange, FetchRequest
from warcmill.crawl.fetch.http import Fetcher
from warcmill.crawl.fetch.limits import Failure
from warcmill.crawl.render import BrowserSettings, RenderedPage, Result, Wishes
from warcmill.crawl.render.browser import Browser
from warcmill.crawl.render.proxy import LOOPBACK, PageProxy, Proxy, ProxyKeys
from warcmill.errors import Unavailable

HOST, PREFIX = "a.example", "daily-rendered"


class HastyBrowser(Browser):
    """A browser whose page asks for one thing more, and is closed before that has come."""

    def __init__(self, asked: asyncio.Event) -> None:
        super().__init__(BrowserSettings(), ProxyKeys())
        self._asked = asked

    async def open(self, url: str, proxy: PageProxy, wishes: Wishes, *, alone: bool = False) -> Result:
        _, writer = await asyncio.open_connection(LOOPBACK, proxy.port)
        writer.write(f"GET {url}late HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        await self._asked.wait()
        writer.close()
        return RenderedPage(b"<p>done</p>", url)


def render(folder: Path, web: dict[tuple[str, str], Page], path: str, hasty: asyncio.Event | None = None) -> PageResult:
    """Render a path of a site. No test starts Chromium: the page is not HTML, or its browser is a hasty one."""

    async def scenario(port: int) -> PageResult | NotFetched:
        keys, resolver = ProxyKeys(), Resolver({HOST: ("127.0.0.1",)}, {})
        browser = HastyBrowser(hasty) if hasty else Browser(BrowserSettings(), keys)
        async with rendering(PageRenderer(folder, crawled.job(port, HOST), resolver, browser, Proxy(keys))) as renderer:
            return await renderer.render(f"http://{HOST}:{port}{path}", PREFIX)

    with serve(web) as port:
        found = asyncio.run(asyncio.wait_for(scenario(port), 60))
    assert isinstance(found, PageResult), found
    return found


def stored(folder: Path) -> list[str]:
    """The paths of the answers in all WARCs."""
    found = []
    for path in sorted(folder.glob("*.warc.gz")):
        with path.open("rb") as stream:
            records = ArchiveIterator(stream)
            found += [one.rec_headers.get_header("WARC-Target-URI") for one in records if one.rec_type == "response"]
    return ["/" + uri.split("/", 3)[3] for uri in found]


@pytest.mark.parametrize("robots", [Page(b"/", "text/plain", status=301), Page(b"", "text/plain")])
@pytest.mark.parametrize("path", ["/", "/robots.txt"])
def test_a_robots_file_that_is_the_page_itself_is_asked_for_once(tmp_path: Path, robots: Page, path: str) -> None:
    """Many sites redirect their robots.txt to the home page: that is waited for by nobody but itself."""
    web = {(HOST, "/"): Page(b"home", "text/plain"), (HOST, "/robots.txt"): robots}
    assert render(tmp_path, web, path).status == web[HOST, path].status
    paths = stored(tmp_path)
    assert path in paths
    assert len(paths) == len(set(paths))


def test_a_disk_that_fails_fails_the_page_though_its_browser_waits_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, fetch = asyncio.Event(), Fetcher.fetch

    async def failing(self: Fetcher, request: FetchRequest, *more: Any) -> Exchange | Failure:
        if not request.uri.endswith("/late"):
            return await fetch(self, request, *more)
        asked.set()
        await asyncio.sleep(0.2)  # it fails when the browser has its page already
        raise Unavailable("scratch", "no space left")

    monkeypatch.setattr(Fetcher, "fetch", failing)
    with pytest.raises(Unavailable, match="no space left"):
        render(tmp_path, {(HOST, "/"): Page(b"<p>page</p>")}, "/", asked)
    assert stored(tmp_path) == []


def test_two_pages_of_a_host_are_a_crawl_delay_apart_and_the_parts_of_one_are_not(tmp_path: Path) -> None:
    robots = Page(b"User-agent: *\nCrawl-delay: 0.4\n", "text/plain")
    web = {(HOST, path): Page(b"text", "text/plain") for path in ("/1", "/2", "/3")} | {(HOST, "/robots.txt"): robots}
    asked: list[tuple[float, str, str]] = []

    async def scenario(port: int) -> list[PageResult | NotFetched]:
        keys, resolver = ProxyKeys(), Resolver({HOST: ("127.0.0.1",)}, {})
        made = PageRenderer(tmp_path, crawled.job(port, HOST), resolver, Browser(BrowserSettings(), keys), Proxy(keys))
        async with rendering(made) as renderer:
            first = await renderer.render(f"http://{HOST}:{port}/1", PREFIX)
            both = (renderer.render(f"http://{HOST}:{port}/{number}", PREFIX) for number in (2, 3))
            return [first, *await asyncio.gather(*both)]

    with serve(web, asked) as port:
        found = asyncio.run(asyncio.wait_for(scenario(port), 60))
    assert all(isinstance(one, PageResult) for one in found)
    times = {path: moment for moment, _, path in asked}
    assert [path for _, _, path in asked].count("/robots.txt") == 1
    pages = sorted(times[path] for path in ("/1", "/2", "/3"))
    assert all(later - earlier >= 0.4 for earlier, later in itertools.pairwise(pages))


def test_a_site_that_gives_no_robots_txt_is_asked_again_later_and_never_given_up(tmp_path: Path) -> None:
    web = {(HOST, "/"): Page(b"text", "text/plain"), (HOST, "/robots.txt"): Page(b"", status=503)}
    asked: list[tuple[float, str, str]] = []

    async def scenario(port: int) -> list[PageResult | NotFetched]:
        keys, resolver = ProxyKeys(), Resolver({HOST: ("127.0.0.1",)}, {})
        made = PageRenderer(tmp_path, crawled.job(port, HOST), resolver, Browser(BrowserSettings(), keys), Proxy(keys))
        async with rendering(made) as renderer:
            return [await renderer.render(f"http://{HOST}:{port}/", PREFIX) for _ in range(3)]

    with serve(web, asked) as port:
        found = asyncio.run(asyncio.wait_for(scenario(port), 60))
    why = "its robots.txt is not known, as the site gives no answer now"
    assert found == [NotFetched(why, final=False)] * 3
    assert [path for _, _, path in asked] == ["/robots.txt"], "it is asked again after a while, not at each page"
