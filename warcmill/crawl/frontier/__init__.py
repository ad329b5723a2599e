"""What is still to be fetched, and what was seen: the protocol of every frontier, and the values that pass through it.

A URI is offered, leased to a holder, and finished or deferred. A lease passes a
*gate*, by which rates and blocks are kept. All calls take batches, and may be
repeated: what was done already is not done twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, Protocol

from warcmill.crawl.uri import DONE, FOREVER, LONGEST_PAYLOAD, LONGEST_URI, Status, Uri, check_move, shown
from warcmill.errors import BadInput

LONGEST_HISTORY = 200
PRIORITIES = range(-(1 << 31), 1 << 31)
LEASE_SECONDS = 3600.0


class Gate(NamedTuple):
    """What a lease passes: the queue; later also the spider that asks and the address that it goes out by."""

    queue: str
    spider: str = ""
    exit: str = ""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `hits` times `scale` leases of a gate in any `window` of seconds, evenly apart when `moderated`.

    `at_once` is how many of its leases may be out together; None: any number. Without `hits` only this counts.
    """

    hits: int | None = None
    window: float = 1.0
    scale: float = 1.0
    moderated: bool = False
    at_once: int | None = 1

    def __post_init__(self) -> None:
        wrong = (
            "hits" if self.hits is not None and not 1 <= self.hits <= 10_000
            else "window" if not 0 < self.window <= 86_400 * 31
            else "scale" if not 0 < self.scale <= 1_000
            else "at_once" if self.at_once is not None and self.at_once < 1
            else ""
        )  # fmt: skip
        if wrong:
            raise BadInput("rate", f"{wrong} is out of its range: {getattr(self, wrong)}")

    @property
    def whole(self) -> tuple[int, float]:
        """Hits and window with the scale in them; less than one hit makes the window longer."""
        hits = (self.hits or 0) * self.scale
        return (int(hits), self.window) if hits >= 1 else (1, self.window / hits)


POLITE = Rate()
"""One after the other: the rate of a gate that has none of its own."""


class Lease(NamedTuple):
    """A URI that `holder` may fetch until `until`; `history` is what its last visit left."""

    id: int
    uri: Uri
    gate: Gate
    holder: str
    until: float
    history: bytes = b""


class Intake(StrEnum):
    """What became of an offer."""

    NEW = "new"
    SEEN = "seen"
    REFUSED = "refused"


class Offered(NamedTuple):
    """The answer to one offer; `why` when it was refused."""

    answer: Intake
    why: str = ""


class Finish(NamedTuple):
    """A visit that has ended, with the lease's URI as it is now: Parsed, Failed or Removed.

    `opens` is when its gate may be passed again, `again` when it is to be visited again; 0: at once, and never.
    """

    lease: Lease
    history: bytes = b""
    opens: float = 0.0
    again: float = 0.0


class Defer(NamedTuple):
    """A URI that waits until `until`; FOREVER suspends it, 0 ends the wait. With a lease, the lease ends."""

    crawl: str
    key: str
    until: float
    lease: Lease | None = None
    opens: float = 0.0


class UriPage(NamedTuple):
    """Some of the URIs that wait, and where the next call begins; 0 when there are no more."""

    uris: list[Uri]
    next: int


class Frontier(Protocol):
    """A frontier. Times are seconds since 1970, by its own clock. Every method may raise Unavailable."""

    async def offer(self, uris: Sequence[Uri]) -> list[Offered]:
        """Schedule the URIs that its crawl has not seen; answer for each, in order."""
        ...

    async def lease(self, holder: str, limit: int, seconds: float = LEASE_SECONDS) -> list[Lease]:
        """Lease up to `limit` URIs whose gates are open: by priority, then in order of arrival."""
        ...

    async def finish(self, visits: Sequence[Finish]) -> list[bool]:
        """End visits; False for a lease that has ended before."""
        ...

    async def defer(self, waits: Sequence[Defer]) -> list[bool]:
        """Let URIs wait; False for one that does not wait here, and for a lease that has ended before."""
        ...

    async def block(self, gate: Gate, until: float) -> None:
        """Close a gate until then; FOREVER, or a time gone by, which opens it."""
        ...

    async def set_rate(self, gate: Gate, rate: Rate | None) -> None:
        """Set the rate of a gate, that of every gate with none of its own (queue ''), or None for none of its own."""
        ...

    async def purge(self, crawl: str, keys: Sequence[str] | None = None) -> int:
        """Forget a crawl, its seen-set too, and return how many of its URIs waited; or remove some URIs, which
        are not taken again."""
        ...

    async def count(self, crawl: str = "") -> Mapping[Status, int]:
        """Count a crawl's URIs by status, without walking them."""
        ...

    async def list(
        self, crawl: str = "", keys: Sequence[str] | None = None, after: int = 0, limit: int = 100
    ) -> UriPage:
        """List URIs that wait, in order of arrival; or those of these keys, visited ones too."""
        ...

    async def snapshot(self, path: Path) -> None:
        """Copy it whole, durable, to a new file."""
        ...


def digest(crawl: str, key: str) -> bytes:
    """The 16 bytes by which a frontier knows a URI of a crawl."""
    return blake2b(f"{len(crawl)} {crawl} {key}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def check_offer(uri: Uri) -> None:
    """BadInput, with what is wrong, for a URI that no frontier takes."""
    check_move(uri, Status.SUSPENDED if uri.not_before >= FOREVER else Status.SCHEDULED)
    for what, text, limit in (("URI", uri.uri, LONGEST_URI), ("key", uri.key, LONGEST_URI)):
        if not text or len(text) > limit:
            raise BadInput(shown(uri.key), f"its {what} is empty, or longer than {limit} letters")
    if len(uri.payload) > LONGEST_PAYLOAD // 4 and len(uri.payload.encode()) > LONGEST_PAYLOAD:
        raise BadInput(shown(uri.key), f"its payload is larger than {LONGEST_PAYLOAD} bytes")
    try:
        f"{uri.key}{uri.uri}{uri.crawl}{uri.hops}{uri.via}{uri.source}{uri.payload}{uri.cluster}".encode()
    except UnicodeEncodeError as error:
        raise BadInput(shown(uri.key), "one of its texts is not UTF-8") from error
    if uri.priority not in PRIORITIES:
        raise BadInput(shown(uri.key), f"its priority {uri.priority} is out of range")


def check_visit(uri: Uri, history: bytes) -> None:
    """BadInput when a visit does not end with such a status, or its history is larger than a frontier keeps."""
    if uri.status not in DONE:
        raise BadInput(shown(uri.key), f"a visit does not end with {uri.status}")
    if len(history) > LONGEST_HISTORY:
        raise BadInput(shown(uri.key), f"its history has {len(history)} bytes, {LONGEST_HISTORY} is the limit")
