"""The WARCs of a stage as the store has them, and the stages that each SIP covers. From markers alone; no file is read.

files.Copy stores a WARC that was never closed under two names: `X.open`, bit for bit, and its whole records as `X`.
If the file was whole, both have the same bytes: they are one holding, `X`. If it was cut, they are two: `X.open`,
which is cut, and `X`, which is salvaged. Indexes read a refused WARC record by record, unless its whole records were
salvaged.

A SIP covers the stages of its launch that no earlier SIP covers, up to its own. So every stage of an ended launch is
in exactly one SIP, however often `[package] stages` is changed: that changes only what no SIP covers yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.markers.claim import Claim
from warcmill.markers.facts.files import DAMAGED, Hit, Scanned, is_salvaged
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Item, Launch, Outcome, Stage

__all__ = ["Hit", "Holding", "HoldingKind", "StageHoldings", "Unstored", "of_claims", "of_stage"]
_OF_WARCS, _OF_VIRAL = ("warcs/", "viral/"), "viral/"


class HoldingKind(StrEnum):
    """The kind of a WARC in the store."""

    WHOLE = "whole"
    CUT = "cut"  # refused by the gate: stored bit for bit
    SALVAGED = "salvaged"  # the whole records of a cut one
    VIRAL = "viral"  # written by the engine's viral writer, and not cut


class Holding(NamedTuple):  # cheap to make: a large launch has 100,000
    """One WARC of a stage as the store has it. `name` is its own: not percent-encoded, and closed unless it is cut.

    `source` is the engine's file that it is a copy of, or was salvaged from. `hits` None: not scanned yet. `why` and
    `offset` are the gate's fault in a cut one; a salvaged one has a `why` too.
    """

    name: str
    word: HoldingKind
    stored: FileRef
    source: FileRef
    hits: tuple[Hit, ...] | None = None
    why: str = ""
    offset: int | None = None
    by_record: bool = False  # a cut one whose sound records are indexed

    @property
    def folder(self) -> str:
        """The store's folder of its kind: `warcs` or `viral`. A cut one may be in either."""
        return _folder(self.stored)

    @property
    def is_indexed(self) -> bool:
        """True if indexes take it: whole and salvaged ones, and some cut ones. Packages take all."""
        return self.by_record or self.word in (HoldingKind.WHOLE, HoldingKind.SALVAGED)


class Unstored(Struct, frozen=True):
    """A WARC whose name the store cannot have: only its name, as 03 writes it, its length, and why."""

    name: str
    size: int
    why: str


class StageHoldings(Struct, frozen=True):
    """The holdings of a stage: its WARCs by name; `logs`, its other stored files; and the WARCs that are not stored."""

    launch: Launch
    stage: Stage
    holdings: tuple[Holding, ...]
    logs: tuple[FileRef, ...]
    unstored: tuple[Unstored, ...]


def of_stage(state: MarkerStore, launch: Launch, stage: Stage) -> StageHoldings:
    """Read what a stage holds, with its hits once it is scanned.

    NotReady without its 03 or files.verified, with the step to run first.
    """
    assembled = state.require(layout.step("assemble", launch, stage))
    verified = state.require(layout.step("verify", launch, stage))
    scanned = state.read(layout.step("viruses", launch, stage))
    return of_claims(assembled.claim, verified.claim, scanned.claim if scanned else None)


def of_claims(assembled: Claim, verified: Claim, scanned: Claim | None = None) -> StageHoldings:
    """Return what a stage holds, from its 03, files.verified and, where there is one, files.scanned.

    BadInput when a WARC of 03 is not in files.verified, or a file of a later marker not in the one before.
    """
    warcs, logs = list[tuple[Item, FileRef]](), list[FileRef]()
    for item in verified.items:
        copy = _stored(verified, item)
        if copy.path.startswith(_OF_WARCS):
            warcs.append((item, copy))
        else:
            logs.append(copy)
    listed = {item.file.label for item in assembled.items if item.outcome is Outcome.OK}
    _refuse_difference(verified, listed, {item.file.label for item, _ in warcs}, "WARCs of its 03")
    twice = {item.file.label for item, _ in warcs if is_salvaged(item)}
    once = [(item, copy) for item, copy in warcs if not (twice and _is_the_open_one_of_two(item, twice))]
    hits = _hits(scanned, {copy.path for _, copy in warcs})
    refused = {item.file.label for item, _ in warcs if item.outcome is Outcome.REFUSED}
    unread = twice | _unscanned(scanned) if refused else set()
    holdings = (_holding(item, copy, item.file.label in refused, unread, hits) for item, copy in once)
    return StageHoldings(
        launch=layout.launch_of(verified.key),
        stage=Stage.parse(verified.key["stage"]),
        holdings=tuple(sorted(holdings, key=lambda one: (one.name, one.stored.path))),
        logs=tuple(sorted(logs)),
        unstored=tuple(sorted(map(_unstored, _refused(assembled)), key=lambda one: one.name)),
    )


def _is_the_open_one_of_two(item: Item, twice: Iterable[str]) -> bool:
    """True if an item is the `X.open` of a whole WARC that is stored as `X` too."""
    return item.outcome is Outcome.OK and not is_salvaged(item) and item.file.label in twice


