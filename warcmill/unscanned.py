"""What the scans of one run could not know of yet: a launch that ended, or a checkpoint that was taken, meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warcmill import launches, layout
from warcmill.ending import ended, is_closed
from warcmill.errors import WarcmillError
from warcmill.gaps import Gap
from warcmill.model import Launch, Stage
from warcmill.sites import Sites
from warcmill.state import State
from warcmill.survey import Survey


@dataclass(frozen=True)
class Before:
    """What there was to scan when the scans began: launches that had ended, and closed stages of those that ran."""

    ended: frozenset[Launch]
    closed: frozenset[tuple[Launch, Stage]]


def look(state: State, sites: Sites, found: Iterable[Launch]) -> Before:
    """What there is to scan now. A launch that cannot be read counts as ended: its gaps are to be told."""
    over: set[Launch] = set()
    closed: set[tuple[Launch, Stage]] = set()
    for launch in found:
        try:
            stages = _closed(state, sites, launch)
        except WarcmillError:
            stages = None
        if stages is None:
            over.add(launch)
        else:
            closed |= {(launch, stage) for stage in stages}
    return Before(frozenset(over), frozenset(closed))


def _closed(state: State, sites: Sites, launch: Launch) -> list[Stage] | None:
    """The closed stages of a launch that runs; None when it has ended."""
    if state.holds(layout.step("process", launch)):
        return None
    engines = sites.of(launch.job)
    if ended(state, engines, launch):
        return None
    listing = launches.read(engines, launch)
    stages = [stage for stage in listing.logs if not stage.is_final]
    return [stage for stage in stages if is_closed(state, engines, launch, stage, listing)]


def split(seen: Survey, found: Iterable[Gap], before: Before) -> tuple[tuple[Gap, ...], tuple[Gap, ...]]:
    """The gaps of a launch, and those that only mean that it is not yet scanned: a step that nobody has tried."""
    parts: dict[bool, list[Gap]] = {False: [], True: []}
    for gap in found:
        parts[_is_unscanned(seen, gap, before)].append(gap)
    return tuple(parts[False]), tuple(parts[True])


def _is_unscanned(seen: Survey, gap: Gap, before: Before) -> bool:
    key = layout.parse_marker_name(gap.name) if gap.kind == "lacking" else None
    if key is None or seen.attempts.get(key) or seen.launch in before.ended:
        return False
    stage = Stage.parse(gap.stage) if gap.stage else None
    return stage is None or stage.is_final or (seen.launch, stage) not in before.closed
