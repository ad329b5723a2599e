"""What bounds have left out: its words, its report, and the lines of crawl.log that it is counted from."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from warcmill.crawl.job.job import Job
from warcmill.formats.logs import bounds
from warcmill.formats.logs.bounds import BOUNDS, MOST, BoundCut, BoundTally
from warcmill.formats.logs.crawllog import CrawlRecord, parse

LINE = parse(
    b"2026-11-21T08:19:02.123Z   200          5 http://a.example/x L http://a.example/ text/html #001"
    b" 20261121081902000+1 sha1:X http://a.example/ - {}"
)
URL = "http://a.example/article.php?id=20001"


def cut(bound: str = "queries", value: int = 20_000, *, is_set: bool = False, number: int = 300) -> BoundCut:
    return BoundCut(bound, value, is_set, number, URL)


def test_the_words_have_key_value_number_and_example() -> None:
    assert cut().text == f"[traps] queries = 20000, the default, left out 300 links, first {URL}"
    assert cut(value=100, is_set=True, number=1_200).text == f"[traps] queries = 100 left out 1,200 links, first {URL}"
    assert cut("links", 50_000, number=1).text.startswith(
        "[fetch] links = 50000, the default, cut the links of 1 page,"
    )
    assert cut("part-hops", 20).text.startswith("hops inside a page = 20 left out 300 links, ")


@pytest.mark.parametrize(
    ("bound", "is_set", "is_finding"),
    [("queries", False, True), ("queries", True, False), ("body", False, True), ("quota-bytes", False, True)]
    + [(name, False, False) for name in ("scope", "part-hops", "length", "depth", "repeats", "hops", "documents")],
)
def test_what_a_default_of_some_bounds_cut_is_a_finding(bound: str, is_set: bool, is_finding: bool) -> None:
    assert cut(bound, is_set=is_set).is_finding == is_finding


def test_a_job_has_a_value_for_the_key_of_each_bound() -> None:
    job = Job("news", ())
    assert job.bound("queries") == (20_000, False)
    assert replace(job, given=frozenset(["[traps] queries"])).bound("queries") == (20_000, True)
    tables = {name for name, row in BOUNDS.items() if row.key.startswith(("[fetch]", "[traps]"))}
    assert [name for name in tables if job.bound(name)[0] <= 0] == []


def test_a_report_is_read_as_it_was_written_whatever_is_in_an_example() -> None:
    hostile = replace_first(cut(), "http://a.example/\x1b[31m <b>&\u202e\nx 7 queries")
    written = "\n".join(bounds.render([cut("scope", 0), hostile])).encode()
    read = replace_first(hostile, "http://a.example/\x1b[31m_<b>&\u202e_x_7_queries")
    assert bounds.read(written) == [cut("scope", 0), read]
    assert bounds.read(b"[#left-out]\n5 of-a-later-version 1 set http://a.example/\nnonsense\n") == []


def replace_first(one: BoundCut, first: str) -> BoundCut:
    return one._replace(first=first)


def test_a_tally_is_bounded_and_tallies_add_up() -> None:
    tally = BoundTally()
    for value in range(MOST + 50):
        tally.add("quota-bytes", (value + 1, True), URL)
    assert (len(tally.counts), sum(tally.counts.values())) == (MOST + 1, MOST + 50)
    one, other = BoundTally(), BoundTally()
    one.add("queries", (100, True), "first")
    other.add("queries", (100, True), "second", 5)
    other.add("queries", (20_000, False), "third")
    both = one.joined(other).cuts()
    assert [(each.value, each.is_set, each.number, each.first) for each in both] == [
        (100, True, 6, "first"),
        (20_000, False, 1, "third"),
    ]
    assert bounds.total([one.cuts(), other.cuts()]) == both


def test_what_waited_at_a_limit_is_of_the_last_launch_alone() -> None:
    first, last = [cut("documents", 4), cut("scope", 0)], [cut("documents", 9, number=1)]
    assert bounds.total([first, last]) == [cut("documents", 9, number=1), cut("scope", 0)]
    assert bounds.total([first, []]) == [cut("scope", 0)]


@pytest.mark.parametrize(
    ("note", "found"),
    [
        ("linksTrunc", [("links", None)]),
        ("linksTrunc:segments", [("segments", None)]),
        ("linksTrunc:length", [("link-length", None)]),
        ("linksTrunc:damaged", []),
        ("decodedTrunc", [("decoded", None)]),
        ("decodedTrunc:ratio", [("ratio", None)]),
        ("linksLost:wall", [("lost-links", None)]),
        ("lenTrunc", [("body", None)]),
        ("timeTrunc", [("total", None)]),
        ("quotas:1000_documents_of_host_a.example:80_were_fetched", [("quota-documents", 1000)]),
        ("quotas:5_bytes_of_crawl_of_the_job_were_fetched", [("quota-bytes", 5)]),
        ("expiry:the_crawl_ended_at_2026-11-21T00:00:00Z", [("expires", 0)]),
        ("disconnectTrunc", []),
    ],
)
def test_a_line_names_the_bound_that_cut_it(note: str, found: list[tuple[str, int | None]]) -> None:
    assert isinstance(LINE, CrawlRecord)
    assert list(bounds.of_line(LINE._replace(annotations=(note,)))) == found


def test_pages_that_were_asked_for_twice_are_a_fact() -> None:
    tally = BoundTally()
    for number in range(3):
        tally.add("twice", (0, True), f"http://a.example/{number}")
    (cut,) = tally.cuts()
    assert cut.text == "after its Redis was set back, the crawl asked twice for 3 pages, first http://a.example/0"
    assert not cut.is_finding
