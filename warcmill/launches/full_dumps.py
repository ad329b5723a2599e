"""The full dumps of package indexes that were decided. Reads only.

A full dump is of a launch, the newest one with a whole dump when it was decided, and has a generation of its own, from
serial 0 to the end of that launch's window. The launches after it are dumped in that generation.
"""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.markers import decisions
from warcmill.markers.decisions import RecordedDecision
from warcmill.markers.state import MarkerStore
from warcmill.model import Key, Launch


class FullDump(NamedTuple):
    """A full dump that was decided: of all that is dumped up to a launch, as a generation."""

    launch: Launch
    generation: int

    @property
    def key(self) -> Key:
        """The key of its step."""
        return layout.key("pypi.DumpFull", self.launch, number=f"{self.generation:05d}")

    @classmethod
    def of(cls, made: RecordedDecision) -> FullDump:
        """The one of a decision; BadInput if it is none."""
        job, launch, generation = (made.facts.get(name) for name in ("job", "launch_id", "generation"))
        if not isinstance(job, str) or not isinstance(launch, str) or type(generation) is not int:
            raise BadInput(f"state:{made.path}", "it names no job, launch and generation; is it of a newer Warcmill?")
        return cls(Launch.parse(job, launch), generation)


def decided(state: MarkerStore, launch: Launch) -> FullDump | None:
    """The full dump that was last decided of a launch; None without any."""
    return next((one for one in reversed(all_decided(state, launch.job)) if one.launch == launch), None)


def all_decided(state: MarkerStore, job: str) -> list[FullDump]:
    """The full dumps of a job that were decided, in their order. BadInput if a decision is damaged or missing."""
    found = map(FullDump.of, decisions.read(state.store, decisions.GENERATIONS))
    return [one for one in found if one.launch.job == job]


def unmade(state: MarkerStore, launch: Launch) -> Key | None:
    """The key of the full dump that was last decided of a launch, if it has no marker. A damaged decision counts as
    none: the steps are refused for it."""
    for one in reversed(decisions.readable(state.store, decisions.GENERATIONS)[0]):
        with suppress(BadInput):
            if (full := FullDump.of(one)).launch == launch:
                return None if state.holds(full.key) else full.key
    return None
