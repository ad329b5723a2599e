"""The summary of a day: what is in it, and when it is rewritten."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from launches import chain
from launches.engine import LAUNCH, Engine, line_of
from records.warcs import warc_gz, warcinfo

from warcmill import layout
from warcmill.audit import day_summary, progress_grid
from warcmill.audit.day_summary import DaySummary, ScannedDays
from warcmill.base import clock
from warcmill.launches.roots import EngineSection, RootMap
from warcmill.layout import OutputLayout
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim
from warcmill.model import FINAL, Launch
from warcmill.output import process
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

DAY = date(2016, 10, 19)
WHOLE = warc_gz(warcinfo())
CUT = WHOLE[:-3]
WARC = "BL-20161019234430000-00000-1~crawler~8443.warc.gz"
LOST = "BL-20161019234430000-00001-1~crawler~8443.warc.gz"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A finished launch: its log names two WARCs, one of which is cut short and the other nowhere."""
    made = Engine(tmp_path)
    made.logs(line_of("http://a.example/1", WARC), line_of("http://a.example/2", LOST))
    made.warc(WARC, CUT)
    made.warc("stray.warc.gz", WHOLE)
    made.finish()
    return made


def whole(engine: Engine) -> None:
    """All steps up to files.Verify."""
    chain.assembled(engine)
    claim = process.process(engine.state, engine.roots, engine.launch)
    engine.state.publish(claim.key, claim)
    chain.upto(engine, "Verify")


def rewrite(engine: Engine, *busy: date, rootmap: RootMap | None = None) -> dict[str, Any]:
    """What is in the summary after a scan of the day."""
    scanned = ScannedDays(DAY, DAY + timedelta(days=1), (LAUNCH,), frozenset(busy))
    day_summary.rewrite(engine.state, rootmap or engine.rootmap, scanned, {})
    return json.loads(path(engine).read_text())


def path(engine: Engine) -> Path:
    return engine.folders["state"] / "2016-10" / "status.2016-10-19.json"


def test_it_reports_steps_counts_and_troubles(engine: Engine) -> None:
    whole(engine)
    (summed,) = rewrite(engine)["launches"]
    assert (summed["job"], summed["launch_id"], summed["ended"]) == (LAUNCH.job, LAUNCH.id, "finished")
    assert summed["steps"] == {"stop": "done", "process": "done", "seeds": "done"}
    assert summed["stages"]["final"] == {
        "pack": "done",
        "assemble": "done",
        "checksum": "refused",
        "copy": "done",
        "verify": "done",
        "read-back": "not due",
        "retire": "not due",
        "crawl-report": "done",
    }
    assert summed["counts"] == {"refused": 1, "failed": 0, "unnamed": 1, "absent": 1, "stale": 0, "accepted": 0}
    (refused,) = summed["troubles"]
    assert (refused["kind"], refused["task"]) == ("refused", "files.Checksum")
    assert refused["name"].endswith(WARC)
    assert "cut" in refused["why"]


def test_a_launch_of_which_nothing_is_done_is_reported_as_such(engine: Engine) -> None:
    (summed,) = rewrite(engine)["launches"]
    assert summed["steps"] == dict.fromkeys(("stop", "process", "seeds"), "waiting")
    assert set(summed["counts"].values()) == {0}


def test_a_step_that_failed_is_reported_with_its_error(engine: Engine) -> None:
    chain.assembled(engine)
    key = layout.key("files.Checksum", LAUNCH, stage=FINAL)
    Attempts(engine.state, key).append({"error": "the disk is full", "kind": "Unavailable"})
    (summed,) = rewrite(engine)["launches"]
    assert summed["stages"]["final"]["checksum"] == "failed"
    assert summed["counts"]["failed"] == 1
    assert summed["troubles"] == [
        {"kind": "failed", "task": "files.Checksum", "name": layout.marker_name(key), "why": "the disk is full"}
    ]


def test_a_marker_that_rests_on_another_is_stale_and_a_broken_one_failed(engine: Engine) -> None:
    whole(engine)
    copied = layout.key("files.Copy", LAUNCH, stage=FINAL)
    marker = engine.folders["state"] / layout.marker_path(copied)
    kept = engine.state.require(copied).claim
    marker.unlink()
    engine.state.publish(copied, Claim(copied, kept.inputs, items=kept.items, counts={"files": 7}))
    (summed,) = rewrite(engine)["launches"]
    assert summed["counts"]["stale"] == 1
    assert ("stale", "files.Verify") in [(one["kind"], one["task"]) for one in summed["troubles"]]
    marker.write_bytes(b"")
    (summed,) = rewrite(engine, DAY)["launches"]
    assert ("failed", layout.marker_name(copied)) in [(one["kind"], one["name"]) for one in summed["troubles"]]


def test_it_is_rewritten_only_when_a_marker_came_or_went_or_the_day_was_busy(engine: Engine) -> None:
    whole(engine)
    rewrite(engine)
    path(engine).write_text(path(engine).read_text().replace('"done"', '"seen"'))
    assert rewrite(engine)["launches"][0]["steps"]["stop"] == "seen"
    assert rewrite(engine, DAY)["launches"][0]["steps"]["stop"] == "done"
    path(engine).write_text(path(engine).read_text().replace('"done"', '"seen"'))
    engine.state.publish(key := layout.key("operator.Close", LAUNCH), Claim(key, facts={"reason": "x"}))
    assert rewrite(engine)["launches"][0]["steps"]["stop"] == "done"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000])
def test_one_that_is_not_ours_is_replaced(engine: Engine, content: bytes) -> None:
    path(engine).parent.mkdir(parents=True)
    path(engine).write_bytes(content)
    assert day_summary.read(engine.state, DAY) == {}
    assert rewrite(engine)["day"] == "2016-10-19"


