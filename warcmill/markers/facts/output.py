"""The facts of the steps over an engine's output: 01.stopped, 02, 03 and 04."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Self

from msgspec import Struct

from warcmill.markers.claim import Claim
from warcmill.markers.facts.pulse import Continued, continues
from warcmill.markers.facts.reading import (
    ClaimFields,
    members,
    number,
    numbers,
    object_of,
    or_null,
    stages,
    text,
    texts,
)
from warcmill.model import FileRef, Json, Stage

NUMBERS = ("lines", "uris", "bytes", "unread", "warcs", "warc_bytes")  # the counts of 03
TABLES = ("by_status", "by_mime", "by_host_top")
_OFFSETS, _TALLY = object_of(or_null(number)), object_of(number)
_WHERE_THERE_ARE_SOME = ("prefixes", "refused_prefix", "absent_prefix", "uncounted_log")


class Ended(StrEnum):
    """The end of a launch, by its evidence."""

    CONFIRMED = "confirmed"  # our StopJob saw it end
    FINISHED = "finished"  # its own job.log
    SUPERSEDED = "superseded"  # a later launch in the job's job.log
    OPERATOR = "closed"  # `warcmill close`
    IMPORTED = "imported"  # `warcmill import`


def _ended(value: Json) -> Ended:
    if value in list(Ended):
        return Ended(text(value))
    raise ValueError(f"not one of {', '.join(Ended)}")


class Stopped(Struct, frozen=True):
    """01.stopped: how a launch ended, and the time of its FINISHED line; '' without one."""

    how: Ended
    finished: str

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        return cls(facts.require("how", _ended), facts.require("finished", text))


class PackedLogs(Struct, frozen=True):
    """02: the files that the stage lacks; the visits, by dead worker, that have no file; and the name of each packed
    file in the zip."""

    absent: tuple[str, ...]
    lost_visits: Mapping[str, int]
    members: Mapping[FileRef, str]

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        return cls(facts.require("absent", texts), facts.maybe("lost_visits", _TALLY) or {}, members(claim))


class Assembled(Struct, frozen=True):
    """03: the stage's dates and findings, the WARCs left to the next stage, and the totals of its crawl logs."""

    start_date: str
    end_date: str
    ended: Ended | None  # only in `final`
    continues: Continued | None
    carried: Mapping[str, int | None]  # WARCs by name, with the greatest offset in bytes that the crawl log names
    absent: tuple[str, ...]
    unnamed: tuple[str, ...]
    named_again: tuple[str, ...]
    unexpected: tuple[str, ...]
    prefixes: tuple[str, ...]
    refused_prefix: tuple[str, ...]
    absent_prefix: tuple[str, ...]
    uncounted_log: tuple[str, ...]
    numbers: Mapping[str, int]  # NUMBERS
    tables: Mapping[str, Mapping[str, int]]  # TABLES
    offsets: Mapping[str, int]  # by label: the greatest offset in bytes that the crawl log names in a WARC

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts, counts = ClaimFields.facts(claim), ClaimFields.counts(claim)
        offsets = ((item.file.label, fields.maybe("offset", number)) for item, fields in ClaimFields.items(claim))
        return cls(
            start_date=facts.require("start_date", text),
            end_date=facts.require("end_date", text),
            ended=facts.require("ended", _ended) if claim.key["stage"] == "final" else None,
            continues=continues(claim),
            carried=facts.require("carried", _OFFSETS),
            **{name: facts.require(name, texts) for name in ("absent", "unnamed", "named_again")},
            unexpected=facts.require("odd", texts),
            **{name: facts.maybe(name, texts) or () for name in _WHERE_THERE_ARE_SOME},
            numbers={name: counts.require(name, number) for name in NUMBERS},
            tables={name: counts.require(name, _TALLY) for name in TABLES},
            offsets={label: offset for label, offset in offsets if offset is not None},
        )


class Complete(Struct, frozen=True):
    """04: the stages of a launch, the holes between them, how it ended, and what it continues."""

    stages: tuple[Stage, ...]
    stage_holes: tuple[int, ...]
    serial_holes: tuple[str, ...]
    ended: Ended
    continues: Continued | None

    @classmethod
    def from_claim(cls, claim: Claim) -> Self:
        facts = ClaimFields.facts(claim)
        return cls(
            facts.require("stages", stages),
            facts.require("stage_holes", numbers),
            facts.require("serial_holes", texts),
            facts.require("ended", _ended),
            continues(claim),
        )
