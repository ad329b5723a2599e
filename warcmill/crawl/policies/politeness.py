"""The time for which a host is left alone after an answer: Heritrix's formula, the host's wish, and backing off. Pure.

All times are in seconds.
"""

from __future__ import annotations

from msgspec import Struct

from warcmill.crawl.fetch.answer import LONGEST_WAIT
from warcmill.crawl.fetch.limits import CONNECT_FAILED, CONNECTION_LOST, TIMED_OUT

DOUBLING, RECOVERY = 2.0, 0.9
SLOWEST = 64.0  # times the ordinary delay
_UNWILLING = frozenset([429, 503, CONNECT_FAILED, TIMED_OUT, CONNECTION_LOST])


class Politeness(Struct, frozen=True):
    """Wait `factor` times as long as the fetch took, at least `least`, at most `most`; Heritrix's own figures.

    A robots.txt's crawl-delay is kept up to `respected`. `by_address`: hosts that share an address wait for each other.
    `at_once` is the number of requests that a host may have under way; 0: one, or as many as there are workers if
    politeness is off.
    """

    factor: float = 5.0
    least: float = 3.0
    most: float = 30.0
    respected: float = 300.0
    by_address: bool = True
    at_once: int = 0

    @property
    def is_off(self) -> bool:
        """True if no host is ever left alone, whatever it asks for."""
        return not (self.factor or self.least or self.respected)


class Wait(Struct, frozen=True):
    """The time to leave a host alone now; `strain` is the factor of its delays, 1 when it is well."""

    seconds: float
    strain: float = 1.0


def wait(settings: Politeness, strain: float, took: float, status: int, asked: float = 0.0, crawl: float = 0.0) -> Wait:
    """The wait after a fetch that `took` so long. `asked` is its Retry-After, `crawl` the host's crawl-delay.

    An answer that means "too much", or none in time, doubles the delay of the host; each other takes a tenth off it.
    """
    strain = min(strain * DOUBLING, SLOWEST) if status in _UNWILLING else max(strain * RECOVERY, 1.0)
    delay = min(max(took * settings.factor, settings.least), settings.most)
    delay = max(delay, min(crawl, settings.respected)) * strain
    return Wait(max(delay, min(asked, LONGEST_WAIT)), strain)
