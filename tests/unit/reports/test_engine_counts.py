"""Crawl logs and a list of seeds beside what their engine counted itself: a real launch, and what it can lack."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest
import sample

from warcmill.formats import seeds as seed_list
from warcmill.formats.logs.crawlcounts import Tally
from warcmill.reports import engine_counts
from warcmill.reports.engine_counts import EngineReports

LAUNCH = "weekly/20261121081735"
LOG = sample.SAMPLE / "logs" / LAUNCH / "crawl.log"
PROGRESS = LOG.with_name("progress-statistics.log")
SEEDS = sample.SAMPLE / "jobs" / LAUNCH / "seeds.txt"
REPORTS = sample.SAMPLE / "reports" / LAUNCH
Lines = list[bytes]


def reports(**others: bytes) -> EngineReports:
    names = {"crawl": engine_counts.CRAWL, "codes": engine_counts.CODES, "seeds": engine_counts.SEEDS}
    return EngineReports(**{key: (REPORTS / name).read_bytes() for key, name in names.items()} | others)


def by_status(lines: Lines) -> dict[str, int]:
    tally = Tally()
    tally.add(BytesIO(b"".join(lines)))
    return tally.counts().by_status


def logged() -> Lines:
    return LOG.read_bytes().splitlines(keepends=True)


def test_a_real_launch_is_as_its_engine_counted_it_in_one_log_or_in_those_of_several_stages() -> None:
    lines = logged()
    assert engine_counts.lines(reports(), [by_status(lines)]) == ""
    assert engine_counts.lines(reports(), [by_status(lines[:100]), by_status(lines[100:])]) == ""
    assert engine_counts.seeds(reports(), [seed.url for seed in seed_list.read(SEEDS.read_bytes())]) == ""


@pytest.mark.parametrize(
    ("change", "number"),
    [
        (lambda lines: lines[: len(lines) // 2], 138),
        (lambda lines: [*lines[:-1], lines[-1][:60]], 276),
        (lambda lines: [*lines, *lines[-10:]], 287),
        (lambda _: [], 0),
    ],
)
def test_lines_that_are_lost_cut_or_doubled_differ(change: Callable[[Lines], Lines], number: int) -> None:
    found = engine_counts.lines(reports(), [by_status(change(logged()))])
    assert found.startswith(f"the crawl logs have {number} lines, and crawl-report.txt counts 277 URIs; of status ")


def test_another_status_differs_where_the_number_of_lines_does_not() -> None:
    logs = by_status(logged())
    found = engine_counts.lines(reports(), [logs | {"200": logs["200"] - 1, "-9": 1}])
    assert found == "of status 200 the logs have 233, and responsecode-report.txt has 234"


def test_without_a_crawl_report_the_last_row_of_the_progress_is_the_least() -> None:
    killed = reports(crawl=b"", codes=b"")
    killed.add_progress(BytesIO(PROGRESS.read_bytes()))
    assert killed.done == 276, "one was disregarded"
    assert engine_counts.lines(killed, [by_status(logged())]) == ""
    assert engine_counts.lines(killed, [by_status([*logged(), *logged()])]) == "", "it may have logged more since"
    found = engine_counts.lines(killed, [by_status(logged()[:100])])
    assert found == "the crawl logs have 100 lines, and progress-statistics.log counts 276 URIs"


def test_seeds_that_the_list_lacks_are_named_and_redirects_are_not() -> None:
    rows = b"[code] [status] [seed] [redirect]\n-6 NOTCRAWLED http://c.example/\n"
    rows += b"301 CRAWLED http://www.a.example/ http://a.example/\n200 CRAWLED http://a.example/\n"
    engine = EngineReports(seeds=rows)
    assert engine_counts.seeds(engine, ["http://www.a.example/", "http://c.example/"]) == ""
    found = engine_counts.seeds(engine, ["http://c.example/"])
    assert found == "seeds.txt lacks 1 of the 3 seeds in seeds-report.txt: http://www.a.example/"
    assert engine_counts.seeds(reports(), set()).startswith("seeds.txt lacks 5 of the 5 seeds in")


def test_reports_of_no_content_are_named_and_those_that_may_be_empty_are_not() -> None:
    nothing = dict.fromkeys(("crawl-report.txt", "hosts-report.txt", "processors-report.txt"), b"")
    assert engine_counts.empty(reports(crawl=b"")) == []
    engine = EngineReports(heads={**nothing, engine_counts.CODES: b"\0" * 9, "seeds-report.txt": b"[code]"})
    assert engine_counts.empty(engine) == ["crawl-report.txt", "hosts-report.txt", "responsecode-report.txt"]


@pytest.mark.parametrize(
    "junk", [b"URIs processed: many\n", b"\xff\0\n", b"9" * 10_000, b"URIs processed: " + b"9" * 99]
)
def test_reports_that_are_not_reports_count_nothing(junk: bytes) -> None:
    engine = EngineReports(junk, junk, junk)
    engine.add_progress(BytesIO(junk))
    assert engine_counts.lines(engine, [{"200": 3}]) == engine_counts.seeds(engine, []) == ""
