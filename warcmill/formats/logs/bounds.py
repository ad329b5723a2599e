"""The bounds of a crawl, and what each has left out: the one table by which crawler, reports and pages name them. Pure.

A launch of the built-in crawler keeps what its bounds left out as `reports/bounds-report.txt`: a row for each bound,
its value and whether a person had set that, with a number and a first example. `BOUNDS` decides which cut is a finding
where nobody had set its bound; all others are facts. Launches that have no such report are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from warcmill.formats.logs.crawllog import CrawlRecord

REPORT = "bounds-report"
MOST = 1_000  # rows; only settings for thousands of sites make so many
DEFAULT, SET = "default", "set"
OTHERS = 0
"""The value of a row that has all beyond MOST."""
_HEAD = "[#left-out] [bound] [value] [by] [first]"
_ROW = re.compile(r"(\d{1,18}) ([a-z-]{1,40}) (\d{1,19}) (set|default) (.*)").fullmatch
_QUOTA = re.compile(r"quotas:(\d{1,19})_(documents|bytes|seconds)_of_(?:host|target|crawl)_.*").fullmatch
_BLANK = re.compile(r"\s")

_LINKS, _URIS = ("left out", "link", "links"), ("left out", "URI", "URIs")
_REQUESTS = ("refused", "request of a spider", "requests of a spider")
_PAGES, _ANSWERS = ("cut the links of", "page", "pages"), ("cut", "answer", "answers")


class Bound(Struct, frozen=True):
    """A bound: `key` is what raises it, of crawl.toml or a file beside it; '' where nothing does, and `label` names it.

    `is_judged`: what it cuts by its default is a finding. `waits`: what it leaves out waits for the launch that
    continues.
    """

    key: str
    cuts: tuple[str, str, str]
    is_judged: bool = False
    label: str = ""
    waits: bool = False


BOUNDS: Mapping[str, Bound] = {
    "queries": Bound("[traps] queries", _LINKS, is_judged=True),
    "links": Bound("[fetch] links", _PAGES, is_judged=True),
    "segments": Bound("[fetch] segments", _PAGES, is_judged=True),
    "lost-links": Bound("", _PAGES, is_judged=True, label="10 s or 256 MiB of a worker process"),
    "body": Bound("[fetch] body", _ANSWERS, is_judged=True),
    "header": Bound("[fetch] header", _ANSWERS, is_judged=True),
    "total": Bound("[fetch] total", _ANSWERS, is_judged=True),
    "decoded": Bound("[fetch] decoded", _PAGES, is_judged=True),
    "ratio": Bound("[fetch] ratio", _PAGES, is_judged=True),
    "waits": Bound("", _REQUESTS, is_judged=True, label="the frontier"),
    "quota-documents": Bound("[[quotas]] documents", _URIS, is_judged=True),
    "quota-bytes": Bound("[[quotas]] bytes", _URIS, is_judged=True),
    "quota-seconds": Bound("[[quotas]] seconds", _URIS, is_judged=True),
    "documents": Bound("[limits] documents", _URIS, waits=True),
    "bytes": Bound("[limits] bytes", _URIS, waits=True),
    "seconds": Bound("[limits] seconds", _URIS, waits=True),
    "expires": Bound("expires", _URIS),
    "length": Bound("[traps] length", _LINKS),
    "depth": Bound("[traps] depth", _LINKS),
    "repeats": Bound("[traps] repeats", _LINKS),
    "hops": Bound("hops", _LINKS),
    "part-hops": Bound("", _LINKS, label="hops inside a page"),
    "redirects": Bound("", _LINKS, label="redirects after each other"),
    "link-length": Bound("", _PAGES, label="a link of more than 16384 characters"),
    "endless": Bound("", _PAGES, label="a film without an end"),
    "robots": Bound("", _ANSWERS, label="a robots.txt of more than 512000 bytes"),
    "scope": Bound("surts.txt", _LINKS),
    "excluded": Bound("exclude.txt", _LINKS),
    "patterns": Bound("patterns", _LINKS),
    "extensions": Bound("extensions", _LINKS),
    "nofollow": Bound("nofollow", _LINKS),
    "twice": Bound("", ("asked twice for", "page", "pages"), label="after its Redis was set back, the crawl"),
}  # fmt: skip
"""The bounds, in the order in which they are shown; those that may be findings first."""

_OF_CUTS = {"lenTrunc": "body", "headerTrunc": "header", "timeTrunc": "total"}
_OF_LINKS = {
    "": "links", "segments": "segments", "decoded": "decoded", "length": "link-length", "endless": "endless",
}  # fmt: skip
"""The bounds of `linksTrunc`, by the reason that the line gives."""


class BoundCut(NamedTuple):
    """The cut of one bound at one value: how much it has left out, and a first example."""

    bound: str
    value: int
    is_set: bool
    number: int
    first: str

    @property
    def is_finding(self) -> bool:
        """True if nobody had set the bound, and its default should not cut anything."""
        return BOUNDS[self.bound].is_judged and not self.is_set

    @property
    def key(self) -> str:
        """The key that raises the bound; '' where none does."""
        return BOUNDS[self.bound].key

    @property
    def label(self) -> str:
        """The bound and its value, as crawl.toml may have it: `[traps] queries = 20000`."""
        row = BOUNDS[self.bound]
        return f"{row.key or row.label}{f' = {self.value}' if self.value else ''}"

    @property
    def what(self) -> str:
        """The cut without the bound: `left out 300 links`."""
        what, one, more = BOUNDS[self.bound].cuts
        return f"{what} {self.number:,} {one if self.number == 1 else more}"

    @property
    def text(self) -> str:
        """The cut in words: `[traps] queries = 20000, the default, left out 300 links, first http://...`."""
        by = ", the default," if self.is_finding and self.key else ""
        return f"{self.label}{by} {self.what}, first {self.first}"

    def json(self) -> dict[str, str | int]:
        """The cut in a JSON document, and in a claim."""
        return {**self._asdict(), "finding": self.is_finding, "key": self.key}


class BoundTally(Struct):
    """The cuts of bounds, counted: a number and a first example for each bound and value. Its size is bounded by the
    values that a job has, whatever is left out."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, bound: str, limit: tuple[int, bool], example: str, number: int = 1) -> None:
        """Count what a bound has left out. `limit`: its value, and whether a person had set it."""
        value, is_set = limit
        name = _name(bound, value, is_set)
        if name not in self.counts and len(self.counts) >= MOST:
            name = _name(bound, OTHERS, is_set)
        self.counts[name] = self.counts.get(name, 0) + number
        self.first.setdefault(name, example)

    def joined(self, other: BoundTally) -> BoundTally:
        """Both counted together; of two examples the one of this tally stays."""
        names = {**self.counts, **other.counts}
        counts = {name: self.counts.get(name, 0) + other.counts.get(name, 0) for name in names}
        return BoundTally(counts, {**other.first, **self.first})

    def cuts(self) -> list[BoundCut]:
        """The cuts, in the order of the table."""
        return cuts(self.counts, self.first)


