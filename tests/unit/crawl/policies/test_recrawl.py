"""When a URI is visited again, by each of the three ways."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warcmill.crawl.policies.recrawl import NEVER, Adaptive, Age, Calendar, again
from warcmill.errors import BadConfig

DAY = 86_400.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_after_an_age() -> None:
    assert again(Age(DAY), at("2026-11-22"), 0.0) == at("2026-11-23")


@pytest.mark.parametrize(
    ("rule", "visited", "expected"),
    [
        ("FREQ=DAILY;BYHOUR=6", "2026-11-22T05:59:59", "2026-11-22T06:00:00"),
        ("FREQ=DAILY;BYHOUR=6", "2026-11-22T06:00:00", "2026-11-23T06:00:00"),
        ("FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=6", "2026-11-22T12:34:56", "2026-11-23T06:00:00"),
        ("RRULE:FREQ=MONTHLY;BYMONTHDAY=-1", "2026-11-22T12:34:56", "2026-11-30T00:00:00"),
        ("FREQ=HOURLY", "2026-11-22T12:34:56", "2026-11-22T13:00:00"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "2026-11-22T12:34:56", "2028-02-29T00:00:00"),
    ],
)
def test_by_a_calendar(rule: str, visited: str, expected: str) -> None:
    assert again(Calendar(rule), at(visited), 0.0) == at(expected)


def test_a_calendar_that_has_ended_visits_no_more() -> None:
    assert again(Calendar("FREQ=DAILY;UNTIL=20261101T000000Z"), at("2026-11-22"), 0.0) == NEVER


@pytest.mark.parametrize(
    "rule", ["", "daily", "FREQ=NEVER", "FREQ=DAILY;BYHOUR=x", "FREQ=SECONDLY", "FREQ=DAILY;COUNT=3"]
)
def test_what_is_no_calendar_is_refused(rule: str) -> None:
    with pytest.raises(BadConfig, match="recrawl"):
        Calendar(rule)


@pytest.mark.parametrize(
    ("unchanged", "wait"), [(0.0, 3_600.0), (DAY, 8_640.0), (10 * DAY, DAY), (1000 * DAY, 30 * DAY), (-5.0, 3_600.0)]
)
def test_the_longer_it_is_the_same_the_later(unchanged: float, wait: float) -> None:
    assert again(Adaptive(), at("2026-11-22"), at("2026-11-22") - unchanged) == at("2026-11-22") + wait


@given(st.floats(0, 1e10), st.floats(0, 1e10))
def test_it_is_never_sooner_or_later_than_the_bounds(visited: float, changed: float) -> None:
    assert 59.999 <= again(Adaptive(0.5, 60.0, 600.0), visited, changed) - visited <= 600.001


@pytest.mark.parametrize("wrong", [lambda: Age(0), lambda: Adaptive(share=0), lambda: Adaptive(least=9.0, most=1.0)])
def test_bounds_that_are_none_are_refused(wrong: object) -> None:
    with pytest.raises(BadConfig, match="recrawl"):
        wrong()  # type: ignore[operator]
