"""The frontier: all that a crawl knows. The protocol of every form of it, and the values that pass through. Pure.

A URI is offered, leased to a holder, and finished or deferred, or a person removes it. A lease belongs to its visit:
what a person asks for meanwhile, `defer` or `remove`, takes effect at its end. A lease passes a *gate*, by which rates
and blocks are kept. A frontier also keeps what visits share: cookies, the robots.txt of each site, the
sums that quotas count, and the memory of a spider that is not this crawler: what it needs in order to continue.

It has two forms:

    sqlite    the frontier of one process, in the database of its books, and committed with them
    redis     the frontier of workers on many machines; each journals a change on its own disk before Redis hears it

Everything outside this folder is written against `Frontier` and `Change`, and one place opens a form
(`crawl/launch/database.py`). All calls take batches, and may be repeated without a second effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from msgspec import Struct, field

from warcmill.crawl.fetch.cookies import Cookie, Jar
from warcmill.crawl.policies.quotas import By, Spent
from warcmill.crawl.uri import (
    DONE,
    FOREVER,
    LONGEST_URI,
    Status,
    Transitions,
    Uri,
    check_move,
    shown,
    waits,
)
from warcmill.errors import BadInput, WarcmillError
from warcmill.formats.logs.crawllog import CrawlRecord

if TYPE_CHECKING:
    from warcmill.crawl.policies.owners import HeardOwners

T = TypeVar("T")
E = TypeVar("E", "Finish", "Defer")
LONGEST_HISTORY = 200
LONGEST_PAYLOAD = 1 << 24  # bytes: a spider's request has its body and what it passes on in it
PRIORITIES = range(-(1 << 53), (1 << 53) + 1)  # a score in Redis has no more digits
LEASE_SECONDS = 3600.0


class Gate(NamedTuple):
    """The gate that a lease passes: the queue; where rates are by more (`GateBy`), also the spider that asks, and the
    public address by which it goes out."""

    queue: str
    spider: str = ""
    exit: str = ""


class GateBy(StrEnum):
    """The parts of a gate: those that have all of them in common share a rate."""

    QUEUE = "queue"
    SPIDER = "queue+spider"
    EXIT = "queue+exit"
    BOTH = "queue+spider+exit"


class Rate(Struct, frozen=True):
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
    """A URI that `holder` may fetch until `until`; `history` is what its last visit left. `token` distinguishes it from
    other leases of its URI, where several processes share a frontier."""

    id: int
    uri: Uri
    gate: Gate
    holder: str
    until: float
    history: bytes = b""
    token: int = 0


class Intake(StrEnum):
    """The fate of an offer. RENEWED: a known URI is taken again, or waits as it is offered now. CANCELLED: it is
    removed. HANDED: it is of a host that is not surely this crawl's, and was handed over for the first time; SEEN when
    it was before."""

    NEW = "new"
    SEEN = "seen"
    REFUSED = "refused"
    RENEWED = "renewed"
    CANCELLED = "cancelled"
    HANDED = "handed"


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
    """A URI that waits until `until`; FOREVER suspends it, 0 ends the wait. With a lease, the lease ends.

    Without one, a visit that is under way continues, and the URI waits so if it still waits after that. `tries` is how
    often it was tried; None leaves that as it is.
    """

    crawl: str
    key: str
    until: float
    lease: Lease | None = None
    opens: float = 0.0
    tries: int | None = None


GONE = -1.0
"""Asked of a URI that is leased: it does not wait after its visit."""


def as_asked(end: E, asked: float | None, renewed: float | None = None) -> E:
    """The end of a lease with the wait that a person has asked for meanwhile; None: nobody has. `renewed`: from when on
    its URI may be visited again, as it was offered anew."""
    if isinstance(end, Defer):
        until = end.until if renewed is None else renewed
        return end._replace(until=until if asked is None else max(asked, 0.0))
    if renewed is not None:
        end = end._replace(again=renewed)
    if asked is None:
        return end
    if not end.again or 0.0 <= asked < FOREVER:
        return end
    return end._replace(again=0.0 if asked == GONE else FOREVER)


class UriPage(NamedTuple):
    """Some of the URIs that wait, and where the next call begins; 0 when there are no more."""

    uris: list[Uri]
    next: int


class Waited(NamedTuple):
    """The URIs of a crawl that wait in one queue for one source: their number, and their first and last priority."""

    crawl: str
    queue: str
    source: str
    number: int
    first: int
    last: int


class SiteRow(NamedTuple):
    """The last status of a site's robots.txt, its text, until when it counts, and how often it was asked in vain."""

    origin: str
    status: int
    until: float
    failures: int = 0
    text: bytes = b""


