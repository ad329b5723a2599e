"""Times as the line writes them: UTC, whole seconds but in names that keep an order. Reads the clock only.

Years have four digits, which `strftime` does not guarantee.
"""

from __future__ import annotations

import time
from datetime import UTC, date, datetime


def now() -> str:
    """The current time, as `2016-10-19T23:44:28Z`."""
    return text(datetime.now(UTC))


def stamp() -> str:
    """The current time in 14 digits, as in a launch id."""
    return digits(datetime.now(UTC))


def fine_stamp() -> str:
    """The current time in 20 digits, to the microsecond: for names that must sort in the order of their making."""
    moment = datetime.now(UTC)
    return f"{digits(moment)}{moment.microsecond:06}"


def text(moment: datetime) -> str:
    """A UTC time as `2016-10-19T23:44:28Z`."""
    return moment.isoformat()[:19] + "Z"


def digits(moment: datetime) -> str:
    """A UTC time in 14 digits: `20161019234428`."""
    return "".join(filter(str.isdigit, text(moment)))


def day_digits(day: date) -> str:
    """A day in 8 digits, with which its launches' ids begin: `20161019`."""
    return f"{day.year:04}{day.month:02}{day.day:02}"


def month(day: date) -> str:
    """The month of a day: `2016-10`."""
    return f"{day.year:04}-{day.month:02}"


def stamp_text(stamp: str) -> str:
    """14 (or more) digits as `2016-10-19T23:44:28Z`."""
    return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z"


_BEGAN = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def steady() -> float:
    """Seconds since 1970: the time at which this process began, and the seconds since then. If the clock is set
    meanwhile, no host waits longer or shorter."""
    return _BEGAN + time.clock_gettime(time.CLOCK_BOOTTIME)
