"""The logs of a launch besides its books': what Heritrix writes, what a kill leaves, what a hostile page says."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sample

from warcmill import layout
from warcmill.crawl.launch.job_log import JobLog, Word
from warcmill.crawl.logs import progress
from warcmill.crawl.logs.logs import OURS, Logs
from warcmill.crawl.logs.progress import Moment, ProgressStatistics
from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.uri import Uri, make
from warcmill.errors import Conflict, Unavailable
from warcmill.formats.logs import crawllog, joblog
from warcmill.formats.logs.crawllog import CrawlRecord
from warcmill.model import Launch, Stage

LAUNCH = Launch("weekly", "20261121081735")
STAGE = "cp00001-20261121081902"
NOW = 1_795_249_064.0  # 2026-11-21T08:17:44Z
HERITRIX = sample.SAMPLE / "jobs/weekly"
LINE = CrawlRecord("2026-11-21T08:17:44.000Z", -2, None, "http://gov.example/x", None, None, "unknown", "#001", None,
                   None, None, ())  # fmt: skip


def now() -> float:
    return NOW


def words(path: Path) -> list[tuple[str, str, str]]:
    with path.open("rb") as stream:
        return [(one.level, one.word, one.subject) for one in joblog.events(stream)]


def test_job_log_has_the_words_of_heritrix_in_their_order(tmp_path: Path) -> None:
    own = tmp_path / LAUNCH.id
    own.mkdir()
    log = JobLog(tmp_path, own, LAUNCH, now)
    log.launched()
    for word in (Word.PAUSED, Word.RUNNING, Word.STOPPING, Word.EMPTY):
        log.write(word)
    log.finished()
    assert words(tmp_path / "job.log") == words(HERITRIX / "job.log")
    assert words(own / "job.log") == words(HERITRIX / LAUNCH.id / "job.log")
    log.checkpointed(Stage.parse(STAGE))
    assert words(own / "job.log")[-1] == ("INFO", "CHECKPOINTED", STAGE)


def test_a_line_that_a_kill_cut_is_not_mixed_with_the_next(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_bytes(b"2026-11-21T08:17:36.000Z INFO CHECKPOINTED cp00001-2026")
    own = tmp_path / LAUNCH.id
    own.mkdir()
    JobLog(tmp_path, own, LAUNCH, now).finished()
    assert [word for _, word, _ in words(tmp_path / "job.log")] == ["CHECKPOINTED", "FINISHED", "Job"]
    assert words(own / "job.log") == [("INFO", "FINISHED", LAUNCH.id)]


def test_a_warning_in_job_log_is_one_line(tmp_path: Path) -> None:
    JobLog(tmp_path, tmp_path, LAUNCH, now).warn("no space\n2026-11-21T08:17:36.000Z INFO FINISHED 20261121081735")
    ((level, word, _),) = words(tmp_path / "job.log")
    assert (level, word) == ("WARNING", "no")


def test_each_row_of_progress_is_one_of_heritrix() -> None:
    rows = (sample.SAMPLE / "logs/weekly/20261121081735/progress-statistics.log").read_text().splitlines()
    assert progress.heading() == rows[0]
    assert progress.event(NOW, "RUNNING", "Preparing") == "2026-11-21T08:17:44Z CRAWL RUNNING - Preparing"
    assert rows[2].endswith("CRAWL RUNNING - Preparing")
    made = ProgressStatistics()
    made.row(Moment(NOW, 10, 100, 50, 40, 204_800, 3))
    row = made.row(Moment(NOW + 20, 30, 140, 40, 90, 1_024_000, 4, busy=4, wanted=6, depth=33, average_depth=11))
    assert (
        row[:99]
        == "2026-11-21T08:18:04Z         140          40           90           2.5(3)     40(33)             4"
    )
    assert row.endswith("          1.5          33          11")
    assert [end for name, end in progress._COLUMNS] == [
        rows[0].index(name) + len(name) for name, _ in progress._COLUMNS
    ]


def test_a_row_without_a_second_gone_by_or_a_download_divides_nothing_by_zero() -> None:
    row = ProgressStatistics().row(Moment(NOW, 0, 0, 0, 0, 0, 0))
    assert "0(NaN)       0(0)" in row
    assert row.endswith("NaN          -1           0")


def test_all_seven_logs_get_the_suffix_that_the_line_expects(tmp_path: Path) -> None:
    logs = Logs(tmp_path, now)
    logs.progress(Moment(NOW, 1, 1, 1, 0, 0, 0))
    logs.rotate(STAGE)
    logs.event("PAUSED", "Running")
    logs.close()
    found = {layout.split_log_name(path.name) for path in tmp_path.iterdir()}
    assert found == {(name, stage) for name in OURS for stage in (STAGE, "final")}
    assert (tmp_path / f"progress-statistics.log.{STAGE}").read_text().startswith(progress.heading())
    assert (tmp_path / "progress-statistics.log").read_text() == "2026-11-21T08:17:44Z CRAWL PAUSED - Running\n"


def test_a_stage_is_rotated_once(tmp_path: Path) -> None:
    logs = Logs(tmp_path, now)
    logs.rotate(STAGE)
    with pytest.raises(Conflict, match="rotated once"):
        logs.rotate(STAGE)
    logs.alert("WARNING", "still written")
    logs.close()
    assert (tmp_path / "alerts.log").read_text().endswith("still written\n")


@pytest.mark.parametrize("count", range(len(OURS) + 1))
def test_a_rotation_that_a_kill_cut_short_is_finished_by_the_next_start(tmp_path: Path, count: int) -> None:
    logs = Logs(tmp_path, now)
    logs.alert("WARNING", "before")
    logs.close()
    (tmp_path / f"crawl.log.{STAGE}").touch()  # the books rename first
    for name in OURS[:count]:
        (tmp_path / name).rename(tmp_path / f"{name}.{STAGE}")
    for _ in range(2):
        Logs(tmp_path, now).close()
        assert all((tmp_path / f"{name}.{STAGE}").exists() for name in OURS)
        assert (tmp_path / f"alerts.log.{STAGE}").read_text().endswith("before\n")
        assert (tmp_path / "alerts.log").read_bytes() == b""


def test_a_fault_of_a_fetch_stands_under_its_line_and_looks_like_no_other(tmp_path: Path) -> None:
    logs = Logs(tmp_path, now)
    fake = "2026-11-21T08:17:44.000Z 200 1 http://a.example/ - - text/html #001 - - - - {}"
    logs.nonfatal(LINE, f"reset\n{fake}\r{fake}\u2028{fake}")
    logs.runtime(LINE, f"Traceback\n{fake}")
    logs.no_uri("http://a.example/\n", "http://exa mple.example/\x1b", 'a "quoted"\nreason')
    logs.close()
    for name in ("nonfatal-errors.log", "runtime-errors.log"):
        with (tmp_path / name).open("rb") as stream:
            lines = list(crawllog.lines(stream))
        assert [one.uri for one in lines if isinstance(one, CrawlRecord) and one.logged] == [LINE.uri]
    assert (tmp_path / "uri-errors.log").read_text() == (
        "2026-11-21T08:17:44.000Z http://a.example/  \"a 'quoted' reason\" http://exa mple.example/ \n"
    )


@pytest.mark.parametrize("is_rotated", [False, True])
def test_scope_log_has_heritrix_s_columns_and_is_rotated_as_the_others(tmp_path: Path, *, is_rotated: bool) -> None:
    logs = Logs(tmp_path, now, scope=True)
    logs.judged(2, Decision(Verdict.REJECT, "no calendars", 'a "why"\n'), make("http://a.example/1", hops="L"))
    odd = Uri("", "http://exa mple/\x1b\n", "", "", "L", "v", "s")
    logs.judged(-1, Decision(Verdict.DEFER, "later", until=NOW), odd)
    if is_rotated:
        (tmp_path / f"crawl.log.{STAGE}").touch()  # a kill after the books have renamed
        logs.close()
        logs = Logs(tmp_path, now, scope=True)
    else:
        logs.rotate(STAGE)
    logs.close()
    lines = (tmp_path / f"scope.log.{STAGE}").read_text().splitlines()
    assert [line.split(" ", 5)[:5] for line in lines] == [
        ["2026-11-21T08:17:44.000Z", "2", "no%20calendars", "REJECT", "http://a.example/1"],
        ["2026-11-21T08:17:44.000Z", "-1", "later", "DEFER", "http://exa%20mple/%1B%0A"],
    ]
    assert [json.loads(line.split(" ", 5)[5]) for line in lines] == [
        {"hopPath": "L", "via": "", "seed": "", "why": 'a "why"\n'},
        {"hopPath": "L", "via": "v", "seed": "s", "why": "", "until": "2026-11-21T08:17:44.000Z"},
    ]
    assert (tmp_path / "scope.log").read_bytes() == b""


def test_a_launch_without_scope_log_has_none(tmp_path: Path) -> None:
    Logs(tmp_path, now).close()
    assert not (tmp_path / "scope.log").exists()


def test_a_message_of_a_page_has_a_bound(tmp_path: Path) -> None:
    logs = Logs(tmp_path, now)
    logs.no_uri("http://a.example/", "x" * 10_000_000, "too long")
    logs.close()
    assert (tmp_path / "uri-errors.log").stat().st_size < 70_000


def test_a_line_that_a_kill_cut_is_ended(tmp_path: Path) -> None:
    (tmp_path / "alerts.log").write_text("2026-11-21T08:17:44.000Z SEV")
    logs = Logs(tmp_path, now)
    logs.alert("WARNING", "whole")
    logs.close()
    assert (tmp_path / "alerts.log").read_text().splitlines()[1:] == ["2026-11-21T08:17:44.000Z WARNING whole"]


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = Logs(tmp_path, now)

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    calls: list[Callable[[], object]] = [
        lambda: logs.alert("SEVERE", "x"),
        lambda: JobLog(tmp_path, tmp_path, LAUNCH, now).finished(),
    ]
    monkeypatch.setattr(os, "write", full)
    for call, name in zip(calls, ("alerts.log", "job.log"), strict=True):
        with pytest.raises(Unavailable, match=f"{name}.*No space left"):
            call()