def test_a_launch_that_only_markers_know_is_reported_too(engine: Engine) -> None:
    gone = Launch("weekly", "20161019000000")
    engine.state.publish(key := layout.key("operator.Close", gone), Claim(key, facts={"reason": "its disk is dead"}))
    assert [one["job"] for one in rewrite(engine)["launches"]] == ["weekly", "daily"]


def test_a_launch_that_cannot_be_looked_at_hides_no_other(engine: Engine) -> None:
    other = Launch("weekly", "20161019000000")
    (engine.folders["jobs"] / "weekly" / other.id / "job.log").mkdir(parents=True)
    scanned = ScannedDays(DAY, DAY + timedelta(days=1), (other, LAUNCH), frozenset())
    day_summary.rewrite(engine.state, engine.rootmap, scanned, {})
    first, second = json.loads(path(engine).read_text())["launches"]
    assert "job.log" in first["away"]
    assert second["ended"] == "finished"


def test_a_root_that_is_away_is_named_until_it_is_back(engine: Engine, tmp_path: Path) -> None:
    """What is there alone is not listed, and may be there all the same."""
    elsewhere = tmp_path / "second"
    site = EngineSection("[engine.second]", str(elsewhere), str(elsewhere), OutputLayout.JOB_FIRST)
    rootmap = RootMap(engine.rootmap.default, {"weekly": site}, (), lambda root, place: FileStore(root, Path(place)))
    assert [str(elsewhere) in one for one in rewrite(engine, rootmap=rootmap)["away"]] == [True]
    sentinel.adopt({"output": elsewhere, "jobs": elsewhere})
    rootmap = RootMap(engine.rootmap.default, {"weekly": site}, (), lambda root, place: FileStore(root, Path(place)))
    assert rewrite(engine, rootmap=rootmap)["away"] == []


def read_all(engine: Engine, first: date = DAY, end: date = DAY + timedelta(days=1)) -> list[DaySummary]:
    return list(day_summary.days(engine.state, first, end))


def test_it_has_when_it_was_written_and_the_warcs_of_each_launch(engine: Engine) -> None:
    whole(engine)
    before = clock.now()
    summary = rewrite(engine)
    assert before <= summary["written"] <= clock.now()
    (summed,) = summary["launches"]
    sizes = len(CUT) + len(WHOLE)
    assert (summed["warcs"], summed["bytes"]) == (2, sizes)
    of_files = {"warcs": 2, "bytes": sizes}
    assert summed["files"] == dict.fromkeys(("assemble", "checksum", "copy", "verify"), of_files)
    assert "away" not in summed


def test_days_are_read_one_by_one_also_those_that_lack(engine: Engine) -> None:
    whole(engine)
    summary = rewrite(engine)
    found = read_all(engine, date(2015, 10, 19), date(2016, 10, 21))
    assert len(found) == 368
    assert [one.day for one in found if not one.why] == [DAY]
    (summed,) = [one for one in found if one.day == DAY]
    assert (list(summed.launches), summed.written, summed.away) == (summary["launches"], summary["written"], ())
    assert {one.why for one in found if one.day != DAY} == {day_summary.ABSENT}
    assert day_summary.known_days(engine.state) == [DAY]


def test_one_of_an_earlier_warcmill_is_read_and_its_age_is_unknown(engine: Engine) -> None:
    whole(engine)
    summary = rewrite(engine)
    for one in summary["launches"]:
        for name in ("warcs", "bytes", "files", "state", "marks"):
            del one[name]
    del summary["written"]
    path(engine).write_text(json.dumps(summary))
    (summed,) = read_all(engine)
    assert (summed.written, summed.why, len(summed.launches)) == ("", "", 1)
    assert day_summary.word_of(summed.launches[0]) == "in trouble"


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b'{"day": "2016-10-18", "launches": []}']
)
def test_one_that_is_cut_is_named_and_hides_no_other_day(engine: Engine, content: bytes) -> None:
    whole(engine)
    rewrite(engine)
    other = path(engine).with_name("status.2016-10-20.json")
    other.write_bytes(content)
    found = read_all(engine, DAY, DAY + timedelta(days=2))
    assert [one.why for one in found] == ["", day_summary.DAMAGED]


def test_what_is_no_launch_in_it_is_left_out(engine: Engine) -> None:
    data = json.dumps({"day": str(DAY), "launches": [1, {}, {"job": "daily", "launch_id": LAUNCH.id, "steps": 3}]})
    (launch,) = day_summary.parse(data.encode(), DAY).launches
    assert day_summary.marks_of(launch) == {}
    assert day_summary.word_of(launch) == "running"


@pytest.mark.parametrize("steps", [(), ("Checksum",), ("Verify",)], ids=str)
def test_the_marks_of_a_launch_are_those_of_status(engine: Engine, steps: tuple[str, ...]) -> None:
    chain.assembled(engine)
    for last in steps:
        chain.upto(engine, last)
    rewrite(engine)
    (summed,) = read_all(engine)
    seen = progress_grid.grid(engine.state, engine.rootmap, LAUNCH, {})
    assert day_summary.marks_of(summed.launches[0]) == {step: cell.mark for step, cell in seen.cells.items()}
    assert day_summary.word_of(summed.launches[0]) == seen.word
    earlier = {name: value for name, value in summed.launches[0].items() if name not in ("state", "marks")}
    assert day_summary.marks_of(earlier) == day_summary.marks_of(summed.launches[0]), "as an earlier Warcmill wrote it"
    assert day_summary.word_of(earlier) == seen.word