def _name(bound: str, value: int, is_set: bool) -> str:
    return f"{bound} {value} {SET if is_set else DEFAULT}"


def cuts(counts: Mapping[str, int], first: Mapping[str, str]) -> list[BoundCut]:
    """The cuts of a tally that was kept, in the order of the table."""
    found = []
    for name, number in counts.items():
        bound, value, by = name.split(" ")
        if bound in BOUNDS:
            found.append(BoundCut(bound, int(value), by == SET, number, first.get(name, "")))
    return in_order(found)


def in_order(found: Iterable[BoundCut]) -> list[BoundCut]:
    """Cuts in the order of the table."""
    place = {name: number for number, name in enumerate(BOUNDS)}
    return sorted(found, key=lambda cut: (place[cut.bound], cut.value, cut.is_set))


def total(parts: Sequence[Sequence[BoundCut]]) -> list[BoundCut]:
    """The cuts of the launches of one crawl together, each of which continues the one before it."""
    whole = BoundTally()
    for number, part in enumerate(parts, 1):
        for cut in part if number == len(parts) else (cut for cut in part if not BOUNDS[cut.bound].waits):
            whole.add(cut.bound, (cut.value, cut.is_set), cut.first, cut.number)
    return whole.cuts()


def of_line(line: CrawlRecord) -> Iterator[tuple[str, int | None]]:
    """The bounds that have cut an answer, or left a URI out, by its line in crawl.log; each with its value where the
    line has it."""
    for note in line.annotations:
        word, _, why = note.partition(":")
        if word == "linksTrunc" and why in _OF_LINKS:
            yield _OF_LINKS[why], None
        elif word == "linksLost":
            yield "lost-links", None
        elif word == "decodedTrunc":
            is_robots = (line.hops or "").endswith("P") and line.uri.endswith("/robots.txt")
            yield "robots" if is_robots else why if why == "ratio" else "decoded", None
        elif word in _OF_CUTS:
            yield _OF_CUTS[word], None
        elif found := _QUOTA(note):
            yield f"quota-{found[2]}", int(found[1])
        elif word == "expiry":
            yield "expires", 0


def render(found: Iterable[BoundCut]) -> Iterator[str]:
    """The lines of a bounds report."""
    yield _HEAD
    for cut in found:
        by = SET if cut.is_set else DEFAULT
        yield f"{cut.number} {cut.bound} {cut.value} {by} {_BLANK.sub('_', cut.first)}"


def read(report: bytes) -> list[BoundCut]:
    """The cuts of a bounds report; rows that are damaged, or of a later version, are passed over."""
    rows = map(_ROW, report.decode("utf-8", "backslashreplace").splitlines()[1:])
    return [
        BoundCut(row[2], int(row[3]), row[4] == SET, int(row[1]), row[5]) for row in rows if row and row[2] in BOUNDS
    ]
