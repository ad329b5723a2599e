"""What belongs to the crawl: the rules of the profile for Heritrix, so that both engines crawl the same.

A seed, what it redirects to, and what a fetch needs first (`P`) belong to it. So does what a
page embeds, from any host, over at most two such hops, one of them guessed (`X`); of a seed
that is a page, all its parts, over 20 hops: a frame's style sheet imports another, which
names a font. Else, and after 20 redirects, a URI has a prefix of a site, or was linked from
a seed of reach `plus1`. Nothing that is excluded is crawled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from warcmill.crawl.policies.decision import Decision, Verdict
from warcmill.crawl.policies.prefixes import Prefixes
from warcmill.crawl.uri import Uri
from warcmill.formats.targets import PART

EMBEDS, GUESSES = 2, 1  # hops after the last link, redirects not counted
REDIRECTS = 20  # after each other; browsers follow as many (Fetch standard, 4.4)
PARTS = 20  # hops from a page to the last of its parts, redirects too
_is_linked = re.compile(r"R*+LR*+").fullmatch
_is_part = re.compile(PART.replace("*", "*+").replace("?", "?+")).fullmatch


class Reach(StrEnum):
    """How far a seed that is a page reaches: with all its parts, as a site's seed too, or also to what it links to."""

    RESOURCE = "resource"
    REFRESH = "refresh"
    PLUS1 = "plus1"


@dataclass(frozen=True, slots=True)
class Scope:
    """The prefixes of sites and of what is never crawled, the seeds that are pages, and the most hops from a seed."""

    sites: Prefixes = field(default_factory=Prefixes)
    excluded: Prefixes = field(default_factory=Prefixes)
    pages: Mapping[str, Reach] = field(default_factory=dict)
    hops: int = 20
    name: str = "scope"

    def judge(self, uri: Uri) -> Decision | None:
        """Return why a URI does not belong to the crawl; None if it does."""
        why = self._against(uri, uri.surt)
        return Decision(Verdict.REJECT, self.name, why) if why else None

    def _against(self, uri: Uri, surt: str) -> str:
        if uri.hops.endswith("P"):
            return ""
        if prefix := self.excluded.covering(surt):
            return f"excluded by {prefix}"
        reach = self.pages.get(uri.source)
        if is_part(uri.hops) if reach in (Reach.RESOURCE, Reach.REFRESH) else _is_with_its_page(uri.hops):
            return ""
        if len(uri.hops) > self.hops:
            return f"{len(uri.hops)} hops from its seed, {self.hops} are allowed"
        if self.sites.covering(surt) or (reach is Reach.PLUS1 and _is_linked(uri.hops)):
            return ""
        return "of no site of the crawl"


def is_part(hops: str) -> bool:
    """True if a page itself has a URI as one of its parts: no link leads there, and no sitemap."""
    return len(hops) <= PARTS and _is_part(hops) is not None


def _is_with_its_page(hops: str) -> bool:
    """True if it is where a seed redirects to, or what a page embeds."""
    redirects = len(hops) - len(hops.rstrip("R"))
    return redirects <= REDIRECTS and (not hops.strip("R") or is_embedded(hops))


def is_embedded(hops: str) -> bool:
    """True if a page embeds a URI, over few enough hops: those after the last link (`L`) or form (`S`)."""
    last = hops[max(hops.rfind("L"), hops.rfind("S")) + 1 :]
    return bool(last) and len(last) - last.count("R") <= EMBEDS and last.count("X") <= GUESSES
