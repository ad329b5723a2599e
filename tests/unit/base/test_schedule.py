"""When a crawl is due, month ends and leap years included."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.base.schedule import (
    ANNUAL,
    DAILY,
    HOURLY,
    MONTHLY,
    NAMED,
    QUARTERLY,
    SIXMONTHLY,
    Frequency,
    Schedule,
    check_time,
    newest_due,
)

moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(
    lambda one: one.replace(microsecond=0, tzinfo=UTC)
)
frequencies = st.one_of(
    st.sampled_from(list(NAMED.values())), st.builds(Frequency, months=st.just(0), hours=st.integers(1, 9_000))
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def days(schedule: Schedule, after: str, until: str) -> list[str]:
    return [moment.strftime("%m-%d") for moment in schedule.due(at(after), at(until))]


@pytest.mark.parametrize(
    ("frequency", "expected"),
    [
        (MONTHLY, ["01-31", "02-29", "03-31", "04-30", "05-31", "06-30"]),
        (QUARTERLY, ["01-31", "04-30"]),
        (SIXMONTHLY, ["01-31"]),
        (ANNUAL, ["01-31"]),
    ],
)
def test_a_month_that_lacks_the_day_is_due_on_its_last(frequency: Frequency, expected: list[str]) -> None:
    schedule = Schedule(at("2023-01-31T09:00"), frequency)
    assert days(schedule, "2024-01-01", "2024-07-01") == expected


def test_leap_day_once_a_year() -> None:
    schedule = Schedule(at("2024-02-29T09:00"), ANNUAL)
    assert days(schedule, "2024-01-01", "2028-12-31") == ["02-29", "02-28", "02-28", "02-28", "02-29"]


def test_the_moment_itself_is_due_the_end_is_not() -> None:
    schedule = Schedule(at("2024-01-01T09:00"), DAILY, at("2024-01-04T09:00"))
    assert days(schedule, "2023-12-01", "2024-02-01") == ["01-01", "01-02", "01-03"]
    assert days(schedule, "2024-01-01T09:00", "2024-01-02T09:00") == ["01-02"]


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
    assert len(found) >= 2 or frequency.hours > 8_000


@given(moments, frequencies, st.integers(0, 100_000))
def test_the_newest_due_time_is_the_last_up_to_now(start: datetime, frequency: Frequency, hours: int) -> None:
    now = start + timedelta(hours=hours)
    newest = newest_due(Schedule(start, frequency), now)
    assert newest is not None
    assert newest <= now
    assert list(Schedule(start, frequency).due(newest, now)) == []


def test_before_its_start_nothing_was_due_and_after_its_end_the_last_before_it() -> None:
    schedule = Schedule(at("2024-01-01T09:00"), DAILY, at("2024-01-04T09:00"))
    assert newest_due(schedule, at("2024-01-01T08:59")) is None
    assert newest_due(schedule, at("2026-01-01")) == at("2024-01-03T09:00")


@pytest.mark.parametrize(
    ("text", "frequency", "shown"),
    [
        ("hourly", HOURLY, "HOURLY"),
        ("Every 6 hours", Frequency(hours=6), "EVERY 6 HOURS"),
        ("EVERY 1 HOUR", HOURLY, "HOURLY"),
        ("every  24 hours", DAILY, "DAILY"),
        ("SixMonthly", SIXMONTHLY, "SIXMONTHLY"),
    ],
)
def test_a_frequency_in_any_case(text: str, frequency: Frequency, shown: str) -> None:
    assert Frequency.parse(text) == frequency
    assert str(frequency) == shown


@pytest.mark.parametrize(
    "text", ["", "DOMAINCRAWL", "EVERY 0 HOURS", "EVERY 6 DAYS", "EVERY -1 HOURS", "EVERY ٣ HOURS"]
)
def test_what_is_no_frequency_is_named_with_what_is(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not one of HOURLY, DAILY, .*, or EVERY n HOURS"):
        Frequency.parse(text)


def test_every_six_hours_from_its_start() -> None:
    schedule = Schedule(at("2024-02-28T21:30"), Frequency(hours=6))
    found = list(schedule.due(at("2024-02-28T21:30"), at("2024-02-29T21:30")))
    assert [f"{one:%d %H:%M}" for one in found] == ["29 03:30", "29 09:30", "29 15:30", "29 21:30"]


def berlin(start: str, frequency: Frequency, time: str) -> Schedule:
    return Schedule(at(start), frequency, at=time, zone="Europe/Berlin")


def test_a_time_of_day_is_that_of_the_clocks_of_its_zone() -> None:
    schedule = berlin("2026-03-27T12:00", DAILY, "09:00")
    found = list(schedule.due(at("2026-03-27T12:00"), at("2026-03-30T12:00")))
    assert found == [at("2026-03-28T08:00"), at("2026-03-29T07:00"), at("2026-03-30T07:00")]


@pytest.mark.parametrize(
    ("start", "time", "due"),
    [
        ("2026-03-28T00:00", "02:30", ["28 01:30", "29 01:30", "30 00:30"]),  # 02:30 is skipped on the 29th
        ("2026-10-24T00:00", "02:30", ["24 00:30", "25 00:30", "26 01:30"]),  # and comes twice on the 25th
        ("2026-10-24T00:00", "02:00", ["24 00:00", "25 00:00", "26 01:00"]),
    ],
)
def test_a_time_that_a_change_of_the_clocks_skips_or_repeats_is_due_once(start: str, time: str, due: list[str]) -> None:
    schedule = berlin(start, DAILY, time)
    found = list(schedule.due(at(start) - timedelta(hours=3), at(start) + timedelta(hours=72)))[:3]
    assert [f"{one:%d %H:%M}" for one in found] == due
    for moment in found:
        assert newest_due(schedule, moment) == moment


def test_a_month_from_the_29th_of_february_on() -> None:
    schedule = berlin("2028-02-29T09:00", ANNUAL, "02:00")
    assert days(schedule, "2028-03-01", "2032-12-31") == ["02-28", "02-28", "02-28", "02-29"]
    assert days(berlin("2028-01-31T00:00", MONTHLY, "12:00"), "2028-01-31T23:00", "2028-04-01") == ["02-29", "03-31"]


@given(start=moments, frequency=st.sampled_from([DAILY, MONTHLY, ANNUAL]), hour=st.integers(0, 23))
def test_with_a_time_of_day_a_year_has_its_days(start: datetime, frequency: Frequency, hour: int) -> None:
    schedule = Schedule(start, frequency, at=f"{hour:02}:30", zone="Europe/Berlin")
    found = list(schedule.due(start, start + timedelta(days=365)))
    assert found == sorted(set(found))
    assert len(found) in {DAILY: (365,), MONTHLY: (11, 12), ANNUAL: (0, 1)}[frequency]
    assert schedule.words.endswith(f" at {hour:02}:30 Europe/Berlin")


@pytest.mark.parametrize(
    ("frequency", "time", "zone"),
    [(DAILY, "24:00", "UTC"), (DAILY, "2:00", "UTC"), (HOURLY, "02:00", "UTC"), (DAILY, "02:00", "Europe/Bärlin"),
     (DAILY, "02:00", "../../etc/passwd"), (DAILY, "02:00", "Europe"), (DAILY, "02:00", "")],
)  # fmt: skip
def test_what_is_no_time_of_day_or_no_zone(frequency: Frequency, time: str, zone: str) -> None:
    with pytest.raises(ValueError, match=r"is not a time|has no time of day"):
        check_time(frequency, time, zone)
