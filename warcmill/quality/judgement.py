"""Judge how a page looks in replay: which parts are missing and why, how many words it shares with what was crawled.

Pure. A part that replay has not is missing for one reason:

    hidden      an access rule hides it
    scope       a rule of the job leaves it out
    robots      robots.txt forbids it
    refused     a quota, a person, or the rule about inside addresses was against it
    failed      no answer came, or an error
    orphan      the archive has a revisit of it, and not the payload
    unseen      the crawl found no link to it, as where a script makes the address
    unindexed   it was got, and the index version that was looked at has it not
    broken      the index version has it, and replay could not show it
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct

from warcmill.crawl.logs import lines
from warcmill.reports.pages import ListedUrl
from warcmill.reports.seed_fates import reason

HIDDEN, SCOPE, ROBOTS, REFUSED, FAILED, ORPHAN, UNSEEN, UNINDEXED, BROKEN = KINDS = (
    "hidden", "scope", "robots", "refused", "failed", "orphan", "unseen", "unindexed", "broken"
)  # fmt: skip
ASKED_AGAIN = frozenset([SCOPE, REFUSED, FAILED, ORPHAN, UNSEEN])
"""The kinds that a patch asks for: no crawl helps against the others."""
SHOWN, MISSING, NOT_OPENED = STATES = ("shown", "missing", "not opened")
_OF_CODES = {
    lines.ROBOTS_FORBID: ROBOTS, lines.OUT_OF_SCOPE: SCOPE, lines.BY_OWN: SCOPE, -4000: SCOPE, -5002: REFUSED,
    lines.QUOTA: REFUSED, -5004: REFUSED, -6000: REFUSED,
}  # fmt: skip
_WORD = re.compile(r"\w+")
_IN_INDEX = "it was got, and index version {} has it not yet: 'warcmill scan' brings it"


class InIndex(StrEnum):
    """The captures of a URL in an index version: none, hidden ones, revisits without their payload, others."""

    NOTHING = "nothing"
    HIDDEN = "hidden"
    REVISITS = "revisits"
    CAPTURES = "captures"


class MissingPart(Struct, frozen=True, order=True):
    """A part that a page asked for, and replay has not."""

    kind: str
    url: str
    why: str


class CheckedPage(Struct, frozen=True):
    """A page as it was in replay. `parts`: what it asked for, itself included. `leaks`: what it asked the live web for.

    `words`: different words that the crawl saw, `common`: those of them in replay; None where no text is known.
    `thumbnail`: the picture that the crawl made, as JPEG in base64; '' without one.
    """

    url: str
    time: str
    title: str
    is_seed: bool
    state: str
    why: str = ""
    parts: int = 0
    missing: tuple[MissingPart, ...] = ()
    leaks: tuple[str, ...] = ()
    words: int | None = None
    common: int | None = None
    thumbnail: str = ""

    @property
    def lost_words(self) -> int:
        """The words that are not in replay, in each hundred."""
        return (self.words - (self.common or 0)) * 100 // self.words if self.words else 0

    @property
    def is_well(self) -> bool:
        """True if nothing of it is missing."""
        return self.state == SHOWN and not self.missing and not self.leaks


def missing(
    url: str, seen: InIndex, row: ListedUrl | None, *, status: int = 0, rule: str | None = None, version: int = 0
) -> MissingPart:
    """A part that is missing, with the reason. `row`: what the launch has of it, None if it never asked. `status`: of
    a capture that is an error; 0 where replay has none. `rule`: the one of the job that refuses it, '' for none, None
    where the rules of the launch are not known."""
    if seen is InIndex.HIDDEN:
        return MissingPart(HIDDEN, url, "an access rule hides it")
    if status:
        return MissingPart(FAILED, url, reason(status))
    if row is None:
        if rule:
            return MissingPart(SCOPE, url, f"a rule of the job leaves it out: {rule}")
        more = "; the rules of the launch are not known here" if rule is None else ""
        return MissingPart(UNSEEN, url, f"the crawl found no link to it{more}")
    if not row.is_got:
        return MissingPart(_OF_CODES.get(row.status or 0, FAILED), url, row.why)
    if seen is InIndex.REVISITS:
        return MissingPart(ORPHAN, url, "a revisit: its payload is archived nowhere")
    if seen is InIndex.NOTHING:
        return MissingPart(UNINDEXED, url, _IN_INDEX.format(version))
    return MissingPart(BROKEN, url, f"index version {version} has it, and replay could not show it")


def words_of(text: str) -> set[str]:
    """The different words of a text, upper and lower case alike."""
    return set(_WORD.findall(text.casefold()))


def worst_first(pages: Iterable[CheckedPage]) -> list[CheckedPage]:
    """Pages that are not there, then those that lack most parts, then those that have lost most words."""
    return sorted(pages, key=lambda one: (one.state == SHOWN, -len(one.missing) - len(one.leaks), -one.lost_words,
                                          one.url))  # fmt: skip


def counts(pages: Iterable[CheckedPage]) -> Mapping[str, int]:
    """The different parts that are missing, by kind, in the order of the kinds."""
    found = Counter(part.kind for part in {part.url: part for page in pages for part in page.missing}.values())
    return {kind: found[kind] for kind in KINDS if found[kind]}


def asked_again(pages: Iterable[CheckedPage]) -> Iterator[str]:
    """The URLs that a patch asks for, each once."""
    yield from dict.fromkeys(part.url for page in pages for part in page.missing if part.kind in ASKED_AGAIN)
