"""When a crawl is due: pure calendar arithmetic, in UTC.

A schedule is due at its start and then once a period, at the start's time of
day. A period of months keeps the start's day of month; in a month that lacks
that day it is due on the last one (the 31st of January, then the 28th or 29th
of February, then the 31st of March again). The end is not included.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Frequency(StrEnum):
    """How often a target is crawled."""

    DAILY = "DAILY"
    WEEKLY = "WEEKLY"
    MONTHLY = "MONTHLY"
    QUARTERLY = "QUARTERLY"
    SIXMONTHLY = "SIXMONTHLY"
    ANNUAL = "ANNUAL"


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
        months = self.start.month - 1 + number * _MONTHS[self.frequency]
        year, month = self.start.year + months // 12, months % 12 + 1
        return self.start.replace(year=year, month=month, day=min(self.start.day, monthrange(year, month)[1]))


def due_once(schedules: list[Schedule], after: datetime, until: datetime) -> list[datetime]:
    """When any of several schedules is due, each moment once, in order."""
    return sorted({moment for schedule in schedules for moment in schedule.due(after, until)})
