"""A job of the built-in crawler, as values: what it crawls, and the ceilings that end it. Pure; `file` reads them.

A job may have settings of their own for some URIs: `job.of(uri)` is the job as it is for one.

A room above the crawler docks here by an *audience*: who asked for a URI, and what that changes in its visit. By
default nobody asked. The room hands the job its `Audiences`, by which `job.of(uri)` has an audience of its own, a class
of `Audience` that answers otherwise where it has to. The visit asks it, and knows nothing else of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, Protocol

from msgspec import Struct, field

from warcmill import __version__
from warcmill.crawl import extract
from warcmill.crawl.books.books import CrawlResult
from warcmill.crawl.extract.links import Link
from warcmill.crawl.fetch.answer import LONGEST_WAIT
from warcmill.crawl.fetch.exchange import Exchange
from warcmill.crawl.fetch.limits import FetchLimits
from warcmill.crawl.frontier import GateBy
from warcmill.crawl.policies.decision import Ask, Decision
from warcmill.crawl.policies.politeness import Politeness
from warcmill.crawl.policies.quotas import Expiry, Quota
from warcmill.crawl.policies.recrawl import Recrawl
from warcmill.crawl.policies.robots import PRODUCT
from warcmill.crawl.policies.scope import CrawlScope, SurtPrefixes
from warcmill.crawl.render import NEVER, RenderSettings
from warcmill.crawl.uri import Uri, queue_of
from warcmill.formats.logs.bounds import BOUNDS
from warcmill.formats.surt import registered

_TABLES = {"[fetch]": "limits", "[limits]": "ceilings", "[traps]": "traps"}
HOST, DOMAIN = "host", "domain"
"""The part of a URI that decides its queue."""


class End(StrEnum):
    """The end of a launch, in the words of Heritrix's crawl-report."""

    EMPTY = "Finished"
    STOPPED = "Finished - Ended by operator"
    DOCUMENTS = "Finished - Maximum number of documents limit hit"
    DATA = "Finished - Maximum amount of data limit hit"
    TIME = "Finished - Timelimit hit"


CEILINGS = {End.DOCUMENTS: "documents", End.DATA: "bytes", End.TIME: "seconds"}
"""The bounds that end a launch."""


class Fetched(NamedTuple):
    """The sums of all processes of a launch, as far as they are known: documents, their bytes, and how many URIs are
    under way."""

    documents: int = 0
    bytes: int = 0
    under_way: int = 0


class Ceilings(Struct, frozen=True):
    """The most documents, bytes and seconds of a launch; 0: no ceiling."""

    documents: int = 0
    bytes: int = 0
    seconds: int = 0

    def reached(self, done: Fetched, elapsed: float) -> End | None:
        """Return the ceiling that a launch has reached; None before that."""
        if self.documents and done.documents >= self.documents:
            return End.DOCUMENTS
        if self.bytes and done.bytes >= self.bytes:
            return End.DATA
        return End.TIME if self.seconds and elapsed >= self.seconds else None

    def room(self, done: Fetched) -> int:
        """The number of URIs that may be under way besides, so that no more documents than allowed are fetched."""
        return max(0, self.documents - done.documents - done.under_way) if self.documents else 1 << 30


class Retries(Struct, frozen=True):
    """A URI that got no answer is tried so many `times` in all, after a `wait` in seconds that grows with each.

    One whose answer has one of these `statuses` is asked again as often, after its Retry-After or its host's delay.
    """

    times: int = 3
    wait: float = 60.0
    statuses: tuple[int, ...] = (429, 503, 504)

    def next(self, tries: int) -> float:
        """The seconds to wait after so many tries."""
        return self.wait * tries

    def asks_again(self, status: int, tries: int, asked: float, *, is_late: bool = False) -> bool:
        """True if another answer is asked for after this one; not if its server asks for a day or more. `is_late`: this
        one was not whole in time, as if it had failed."""
        return (is_late or status in self.statuses) and tries < self.times and asked < LONGEST_WAIT


class Bounds(Struct, frozen=True):
    """The bounds of traps: see `policies.scope.Traps`, which counts for one launch."""

    length: int = 2_083
    depth: int = 20
    repeats: int = 2
    queries: int = 20_000


