"""The accounts that roles of a deployment share: counts by time, signs of life, expiries, stops, the policy, questions.

`Accounts` is the protocol: `file` implements it by a SQLite file of the job's machine, `over_redis` for roles on many
machines. Each call is a transaction. Unavailable when the accounts cannot be read or written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

WINDOWS: Final = (900, 3600, 21600, 43200, 86400, 604800)
"""Seconds over which counts are summed, besides the lifetime."""

LIFETIME: Final = "lifetime"
CLAIM: Final = 60.0
"""Seconds after which another process may take up what one has claimed."""

HOME: Final = "home"
"""The role whose signs of life a process on the machine of the job gives besides."""

NO_HOME: Final = (
    "no 'warcmill run requests' runs on the job's own machine: pages that the job's process fetches are not sent, and"
    " rates, bans and stops are in Redis alone; start one there"
)

Sums = Mapping[str, Mapping[str, int]]
"""Counts by name, then by window; a window without any is left out."""


class CrawlKey(NamedTuple):
    """The requests of an application in one crawl of a spider."""

    spiderid: str
    appid: str
    crawlid: str

    @property
    def text(self) -> str:
        """The key as JSON."""
        return json.dumps(self)


class DomainRate(NamedTuple):
    """`hits` times `scale` in `window` seconds."""

    hits: int
    window: int
    scale: float


class DomainPolicy(Struct, frozen=True):
    """The rates of domains, and the domains that are not crawled."""

    rates: Mapping[str, DomainRate]
    bans: frozenset[str]


class AsideMessage(NamedTuple):
    """A message that waits for the job: its place on the bus, its handler and its document; `since` when."""

    place: str
    handler: str
    document: str
    since: float


class AccountChange(NamedTuple):
    """A change that must not be lost: a name, and its words. A crawl, a rate and a message are words in JSON.

    `expire` crawl time, `stop` crawl, `put_aside` place message crawl-if-a-stop, `end_aside` place, `set_rate` domain
    rate-if-one, `ban` domain 0-or-1. Made again, one changes nothing.
    """

    name: str
    words: list[str]


class Accounts(Protocol):
    """The accounts of a job's roles."""

    def count(self, role: str, names: Iterable[str], number: int = 1) -> None:
        """Add to counts of now, and forget those that no window has."""

    def sums(self, role: str) -> Sums:
        """Return the counts of a role; what is zero is left out."""

    def grown(self, name: str, value: int) -> int:
        """Note the value of a number that only grows, but begins again with a launch; return by how much it grew."""

    def live(self, role: str, machine: str, name: str, seconds: float) -> None:
        """Give a sign of life, which counts for so long."""

    def leave(self, role: str, machine: str, name: str) -> None:
        """Take the sign of life back."""

    def lives(self, role: str) -> dict[str, list[str]]:
        """Return who of a role is alive, by machine."""

    def expire(self, crawl: CrawlKey, at: int) -> None:
        """Note when a crawl expires; the last word counts. 0: that it does not."""

    def expires(self, crawls: Iterable[CrawlKey]) -> dict[CrawlKey, int]:
        """Return when crawls expire; those that do not are left out."""

    def claim_expired(self) -> list[CrawlKey]:
        """Return crawls that have expired, and that no other process takes up now. `expire(crawl, 0)` ends that."""

    def stop(self, crawl: CrawlKey) -> None:
        """Note that a crawl follows no links from now on: it fetches only what applications ask for."""

    def is_stopped(self, crawl: CrawlKey) -> bool:
        """True if a crawl was stopped."""

    def put_aside(self, message: AsideMessage, crawl: CrawlKey, *, stops: bool, most: int) -> bool:
        """Keep a message that waits for the job; False if `most` wait. `stops`: it is a stop of that crawl."""

    def stops_aside(self) -> set[CrawlKey]:
        """Return the crawls whose stop waits."""

    def claim_aside(self) -> list[AsideMessage]:
        """Return what waits, in its order, unless another process has some of it; `end_aside` ends that."""

    def end_aside(self, place: str) -> None:
        """Forget a message that was answered."""

    def free_aside(self) -> None:
        """Let any process take up what waits."""

    def set_rate(self, domain: str, rate: DomainRate | None) -> None:
        """Set the rate of a domain; None removes its own rate."""

    def ban(self, domain: str, *, banned: bool) -> None:
        """Ban a domain, or allow it again."""

    def policy(self) -> DomainPolicy:
        """Return the policy."""

    def close(self) -> None:
        """Close the connection."""
