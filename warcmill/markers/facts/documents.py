"""The facts of documents: documents.extracted, documents.verified."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

from msgspec import Struct

from warcmill.markers.claim import Claim
from warcmill.markers.facts.reading import ClaimFields, number, object_of, text, texts
from warcmill.model import FileRef, Json

_TALLY = object_of(number)


class HarvestedFile(NamedTuple):
    """The documents, revisits and pages of a WARC; documents with a fault; its other captures, by reason; and the lines
    for records in which a virus was found. The faults and the latter are among the others. `bad`: the bad records of
    a refused WARC."""

    documents: int
    revisits: int
    pages: int
    faults: int
    left_out: Mapping[str, int]
    hits: int
    bad: int = 0


class Harvested(Struct, frozen=True):
    """documents.extracted, by the file in the store."""

    files: Mapping[FileRef, HarvestedFile]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls({item.made or item.file: _harvested(facts) for item, facts in ClaimFields.items(claim)})


def _harvested(facts: ClaimFields) -> HarvestedFile:
    documents, revisits, pages, faults, hits = (
        facts.require(name, number) for name in ("documents", "revisits", "pages", "faults", "hits")
    )
    left_out, bad = facts.require("left_out", _TALLY), facts.maybe("bad", number) or 0
    return HarvestedFile(documents, revisits, pages, faults, left_out, hits, bad)


class UnharvestedLine(NamedTuple):
    """A line of a crawl log that has the type of a document and no entry: its URL and time, its WARC and the offset
    there, and the reason."""

    url: str
    date: str
    warc: str
    offset: int
    why: str


class HarvestVerified(Struct, frozen=True):
    """documents.verified: the lines of the crawl logs with a document's type, those with an entry, and those without
    one by reason. `first`: the first of these. `unread`: the logs that could not be read to their end."""

    lines: int
    entries: int
    reasons: Mapping[str, int]
    first: tuple[UnharvestedLine, ...]
    unread: tuple[str, ...] = ()

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        counts, facts = ClaimFields.counts(claim), ClaimFields.facts(claim)
        return cls(
            counts.require("lines", number),
            counts.require("entries", number),
            facts.require("reasons", _TALLY),
            facts.require("first", _lines),
            facts.require("unread", texts),
        )


def _lines(value: Json) -> tuple[UnharvestedLine, ...]:
    if isinstance(value, list):
        return tuple(map(_line, value))
    raise ValueError("not a list of lines")


def _line(value: Json) -> UnharvestedLine:
    if isinstance(value, dict) and set(value) == set(UnharvestedLine._fields):
        url, date, warc = (text(value[name]) for name in ("url", "date", "warc"))
        return UnharvestedLine(url, date, warc, number(value["offset"]), text(value["why"]))
    raise ValueError("not a URL, a date, a WARC, an offset and a reason")
