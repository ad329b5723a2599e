"""The facts of the reports on a crawl: reports.crawl, what a stage brought; reports.seeds, what became of each seed."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, Self

from msgspec import Struct, field

from warcmill.formats.logs.bounds import BOUNDS, BoundCut
from warcmill.formats.logs.unrendered import Unrendered
from warcmill.markers.claim import Claim
from warcmill.markers.facts.reading import ClaimFields, number, object_of, or_null, text, texts, truth
from warcmill.model import Json

REPORT_NUMBERS = ("lines", "bytes", "unread")
REPORT_TABLES = ("by_status", "by_mime", "by_host_top", "by_hop", "by_tries", "refused", "rejected", "cut")
_TALLY = object_of(number)


class SeedState(StrEnum):
    """The fate of a seed. The worst comes first."""

    DEAD = "dead"
    UNTRIED = "untried"
    REDIRECTED = "redirected"  # and what it leads to was fetched
    ALIVE = "alive"


GOT = (SeedState.ALIVE, SeedState.REDIRECTED)
"""The states of a seed that was got."""

_WORDS = {str(state): state for state in SeedState}


class SeedFate(NamedTuple):  # cheap to make: a launch may have 100,000
    """A seed of a launch, as seeds.txt has it. `code` is the engine's, of the last try; None without one.

    `redirect` is where it leads, `target` the id of the feed's target that asks for it, `added_from` the seed that
    redirects to it, where Heritrix added it: '' without one.
    """

    seed: str
    state: SeedState
    code: int | None = None
    why: str = ""
    redirect: str = ""
    target: str = ""
    added_from: str = ""

    def facts(self) -> dict[str, Json]:
        """Return the fact as claims contain it."""
        found: dict[str, Json] = {
            "seed": self.seed,
            "state": str(self.state),
            "code": self.code,
            "why": self.why,
            "redirect": self.redirect,
            "target": self.target,
        }
        return {**found, "added_from": self.added_from} if self.added_from else found


class Seeds(Struct, frozen=True):
    """reports.seeds: the seeds of a launch in the order of its list; none where `listed` is False: it has no list.

    `end` is how the crawl ended, as its own crawl-report has it; '' without one. `untried_as`: why an
    untried seed is not a loss; '' where it is one. `without_page`: ids of targets of the feed that got no page.
    `differing`: by `crawl.log` or `seeds.txt`, what it lacks of the engine's own reports, or has more. `unread_lines`
    of the launch's crawl logs cannot be read.
    """

    numbers: Mapping[str, int]  # `seeds`, and how many are in each state
    seeds: tuple[SeedFate, ...]
    listed: bool
    end: str
    untried_as: str
    without_page: tuple[str, ...]
    unread: tuple[str, ...]
    differing: Mapping[str, str] = field(default_factory=dict)
    unread_lines: int = 0
    empty_reports: tuple[str, ...] = ()

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts, counts = ClaimFields.facts(claim), ClaimFields.counts(claim)
        return cls(
            {name: counts.require(name, number) for name in ("seeds", *_WORDS)},
            facts.require("seeds", _fates),
            facts.require("list", text) != "",
            facts.require("end", text),
            facts.require("untried_as", text),
            facts.require("without_page", texts),
            facts.require("unread", texts),
            facts.maybe("differing", object_of(text)) or {},
            facts.maybe("unread_lines", number) or 0,
            facts.maybe("empty_reports", texts) or (),
        )

    def lost(self) -> tuple[SeedFate, ...]:
        """The seeds that were asked for and not got."""
        states = (SeedState.DEAD,) if self.untried_as else (SeedState.DEAD, SeedState.UNTRIED)
        return tuple(one for one in self.seeds if one.state in states)


DAMAGED_RESULT = "its line in results.jsonl is damaged"
"""The `why` of a request for a line that is not a result: it may have been one of a page."""


class LostRequest(NamedTuple):
    """A request that has no page, and why; its owner has a notice of it."""

    appid: str
    crawlid: str
    url: str
    why: str


class CrawlReported(Struct, frozen=True):
    """reports.crawl: the figures of a stage's logs, and the logs that could not be read to their end.

    `requests_lost` requests of applications have no page; `requests_without_page` has the first. `bounds`: what bounds
    of the crawl have left out of the whole launch, in its last stage. `unrendered`: pages that were to be rendered and
    were not.
    """

    numbers: Mapping[str, int]  # REPORT_NUMBERS
    tables: Mapping[str, Mapping[str, int]]  # REPORT_TABLES
    unread: tuple[str, ...]
    requests_lost: int = 0
    requests_without_page: tuple[LostRequest, ...] = ()
    bounds: tuple[BoundCut, ...] = ()
    unrendered: tuple[Unrendered, ...] = ()

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts, counts = ClaimFields.facts(claim), ClaimFields.counts(claim)
        return cls(
            {name: counts.require(name, number) for name in REPORT_NUMBERS},
            {name: facts.require(name, _TALLY) for name in REPORT_TABLES},
            facts.require("unread", texts),
            facts.maybe("requests_lost", number) or 0,
            facts.maybe("requests_without_page", _requests) or (),
            facts.maybe("bounds", _bounds) or (),
            facts.maybe("unrendered", _unrendered) or (),
        )


_CODE, _TEXTS = or_null(number), ("seed", "state", "why", "redirect", "target")


def _requests(value: Json) -> tuple[LostRequest, ...]:
    if isinstance(value, list):
        return tuple(map(_request, value))
    raise ValueError("not a list of requests")


def _request(value: Json) -> LostRequest:
    row = value if isinstance(value, dict) else {}
    try:
        return LostRequest(*(text(row[name]) for name in LostRequest._fields))
    except KeyError as error:
        raise ValueError(f"not a request: {error}") from error


def _bounds(value: Json) -> tuple[BoundCut, ...]:
    if isinstance(value, list):
        return tuple(cut for cut in map(_bound, value) if cut.bound in BOUNDS)  # a later version may have more
    raise ValueError("not a list of bounds")


def _bound(value: Json) -> BoundCut:
    row = value if isinstance(value, dict) else {}
    try:
        is_set = truth(row["is_set"])
        return BoundCut(text(row["bound"]), number(row["value"]), is_set, number(row["number"]), text(row["first"]))
    except KeyError as error:
        raise ValueError(f"not the cut of a bound: {error}") from error


def _unrendered(value: Json) -> tuple[Unrendered, ...]:
    if isinstance(value, list):
        return tuple(map(_of_reason, value))
    raise ValueError("not a list of pages that were not rendered")


def _of_reason(value: Json) -> Unrendered:
    row = value if isinstance(value, dict) else {}
    try:
        return Unrendered(text(row["why"]), number(row["number"]), text(row["first"]))
    except KeyError as error:
        raise ValueError(f"not pages that were not rendered: {error}") from error


def _fates(value: Json) -> tuple[SeedFate, ...]:
    if isinstance(value, list):
        return tuple(map(_fate, value))
    raise ValueError("not a list of seeds")


def _fate(value: Json) -> SeedFate:
    row = value if isinstance(value, dict) else {}
    try:
        seed, state, why, redirect, target = (text(row[name]) for name in _TEXTS)
        return SeedFate(seed, _WORDS[state], _CODE(row["code"]), why, redirect, target, text(row.get("added_from", "")))
    except KeyError as error:
        raise ValueError(f"not a seed: {error}") from error
