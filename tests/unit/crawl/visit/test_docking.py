"""A room above the crawler docks by a reader and an audience: nothing in `crawl/visit` knows of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crawls import crawled
from msgspec.structs import replace
from sites.several_hosts import Page, serve
from warcio.archiveiterator import ArchiveIterator

from warcmill.crawl.books.books import CrawlResult
from warcmill.crawl.extract.links import Link
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.job.job import Accepted, Audience, Sheets
from warcmill.crawl.launch.launch import open_launch
from warcmill.crawl.logs.statistics import Figures
from warcmill.crawl.uri import Uri, make
from warcmill.crawl.visit.spider import Spider
from warcmill.crawl.visit.visit import Kit, PageReader, Reading, Visit
from warcmill.layout import RESULTS_LOG

PAGES = {
    "/": b"number 1 /two /gone /broken",
    "/two": b"number 2 /",
    "/gone": None,
    "/broken": b"number nothing",
}
SITE = {
    ("a.example", path): Page(body, "text/plain") if body else Page(b"", status=404) for path, body in PAGES.items()
}


class NumberReader(PageReader):
    """Yields the number on each page, and follows its paths: no link extractor would find them."""

    shares = False

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self.late: list[str] = []

    async def read(self, visit: Visit) -> Reading:
        answer = await visit.fetch()
        if answer is None or answer.status != 200:
            return Reading(notes=("noNumber",))
        text = b"".join(answer.payload()).decode()
        try:
            number = int(text.split()[1])
        except ValueError as error:
            return Reading(notes=("readerFailed",), fault=repr(error), where="number reader")
        base = visit.uri.uri.rstrip("/").removesuffix("/two")
        found = [make(base + path, via=visit.uri.uri, hops=visit.uri.hops + "L") for path in re.findall(r"/\w*", text)]
        return Reading(found=found, results=[CrawlResult("item", {"number": number})])

    def outlived(self, visit: Visit) -> None:
        self.late.append(visit.uri.uri)


def results(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in crawled.told(folder, RESULTS_LOG).splitlines()]


def test_a_reader_of_thirty_lines_gets_items_and_links_and_each_page_is_kept(tmp_path: Path) -> None:
    def made(kit: Kit, figures: Figures, began: float) -> Spider:
        return Spider(replace(kit, reader=NumberReader(kit)), figures, began)

    async def scenario(port: int) -> None:
        job = crawled.job(port, "a.example", results_log=True, robots=False)
        running = await open_launch(crawled.places(tmp_path), job, crawled.LAUNCH, spider=made)
        await running.close(await running.crawl())

    with serve(dict(SITE)) as port:
        asyncio.run(scenario(port))
    found = {crawled.plain(line.uri): line for line in crawled.lines(tmp_path) if line.uri.startswith("http")}
    assert {uri: line.status for uri, line in found.items()} == {
        "http://a.example/": 200, "http://a.example/two": 200, "http://a.example/gone": 404,
        "http://a.example/broken": 200,
    }  # fmt: skip
    assert found["http://a.example/gone"].annotations == ("noNumber",)
    assert found["http://a.example/broken"].annotations == ("readerFailed",)
    assert sorted(one["value"]["number"] for one in results(tmp_path)) == [1, 2]  # type: ignore[index]
    assert "ValueError" in crawled.told(tmp_path, "runtime-errors.log")
    stored = {crawled.plain(uri) for kind, uri in crawled.records(crawled.warcs(tmp_path)) if kind == "response"}
    assert stored == found.keys()


@dataclass(frozen=True)
class Clipper(Audience):
    """Asks for pages under its own name, and gets the status of each; of its links it takes the first."""

    name: str

    has_jar = False

    @property
    def headers(self) -> Sequence[tuple[str, str]]:  # type: ignore[override]
        return (("From", self.name),)

    def followed(self, answer: Exchange, links: Sequence[Link], limits: object) -> Sequence[Link]:
        return links[:1]

    def page(self, uri: Uri, answer: Exchange, links: Sequence[Link], accepted: Accepted) -> Sequence[CrawlResult]:
        return [CrawlResult("page", {"for": self.name, "status": answer.status, "links": len(accepted(links))})]

    def notice(self, uri: Uri, why: str) -> Sequence[CrawlResult]:
        return [CrawlResult("notice", {"for": self.name, "why": why})]


def test_an_audience_asks_by_its_headers_and_gets_pages_and_notices(tmp_path: Path) -> None:
    site = {
        ("a.example", "/"): Page(b'<a href="/1">1</a><a href="/2">2</a>'),
        ("a.example", "/1"): Page(b"<p>one</p>"),
        ("a.example", "/2"): Page(b"<p>two</p>"),
    }
    with serve(site) as port:
        plain = crawled.job(port, "a.example", results_log=True, robots=False)
        seed = plain.seeds[0]
        asked = replace(plain, audience=Clipper("clip@news.example"))
        crawled.crawl(tmp_path, replace(plain, sheets=Sheets(by_seed={seed: asked})))
    uris = {crawled.plain(line.uri) for line in crawled.lines(tmp_path)} - {"dns:a.example"}
    assert uris == {"http://a.example/", "http://a.example/1"}
    assert [one["value"] for one in results(tmp_path)] == [
        {"for": "clip@news.example", "status": 200, "links": 1},
        {"for": "clip@news.example", "status": 200, "links": 0},
    ]
    for path in crawled.warcs(tmp_path):
        with path.open("rb") as stream:
            sent = [one.http_headers.get_header("From") for one in ArchiveIterator(stream) if one.rec_type == "request"]
    assert sent == ["clip@news.example"] * 2
