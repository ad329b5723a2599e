"""When a crawl is due: pure calendar arithmetic, in UTC.

A schedule is due at its start and then once a period, at the start's time of
day. A period of months keeps the start's day of month; in a month that lacks
that day it is due on the last one (the 31st of January, then the 28th or 29th
of February, then the 31st of March again). The end is not included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from dateutil.relativedelta import relativedelta


class Frequency(StrEnum):
    """How often a target is crawled."""

    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"
    QUARTERLY = "QUARTERLY"
    SIXMONTHLY = "SIXMONTHLY"
    ANNUAL = "ANNUAL"


_SECOND = timedelta(seconds=1)
_LONGEST = timedelta(days=400)  # longer than any period
_DAYS = {Frequency.DAILY: 1, Frequency.WEEKLY: 7}
_MONTHS = {Frequency.MONTHLY: 1, Frequency.QUARTERLY: 3, Frequency.SIXMONTHLY: 6, Frequency.ANNUAL: 12}


@dataclass(frozen=True, order=True, slots=True)
class Schedule:
    """From `start` up to, not including, `end` (None: without end), once a period."""

    start: datetime
    frequency: Frequency
    end: datetime | None = None

    def due(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The moments it is due that lie after `after` and not after `until`, in order."""
        number = max(0, self._number_near(after))
        while (moment := self._moment(number)) <= until and (self.end is None or moment < self.end):
            if moment > after:
                yield moment
            number += 1

    def _number_near(self, moment: datetime) -> int:
        """A period that surely begins before `moment`: where to begin counting, without walking years."""
        if self.frequency in _DAYS:
            return (moment - self.start).days // _DAYS[self.frequency] - 1
        months = (moment.year - self.start.year) * 12 + moment.month - self.start.month
        return months // _MONTHS[self.frequency] - 1

    def _moment(self, number: int) -> datetime:
        if self.frequency in _DAYS:
            return self.start + timedelta(days=number * _DAYS[self.frequency])
        return self.start + relativedelta(months=number * _MONTHS[self.frequency])


def newest_due(schedule: Schedule, now: datetime) -> datetime | None:
    """The last moment up to `now` that it was due; None before the first."""
    return max(schedule.due(now - _LONGEST, now), default=None)


@dataclass(frozen=True, slots=True)
class Missed:
    """Of the moments that have passed without a launch: the one to launch now, and those that it is too late for."""

    launch: datetime | None
    late: tuple[datetime, ...]


def missed(
    schedule: Schedule,
    first: datetime,
    end: datetime,
    now: datetime,
    window: timedelta,
    done: Callable[[datetime], bool],
) -> Missed:
    """What of the moments from `first` up to, not including, `end` is still to be launched.

    Only the newest may be, and only while it is no older than `window`: a
    crawl is not run three times in a row because a machine slept.
    """
    moments = list(schedule.due(first - _SECOND, min(now, end - _SECOND)))
    lacking = [moment for moment in moments if not done(moment)]
    newest = moments[-1] if moments and now - moments[-1] <= window else None
    launch = newest if newest in lacking else None
    return Missed(launch, tuple(moment for moment in lacking if moment != launch))


def due_once(schedules: list[Schedule], after: datetime, until: datetime) -> list[datetime]:
    """When any of several schedules is due, each moment once, in order."""
    return sorted({moment for schedule in schedules for moment in schedule.due(after, until)})
