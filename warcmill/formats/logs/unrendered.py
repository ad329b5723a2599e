"""Pages that a crawl was to render and did not, by reason: one table for crawler, reports and pages. Pure.

Stands alone, as the crawler, the claims and the web read it. crawl.log has each as `render:failed:WHY`, and Heritrix,
whose pages another process renders, as `render:failed`. A reason that is not the page's own fault is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct, field

from warcmill.formats.logs.crawllog import CrawlRecord

FAILED = "render:failed"
OF_US = frozenset({"browserEnded", "noBrowser"})
"""The reasons that are findings: pages came to harm by what happened around them."""

_REASONS = {
    "browserEnded": "its browser ended each time",
    "noBrowser": "no browser could be started",
    "stopped": "the crawl was stopped, or took a checkpoint",
    "requests": "it asked for more than [render] requests",
    "bytes": "its answers have more than [render] bytes",
    "hung": "it hangs",
    "notLoaded": "nothing of it was shown in time",
    "domTooLong": "its DOM is too long",
    "crashed": "it crashes",
    "memory": "it takes too much memory",
    "": "the renderer gave no page of it",
}


class Unrendered(NamedTuple):
    """The pages that were not rendered for one reason: how many they are, and the first."""

    why: str
    number: int
    first: str

    @property
    def is_finding(self) -> bool:
        """True if the pages are not at fault."""
        return self.why in OF_US

    @property
    def name(self) -> str:
        """The reason as crawl.log has it."""
        return f"{FAILED}:{self.why}" if self.why else FAILED

    @property
    def text(self) -> str:
        """The pages in words: `3 pages were not rendered: it hangs (render:failed:hung), first http://...`."""
        pages = "1 page was" if self.number == 1 else f"{self.number:,} pages were"
        return f"{pages} not rendered: {_REASONS[self.why]} ({self.name}), first {self.first}"

    def json(self) -> dict[str, str | int]:
        """The pages in a JSON document, and in a claim."""
        return {"why": self.why, "number": self.number, "first": self.first}


class UnrenderedTally(Struct):
    """The pages of a log that were not rendered, counted. A reason that is not known counts under ''."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, line: CrawlRecord) -> None:
        """Count a line of crawl.log, unless its URI is asked again after that answer."""
        if not line.is_asked_again:
            for why in map(_why, line.annotations):
                if why is not None:
                    self.counts[why] = self.counts.get(why, 0) + 1
                    self.first.setdefault(why, line.uri)


def _why(annotation: str) -> str | None:
    name, _, why = annotation.rpartition(":") if annotation.count(":") > 1 else (annotation, "", "")
    if name != FAILED:
        return None
    return why if why in _REASONS else ""


def listed(counts: Mapping[str, int], first: Mapping[str, str]) -> tuple[Unrendered, ...]:
    """The pages by reason, in the order of the table: findings first. A reason that it has not is passed over."""
    return tuple(Unrendered(why, counts[why], first.get(why, "-")) for why in _REASONS if counts.get(why))


def joined(parts: Iterable[Iterable[Unrendered]]) -> tuple[Unrendered, ...]:
    """Those of several stages or launches together; of two examples the earlier one stays."""
    counts, first = dict[str, int](), dict[str, str]()
    for one in _all(parts):
        counts[one.why] = counts.get(one.why, 0) + one.number
        first.setdefault(one.why, one.first)
    return listed(counts, first)


def _all(parts: Iterable[Iterable[Unrendered]]) -> Iterator[Unrendered]:
    for part in parts:
        yield from part