class Memory(NamedTuple):
    """The texts that a spider remembers, by their names, '' for one that was forgotten; and the version of all."""

    version: int
    texts: Mapping[str, str]


Sums = Mapping[By, Spent]
"""The sums of the host, the target and the crawl of a URI."""


class Begins(Enum):
    """The part that a launch takes over from the one before: FRESH, nothing that waits; FOLLOWS, what waits; KEEPS,
    of an endless job, what was seen too; CONTINUES, the sums of quotas too, so that it counts on."""

    FRESH = "fresh"
    FOLLOWS = "follows"
    KEEPS = "keeps"
    CONTINUES = "continues"


QueuePlace = tuple[int, int, int]
"""A place in the order of queues: a queue, a priority and a row in it; with row 0, the end of the queue."""

FIRST_PLACE: QueuePlace = (-1, 0, 0)


class QueueSlice(NamedTuple):
    """Some rows in the order of queues: how many of each queue, and where the next call begins; None after the last."""

    counts: Sequence[tuple[str, int]]
    next: QueuePlace | None


class Waiting(Struct, frozen=True):
    """The URIs that a frontier still has: `by_queue` counts URIs by the name of their queue, the longest first.

    `discovered` counts all URIs ever taken. Queues are ready, snoozed until a time, retired (blocked), or exhausted.
    """

    discovered: int = 0
    queued: int = 0
    by_queue: Mapping[str, int] = field(default_factory=dict)
    ready: int = 0
    snoozed: int = 0
    retired: int = 0
    exhausted: int = 0
    in_process: int = 0


class Change(Protocol):
    """The calls that one change of a frontier is made of (see `Frontier.change`); each sees those before it."""

    def holds(self, lease: Lease) -> bool:
        """True if a lease has not ended: it, and no later one of its URI."""
        ...

    def as_asked(self, end: E) -> E:
        """The end of a lease with the wait that a person has asked for meanwhile, as a journal has it."""
        ...

    def offer(self, uris: Sequence[Uri]) -> list[Offered]:
        """Schedule the URIs that their crawl has not seen, or that are to be renewed; answer for each, in order."""
        ...

    def finish(self, visits: Sequence[Finish]) -> list[bool]:
        """End visits; False for a lease that has ended before."""
        ...

    def defer(self, waits: Sequence[Defer]) -> list[bool]:
        """Let URIs wait; False for one that does not wait here, and for a lease that has ended before."""
        ...

    def visit(self, uri: Uri, history: bytes, again: float = 0.0, *, by_hand: bool = False) -> bool:
        """Note the visit of a URI that was not leased; True if it waited. Its wait, and a lease of it, end.

        Of one that a person removes, or names as visited (`by_hand`), a lease continues: its own visit counts at its
        end, and the URI does not wait then.
        """
        ...

    def keep_cookies(self, crawl: str, changed: Sequence[Cookie]) -> None:
        """Keep what an answer has changed in a crawl's jar."""
        ...

    def keep_site(self, row: SiteRow) -> None:
        """Keep the robots.txt of a site."""
        ...

    def remember(self, spider: str, changed: Mapping[str, str]) -> None:
        """Keep what a spider remembers, texts by their names; '' forgets a text."""
        ...

    def spend(self, documents: Iterable[tuple[Uri, CrawlRecord]]) -> None:
        """Add documents to the sums: the URI of each, whose lease ends in this change, and its line in crawl.log."""
        ...

    def purge(self, crawl: str) -> None:
        """Forget a crawl, its seen-set too."""
        ...

    def begin(self, launch: str, begins: Begins) -> None:
        """Begin the round of a launch, unless it has begun."""
        ...

    def move_back(self) -> float:
        """Move delays back if the clock is before the last change; return by how many seconds."""
        ...


class UnheardGroup(NamedTuple):
    """A group of a journal that a shared frontier may not have heard; `begins`: it is the first of a fresh start."""

    number: int
    begins: bool
    tell: Callable[[Any], None]


