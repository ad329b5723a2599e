"""The watch over scripts, and their pause: by what a callback did before."""

from __future__ import annotations

from typing import Any

from warcmill.scripts import watch
from warcmill.scripts.watch import (
    CHANGED,
    FAILURES,
    LATE,
    OFFLINE,
    PAUSE,
    PROBES,
    SILENT,
    FailurePause,
    PageSeen,
    ScriptWatch,
    WatchFinding,
)

NOW = 1_800_000_000.0


def page(number: int) -> PageSeen:
    return PageSeen(f"http://a.example/{number}", "w.warc.gz", number)


def ran(seen: ScriptWatch, number: int, callback: str = "detail", **more: Any) -> list[WatchFinding]:
    fields = {"why": "", "is_fault": False, "follows": 0, "results": [{"title": "T", "price": 3}], **more}
    seen.ran(callback, page(number), **fields)
    return seen.findings(NOW)


def usual(seen: ScriptWatch, callback: str = "detail", **more: Any) -> None:
    for number in range(10):
        assert ran(seen, number, callback, **more) == []


def test_a_field_that_was_usual_is_missed_after_five_times() -> None:
    seen = ScriptWatch()
    usual(seen)
    for number in range(10, 14):
        assert ran(seen, number, results=[{"title": "T", "price": ""}]) == []
    (found,) = ran(seen, 14, results=[{"title": "T"}])
    assert (found.callback, found.state, found.url) == ("detail", CHANGED, "http://a.example/10")
    assert found.why == "the field 'price' is empty, 5 times running"
    assert (found.before, found.after) == (page(9), page(10))
    (found,) = ran(seen, 15, results=[{"title": "T", "price": None}])
    assert "6 times" in found.why
    assert ran(seen, 16) == [], "its end is the first good page"


def test_a_field_that_was_never_usual_is_not_missed() -> None:
    seen = ScriptWatch()
    for number in range(40):
        assert ran(seen, number, results=[{"title": "T", "price": 3 if number % 2 else ""}]) == []
    for number in range(40, 60):
        assert ran(seen, number, results=[{"title": "T", "price": ""}]) == []


def test_an_index_page_without_follows_is_missed_after_three_times() -> None:
    seen = ScriptWatch()
    usual(seen, "index", follows=20, results=[])
    assert ran(seen, 10, "index", results=[]) == ran(seen, 11, "index", results=[]) == []
    (found,) = ran(seen, 12, "index", results=[])
    assert (found.callback, found.why) == ("index", "no follows, 3 times running")
    usual(ScriptWatch(), "detail")  # one that never follows is not missed


def test_exceptions_where_there_were_none_are_a_change_and_errors_of_the_site_are_not() -> None:
    seen = ScriptWatch()
    usual(seen)
    for number in range(10, 20):
        assert ran(seen, number, why="HTTPError: 404", results=[]) == []
    fault = {"why": "KeyError: 'price'", "is_fault": True, "results": []}
    assert ran(seen, 20, **fault) == ran(seen, 21, **fault) == []
    (found,) = ran(seen, 22, **fault)
    assert found.why == "it fails where it did not: KeyError: 'price'"
    assert ran(seen, 23) == []


def test_a_script_is_silent_after_ten_usual_gaps() -> None:
    seen = ScriptWatch()
    for number in range(8):
        seen.is_new(NOW + number * 60)
    assert seen.findings(NOW + 7 * 60 + 600) == []
    (found,) = seen.findings(NOW + 7 * 60 + 601)
    assert (found.state, found.callback) == (SILENT, "")


def test_what_is_offline_or_late_is_named() -> None:
    found = ScriptWatch().findings(NOW, offline="HTTPError", late=301.0, late_for="its rate")
    assert [(one.state, one.why) for one in found] == [
        (OFFLINE, "paused: its last tasks have failed, HTTPError"),
        (LATE, "a task that is due has waited 301 s for its rate"),
    ]


def test_the_state_outlives_the_process() -> None:
    seen = ScriptWatch()
    usual(seen)
    again = watch.read(watch.pack({"shop": seen}))["shop"]
    for number in range(10, 14):
        ran(again, number, results=[{}])
    assert len(ran(again, 14, results=[{}])) == 2
    assert watch.read(b"") == watch.read(b"{") == watch.read(b'{"shop": 3}') == {}


def test_ten_failures_in_a_row_pause_a_script_for_five_minutes_and_three_probes_end_that() -> None:
    pause = FailurePause()
    for number in range(FAILURES):
        assert pause.room(7, NOW) == 7, number
        pause.ended(failed=True, why="no", now=NOW)
    assert (pause.room(7, NOW + PAUSE - 1), pause.is_on) == (0, True)
    later = NOW + PAUSE
    assert pause.room(7, later) == PROBES
    pause.began(2)
    assert pause.room(7, later) == 1
    pause.began(1)
    for _ in range(PROBES):
        pause.ended(failed=True, why="no", now=later)
    assert pause.room(7, later) == 0, "no probe got through: once more"
    pause.began(1)
    pause.ended(failed=False, why="", now=later + PAUSE)
    assert (pause.room(7, later + PAUSE), pause.is_on) == (7, False)


def test_probes_that_end_nothing_as_they_are_redirected_have_others_after_them() -> None:
    pause = FailurePause()
    for _ in range(FAILURES):
        pause.ended(failed=True, why="no", now=NOW)
    pause.began(PROBES)
    assert (pause.room(7, NOW + PAUSE), pause.room(7, NOW + 2 * PAUSE)) == (0, PROBES)


def test_a_success_between_failures_begins_the_count_anew() -> None:
    pause = FailurePause()
    for number in range(50):
        pause.ended(failed=bool(number % 9), why="no", now=NOW)
    assert not pause.is_on
