"""Times as the line writes them, in the first year too: this libc's `strftime` leaves out its zeros."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from warcmill.base import clock
from warcmill.model import stamp_time

FIRST = datetime.min.replace(tzinfo=UTC)


def test_the_first_year_has_four_digits() -> None:
    assert clock.text(FIRST) == "0001-01-01T00:00:00Z"
    assert clock.digits(FIRST) == "00010101000000"
    assert (clock.month(date.min), clock.day_digits(date.min)) == ("0001-01", "00010101")


def test_digits_and_text_are_of_one_moment() -> None:
    moment = stamp_time("20161019234428") + timedelta(microseconds=7)
    assert clock.digits(moment) == "20161019234428"
    assert clock.text(moment) == clock.stamp_text("20161019234428") == "2016-10-19T23:44:28Z"


def test_now_is_now() -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    assert before <= datetime.fromisoformat(clock.now()) <= datetime.now(UTC)
    assert before <= stamp_time(clock.stamp()) <= datetime.now(UTC)
