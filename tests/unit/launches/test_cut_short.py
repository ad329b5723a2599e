"""The cut of a crawl, by the reports of its engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from warcmill.crawl.job.job import End
from warcmill.launches import cut_short
from warcmill.launches.cut_short import CutShort

WAITS = b" Discovered:    38\r\n Queued:        32\n ...\n Prerequisites: 1\n Over quota:    0\n"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (End.DOCUMENTS, "ended by --limit: 5 of 37 known, 32 wait"),
        (End.DATA, "ended by its limit of bytes: 5 of 37 known, 32 wait"),
        (End.TIME, "ended by its limit of time: 5 of 37 known, 32 wait"),
        (End.STOPPED, "stopped: 5 of 37 known, 32 wait"),
        ("Stopping - Active", "stopped: 5 of 37 known, 32 wait"),
        ("Aborted", "ended as 'Aborted': 5 of 37 known, 32 wait"),
    ],
)
def test_what_ended_it_and_how_much_waits(end: str, words: str) -> None:
    found = cut_short.of_reports(end, WAITS)
    assert found
    assert found.text == words


def test_a_crawl_that_has_all_is_not_cut() -> None:
    assert [cut_short.of_reports(end, WAITS) for end in (End.EMPTY, "Empty - Active", "")] == [None, None, None]
    assert cut_short.of_reports(End.DOCUMENTS, b" Discovered:    5\n Queued:        0\n") is None


def test_what_a_quota_left_out_does_not_wait() -> None:
    every = b" Discovered: 38\n Queued: 0\n Prerequisites: 1\n Over quota: 12\n"
    found = cut_short.of_reports(End.EMPTY, every)
    assert found == CutShort("cut by a quota", 37, 0, 12)
    assert found.text == "cut by a quota: 25 of 37 known, 12 left out by a quota"
    both = cut_short.of_reports(End.STOPPED, WAITS.replace(b"Over quota:    0", b"Over quota:    2"))
    assert both
    assert both.text == "stopped: 3 of 37 known, 32 wait, 2 left out by a quota"
    heritrix = cut_short.of_reports("Empty - Active", b" Discovered: 9\n Queued: 0\n", 4)
    assert heritrix
    assert heritrix.text == "cut by a quota: 5 of 9 known, 4 left out by a quota"


def test_a_crawl_without_its_report_is_cut_by_an_unknown_number(tmp_path: Path) -> None:
    (tmp_path / "crawl-report.txt").write_text("crawl name: j\ncrawl status: Finished - Ended by operator\n")
    found = cut_short.of_folder(tmp_path)
    assert found
    assert found.text == "stopped; how much of it waits is not known"
    assert cut_short.of_folder(tmp_path / "none") is None
