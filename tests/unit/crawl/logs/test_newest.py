"""The newest of a launch: pages without their parts, and how hosts answer; both are bounded."""

from __future__ import annotations

from typing import Any, cast

from warcmill.crawl.logs.newest import HOSTS, PAGES, NewestLines
from warcmill.crawl.logs.statistics import Figures
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CrawlRecord


def line(uri: str, status: int = 200, hops: str = "-", notes: str = "-") -> CrawlRecord:
    text = f"2026-11-21T08:17:37.123Z {status} 120 {uri} {hops} - text/html #001 20261121081737000+5 - - {notes}"
    found = crawllog.parse(f'{text} {{"contentSize":100}}'.encode())
    assert isinstance(found, CrawlRecord), found
    return found


def newest(*lines: CrawlRecord) -> NewestLines:
    figures = Figures()
    made = NewestLines(figures)
    for one in lines:
        figures.add(one)
        made.add(one)
    return made


def test_pages_are_the_newest_first_and_parts_are_none() -> None:
    found = newest(
        line("http://a.example/"),
        line("http://a.example/robots.txt", hops="P"),
        line("http://a.example/i.png", hops="E"),
        line("http://a.example/2", 404, "L"),
        line("http://b.example/", -2, "L"),
        line("dns:a.example", 1, "P"),
    )
    pages = [cast("dict[str, Any]", one) for one in found.pages()]
    assert [one["uri"] for one in pages] == ["http://a.example/2", "http://a.example/"]
    assert pages[1] == {
        "size": 120, "status": 200, "time": "2026-11-21T08:17:37Z", "type": "text/html", "uri": "http://a.example/",
    }  # fmt: skip


def test_a_host_has_its_last_status_and_what_failed() -> None:
    found = newest(
        line("http://a.example/"), line("http://a.example/x", -9998, "L"), line("http://a.example/2", -2, "L"),
        line("http://b.example/", 503),
    )  # fmt: skip
    assert found.hosts(5) == ["b.example", "a.example"]
    assert found.host("a.example") == {"bytes": 100, "done": 1, "failed": 1, "host": "a.example", "status": -2}
    assert found.host("c.example") == {"bytes": 0, "done": 0, "failed": None, "host": "c.example", "status": None}


def test_both_are_bounded() -> None:
    found = newest(*(line(f"http://h{n}.example/") for n in range(HOSTS + 3)))
    assert len(found.pages()) == PAGES
    assert len(found.hosts(HOSTS * 2)) == HOSTS
    assert found.host("h0.example")["status"] is None
    assert found.host("h0.example")["done"] == 1  # by the figures
