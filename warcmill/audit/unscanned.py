"""What the scans of one run could not find yet: launches that ended, and checkpoints taken, after they had begun."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warcmill import chain, layout
from warcmill.audit.gaps import Gap
from warcmill.audit.survey import Survey
from warcmill.errors import WarcmillError
from warcmill.launches.ending import ended, is_sealed
from warcmill.launches.listing import list_files
from warcmill.launches.rootmap import RootMap
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Stage


@dataclass(frozen=True)
class Before:
    """What there was to scan when the scans began: launches that had ended, and sealed stages of running ones."""

    ended: frozenset[Launch]
    sealed: frozenset[tuple[Launch, Stage]]


def look(state: MarkerStore, rootmap: RootMap, launches: Iterable[Launch]) -> Before:
    """What there is to scan now. A launch that cannot be read counts as ended, so that its gaps are reported."""
    over: set[Launch] = set()
    sealed: set[tuple[Launch, Stage]] = set()
    for launch in launches:
        try:
            stages = _sealed_while_running(state, rootmap, launch)
        except WarcmillError:
            stages = None
        if stages is None:
            over.add(launch)
        else:
            sealed |= {(launch, stage) for stage in stages}
    return Before(frozenset(over), frozenset(sealed))


def _sealed_while_running(state: MarkerStore, rootmap: RootMap, launch: Launch) -> list[Stage] | None:
    """The sealed stages of a running launch; None when it has ended."""
    if state.holds(layout.step("process", launch)):
        return None
    roots = rootmap.of(launch.job)
    if ended(state, roots, launch):
        return None
    listing = list_files(roots, launch)
    stages = [stage for stage in listing.logs if not stage.is_final]
    return [stage for stage in stages if is_sealed(state, roots, launch, stage, listing)]


def split(seen: Survey, gaps: Iterable[Gap], before: Before) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """The gaps of a launch, and apart from them those of steps that no scan could try yet."""
    parts: dict[bool, list[Gap]] = {False: [], True: []}
    for gap in gaps:
        parts[_is_unscanned(seen, gap, before)].append(gap)
    return tuple(parts[False]), tuple(parts[True])


def _is_unscanned(seen: Survey, gap: Gap, before: Before) -> bool:
    key = layout.parse_marker_name(gap.name) if gap.kind == "lacking" else None
    if key is None or seen.attempts.get(key) or seen.launch in before.ended:
        return False
    if not chain.by_task(chain.ROWS)[key.task].scan:
        return False  # an operator's: no scan will publish it
    stage = Stage.parse(gap.stage) if gap.stage else None
    return stage is None or stage.is_final or (seen.launch, stage) not in before.sealed
