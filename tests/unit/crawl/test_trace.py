"""The way of one URI through the crawler, from its lease to the next one's: its modules, pairs of them, and climbs."""

from __future__ import annotations

import sys

import pytest
from crawls import crawled
from crawls.call_trace import Trace, climbing, layers, traced
from sites.several_hosts import Page, page, serve

SITE = {
    ("a.example", "/"): page(["/1", "/private/x", "http://b.example/far"], "/i.png"),
    ("a.example", "/1"): page(["/", "/2", "/i.png"]),
    ("a.example", "/robots.txt"): Page(b"User-agent: *\nDisallow: /private\n", "text/plain"),
}
FIRST, PAGE = 0, 2  # the seed, which brings its host's address and robots.txt; /i.png is 1; /1
# Plug-ins are called upwards: the reporter, who knows what bounds left out of a page, the policies, the spool of an
# answer that a record is written from.
PLUG_INS = {
    ("warcmill.crawl.books.books", "warcmill.crawl.launch.reports"),
    ("warcmill.crawl.books.books", "warcmill.crawl.visit.offers"),
    ("warcmill.crawl.policies.decision", "warcmill.crawl.visit.admission"),
    ("warcmill.formats.warc.records", "warcmill.crawl.fetch.answer"),
}
# A change of the frontier is a function that it calls on its own thread, within its transaction: the books make their
# files durable there, so that files and frontier know the same after a kill.
CHANGE = {("warcmill.crawl.frontier.sqlite", "warcmill.crawl.books.books")}
# The first visit opens the WARC, which asks the roots of the launch.
OPENS = {("warcmill.formats.warc.writer", "warcmill.crawl.launch.folders")}
# Of modules and pairs: bounds with some room, and not the figures of today.
BOUNDS = {PAGE: (54, 100), FIRST: (59, 132)}


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[Trace]:
    """A trace of each visit of a small site, by one worker."""
    folder = tmp_path_factory.mktemp("traced")
    with serve(dict(SITE)) as port, traced("SqliteFrontier.lease") as found:
        crawled.crawl(folder, crawled.job(port, "a.example", workers=1))
    paths = [crawled.plain(line.uri).removeprefix("http://a.example") for line in crawled.lines(folder)]
    assert paths == ["dns:a.example", "/robots.txt", "/", "/i.png", "/1", "/private/x", "/2"]
    return found


@pytest.mark.parametrize("number", [PAGE, FIRST], ids=["page", "first"])
def test_a_uri_takes_a_short_way(traces: list[Trace], number: int) -> None:
    """A page of a known site, and the first of a site: with the look-up of its host and its robots.txt."""
    trace = traces[number]
    text = trace.text(climbing(layers()))
    sys.stdout.write(f"{text}\n")
    modules, pairs = BOUNDS[number]
    assert len(trace.modules) <= modules, text
    assert len(trace.pairs) <= pairs, text


@pytest.mark.parametrize("number", [PAGE, FIRST], ids=["page", "first"])
def test_only_plug_ins_are_called_upwards(traces: list[Trace], number: int) -> None:
    trace, is_climb = traces[number], climbing(layers())
    assert not trace.climbs(is_climb).keys() - (PLUG_INS | CHANGE | OPENS), trace.text(is_climb)
