"""The times at which a crawl is due: calendar arithmetic, in UTC. Pure.

A schedule is due at its start and then once a period, at the start's time of day. A period of months keeps the start's
day of month; in a shorter month it is due on the last day (the 31st of January, then the 28th or 29th of February, then
the 31st of March again). The end is not included.

A schedule that names a time of day is due at that time of the clocks of its zone. A time that a change of the clocks
skips is due once, as much later as the clocks are put forward; of one that comes twice, the first counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from dateutil.relativedelta import relativedelta
from msgspec import Struct


class Frequency(Struct, frozen=True, order=True):
    """The frequency at which a target is crawled: every `months` months or every `hours` hours. The other one is 0."""

    months: int = 0
    hours: int = 0

    @classmethod
    def parse(cls, text: str) -> Frequency:
        """Parse a word of NAMED, or `EVERY n HOURS`, in upper or lower case; ValueError for anything else."""
        words = " ".join(text.upper().split())
        every = _EVERY.fullmatch(words)
        if words not in NAMED and not every:
            raise ValueError(f"{text[:80]!r} is not {KNOWN}")
        return cls(hours=int(every[1])) if every else NAMED[words]

    def __str__(self) -> str:
        names = (name for name, known in NAMED.items() if known == self)
        return next(names, f"EVERY {self.hours} HOURS")

    def moment(self, start: datetime, number: int) -> datetime:
        """The time at which it is due for the `number`th time after `start`."""
        return start + relativedelta(months=number * self.months, hours=number * self.hours)

    def periods(self, start: datetime, end: datetime) -> int:
        """The number of periods between two times, give or take one."""
        if self.hours:
            return (end - start) // timedelta(hours=self.hours)
        return ((end.year - start.year) * 12 + end.month - start.month) // self.months


_EVERY = re.compile(r"EVERY ([1-9][0-9]{0,3}) HOURS?", re.ASCII)
HOURLY, DAILY, WEEKLY = Frequency(hours=1), Frequency(hours=24), Frequency(hours=7 * 24)
MONTHLY, QUARTERLY, SIXMONTHLY, ANNUAL = (Frequency(months=number) for number in (1, 3, 6, 12))
NAMED: Final = {
    "HOURLY": HOURLY,
    "DAILY": DAILY,
    "WEEKLY": WEEKLY,
    "MONTHLY": MONTHLY,
    "QUARTERLY": QUARTERLY,
    "SIXMONTHLY": SIXMONTHLY,
    "ANNUAL": ANNUAL,
}
KNOWN: Final = f"one of {', '.join(NAMED)}, or EVERY n HOURS"

LONGEST: Final = timedelta(days=800)  # until a schedule without an end is due; 'every 9999 hours' is the longest
_SECOND = timedelta(seconds=1)
_TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]", re.ASCII)


def check_time(frequency: Frequency, at: str, zone: str) -> None:
    """ValueError for a time of day that a schedule cannot have, or a time zone that this machine does not know."""
    if not _TIME.fullmatch(at):
        raise ValueError(f"{at[:80]!r} is not a time of day, such as 02:00")
    if frequency.hours % 24:
        raise ValueError(f"{str(frequency).lower()} has no time of day; daily, weekly and what is longer have one")
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{zone[:80]!r} is not a time zone, such as Europe/Berlin") from error


class Schedule(Struct, frozen=True, order=True):
    """Due once a period from `start` up to, not including, `end` (None: for ever).

    `refresh`: crawl only the seeds and what they embed, and follow no links. `waits`: what is due waits for the launch
    that runs; of several that became due meanwhile the newest counts. `at`: the time of day, `02:00`, in the time zone
    `zone`; for periods of whole days.
    """

    start: datetime
    frequency: Frequency
    end: datetime | None = None
    refresh: bool = False
    waits: bool = False
    at: str = ""
    zone: str = "UTC"

    @property
    def words(self) -> str:
        """As people write it: `daily at 02:00 Europe/Berlin`."""
        at = f" at {self.at} {self.zone}" if self.at else ""
        return f"{str(self.frequency).lower()}{at}"

    def moment(self, number: int) -> datetime:
        """The time at which it is due for the `number`th time, counted from the day of its start."""
        if not self.at:
            return self.frequency.moment(self.start, number)
        zone = ZoneInfo(self.zone)
        first = datetime.combine(self.start.astimezone(zone).date(), time.fromisoformat(self.at))
        return self.frequency.moment(first, number).replace(tzinfo=zone).astimezone(UTC)

    def due(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The due times after `after`, up to and including `until`, in order."""
        number = max(0, self.frequency.periods(self.start, after) - 1)
        while (moment := self.moment(number)) <= until and self._is_before_end(moment):
            if moment > after and moment >= self.start:
                yield moment
            number += 1

    def holds(self, moment: datetime) -> bool:
        """True if the schedule is in force at this time."""
        return self.start <= moment and self._is_before_end(moment)

    def _is_before_end(self, moment: datetime) -> bool:
        return self.end is None or moment < self.end


def in_words(words: Sequence[str], zone: str, start: datetime) -> Schedule:
    """The schedule that the words ask for: `daily`, `every 6 hours`, `weekly at 02:00`. ValueError if they are none."""
    at = ""
    if len(words) > 1 and words[-2].lower() == "at":
        *words, _, at = words
        at = at.zfill(5)
    try:
        frequency = Frequency.parse(" ".join(words))
    except ValueError as error:
        raise ValueError(str(error).lower()) from error
    if at:
        check_time(frequency, at, zone or "UTC")
    elif zone:
        raise ValueError("the zone is for a time of day: daily at 02:00")
    return Schedule(start, frequency, at=at, zone=zone or "UTC")


def newest_due(schedule: Schedule, now: datetime) -> datetime | None:
    """The last due time up to `now`; None before the first."""
    latest = now if schedule.end is None else min(now, schedule.end - _SECOND)
    before = schedule.frequency.moment(latest, -2)
    return max(schedule.due(before, latest), default=None)


class Missed(Struct, frozen=True):
    """Due times that passed without a launch: the one to launch now, and those for which it is too late."""

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
    """Return the due times from `first` up to, not including, `end` that have no launch yet (`done` is False).

    Only the newest may still be launched, and only within `window`: after an
    outage a crawl runs once, not once for each missed time.
    """
    moments = list(schedule.due(first - _SECOND, min(now, end - _SECOND)))
    lacking = [moment for moment in moments if not done(moment)]
    newest = moments[-1] if moments and now - moments[-1] <= window else None
    launch = newest if newest in lacking else None
    return Missed(launch, tuple(moment for moment in lacking if moment != launch))
