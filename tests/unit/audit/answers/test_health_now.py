"""The answer of `warcmill health`: what hangs is named, what is asked again meanwhile, what is added up."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from threading import Event

import pytest
from launches.engine import Engine

from warcmill.audit.answers import health, tally
from warcmill.audit.answers.health import Asker, DiskSpace, HealthQuestion, HealthReply, Refresher, RunningCrawl
from warcmill.audit.health import FEW_INODES, LITTLE, TOO_LITTLE, Level
from warcmill.base import clock
from warcmill.clients.engine import CrawlProgress
from warcmill.errors import Unavailable

ROOM = DiskSpace(LITTLE, LITTLE * 2, FEW_INODES)


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(tmp_path)


def answers() -> HealthReply:
    return HealthReply("Heritrix 3.8")


def refuses() -> HealthReply:
    raise Unavailable("engine", "Connection refused")


def fails() -> HealthReply:
    return HealthReply(str(1 // 0))


def test_one_that_hangs_is_named_and_not_waited_for_and_not_asked_again() -> None:
    release, asker, asked = Event(), Asker(), list[str]()

    def hangs() -> HealthReply:
        asked.append("again")
        release.wait(600)
        return HealthReply("at last")

    those = [HealthQuestion("engine", "a", hangs, "start it"), HealthQuestion("engine", "b", answers)]
    first, second = asker.ask(those, 0.2)
    assert first.reply is None
    assert "does not answer" in first.why
    assert (second.reply, second.why) == (HealthReply("Heritrix 3.8"), "")
    first, _ = asker.ask(those, 5)
    assert (first.reply, asked) == (None, ["again"]), "it still hangs: it is not asked, and nobody waits"
    release.set()
    while (again := asker.ask(those[:1], 60)[0]).reply is None:
        assert "silent" in again.why
    assert again.reply == HealthReply("at last")


def test_each_error_is_the_answer_of_one_alone(caplog: pytest.LogCaptureFixture) -> None:
    those = [
        HealthQuestion("server", name, ask, "todo") for name, ask in (("a", refuses), ("b", fails), ("c", answers))
    ]
    refused, failed, good = Asker().ask(those, 60)
    assert refused.why == "engine is unavailable: Connection refused"
    assert "ZeroDivisionError" in failed.why
    assert "Traceback" in caplog.text
    assert good.is_well
    assert not refused.is_well


@pytest.mark.parametrize(
    ("space", "level"),
    [
        (ROOM, Level.OK),
        (DiskSpace(LITTLE, LITTLE, None), Level.OK),
        (DiskSpace(LITTLE - 1, LITTLE, None), Level.WARN),
        (DiskSpace(LITTLE, LITTLE, FEW_INODES - 1), Level.WARN),
        (DiskSpace(TOO_LITTLE - 1, LITTLE, None), Level.FAIL),
        (DiskSpace(LITTLE, LITTLE, 0), Level.FAIL),
    ],
)
def test_the_room_of_a_disk_is_judged_as_doctor_judges_it(space: DiskSpace, level: Level) -> None:
    assert space.level is level
    outcome = Asker().ask([HealthQuestion("root", "state", lambda: HealthReply(space=space))], 60)[0]
    assert outcome.is_well is (level is not Level.FAIL)


def test_the_answer_has_what_answered_and_what_runs(engine: Engine) -> None:
    progress = CrawlProgress(True, "20161019234428", "RUNNING", 5, 7, 60, 12, 1, ("a complaint",))
    crawl = RunningCrawl("daily", "heritrix", progress)
    those = [
        HealthQuestion("engine", "heritrix", lambda: HealthReply("3.8", (crawl,)), "start it"),
        HealthQuestion("root", "state", lambda: HealthReply(space=ROOM)),
        HealthQuestion("root", "store", refuses, "mount it"),
    ]
    before = clock.now()
    found = health.answer(engine.state, Asker().ask(those, 60))
    assert found["well"] is False
    assert before <= str(found["written"]) <= clock.now()
    printed = json.loads(json.dumps(found))
    assert [(one["name"], one["answered"], one["todo"]) for one in printed["asked"]] == [
        ("heritrix", True, ""),
        ("state", True, ""),
        ("store", False, "mount it"),
    ]
    (running,) = printed["crawls"]
    assert (running["job"], running["done"], running["queued"], running["said"]) == ("daily", 5, 7, ["a complaint"])
    assert [(one["root"], one["level"], one["bytes_free"]) for one in printed["roots"]] == [
        ("state", "ok", LITTLE),
        ("store", "fail", None),
    ]
    assert (printed["scans"], printed["backup"], printed["backlog"]) == ([], {"ended": ""}, {})
    assert printed["launches"] == {"done": 0, "waiting": 0, "running": 0, "in_trouble": 0}


def test_it_is_written_whole_and_read_and_a_damaged_one_is_none(engine: Engine) -> None:
    assert health.read(engine.state) == {}
    found = health.answer(engine.state, [])
    health.write(engine.state, found)
    assert health.read(engine.state) == found
    path = engine.folders["state"] / "status" / "now.json"
    assert [one.name for one in path.parent.iterdir()] == ["now.json"]
    for damage in (b"", b"[]", b"{", b"\xff", b"[" * 100_000):
        path.write_bytes(damage)
        assert health.read(engine.state) == {}


def test_ends_are_noted_each_by_its_name(engine: Engine) -> None:
    health.note_end(engine.state, "output.ScanForOutputs", "2016-10-01", "2016-10-31", 2)
    health.note_end(engine.state, health.BACKUP, "2016-10-01", "2016-10-31", 0)
    (engine.folders["state"] / "status" / "ended.files.ScanForOutputFiles.json").write_bytes(b"{")
    printed = json.loads(json.dumps(health.answer(engine.state, [])))
    (scan,) = printed["scans"]
    assert (scan["name"], scan["last_day"], scan["troubles"]) == ("output.ScanForOutputs", "2016-10-31", 2)
    assert printed["backup"]["ended"] >= scan["ended"]


def test_a_scan_that_ended_too_long_ago_is_overdue_unless_it_is_off(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans = ("output.ScanForOutputs", "files.ScanForOutputFiles", "package.ScanForPackages")
    monkeypatch.setattr(clock, "now", lambda: "2016-10-31T00:00:00Z")
    for name in (*scans[:1], "index.ScanForIndexing"):
        health.note_end(engine.state, name, "2016-10-01", "2016-10-31", 0)
    monkeypatch.undo()
    health.note_end(engine.state, scans[1], "2016-10-01", "2016-10-31", 0)
    printed = json.loads(json.dumps(health.answer(engine.state, [], scans)))
    why = "it ended more than 2 days ago, at 2016-10-31T00:00:00Z"
    assert [(one["name"], one["why"]) for one in printed["overdue"]] == [(scans[0], why)]
    assert "warcmill scan" in printed["overdue"][0]["todo"]
    assert printed["well"] is False


def test_where_no_scan_ever_ended_one_is_overdue_once_a_launch_is_two_days_old(engine: Engine) -> None:
    def overdue(launch_id: str) -> list[str]:
        (engine.folders["state"] / f"{launch_id[:4]}-{launch_id[4:6]}" / "daily" / launch_id).mkdir(parents=True)
        printed = json.loads(json.dumps(health.answer(engine.state, [], ["output.ScanForOutputs"])))
        assert printed["well"] is not bool(printed["overdue"])
        return [one["why"] for one in printed["overdue"]]

    assert overdue(clock.stamp()) == []
    assert overdue("20161019234428") == ["none ever ended, and launches are more than 2 days old"]


def summary(engine: Engine, day: date, *launches: dict[str, object]) -> None:
    path = engine.folders["state"] / f"{day:%Y-%m}" / f"status.{day}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"day": str(day), "launches": launches}))


def launch(copy: str, done: int) -> dict[str, object]:
    files = {"assemble": {"warcs": 3, "bytes": 300}, "copy": {"warcs": done, "bytes": done * 100}}
    return {
        "job": "daily",
        "launch_id": "20161019234428",
        "ended": "finished",
        "steps": {"stop": "done"},
        "stages": {"cp00001-20161019235428": {"copy": "done"}, "final": {"copy": copy}},
        "files": files,
        "troubles": [{"kind": "refused", "task": "x", "name": "y", "why": "z"}],
    }


def test_the_days_are_added_up_and_a_changed_one_is_read_again(engine: Engine) -> None:
    summary(engine, date(2016, 10, 19), launch("done", 3), launch("waiting", 1))
    summary(engine, date(2016, 11, 20), launch("failed", 0), {"job": "daily", "launch_id": "x", "error": "gone"})
    (engine.folders["state"] / "2016-11" / "status.2016-11-21.json").write_bytes(b"{")
    printed = json.loads(json.dumps(health.answer(engine.state, [])))
    assert (printed["first_day"], printed["last_day"]) == ("2016-10-19", "2016-11-21")
    assert printed["launches"] == {"done": 1, "waiting": 1, "running": 0, "in_trouble": 2}
    assert printed["gaps"] == {"refused": 3}
    assert printed["files"] == {"assemble": {"bytes": 900, "warcs": 9}, "copy": {"bytes": 400, "warcs": 4}}
    assert printed["backlog"] == {"copy": {"bytes": 500, "launches": 2, "warcs": 5}}
    summary(engine, date(2016, 10, 19), launch("done", 3))
    printed = json.loads(json.dumps(health.answer(engine.state, [])))
    assert printed["backlog"] == {"copy": {"bytes": 300, "launches": 1, "warcs": 3}}


def test_a_sum_of_ten_thousand_launches_keeps_no_launch() -> None:
    days = (tally.Tally({("launches", "done", ""): 20, ("backlog", "copy", "launches"): 1}) for _ in range(500))
    assert tally.answer(days)["launches"] == {"done": 10_000, "in_trouble": 0, "running": 0, "waiting": 0}


def test_a_page_that_asks_often_begins_one_look() -> None:
    begun, release = list[int](), Event()

    def look() -> None:
        begun.append(1)
        release.set()
        raise Unavailable("the state", "away")

    refresher = Refresher(look, seconds=600)
    assert [refresher.wanted() for _ in range(100)] == [True, *[False] * 99]
    assert release.wait(60)
    assert begun == [1]