class Frontier(Protocol):
    """A frontier. Times are seconds since 1970, by its own clock. Every method may raise Unavailable.

    `transitions` moves its URIs between statuses. `note` is called with the lines that a journal has for a change
    which was not made by `change`, within that change. `warn` is called with what a person should know. One that
    `is_shared` is on another machine, and hears what the journal has; `begun_anew` is called when it has lost all,
    before it hears that again. `owners` says of which hosts it takes URIs that are offered; without, of all.
    """

    owners: HeardOwners | None
    transitions: Transitions
    note: Callable[[list[str]], None]
    warn: Callable[[str], None]
    begun_anew: Callable[[], Awaitable[None]]
    is_shared: bool

    @property
    def stopped(self) -> WarcmillError | None:
        """Why it takes nothing more, such as an error of its disk; None while it does."""
        ...

    @property
    def leased(self) -> int:
        """The number of its leases that are out to this process."""
        ...

    @property
    def is_ready(self) -> bool:
        """False if nothing can be leased before `next_time`."""
        ...

    def expects(self, seconds: float) -> bool:
        """True if it knows that something may be leased now, or in so many seconds."""
        ...

    def stop(self, error: WarcmillError) -> None:
        """Take nothing more, for this reason; the first one counts."""
        ...

    def answered(self, lease: Lease, opens: float) -> None:
        """Open the gate of a lease from a time on, before its visit has ended: its host has answered. A frontier that
        is shared may open it at the end."""
        ...

    def widen(self, queue: str, at_once: int) -> None:
        """Let so many leases of a queue be out together, unless a rate was set. This lasts as long as the process; a
        frontier that is shared leaves it at one."""
        ...

    def take_twice(self) -> list[str]:
        """Take the URIs that were asked for once more, by another process, as the frontier had lost their visits until
        it was sent the journal again."""
        ...

    async def offer(self, uris: Sequence[Uri]) -> list[Offered]:
        """Schedule the URIs that their crawl has not seen, or that are to be renewed; answer for each, in order."""
        ...

    async def lease(self, holder: str, limit: int, seconds: float = LEASE_SECONDS, spider: str = "") -> list[Lease]:
        """Lease up to `limit` URIs of a spider whose gates are open: by priority, then in order of arrival."""
        ...

    async def lease_each(self, holder: str, limit: int, seconds: float, rooms: Mapping[str, int]) -> list[Lease]:
        """Lease up to `limit` URIs of several spiders, of each as many as it has room for: by priority, then in order
        of arrival. NotReady where the frontier is shared: it has no such call."""
        ...

    async def finish(self, visits: Sequence[Finish]) -> list[bool]:
        """End visits; False for a lease that has ended before."""
        ...

    async def defer(self, waits: Sequence[Defer]) -> list[bool]:
        """Let URIs wait; False for one that does not wait here, and for a lease that has ended before."""
        ...

    async def remove(self, crawl: str, keys: Sequence[str]) -> int:
        """Remove URIs of a crawl, which are not taken again; return how many of them waited. A visit that is under way
        is kept."""
        ...

    async def forget(self, crawl: str, keys: Sequence[str]) -> None:
        """Forget the visits of URIs that do not wait, so that they may be offered once more. NotReady where the
        frontier is shared: it has no such call."""
        ...

    async def purge(self, crawl: str) -> int:
        """Forget a crawl, its seen-set too, and return how many of its URIs waited."""
        ...

    async def begin_purge(self, crawl: str) -> int:
        """Begin a purge: nothing of the crawl is leased, listed or counted any more. `purge_rest` deletes it, which
        may take a minute for a million URIs."""
        ...

    async def purge_rest(self) -> int:
        """Delete what a purge that was begun, or interrupted, has left; return how many URIs waited."""
        ...

    async def change(self, act: Callable[[Change], T], offered: Sequence[Uri] = ()) -> T:
        """Make a change, all or nothing: `act` is called with it, on a thread of its own. Any error stops the frontier.

        `act` makes the files of a launch durable, too. A frontier on another machine makes the change after it has
        returned, and is asked before of the URIs that it may offer (`offered`). A kill between the two leaves files
        that know more, so the journal's last group is made once more: each of its calls may be repeated.
        """
        ...

    async def resend(self, unheard: Callable[[int], Iterable[UnheardGroup]]) -> None:
        """Hear the groups of a journal after a number, as far as they were not heard; leases of before a kill end.
        One that is not shared was there when they were written."""
        ...

    async def run(self, act: Callable[[], T]) -> T:
        """Do something on the thread of `change`, between two changes. Any error stops the frontier."""
        ...

    async def block(self, gate: Gate, until: float) -> None:
        """Close a gate until then; FOREVER, or a time gone by, which opens it."""
        ...

    async def suspended(self, queues: Iterable[str]) -> set[str]:
        """Return those of some queues that are closed until somebody opens them: a person has suspended their sites."""
        ...

    async def set_rate(self, gate: Gate, rate: Rate | None) -> None:
        """Set the rate of a gate, or with the queue '' of every gate without its own; None removes its own rate."""
        ...

    async def set_gates(self, by: GateBy) -> None:
        """Set what shares a rate. BadConfig if this form does not have it."""
        ...

    async def next_time(self) -> float | None:
        """When the next queue opens, or the next URI has waited long enough; None: never."""
        ...

    async def is_empty(self) -> bool:
        """True if nothing waits in any crawl but what a person has suspended."""
        ...

    async def count(self, crawl: str = "") -> Mapping[Status, int]:
        """Count a crawl's URIs by status, without walking them."""
        ...

    async def list(
        self, crawl: str = "", keys: Sequence[str] | None = None, after: int = 0, limit: int = 100
    ) -> UriPage:
        """List URIs that wait, in order of arrival; or those of these keys, visited ones too."""
        ...

    async def waiting(self, longest: int) -> Waiting:
        """Count what waits, in all crawls; only so many of the longest queues are named. Walks each row that waits."""
        ...

    async def queues_after(self, after: QueuePlace, limit: int) -> QueueSlice:
        """Count what may be leased by queue, of all crawls: so many rows from a place on; no more are read.

        A shared frontier has counts of all that waits, by queue; NotReady while it is away.
        """
        ...

    async def tally(self, crawl: str | None = None) -> Sequence[Waited]:
        """Count what waits by crawl, queue and source, of one crawl or of all. Walks each row that waits."""
        ...

    async def spent(self, uris: Sequence[Uri]) -> Sequence[Sums]:
        """Return what was fetched of the host, target and crawl of each URI."""
        ...

    async def sites(self, origins: Sequence[str]) -> Mapping[str, SiteRow]:
        """Return the robots.txt of sites; a site that was not asked in this round is left out."""
        ...

    async def turn(self, name: str, span: float, *, waits: bool = True) -> float:
        """Take the turn at what all processes of a crawl share, for a span in seconds. Return 0 when it is taken; else
        the time when it is free. `waits`: False to extend a turn that one has. A process alone knows its own."""
        ...

    def jar(self, crawl: str) -> Jar:
        """Return the cookies of a crawl, as this process knows them."""
        ...

    @property
    def remembered(self) -> int:
        """A number that changes when another process has changed a memory; it is read with leases."""
        ...

    async def memory(self, spider: str, after: int = 0) -> Memory:
        """Return what a spider remembers, or what of that was changed after a version."""
        ...

    async def snapshot(self, path: Path) -> None:
        """Copy it whole, durable, to a new file. Conflict when there is a file."""
        ...

    async def close(self) -> None:
        """Close it; leases that are out wait again."""
        ...


