"""The age of a launch that runs, and the last sign of its engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from launches.engine import LAUNCH, Engine, line_of

from warcmill.launches.listing import list_files
from warcmill.launches.view import TAIL, Vitals, vitals

NOW = datetime(2016, 10, 21, 1, 2, 3, tzinfo=UTC)


def look(engine: Engine) -> Vitals:
    return vitals(engine.roots, LAUNCH, list_files(engine.roots, LAUNCH))


def test_the_last_line_of_any_log_is_the_last_sign(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.job_log(f"RUNNING {LAUNCH.id}")
    engine.logs(line_of("http://a.example/", None))
    engine.log("progress-statistics.log", b"2016-10-20T20:00:00Z   1  2\n2016-10-20T20:20:00Z   1  2\n  cut")
    found = look(engine)
    assert found.text(NOW) == (
        "running for 1 d 1 h; its engine's last sign was 4 h 42 min ago (2016-10-20T20:20:00Z, progress-statistics.log)"
    )
    assert found.json() == {
        "began": "2016-10-19T23:44:28Z",
        "last_sign": "2016-10-20T20:20:00Z",
        "log": "progress-statistics.log",
    }


def test_without_logs_it_counts_from_the_beginning(tmp_path: Path) -> None:
    found = look(Engine(tmp_path))
    assert found.text(NOW) == "running for 1 d 1 h; its engine has given no sign since"
    assert found.silence(NOW) == timedelta(hours=25, minutes=17, seconds=35)


def test_only_the_end_of_a_log_is_read_and_no_packed_log(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.log("frontier.recover.gz", b"2016-10-20T23:00:00Z x\n")
    engine.log("alerts.log", b"2016-10-20T22:00:00Z x\n" + b"y" * (TAIL + 1))
    engine.log("crawl.log", b"z" * TAIL + b"\n2016-10-20T21:00:00.123Z x\n\0\0\0")
    assert (look(engine).log, look(engine).last.hour) == ("crawl.log", 21)


@pytest.mark.parametrize("line", [b"2016-13-40T99:00:00Z x\n", b"\xff\xfe\n", b"", b"2016-10-20T22:00:00"])
def test_a_line_that_has_no_time_is_no_sign(tmp_path: Path, line: bytes) -> None:
    engine = Engine(tmp_path)
    engine.log("crawl.log", line)
    assert look(engine).log == ""


def test_a_log_that_was_renamed_meanwhile_is_no_sign(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    path = engine.log("crawl.log", b"2016-10-20T22:00:00Z x\n")
    listing = list_files(engine.roots, LAUNCH)
    path.unlink()
    assert vitals(engine.roots, LAUNCH, listing).log == ""


def test_a_clock_that_is_behind_makes_no_negative_silence(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.log("crawl.log", b"2016-10-25T22:00:00Z x\n")
    assert look(engine).silence(NOW) == timedelta()
