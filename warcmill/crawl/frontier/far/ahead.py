"""What a process asks of its Redis before it needs it: leases, and which URIs are known. Pure.

Leases are taken ahead as far as a round trip is worth: two of them at the present rate. Who asks for some gets these at
once. One that nobody has used for a while is given back; so are all when the process ends, or is declared dead.

An answer is old when it is used: what this process has offered since is known besides.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from warcmill.crawl.frontier import Lease
from warcmill.crawl.frontier.outbox import MOST
from warcmill.crawl.uri import Uri, digest

KEPT = 1.0  # seconds, and some round trips, that a lease is kept for somebody who asks
_RATE_SECONDS = 2.0  # over which the rate is taken


class Asker(NamedTuple):
    """Who asks for leases: the holder, the spider whose URIs they are, and for how many seconds."""

    holder: str
    spider: str
    seconds: float


class Ahead:
    """The leases that were taken ahead. `holds` is asked if one is still this process's."""

    def __init__(self, now: Callable[[], float], holds: Callable[[Lease], bool]) -> None:
        self._now, self._holds = now, holds
        self._kept: dict[Asker, deque[Lease]] = {}
        self._given: deque[tuple[float, int]] = deque()

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def keep(self, asker: Asker, leases: Iterable[Lease]) -> None:
        """Keep leases until somebody asks."""
        self._kept.setdefault(asker, deque()).extend(leases)

    def take(self, asker: Asker, limit: int) -> list[Lease]:
        """Take up to so many that have not ended."""
        kept, found, now = self._kept.get(asker, deque()), list[Lease](), self._now()
        while kept and len(found) < limit:
            lease = kept.popleft()
            if self._holds(lease) and lease.until > now:
                found.append(lease)
        return found

    def unused(self, of: Iterable[Lease] | None = None) -> list[Lease]:
        """Take those that are still there of some, or all."""
        wanted = None if of is None else {lease.token for lease in of}
        found = [one for kept in self._kept.values() for one in kept if wanted is None or one.token in wanted]
        gone = {lease.token for lease in found}
        self._kept = {asker: deque(one for one in kept if one.token not in gone) for asker, kept in self._kept.items()}
        return [lease for lease in found if self._holds(lease)]

    def given(self, number: int) -> None:
        """Note that so many were given to who asked."""
        now = self._now()
        self._given.append((now, number))
        while self._given[0][0] < now - _RATE_SECONDS:
            self._given.popleft()

    def lacks(self, asker: Asker, round_trip: float) -> int:
        """How many more are to be taken ahead; 0 while there is more than half."""
        if not round_trip or not self._given:
            return 0
        span = max(self._now() - self._given[0][0], round_trip)
        wanted = min(MOST, math.ceil(2 * round_trip * sum(number for _, number in self._given) / span))
        kept = len(self._kept.get(asker, ()))
        return wanted - kept if kept <= wanted / 2 else 0


class Foresight:
    """The answers to which URIs are known, of before a change is made. It hears of what is offered since; `ask` answers
    for URIs that nobody has foreseen."""

    def __init__(self, ask: Callable[[Sequence[Uri]], list[bool]]) -> None:
        self._ask = ask
        self._offered = set[bytes]()
        self._known: dict[bytes, bool] = {}

    def note_offered(self, offered: set[bytes]) -> None:
        """Hear of what another change has offered."""
        self._offered |= offered

    def note_known(self, uris: Sequence[Uri], answers: Iterable[bool]) -> None:
        """Hear of the answers."""
        self._known |= zip((digest(uri.crawl, uri.key) for uri in uris), answers, strict=True)

    def knows(self, uris: Sequence[Uri]) -> list[bool]:
        """Which URIs are known."""
        names = [digest(uri.crawl, uri.key) for uri in uris]
        if unforeseen := [uri for uri, name in zip(uris, names, strict=True) if name not in self._known]:
            self.note_known(unforeseen, self._ask(unforeseen))
        return [name in self._offered or self._known[name] for name in names]