class Sheets(Struct, frozen=True, dict=True):
    """The job with the settings of a SURT prefix, or of a seed and all found from it. The longest prefix wins."""

    by_prefix: Mapping[str, Job] = field(default_factory=dict)
    by_seed: Mapping[str, Job] = field(default_factory=dict)

    @cached_property
    def _lengths(self) -> tuple[int, ...]:
        return tuple(sorted({len(prefix) for prefix in self.by_prefix}, reverse=True))

    def of(self, uri: Uri) -> Job | None:
        """Return the job with the settings of a URI; None when the URI has no settings of its own."""
        surt = uri.surt if self._lengths else ""
        for length in self._lengths:
            if found := self.by_prefix.get(surt[:length]):
                return found
        return self.by_seed.get(uri.source)


Accepted = Callable[[Sequence[Link]], list[Link]]
"""Returns those of some links of a page that its crawl may follow."""


class Audience:
    """Nobody: the crawl itself wants the URI."""

    headers: Sequence[tuple[str, str]] = ()
    """The header fields of its requests, after those of the crawl."""

    has_jar = True
    """The cookies of its crawl are sent, and its answers change them."""

    step = 0
    """The priority that a further try is behind."""

    policies: Mapping[str, Ask] = MappingProxyType({})
    """The policies that are asked at a lease in place of the job's, or besides."""

    def names_referrer(self, uri: Uri) -> bool:
        """True if a request names the page that led to the URI."""
        return True

    def priority(self, page: Uri, link: Link) -> int | None:
        """The priority of a link of a page; None for the crawl's own."""
        return None

    def last(self, page: Uri) -> Decision | None:
        """Return why nothing that a page has is followed but its redirects; None where some of it may be."""
        return None

    def late(self, answer: Exchange) -> str:
        """Return why an answer that was not whole in time does not count; '' if it counts."""
        return ""

    def followed(self, answer: Exchange, links: Sequence[Link], limits: FetchLimits) -> Sequence[Link]:
        """The links of a page that count."""
        return links

    def page(self, uri: Uri, answer: Exchange, links: Sequence[Link], accepted: Accepted) -> Sequence[CrawlResult]:
        """The page, for who asked."""
        return ()

    def notice(self, uri: Uri, why: str) -> Sequence[CrawlResult]:
        """The notice that there is no page, for who asked."""
        return ()

    def refused(self, uri: Uri, against: Decision) -> Sequence[CrawlResult]:
        """The notice of a URI that a policy refuses, for who asked."""
        return ()


NOBODY = Audience()


class Audiences(Protocol):
    """Those who ask a job for URIs."""

    def job(self, base: Job, uri: Uri) -> Job | None:
        """Return the job as it is for a URI that somebody asked for; None where nobody did."""
        ...

    async def unknown(self, uris: Iterable[Uri]) -> Collection[str]:
        """Return the sources of those URIs whose audience is not known here yet: these are visited later."""
        ...


class Scope(Protocol):
    """Decides which URIs belong to a crawl; those with a prefix in `excluded` never do."""

    @property
    def excluded(self) -> SurtPrefixes:
        """The prefixes of URIs that are never crawled."""
        ...

    def judge(self, uri: Uri) -> Decision | None:
        """Return why a URI does not belong to the crawl; None if it does."""
        ...

    def judge_frame(self, uri: Uri) -> Decision | None:
        """The same for the page of a frame that is far inside another page."""
        ...


