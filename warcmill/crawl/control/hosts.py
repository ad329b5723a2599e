"""The hosts for which most waits, counted some rows at a time: a look never walks all that waits. Asks the frontier.

Each call counts the next rows in the order of the queues, and after the last one the counts are those of a whole round.
So what is small is exact at each call, and 10^6 rows take some hundred calls. Nothing is counted while nobody looks.
"""

from __future__ import annotations

import heapq
from collections import Counter

from msgspec import Struct

from warcmill.crawl.frontier import FIRST_PLACE, Frontier, QueuePlace
from warcmill.errors import NotReady

ROWS = 10_000  # of one call
MOST = 100  # hosts that are named


class WaitingHosts(Struct, frozen=True):
    """The hosts for which most waits, of the last whole round; of the one that is under way, before there is one.

    `rows`: all that were counted in it. `is_whole`: False in the first round. `why`: the reason for which none are
    counted.
    """

    by_host: tuple[tuple[str, int], ...] = ()
    rows: int = 0
    is_whole: bool = False
    why: str = ""


class HostCount:
    """Counts what waits by host, over the calls of `look`."""

    def __init__(self, frontier: Frontier) -> None:
        self._frontier = frontier
        self._after: QueuePlace = FIRST_PLACE
        self._counts, self._rows = Counter[str](), 0
        self._last: WaitingHosts | None = None

    async def look(self) -> WaitingHosts:
        """Count some more, and return what is known."""
        try:
            found = await self._frontier.queues_after(self._after, ROWS)
        except NotReady as error:
            return WaitingHosts(why=str(error))
        for queue, number in found.counts:
            self._counts[host_of(queue)] += number
            self._rows += number
        if len(self._counts) > 10 * MOST:  # a crawl of many hosts: small ones are dropped on the way
            self._counts = Counter(dict(self._greatest()))
        self._after = found.next or FIRST_PLACE
        if found.next:
            return self._last or WaitingHosts(self._greatest(), self._rows)
        self._last = WaitingHosts(self._greatest(), self._rows, True)
        self._counts, self._rows = Counter(), 0
        return self._last

    def _greatest(self) -> tuple[tuple[str, int], ...]:
        return tuple(heapq.nsmallest(MOST, self._counts.items(), key=lambda one: (-one[1], one[0])))


def host_of(queue: str) -> str:
    """The host of a queue, which is by host and port."""
    return queue if queue.endswith("]") else queue.rpartition(":")[0] or queue
