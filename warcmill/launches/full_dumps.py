"""The full dumps of package indexes that were decided, and the newest dump of each. Reads only.

A full dump is of a launch, the newest one with a whole dump when it was decided, and has a generation of its own, from
serial 0 to the end of that launch's window. The launches after it are dumped in that generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.launches import discovery
from warcmill.markers import decisions
from warcmill.markers.claim import Evidence
from warcmill.markers.decisions import RecordedDecision
from warcmill.markers.facts.pypi import Dumped
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Key, Launch


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
        """The full dump of a decision; BadInput if the decision is invalid."""
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


def needed(state: MarkerStore, launch: Launch, known: Mapping[Key, object]) -> list[tuple[Key, tuple[FileRef, ...]]]:
    """The dumps of a launch that the store has to have, by its facts: each with its marker's key and its files. Those
    of a generation before the newest one may be retired, as nothing is made of them any more."""
    whole = [(key, fact) for key, fact in sorted(known.items()) if isinstance(fact, Dumped) and fact.whole]
    newest = 0
    with suppress(BadInput):  # damaged decisions and markers are gaps of their own
        newest = newest_generation(state, launch.job) if whole else 0
    return [(key, fact.files) for key, fact in whole if fact.generation >= newest]


def newest_generation(state: MarkerStore, job: str) -> int:
    """The newest generation that a job's newest whole dump is of; 0 for a job without any. One that was decided counts
    once it is dumped."""
    marker = newest_whole(state, job)
    return last_of(state, marker).generation if marker else 0


def newest_whole(state: MarkerStore, job: str) -> Evidence | None:
    """The marker of the newest whole dump of a job's launches; None without any."""
    return newest_of(state, discovery.of_job(state, job))


def last_of(state: MarkerStore, marker: Evidence) -> Dumped:
    """The dump of a launch, or the last full dump of it that there is."""
    launch = layout.launch_of(marker.claim.key)
    fulls = (state.read(one.key) for one in all_decided(state, launch.job) if one.launch == launch)
    return Dumped.from_claim([marker, *filter(None, fulls)][-1].claim)


def newest_of(state: MarkerStore, launches: Iterable[Launch]) -> Evidence | None:
    """The marker of the whole dump of the first of these launches that has one; None without any."""
    for launch in launches:
        if (marker := state.read(layout.step("dump", launch))) and Dumped.from_claim(marker.claim).whole:
            return marker
    return None