def _unscanned(scanned: Claim | None) -> set[str]:
    """The refused WARCs, by label, of which a scan that is older than reading on left out all behind the fault."""
    if scanned is None:
        return set()
    files = Scanned.from_claim(scanned).files
    return {item.file.label for item in scanned.items if DAMAGED in files[item.made or item.file].not_scanned}


def _holding(
    item: Item, copy: FileRef, cut: bool, unread: set[str], hits: Mapping[str, tuple[Hit, ...]] | None
) -> Holding:
    name = layout.final_name(item.file.name) if is_salvaged(item) else item.file.name
    found = None if hits is None else hits[copy.path]
    why, word = item.why if cut else "", _word(item, copy, cut)
    by_record = cut and word is HoldingKind.CUT and item.file.label not in unread and _folder(copy) != "viral"
    return tuple.__new__(Holding, (name, word, copy, item.file, found, why, item.offset, by_record))


def _word(item: Item, copy: FileRef, cut: bool) -> HoldingKind:
    if item.outcome is Outcome.REFUSED:
        return HoldingKind.CUT
    if copy.path.startswith(_OF_VIRAL):
        return HoldingKind.VIRAL
    return HoldingKind.SALVAGED if cut else HoldingKind.WHOLE


def _hits(scanned: Claim | None, paths: set[str]) -> Mapping[str, tuple[Hit, ...]] | None:
    """Return the hits by stored path; None when nothing was scanned."""
    if scanned is None:
        return None
    found = {file.path: one.hits for file, one in Scanned.from_claim(scanned).files.items()}
    _refuse_difference(scanned, paths, set(found), "WARCs of its files.verified")
    return found


def _stored(claim: Claim, item: Item) -> FileRef:
    if item.made is None or item.made.sha512 is None:
        raise _unfit(claim, f"names no file in the store, with its digest, for {item.file.label}")
    return item.made


def _refuse_difference(claim: Claim, expected: set[str], found: set[str], what: str) -> None:
    if expected != found:
        lacks, has = sorted(expected - found), sorted(found - expected)
        raise _unfit(claim, f"does not have the {what}; missing: {_names(lacks)}, more than these: {_names(has)}")


def _names(names: list[str]) -> str:
    return (", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")) or "none"


def _unfit(claim: Claim, why: str) -> BadInput:
    return BadInput(layout.marker_path(claim.key), f"{why}; 'warcmill redo' {claim.key.task}")


def _folder(copy: FileRef) -> str:
    return copy.path.partition("/")[0]


def _refused(assembled: Claim) -> Iterable[Item]:
    return (item for item in assembled.items if item.outcome is Outcome.REFUSED)


def _unstored(item: Item) -> Unstored:
    return Unstored(item.file.name, item.file.size, item.why)


class Coverage(Struct, frozen=True):
    """The assembled stages of a launch, and its SIPs: the stages that each covers, by the SIP's own stage.

    `broken`: stages whose 05 marker is there and cannot be relied on. Their SIPs are built again, before those of the
    stages below them: such a SIP covered all that no earlier one did, and covers the same again.
    """

    stages: frozenset[Stage]
    sips: Mapping[Stage, tuple[Stage, ...]] = field(default_factory=dict)
    broken: frozenset[Stage] = frozenset()

    def covering(self, stage: Stage) -> Stage | None:
        """The SIP, by its own stage, that covers a stage; None when none does."""
        return next((sip for sip, covered in self.sips.items() if stage in covered), None)

    def due(self, *, final_only: bool) -> tuple[Stage, ...]:
        """The stages that must get a SIP of their own, in order.

        With `final_only` that is the final stage alone, and once it has its SIP any stage that this one missed.
        """
        left = [stage for stage in self._left() if stage in self.broken or not any(one > stage for one in self.broken)]
        if not final_only or self._final_is_packaged():
            return tuple(left)
        return tuple(stage for stage in left if stage.is_final or stage in self.broken)

    def before(self, stage: Stage) -> Stage | None:
        """The SIP before the one of a stage: the latest earlier stage's, if there is one."""
        return max((sip for sip in self.sips if sip < stage), default=None)

    def earlier_due(self, stage: Stage, *, final_only: bool) -> tuple[Stage, ...]:
        """The stages before this one whose SIPs are due: they are built first."""
        return tuple(one for one in self.due(final_only=final_only) if one < stage)

    def covers(self, stage: Stage) -> tuple[Stage, ...]:
        """The stages that the SIP of a stage covers when it is built now, in order."""
        return tuple(one for one in self._left({stage}) if one <= stage)

    def to_cover(self, stage: Stage, *, final_only: bool) -> tuple[Stage, ...]:
        """The stages that the SIP of a stage covers once those that are due before it are built."""
        after = self
        for one in self.earlier_due(stage, final_only=final_only):
            after = after.with_sip(one)
        return after.covers(stage)

    def with_sip(self, stage: Stage) -> Coverage:
        """The coverage once the SIP of a stage is built."""
        return replace(self, sips={**self.sips, stage: self.covers(stage)}, broken=self.broken - {stage})

    def _left(self, also: Iterable[Stage] = ()) -> list[Stage]:
        covered = {stage for stages in self.sips.values() for stage in stages}
        return sorted((self.stages | self.broken | set(also)) - covered)

    def _final_is_packaged(self) -> bool:
        return any(stage.is_final for stage in self.sips)
