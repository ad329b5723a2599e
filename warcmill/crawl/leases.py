"""The leases that are out. They are known in memory alone: after a restart all of it waits again."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from warcmill.crawl.frontier import Lease


class Held(NamedTuple):
    """A lease, with the ids of its queue and crawl, and the digest of its URI."""

    lease: Lease
    queue: int
    crawl: int
    digest: bytes


class Leases:
    """The leases by the ids of their rows."""

    def __init__(self) -> None:
        self._held: dict[int, Held] = {}
        self._ends: list[tuple[float, list[int]]] = []

    def __contains__(self, number: object) -> bool:
        return number in self._held

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Held]:
        return iter(self._held.values())

    def add(self, until: float, held: list[Held]) -> list[Lease]:
        """Note leases that all end then, and return them."""
        leases = [one.lease for one in held]
        ids = [lease.id for lease in leases]
        self._held.update(zip(ids, held, strict=True))
        if ids:
            heapq.heappush(self._ends, (until, ids))
        return leases

    def get(self, number: int) -> Held | None:
        """Return the lease of a row."""
        return self._held.get(number)

    def holds(self, lease: Lease) -> bool:
        """True if a lease has not ended: it, and no later one of its row."""
        held = self._held.get(lease.id)
        return held is not None and held.lease.until == lease.until and held.lease.holder == lease.holder

    def end(self, lease: Lease) -> Held | None:
        """End a lease; None when it has ended before."""
        return self._held.pop(lease.id) if self.holds(lease) else None

    def pop(self, number: int) -> Held | None:
        """End the lease of a row."""
        return self._held.pop(number, None)

    def expired(self, now: float) -> Iterator[Held]:
        """End the leases whose time is over, and yield them."""
        while self._ends and self._ends[0][0] <= now:
            until, ids = heapq.heappop(self._ends)
            for number in ids:
                held = self._held.get(number)
                if held and held.lease.until == until:
                    yield self._held.pop(number)

    def clear(self) -> None:
        """End all."""
        self._held.clear()
        self._ends.clear()
