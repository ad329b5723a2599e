"""The facts of statements: a launch has ended, a folder is a launch, a finding is accepted. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from msgspec import Struct

from warcmill.markers.claim import Claim
from warcmill.markers.facts.reading import ClaimFields, object_of, text, texts
from warcmill.model import FileRef


class Closed(Struct, frozen=True):
    """01.closed: the operator's reason for ending the launch."""

    reason: str

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        return cls(ClaimFields.facts(claim).require("reason", text))


class Imported(Struct, frozen=True):
    """01.imported: who took a folder of WARCs in, from where; the span of the records' dates, what was left out, and
    the path in the folder of each WARC.

    `missing`: entries that may be WARCs, and are not in the launch. `left_out`: all others. Each is `path: why`.
    `papers`: paths of logs and lists of pages in the launch's folder, each with that in the WACZ. `remarks`: of its
    files.
    """

    by: str
    source: str
    layout: str
    first: str
    last: str
    missing: tuple[str, ...]
    left_out: tuple[str, ...]
    origins: Mapping[FileRef, str]
    papers: Mapping[str, str] = {}
    remarks: tuple[str, ...] = ()

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        return cls(
            by=facts.require("by", text),
            source=facts.require("source", text),
            layout=facts.require("layout", text),
            first=facts.require("first", text),
            last=facts.require("last", text),
            missing=facts.require("missing", texts),
            left_out=facts.require("left_out", texts),
            origins={item.file: fields.require("origin", text) for item, fields in ClaimFields.items(claim)},
            papers=facts.maybe("papers", object_of(text)) or {},
            remarks=facts.maybe("remarks", texts) or (),
        )


class Accepted(Struct, frozen=True):
    """A finding that an operator accepted: its name, its kind, and the reason."""

    name: str
    kind: str
    reason: str

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        return cls(facts.require("name", text), facts.require("kind", text), facts.require("reason", text))