class Job(Struct, frozen=True):
    """The settings of a launch. `contact`: a URL for webmasters. `robots`: robots.txt is obeyed; `nofollow`:
    so is what pages ask of their links.

    `allow_private` are networks of inside addresses that may be reached; with `no_delay` these are crawled without
    waiting. `resolve` are addresses of hosts, `name_servers` addresses and ports of the servers to ask instead of the
    machine's. `conditional` names the URIs that are asked for by what is new: those that pages embed, all, or no URI.
    `render`: the pages that are opened in a browser. `scope_log`: each link that a policy refuses has a line in
    scope.log. A launch of an `endless` job does not end when nothing waits, and the next one carries on its frontier.
    `gate_by` is what shares a rate.
    Without `revisits` each answer is a full record, and nothing is asked for by what is new.
    `results_log`: the launch has results.jsonl, for the results of an `audience`.

    `queue_by`: politeness is kept by `host`, and port; or by registered `domain`. `service`: the room
    that serves who asks for its URIs; `audiences` has these, once a launch is open, and `audience` is the one that this
    is the job for. `given`: the keys that its file sets, such as `hops` and `[fetch] body`, whatever their value;
    not those that `defaults` names, which a program has written with their defaults.
    """

    name: str
    seeds: tuple[str, ...]
    contact: str = ""
    robots: bool = True
    scope: Scope = field(default_factory=CrawlScope)
    traps: Bounds = field(default_factory=Bounds)
    patterns: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    extractors: frozenset[str] = extract.DEFAULT
    politeness: Politeness = field(default_factory=Politeness)
    limits: FetchLimits = field(default_factory=FetchLimits)
    retries: Retries = field(default_factory=Retries)
    ceilings: Ceilings = field(default_factory=Ceilings)
    conditional: str = "embeds"
    allow_private: tuple[str, ...] = ()
    no_delay: bool = False
    resolve: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    name_servers: tuple[tuple[str, int], ...] = ()
    workers: int = 50
    warc_size: int = 10**9
    checkpoint_hours: float = 6.0
    nofollow: bool = False
    quotas: tuple[Quota, ...] = ()
    recrawl: Recrawl | None = None
    expiry: Expiry = field(default_factory=Expiry)
    policies: tuple[str, ...] = ()
    scope_log: bool = False
    revisits: bool = True
    results_log: bool = False
    endless: bool = False
    gate_by: GateBy = GateBy.QUEUE
    render: RenderSettings = field(default_factory=RenderSettings)
    sheets: Sheets = field(default_factory=Sheets)
    queue_by: str = HOST
    service: str = ""
    audiences: Audiences | None = None
    audience: Audience = NOBODY
    given: frozenset[str] = frozenset()
    defaults: tuple[str, ...] = ()

    def of(self, uri: Uri) -> Job:
        """The job as it is for a URI."""
        return (self.audiences and self.audiences.job(self, uri)) or self.sheets.of(uri) or self

    def bound(self, name: str) -> tuple[int, bool]:
        """The value of a bound of `BOUNDS`, 0 where it has none; and whether its file sets it."""
        key = BOUNDS[name].key
        table, _, key_there = key.rpartition(" ")
        found = getattr(getattr(self, _TABLES[table]), key_there) if table in _TABLES else 0
        return int(found), key in self.given

    def queue(self, uri: str) -> str:
        """The queue of a canonical URI: what its politeness is kept by."""
        queue = queue_of(uri)
        if self.queue_by == HOST or not queue:
            return queue
        return queue[: queue.index("]") + 1] if queue[0] == "[" else registered(queue.partition(":")[0])[0]

    @property
    def is_hurried(self) -> bool:
        """True if politeness is off for all URIs: then a host is asked for several at the same time."""
        return all(job.politeness.is_off for job in self.each())

    @property
    def visits_again(self) -> bool:
        """True if some URIs are visited again, each at its time."""
        return any(job.recrawl for job in self.each())

    @property
    def renders(self) -> bool:
        """True if some pages are opened in a browser."""
        return any(job.render.which != NEVER for job in self.each())

    @property
    def has_quotas(self) -> bool:
        """True if some URIs have a quota."""
        return any(job.quotas for job in self.each())

    def each(self) -> tuple[Job, ...]:
        """The job as it is for each URI."""
        return (self, *self.sheets.by_prefix.values(), *self.sheets.by_seed.values())

    @property
    def user_agent(self) -> str:
        """The name and the contact that each request gives."""
        about = f"; +{self.contact}" if self.contact else ""
        return f"Mozilla/5.0 (compatible; {PRODUCT}/{__version__}{about})"


class Live:
    """The job that a launch is crawled by now: an edit of its files replaces it. `wait`: the first wait of a retry, in
    seconds, for which crawl.toml has no key."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.wait = Retries().wait
        self._asked, self._renders = job, job.renders

    @property
    def retries(self) -> Retries:
        """The retries of a robots.txt."""
        own = self.job.retries
        return own if "[retries] wait" in self.job.given else Retries(own.times, self.wait, own.statuses)

    @property
    def renders(self) -> bool:
        """True if some of its pages are opened in a browser."""
        if self._asked is not self.job:
            self._asked, self._renders = self.job, self.job.renders
        return self._renders