async def nothing_anew() -> None:
    """Do nothing when a frontier has lost all."""


def new(uris: Iterable[Uri], answers: Iterable[Offered]) -> list[Uri]:
    """Return the URIs that were taken, for the first time or again."""
    taken = (Intake.NEW, Intake.RENEWED)
    return [uri for uri, answer in zip(uris, answers, strict=True) if answer.answer in taken]


def scheduled(transitions: Transitions, uris: Sequence[Uri], answers: Sequence[Offered]) -> None:
    """Move the URIs that were taken to Scheduled."""
    for uri in new(uris, answers):
        transitions.update(uri, waits(uri.not_before))


def check_offer(uri: Uri) -> None:
    """Refuse a URI that no frontier takes: BadInput with what is wrong."""
    check_move(uri, waits(uri.not_before))
    for name, text, limit in (("URI", uri.uri, LONGEST_URI), ("key", uri.key, LONGEST_URI)):
        if not text or len(text) > limit:
            raise BadInput(shown(uri.key), f"its {name} is empty, or longer than {limit} letters")
    if len(uri.payload) > LONGEST_PAYLOAD // 4 and len(uri.payload.encode()) > LONGEST_PAYLOAD:
        raise BadInput(shown(uri.key), f"its payload is larger than {LONGEST_PAYLOAD} bytes")
    try:
        f"{uri.key}{uri.uri}{uri.crawl}{uri.hops}{uri.via}{uri.source}{uri.payload}{uri.cluster}{uri.spider}".encode()
    except UnicodeEncodeError as error:
        raise BadInput(shown(uri.key), "one of its texts is not UTF-8") from error
    if uri.priority not in PRIORITIES:
        raise BadInput(shown(uri.key), f"its priority {uri.priority} is out of range")


def check_visit(uri: Uri, history: bytes) -> None:
    """Refuse a visit with a status that ends none, or with a history that is too large: BadInput."""
    if uri.status not in DONE:
        raise BadInput(shown(uri.key), f"a visit does not end with {uri.status}")
    if len(history) > LONGEST_HISTORY:
        raise BadInput(shown(uri.key), f"its history has {len(history)} bytes, {LONGEST_HISTORY} is the limit")
