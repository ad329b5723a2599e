"""The days of a verb are those that Luigi makes of the same text."""

from __future__ import annotations

import argparse
from datetime import date

import pytest
from luigi.parameter import DateIntervalParameter

from commands.console.arguments import interval

TEXTS = [
    *("2016", "2016-10", "2016-12", "2016-W43", "2016-W53", "2015-W53", "2009-W01", "2016-10-19", "2016-02-29"),
    *("2016-10-01-2016-10-31", "2016-10-31-2016-11-01", "2016-10-01-2016-10-01", "2016-10-02-2016-10-01"),
    *("9999", "9999-12", "9999-12-31", "0000", "2016-13", "2016-00", "2016-W00", "2016-W54", "2015-02-29"),
    *(
        "",
        "16",
        "20161019",
        "2016-1",
        "2016-10-1",
        "2016-W4",
        "2016-w43",
        " 2016",
        "2016 ",
        "2016\n",
        "2016-10-19-2016",
    ),
    *("2016-10-01-2016-10-32", "\u0662\u0660\u0661\u0666", "2016/10", "2016-10-01--2016-10-02", "-2016", "daily"),
]


def luigis(text: str) -> tuple[date, date] | None:
    """The first day, and the day after the last, as Luigi has them; None for days that no verb takes."""
    try:
        dates = DateIntervalParameter().parse(text)
    except (ValueError, OverflowError):
        return None
    return (dates.date_a, dates.date_b) if dates.date_a < dates.date_b else None


@pytest.mark.parametrize("text", TEXTS)
def test_days_are_luigi_s(text: str) -> None:
    try:
        found = interval(text)
        ours = (found.first, found.end)
    except argparse.ArgumentTypeError:
        ours = None
    assert ours == luigis(text)


def test_an_end_that_is_not_included_is_noted() -> None:
    assert interval("2016-10-01-2016-10-31").note == "the end, 2016-10-31, is not included"
    assert not any(interval(text).note for text in ("2016", "2016-10", "2016-W43", "2016-10-19"))
