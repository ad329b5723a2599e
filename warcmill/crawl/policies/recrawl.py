"""The time of a URI's next visit: after an age, by a calendar, or the sooner the more often it changes. Pure.

It follows from the history that the last visit has left. The server decides if a visit transfers anything: it is asked
by ETag and Last-Modified.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from warcmill.errors import BadConfig

if TYPE_CHECKING:
    from dateutil.rrule import rrule

NEVER = 0.0
_OFTEN = frozenset(["SECONDLY", "MINUTELY"])


class Age(Struct, frozen=True):
    """Visit again so many seconds after each visit."""

    seconds: float

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise BadConfig("recrawl", f"an age of {self.seconds} seconds; it has to be more than 0")


class Calendar(Struct, frozen=True):
    """Visit again at the times of a rule of RFC 5545 (3.3.10), in UTC: `FREQ=WEEKLY;BYDAY=MO,TH;BYHOUR=6`.

    The parts of a time that the rule leaves out are 0: that one is at 06:00:00.
    """

    rule: str

    def __post_init__(self) -> None:
        _parsed(self.rule)

    def next(self, after: datetime) -> datetime | None:
        """The first time of the calendar after this one. An INTERVAL counts from that day."""
        day = after.replace(hour=0, minute=0, second=0, microsecond=0)
        found: datetime | None = _parsed(self.rule).replace(dtstart=day).after(after)
        return found


@cache
def _parsed(rule: str) -> rrule:
    from dateutil.rrule import rruleset, rrulestr  # noqa: PLC0415 few jobs have a calendar

    try:
        parsed = rrulestr(rule, dtstart=datetime(1970, 1, 1, tzinfo=UTC))
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:
        raise BadConfig("recrawl", f"{rule!r} is not a rule of RFC 5545: {error}") from error
    words = rule.upper().replace("RRULE:", "").split(";")
    if isinstance(parsed, rruleset) or {word.partition("=")[2] for word in words} & _OFTEN or "COUNT" in rule:
        raise BadConfig("recrawl", f"{rule!r}: one rule, of HOURLY or rarer, without COUNT")
    return parsed


class Adaptive(Struct, frozen=True):
    """Visit again after a `share` of the time for which a page has not changed, within bounds in seconds.

    As caches reckon how long a page stays fresh (RFC 9111, 4.2.2): what has changed an hour ago is visited
    soon, what has been the same for a year, rarely.
    """

    share: float = 0.1
    least: float = 3_600.0
    most: float = 30 * 86_400.0

    def __post_init__(self) -> None:
        if not (0 < self.share and 0 < self.least <= self.most):
            raise BadConfig("recrawl", f"share and least have to be more than 0, and least at most `most`: {self}")


Recrawl = Age | Calendar | Adaptive


def again(recrawl: Recrawl, visited: float, changed: float) -> float:
    """When to visit again what was visited, and last seen to change, at these times; NEVER: not any more."""
    match recrawl:
        case Age(seconds):
            return visited + seconds
        case Calendar():
            found = recrawl.next(datetime.fromtimestamp(visited, UTC))
            return found.timestamp() if found else NEVER
        case Adaptive(share, least, most):
            return visited + min(max((visited - changed) * share, least), most)
