"""What the WACZ of a launch holds, or of one of its stages, from markers alone.

It takes what indexes take: whole and salvaged WARCs. What it does not take is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from warcmill import layout
from warcmill.errors import BadInput, NotReady
from warcmill.launches import holdings
from warcmill.launches.holdings import Holding, StageHoldings, Word
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch, Stage

_WARC = re.compile(r".*\.warc(\.gz)?", re.DOTALL | re.IGNORECASE)
Named = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a WACZ holds: WARCs by name. `left_out` has names, each with the reason."""

    launch: Launch
    stages: tuple[Stage, ...]
    warcs: tuple[Holding, ...]
    left_out: tuple[Named, ...]
    title: str
    created: str

    @property
    def size(self) -> int:
        """The length of all WARCs, in bytes."""
        return sum(one.stored.size for one in self.warcs)


def contents(state: MarkerStore, launch: Launch, stage: Stage | None) -> Contents:
    """What the WACZ of a stage holds; without a stage, that of all stages that the launch has so far.

    NotReady with the scan to run, if one is not verified. BadInput if there is no such stage, or no WARC to replay.
    """
    title = f"{launch.job} {launch.id}" + (f" {stage}" if stage else "")
    stages = _stages(state, launch, stage)
    held = [_of_stage(state, launch, one) for one in stages]
    every = [one for each in held for one in each.holdings]
    left_out = [(one.name, why) for one in every if (why := _why_not(one))]
    left_out += [(one.name, f"not in the store: {one.why}") for each in held for one in each.unstored]
    if stage is None and FINAL not in stages:
        left_out.append((str(FINAL), "the launch has no such stage yet"))
    warcs = _by_name(one for one in every if not _why_not(one))
    if not warcs:
        raise BadInput(title, "no WARC to replay" + "".join(f"; {name}: {why}" for name, why in left_out[:3]))
    created = max(state.require(layout.step("verify", launch, one)).run.finished for one in stages)
    return Contents(launch, stages, warcs, tuple(left_out), title, created)


def _stages(state: MarkerStore, launch: Launch, stage: Stage | None) -> tuple[Stage, ...]:
    known = sorted(state.stages(launch))
    if stage is None and known:
        return tuple(known)
    if stage is None or stage not in known:
        names = ", ".join(map(str, known)) or "none yet; 'warcmill why' explains what it waits for"
        raise BadInput(f"{launch} {stage or ''}".rstrip(), f"no such stage; those of the launch: {names}")
    return (stage,)


def _of_stage(state: MarkerStore, launch: Launch, stage: Stage) -> StageHoldings:
    """NotReady with the scan to run, unless the stage is verified."""
    if not state.holds(layout.step("verify", launch, stage)):
        todo = f"luigi --module tasks.files files.ScanForOutputFiles --date-interval {launch.day}"
        raise NotReady(f"{launch} {stage}", f"its WARCs are not verified in the store yet; run {todo}")
    return holdings.of_stage(state, launch, stage)


def _why_not(one: Holding) -> str:
    """Why a WARC is not taken; '' if it is."""
    if one.word is Word.CUT:
        return f"cut: {one.why}"
    if one.word is Word.VIRAL:
        return "from the engine's viral writer"
    return "" if _WARC.fullmatch(one.name) else "an ARC: replay reads WARCs only"


def _by_name(warcs: Iterable[Holding]) -> tuple[Holding, ...]:
    """Each WARC once, by name; BadInput for two of one name."""
    found: dict[str, Holding] = {}
    for one in warcs:
        there = found.setdefault(one.name, one)
        if there.stored.sha512 != one.stored.sha512:
            why = f"another WARC of the same name is stored as {there.stored.path}; write the WACZ of one stage"
            raise BadInput(f"store:{one.stored.path}", why)
    return tuple(found[name] for name in sorted(found))
