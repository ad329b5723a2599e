"""The facts of the index, for each WARC, by step: cdx, cdx-verified, text, text-verified, columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

from msgspec import Struct

from warcmill.markers.claim import Claim
from warcmill.markers.facts.files import Faults, faults
from warcmill.markers.facts.reading import ClaimFields, number, object_of
from warcmill.model import FileRef

_TALLY = object_of(number)
OF_RENDERING = "of a rendered page"  # why the DOM and the picture of a page have no line
UNPLACED = frozenset({"no URL", "no date"})  # why a capture can have neither line nor text


class IndexedFile(NamedTuple):
    """The captures of a WARC: by record type, those without a line by reason, and those that an index leaves out since
    a virus was found in them. The latter are among the captures. `bad`: the bad records of a refused WARC. `odd`: the
    captures with a line whose date cannot be right. `offset_dates`: those whose date has an offset from UTC; None
    where all have plain ones, and in markers of earlier versions."""

    captures: Mapping[str, int]
    unfit: Mapping[str, int]
    hits: int
    bad: int = 0
    odd: Faults = Faults()
    offset_dates: int | None = None

    @property
    def unplaced(self) -> Mapping[str, int]:
        """The captures without a line, by reason, but those that rightly have none by their type."""
        return {why: number for why, number in self.unfit.items() if why != OF_RENDERING}

    @property
    def is_revised(self) -> bool:
        """True if an extract that an earlier version made may lack captures."""
        return bool(self.unplaced or self.offset_dates)

    @property
    def is_of_earlier(self) -> bool:
        """True if an earlier version counted captures without a line, which read fewer dates."""
        return bool(self.unplaced) and self.offset_dates is None


class Indexed(Struct, frozen=True):
    """index.cdx, by the file in the store."""

    files: Mapping[FileRef, IndexedFile]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls({item.made or item.file: _indexed(facts) for item, facts in ClaimFields.items(claim)})


def _indexed(facts: ClaimFields) -> IndexedFile:
    captures, unfit = facts.require("captures", _TALLY), facts.require("unfit", _TALLY)
    odd = faults(facts, "odd") or Faults()
    counted = facts.require("hits", number), facts.maybe("bad", number) or 0, odd
    return IndexedFile(captures, unfit, *counted, facts.maybe("offset_dates", number))


class CdxVerified(Struct, frozen=True):
    """index.cdx-verified: the captures of each WARC, by the file in the store; each was found, or rightly is not shown.

    `elsewhere`: revisits whose original is in no WARC of the launch up to this stage.
    """

    captures: Mapping[FileRef, int]
    elsewhere: int

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        captures = {
            item.made or item.file: facts.require("captures", number) for item, facts in ClaimFields.items(claim)
        }
        return cls(captures, ClaimFields.counts(claim).require("elsewhere", number))


class TextIndexedFile(NamedTuple):
    """The documents of a WARC: by kind; the other captures, by reason; and the documents that an index leaves
    out since a virus was found in them. The latter are among the documents. `bad`: the bad records of a refused one.
    `offset_dates`: the captures but revisits whose date has an offset from UTC; None as above."""

    documents: Mapping[str, int]
    left_out: Mapping[str, int]
    hits: int
    bad: int = 0
    offset_dates: int | None = None

    @property
    def is_revised(self) -> bool:
        """True if an extract that an earlier version made may lack documents."""
        return bool(self.left_out.keys() & UNPLACED or self.offset_dates)


class TextIndexed(Struct, frozen=True):
    """index.text, by the file in the store."""

    files: Mapping[FileRef, TextIndexedFile]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls({item.made or item.file: _text_indexed(facts) for item, facts in ClaimFields.items(claim)})


def _text_indexed(facts: ClaimFields) -> TextIndexedFile:
    documents, left_out = facts.require("documents", _TALLY), facts.require("left_out", _TALLY)
    counted = facts.require("hits", number), facts.maybe("bad", number) or 0
    return TextIndexedFile(documents, left_out, *counted, facts.maybe("offset_dates", number))


class TextFound(Struct, frozen=True):
    """index.text-verified: the documents of each WARC, by the file in the store; each was found, or rightly is not
    shown."""

    documents: Mapping[FileRef, int]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls(
            {item.made or item.file: facts.require("documents", number) for item, facts in ClaimFields.items(claim)}
        )


class Rows(Struct, frozen=True):
    """index.columns: the rows that each WARC has in the stage's Parquet file, by the file in the store."""

    files: Mapping[FileRef, int]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls({item.made or item.file: facts.require("rows", number) for item, facts in ClaimFields.items(claim)})
