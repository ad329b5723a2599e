"""How long a host is left alone after an answer: Heritrix's formula, what the host asks for, and backing off.

All times are in seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from warcmill.crawl.limits import CONNECT_FAILED, CONNECTION_LOST, TIMED_OUT

DOUBLING, RECOVERY = 2.0, 0.9
SLOWEST = 64.0  # times the ordinary delay
LONGEST = 86_400.0  # what a host may ask for by Retry-After
_UNWILLING = frozenset([429, 503, CONNECT_FAILED, TIMED_OUT, CONNECTION_LOST])
_SECONDS = re.compile(r"\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Politeness:
    """Wait `factor` times as long as the fetch took, at least `least`, at most `most`; Heritrix's own figures.

    A robots.txt's crawl-delay is kept up to `respected`. `by_address`: hosts that share an address wait for each other.
    """

    factor: float = 5.0
    least: float = 3.0
    most: float = 30.0
    respected: float = 300.0
    by_address: bool = True

    @property
    def is_off(self) -> bool:
        """True if no host is ever left alone, whatever it asks for."""
        return not (self.factor or self.least or self.respected)


@dataclass(frozen=True, slots=True)
class Wait:
    """How long to leave a host alone now; `strain` is by how much its delays are multiplied, 1 when it is well."""

    seconds: float
    strain: float = 1.0


def wait(settings: Politeness, strain: float, took: float, status: int, asked: float = 0.0, crawl: float = 0.0) -> Wait:
    """The wait after a fetch that `took` so long. `asked` is its Retry-After, `crawl` the host's crawl-delay.

    An answer that says "too much", or none in time, doubles the delay of the host; each other takes a tenth off it.
    """
    strain = min(strain * DOUBLING, SLOWEST) if status in _UNWILLING else max(strain * RECOVERY, 1.0)
    delay = min(max(took * settings.factor, settings.least), settings.most)
    delay = max(delay, min(crawl, settings.respected)) * strain
    return Wait(max(delay, min(asked, LONGEST)), strain)


def retry_after(value: str, now: datetime) -> float:
    """What a Retry-After asks for: seconds, or until a date (RFC 9110, 10.2.3); 0 when it is neither, or past."""
    if not value:
        return 0.0
    if _SECONDS.fullmatch(value.strip()):
        return min(float(value), LONGEST)
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 it imports much, and few servers say so

    try:
        until = parsedate_to_datetime(value)
    except (ValueError, IndexError, TypeError, OverflowError):
        return 0.0
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((until - now).total_seconds(), 0.0), LONGEST)
