"""How much of a host, a target or a crawl is fetched, and until when a crawl is: asked at each lease.

What a fetch needs first (`P`, a robots.txt) is never refused: without it nothing else of its host could be judged.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from warcmill.base import clock
from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.uri import Uri
from warcmill.errors import BadConfig

REMEMBERED = 100_000  # hosts, targets and crawls that are counted


class By(StrEnum):
    """What shares a quota: a host and port, what was found from one seed, or one crawl."""

    HOST = "host"
    TARGET = "target"
    CRAWL = "crawl"


class Spent(NamedTuple):
    """What was fetched: documents, bytes as transferred, and seconds that the fetches took."""

    documents: int = 0
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Quota:
    """The most of each `by`; 0: any number. What is under way when it is reached is still fetched."""

    by: By
    documents: int = 0
    bytes: int = 0
    seconds: int = 0

    def __post_init__(self) -> None:
        if min(self.documents, self.bytes, self.seconds) < 0:
            raise BadConfig(f"quota by {self.by}", f"a negative number: {self}")

    def reached(self, spent: Spent) -> str:
        """What has been fetched in full: "1,000 documents"; '' while there is room."""
        if self.documents and spent.documents >= self.documents:
            return f"{self.documents:,} documents"
        if self.bytes and spent.bytes >= self.bytes:
            return f"{self.bytes:,} bytes"
        return f"{self.seconds:,} seconds" if self.seconds and spent.seconds >= self.seconds else ""


_NAMES: Mapping[By, Callable[[Uri], str]] = {
    By.HOST: lambda uri: uri.queue,
    By.TARGET: lambda uri: uri.source,
    By.CRAWL: lambda uri: uri.crawl,
}


class Quotas:
    """Counts what is fetched, and refuses what is over a quota.

    Of very many hosts, those that were met last are counted.
    """

    name = "quotas"

    def __init__(self, quotas: Iterable[Quota]) -> None:
        self._quotas = tuple(quotas)
        self._by = {quota.by for quota in self._quotas}
        self._spent: OrderedDict[tuple[By, str], Spent] = OrderedDict()

    def judge(self, uri: Uri) -> Decision | None:
        """Return the quota that a URI has none left of."""
        if uri.hops.endswith("P"):
            return None
        for quota in self._quotas:
            name = _NAMES[quota.by](uri)
            if most := quota.reached(self._spent.get((quota.by, name), Spent())):
                return Decision(Verdict.REJECT, self.name, f"{most} of {quota.by} {name or 'the launch'} were fetched")
        return None

    def fetched(self, uri: Uri, size: int, seconds: float) -> None:
        """Count an answer; after a restart also each one that the log has of this launch."""
        for by in self._by:
            key = by, _NAMES[by](uri)
            documents, total, took = self._spent.pop(key, Spent())
            self._spent[key] = Spent(documents + 1, total + size, took + seconds)
            if len(self._spent) > REMEMBERED:
                self._spent.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Expiry:
    """When crawls end, in seconds since 1970, by the name of their namespace: what waits then is not fetched."""

    ends: Mapping[str, float] = field(default_factory=dict)
    name: str = "expiry"

    def judge(self, uri: Uri, now: float) -> Decision | None:
        """Return when a URI's crawl ended."""
        end = self.ends.get(uri.crawl)
        if end is None or now < end:
            return None
        named = f"crawl {uri.crawl}" if uri.crawl else "the crawl"
        return Decision(Verdict.REJECT, self.name, f"{named} ended at {clock.text(datetime.fromtimestamp(end, UTC))}")
