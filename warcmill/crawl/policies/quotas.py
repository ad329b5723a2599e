"""The quotas of a host, a target and a crawl, and the ceilings at which a crawl ends: asked at each lease. Pure.

A prerequisite of a fetch (`P`, a robots.txt) is never refused: without it nothing else of its host could be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct, field

from warcmill.base import clock
from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.uri import Uri
from warcmill.errors import BadConfig

NAME = "quotas"


class By(StrEnum):
    """The sharers of a quota: a host and port, what was found from one seed, or one crawl."""

    HOST = "host"
    TARGET = "target"
    CRAWL = "crawl"

    __hash__ = str.__hash__  # that of an enum is a function of Python


class Spent(NamedTuple):
    """The sum of all fetches: documents, bytes as transferred, and seconds."""

    documents: int = 0
    bytes: int = 0
    seconds: float = 0.0


_NOTHING = Spent()


class Quota(Struct, frozen=True):
    """The most of each `by`; 0: any number. Fetches under way when it is reached are finished."""

    by: By
    documents: int = 0
    bytes: int = 0
    seconds: int = 0

    def __post_init__(self) -> None:
        if min(self.documents, self.bytes, self.seconds) < 0:
            raise BadConfig(f"quota by {self.by}", f"a negative number: {self}")

    def reached(self, spent: Spent) -> str:
        """The count that has been fetched in full: "1,000 documents"; '' while there is room."""
        if self.documents and spent.documents >= self.documents:
            return f"{self.documents:,} documents"
        if self.bytes and spent.bytes >= self.bytes:
            return f"{self.bytes:,} bytes"
        return f"{self.seconds:,} seconds" if self.seconds and spent.seconds >= self.seconds else ""


NAMES: Mapping[By, Callable[[Uri], str]] = {
    By.HOST: attrgetter("queue"),
    By.TARGET: attrgetter("source"),
    By.CRAWL: attrgetter("crawl"),
}


def judge(quotas: Iterable[Quota], spent: Mapping[By, Spent], uri: Uri) -> Decision | None:
    """Return the quota that a URI has none left of; `spent` is what was fetched of its host, target and crawl."""
    if uri.hops.endswith("P"):
        return None
    for quota in quotas:
        if most := quota.reached(spent.get(quota.by, _NOTHING)):
            name = NAMES[quota.by](uri) or "of the job"
            return Decision(Verdict.REJECT, NAME, f"{most} of {quota.by} {name} were fetched")
    return None


class Expiry(Struct, frozen=True):
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
