"""Which due crawls are missed: the grace, the newest and the older ones, what failed, what was accepted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from warcmill import layout
from warcmill.audit import due_crawls
from warcmill.audit.due_crawls import Days, JobGap, in_groups
from warcmill.base.schedule import DAILY, HOURLY, Schedule
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.model import Key, Launch
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

START = datetime(2026, 11, 1, 6, tzinfo=UTC)
EVERY_DAY = Schedule(START, DAILY)


@pytest.fixture
def state(tmp_path: Path) -> MarkerStore:
    sentinel.adopt({"state": tmp_path})
    return MarkerStore(FileStore("state", tmp_path))


def missed(
    state: MarkerStore, now: str, first: int = 20, schedule: Schedule = EVERY_DAY, accepted: tuple[str, ...] = ()
) -> tuple[JobGap, ...]:
    """What was missed from a day of November on."""
    days = Days(datetime(2026, 11, first, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC), datetime.fromisoformat(now))
    return due_crawls.find(state, "daily", schedule, days, accepted)


def launched(state: MarkerStore, due: str) -> None:
    key = layout.due_key("daily", due)
    state.publish(key, Claim(key, facts={"launch_id": due}))


def failed(state: MarkerStore, key: Key, error: str) -> None:
    Attempts(state, key).append({"error": error})


def test_a_crawl_is_missed_an_hour_after_it_was_due(state: MarkerStore) -> None:
    assert missed(state, "2026-11-20T05:59:59Z") == missed(state, "2026-11-20T07:00:00Z") == ()
    (gap,) = missed(state, "2026-11-20T07:00:01Z")
    assert (gap.job, gap.kind, gap.name) == ("daily", "not launched", "20261120060000")
    assert (gap.why, gap.todo) == (
        "no scan has started it: is pulse.ScanForLaunches run by cron?",
        "warcmill pulse start daily",
    )
    launched(state, "20261120060000")
    assert missed(state, "2026-11-20T07:00:01Z") == ()


def test_one_whose_start_failed_is_missed_at_once_and_no_longer_when_a_later_scan_starts_it(state: MarkerStore) -> None:
    failed(state, layout.due_key("daily", "20261120060000"), "the engine is away")
    (gap,) = missed(state, "2026-11-20T06:05:00Z")
    assert (gap.why, gap.todo) == ("its start failed: the engine is away", "warcmill pulse start daily")
    launched(state, "20261120060000")
    assert missed(state, "2026-11-20T06:05:00Z") == ()


def test_one_whose_feed_failed_says_so(state: MarkerStore) -> None:
    failed(state, layout.feed_key("daily", "20261120060000"), "404")
    assert [gap.why for gap in missed(state, "2026-11-20T06:05:00Z")] == ["its feed failed: 404"]


def test_one_that_waits_for_a_launch_that_does_not_stop_names_it(state: MarkerStore) -> None:
    failed(state, layout.key("pulse.StopJob", Launch("daily", "20261030060003")), "no answer")
    failed(state, layout.key("pulse.StopJob", Launch("daily", "20261119060003")), "it still runs")
    (gap,) = missed(state, "2026-11-20T06:05:00Z")
    assert gap.why == "the launch before it, 20261119060003, could not be stopped: it still runs"


def test_older_ones_are_accepted_and_the_newest_started(state: MarkerStore) -> None:
    launched(state, "20261121060000")
    gaps = missed(state, "2026-11-23T12:00:00Z")
    assert [(gap.name, gap.todo) for gap in gaps] == [
        ("20261120060000", "warcmill accept daily 20261120060000 --reason TEXT"),
        ("20261122060000", "warcmill accept daily 20261122060000 --reason TEXT"),
        ("20261123060000", "warcmill pulse start daily"),
    ]
    accepted = ("20261120060000", "20261123060000")
    assert [gap.name for gap in missed(state, "2026-11-23T12:00:00Z", accepted=accepted)] == ["20261122060000"]


def test_nothing_is_owed_before_the_start_nor_when_the_clock_was_set_back(state: MarkerStore) -> None:
    assert [gap.name for gap in missed(state, "2026-11-02T12:00:00Z", first=1)] == ["20261101060000", "20261102060000"]
    assert missed(state, "2026-10-01T00:00:00Z", first=1) == ()


def test_a_damaged_marker_counts_as_none(state: MarkerStore, tmp_path: Path) -> None:
    launched(state, "20261120060000")
    (tmp_path / layout.marker_path(layout.due_key("daily", "20261120060000"))).write_text("cut")
    assert [gap.name for gap in missed(state, "2026-11-20T08:00:00Z")] == ["20261120060000"]


def test_a_year_of_missed_crawls_is_one_line_with_first_last_and_number(state: MarkerStore) -> None:
    gaps = missed(state, "2026-11-30T12:00:00Z", first=1, schedule=Schedule(START, HOURLY))
    assert len(gaps) == 29 * 24 + 5
    grouped = list(in_groups(gaps))
    assert [(gap.name, gap.todo) for gap in grouped] == [
        (
            "20261101060000 to 20261130100000, 701 of them",
            "warcmill accept --kind 'not launched' 2026-11-01-2026-12-01 --reason TEXT",
        ),
    ]


def test_one_that_waits_for_a_launch_is_missed_only_once_that_has_ended(state: MarkerStore) -> None:
    waiting = Schedule(START, DAILY, waits=True)
    launched(state, "20261120060000")
    launch = Launch("daily", "20261120060001")
    started, stopped = layout.key("pulse.Started", launch), layout.key("output.CheckJobStopped", launch)
    state.publish(started, Claim(started, facts={"due": "20261120060000"}))
    assert missed(state, "2026-11-23T08:00:00Z", schedule=waiting) == ()
    assert [gap.name[:8] for gap in missed(state, "2026-11-23T08:00:00Z")] == ["20261121", "20261122", "20261123"]
    state.publish(stopped, Claim(stopped, facts={"how": "finished", "finished": "2026-11-23T07:30:00.000Z"}))
    assert [gap.name for gap in missed(state, "2026-11-23T08:00:00Z", schedule=waiting)] == ["20261123060000"]
    launched(state, "20261123060000")
    assert missed(state, "2026-11-23T08:00:00Z", schedule=waiting) == ()
    late = missed(state, "2026-11-25T08:00:00Z", schedule=waiting)
    assert [gap.name for gap in late] == ["20261124060000", "20261125060000"]
