"""When a crawl is due, month ends and leap years included."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.schedule import Frequency, Schedule, due_once

moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(
    lambda one: one.replace(microsecond=0, tzinfo=UTC)
)
frequencies = st.sampled_from(list(Frequency))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def days(schedule: Schedule, after: str, until: str) -> list[str]:
    return [moment.strftime("%m-%d") for moment in schedule.due(at(after), at(until))]


@pytest.mark.parametrize(
    ("frequency", "expected"),
    [
        (Frequency.MONTHLY, ["01-31", "02-29", "03-31", "04-30", "05-31", "06-30"]),
        (Frequency.QUARTERLY, ["01-31", "04-30"]),
        (Frequency.SIXMONTHLY, ["01-31"]),
        (Frequency.ANNUAL, ["01-31"]),
    ],
)
def test_a_month_that_lacks_the_day_is_due_on_its_last(frequency: Frequency, expected: list[str]) -> None:
    schedule = Schedule(at("2023-01-31T09:00"), frequency)
    assert days(schedule, "2024-01-01", "2024-07-01") == expected


def test_leap_day_once_a_year() -> None:
    schedule = Schedule(at("2024-02-29T09:00"), Frequency.ANNUAL)
    assert days(schedule, "2024-01-01", "2028-12-31") == ["02-29", "02-28", "02-28", "02-28", "02-29"]


def test_the_moment_itself_is_due_the_end_is_not() -> None:
    schedule = Schedule(at("2024-01-01T09:00"), Frequency.DAILY, at("2024-01-04T09:00"))
    assert days(schedule, "2023-12-01", "2024-02-01") == ["01-01", "01-02", "01-03"]
    assert days(schedule, "2024-01-01T09:00", "2024-01-02T09:00") == ["01-02"]


def test_several_schedules_are_due_once_at_the_same_moment() -> None:
    daily, weekly = (Schedule(at("2024-01-01T09:00"), one) for one in (Frequency.DAILY, Frequency.WEEKLY))
    assert len(due_once([daily, weekly], at("2024-01-01"), at("2024-01-09"))) == 8


@given(moments, frequencies, moments, st.integers(0, 1000))
def test_windows_that_meet_lose_and_double_nothing(
    start: datetime, frequency: Frequency, after: datetime, hours: int
) -> None:
    schedule = Schedule(start, frequency)
    middle, until = after + timedelta(hours=hours), after + timedelta(hours=2000)
    whole = list(schedule.due(after, until))
    assert whole == list(schedule.due(after, middle)) + list(schedule.due(middle, until))
    assert whole == sorted(set(whole))


@given(moments, frequencies)
def test_it_is_due_at_its_start_and_again_within_the_period(start: datetime, frequency: Frequency) -> None:
    found = list(Schedule(start, frequency).due(start - timedelta(seconds=1), start + timedelta(days=367)))
    assert found[0] == start
    assert len(found) >= 2
