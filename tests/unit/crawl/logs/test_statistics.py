"""The figures of a launch are Heritrix's own of the same crawl.log, and survive a restart."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import pytest
import sample

from warcmill.crawl.launch.reports import CRAWL, Ending, Processor, Waiting, write
from warcmill.crawl.logs import statistics
from warcmill.crawl.logs.progress import duration, number, size
from warcmill.crawl.logs.statistics import OTHERS, Figure, SeedRecord, Statistics
from warcmill.errors import BadInput
from warcmill.formats.logs.crawllog import CrawlRecord, parse

LOG = sample.SAMPLE / "logs/weekly/20261121081735/crawl.log"
REPORTS = sample.SAMPLE / "reports/weekly/20261121081735"
SEEDS = (
    "http://gone.example/", "http://gov.example/", "http://news.example/", "http://gov.example/odd/",
    "http://docs.example/maint/index.en.html",
)  # fmt: skip


def record(uri: str, status: int = 200, **more: Any) -> CrawlRecord:
    plain = CrawlRecord(
        "2026-11-21T08:17:44.000Z", status, 9, uri, None, None, "text/html", "#001", None, None, None, ()
    )
    return plain._replace(**{"content_size": 10, **more})


def weekly() -> Statistics:
    made = Statistics(SEEDS)
    made.read(LOG)
    return made


def rows(name: str, folder: Path = REPORTS) -> list[str]:
    return (folder / f"{name}.txt").read_text().splitlines()


def ending(found: Statistics) -> Ending:
    return Ending("weekly", 1_795_249_113.0, 56.558, "Empty - Active", "EMPTY", found, Waiting(discovered=277))


def test_nine_reports_are_those_of_heritrix(tmp_path: Path) -> None:
    write(tmp_path, ending(weekly()))
    theirs_and_ours = {*(path.name for path in REPORTS.iterdir()), "bounds-report.txt"}
    assert {path.name for path in tmp_path.iterdir()} == theirs_and_ours
    for name in ("crawl-report", "seeds-report", "hosts-report", "mimetype-report", "responsecode-report",
                 "threads-report"):  # fmt: skip
        assert rows(name, tmp_path) == rows(name), name
    assert sorted(rows("source-report", tmp_path)) == sorted(rows("source-report"))
    theirs = rows("frontier-summary-report")
    assert rows("frontier-summary-report", tmp_path)[:13] == theirs[:13]


def test_reports_of_what_still_waits(tmp_path: Path) -> None:
    waiting = Waiting(100, 7, {"news.example": 4, "news.example:8080": 2, "[::1]": 1}, ready=2, snoozed=1, exhausted=9)
    parts = {"FetchChain": [Processor("fetch.http", ["3 answers"]), Processor("extract.html")]}
    found = Statistics()
    for uri in ("http://news.example/", "http://[::1]/"):
        found.add(record(uri))
    write(tmp_path, Ending("j", 0, 0, "Finished", "STOPPING", found, waiting, parts, ["#001 http://news.example/a"]))
    assert [row.split()[2:5] for row in rows("hosts-report", tmp_path)[1:]] == [
        ["[::1]", "0", "1"], ["news.example", "0", "6"],
    ]  # fmt: skip
    frontier = rows("frontier-summary-report", tmp_path)
    assert " All class queues map size: 12" in frontier
    assert frontier[-7:-4] == ["LONGEST#2:", "Queue [::1]", "  1 items"]
    assert frontier[-2:] == [" Prerequisites: 0", " Over quota:    0"]
    assert rows("processors-report", tmp_path) == [
        "FetchChain - Processors report - 197001010000", "  Number of Processors: 2", "", "Processor: fetch.http",
        "  3 answers", "", "Processor: extract.html", "", "",
    ]  # fmt: skip
    assert rows("threads-report", tmp_path) == ["#001 http://news.example/a"]
    assert rows("crawl-report", tmp_path)[-2:] == ["URIs/sec: 0", "KB/sec: 0"]


def test_another_kind_of_job_has_its_own_list(tmp_path: Path) -> None:
    paths = write(tmp_path, ending(weekly()), {"seeds-report": CRAWL["seeds-report"]})
    assert [path.name for path in paths] == ["seeds-report.txt"]


def test_figures_after_a_restart_are_those_before_it(tmp_path: Path) -> None:
    lines = LOG.read_bytes().splitlines(keepends=True)
    (tmp_path / "crawl.log.cp00001-20261121081800").write_bytes(b"".join(lines[:100]))
    (tmp_path / "crawl.log.cp00002-20261121081810").write_bytes(b"".join(lines[100:200]))
    (tmp_path / "crawl.log").write_bytes(b"".join(lines[200:]))
    (tmp_path / "crawl.log.orphan").write_bytes(lines[0])
    whole = Statistics(SEEDS)
    whole.catch_up(tmp_path)
    assert whole.dump() == weekly().dump()
    first = Statistics(SEEDS)
    first.read(tmp_path / "crawl.log.cp00001-20261121081800")
    kept = Statistics.load(first.dump(), "statistics.json")
    kept.catch_up(tmp_path, "cp00001-20261121081800")
    assert kept.dump() == whole.dump()
    kept.add(record("http://new.example/", source="http://gov.example/"))
    assert kept.processed == whole.processed + 1


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b'{"schema": 2}', b'{"schema": 1, "failed": 0, "disregarded": 0, "total": ["x"]}']
)
def test_what_is_no_statistics_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(BadInput, match=r"cp/statistics\.json"):
        Statistics.load(data, "cp/statistics.json")


def test_a_line_that_is_damaged_is_told_and_does_not_keep_a_launch_from_its_end(tmp_path: Path) -> None:
    lines = LOG.read_bytes().splitlines(keepends=True)
    (tmp_path / "crawl.log").write_bytes(lines[0] + b"nothing of the sort\n" + b"\0" * 300 + b"\n" + lines[1])
    found = Statistics()
    assert found.catch_up(tmp_path) == ["crawl.log has 2 lines that are damaged; no report counts them"]
    assert found.processed == 2


def test_a_redirected_seed_names_where_it_leads_which_is_a_seed_too() -> None:
    found = Statistics(["http://www.docs.example/apt/"])
    found.add(record("http://www.docs.example/apt/", 301))
    found.add(record("http://docs.example/apt/", 200, hops="R", via="http://www.docs.example/apt/"))
    found.add(record("http://docs.example/apt/2", 200, hops="RL", via="http://docs.example/apt/"))
    assert found.seeds == {
        "http://www.docs.example/apt/": SeedRecord(301, "http://docs.example/apt/"),
        "http://docs.example/apt/": SeedRecord(200),
    }


def test_what_a_rule_forbids_is_no_failure() -> None:
    found = Statistics()
    for status in (-9998, -5003, -2, 404, 1):
        found.add(record("http://a.example/", status))
    assert (found.disregarded, found.failed, found.succeeded) == (2, 1, 2)
    assert found.hosts["a.example"][Figure.ROBOTS] == 1


def test_memory_is_bounded_and_no_line_is_uncounted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOSTS", "SOURCES", "MIMES"):
        monkeypatch.setattr(statistics, name, 10)
    found = Statistics()
    for n in range(50):
        found.add(record(f"http://h{n}.example/", mime=f"a/{n}", source=f"http://h{n % 25}.example/"))
    found.add(record(f"http://{'h' * 300}/", mime="m" * 300, source="s" * 300))
    assert len(found.hosts) == len(found.mimes) == 11
    assert found.hosts[OTHERS][Figure.URLS] == found.mimes[OTHERS][0] == 41
    assert len(found.sources) == 11
    assert sum(n for table in found.sources.values() for n in table.values()) == 51


def test_times_and_sizes_are_written_as_heritrix_writes_them() -> None:
    assert [duration(s) for s in (101.333, 56.048, 0, 90_061.001)] == ["1m41s333ms", "56s48ms", "0ms", "1d1h1m1s1ms"]
    assert [size(n) for n in (35126199, 28572097, 6554102, 302 * 1024, 428, 2048)] == [
        "33 MiB", "27 MiB", "6.3 MiB", "302 KiB", "428 B", "2 KiB",
    ]  # fmt: skip
    assert [number(n, 2) for n in (11.043, 4.0, 0.5)] == ["11.04", "4", "0.5"]


def test_the_lines_of_the_sample_are_all_of_one_kind() -> None:
    assert all(isinstance(parse(line), CrawlRecord) for line in LOG.read_bytes().splitlines())


def test_what_is_kept_is_json_in_the_order_of_its_keys_whatever_their_letters() -> None:
    found = Statistics(['http://a.example/{"'])
    for host in ("b{", 'a"', "ü"):
        found.hosts[host] = array("q", range(9))
    found.sources = {"{": {}, "s": {"b{": 2, "a": 1}}
    text = found.dump()
    assert text == json.dumps(json.loads(text), sort_keys=True).encode() + b"\n"
    assert Statistics.load(text, "statistics.json").dump() == text
