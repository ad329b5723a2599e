"""The launches that are one crawl, since each continues the one before it. Reads the state alone.

Each claim names the launch that its own launch continues, and no other. Whoever shows a crawl to a person resolves the
chain here. A launch that follows another one is a crawl of its own.
"""

from __future__ import annotations

from itertools import takewhile

from msgspec import Struct

from warcmill import layout
from warcmill.errors import BadInput, Foreign
from warcmill.launches import discovery
from warcmill.launches.view import Part
from warcmill.markers.facts.output import Assembled, Complete
from warcmill.markers.facts.pulse import Started
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch

MOST_LATER = 100  # launches of the job after this one that are looked at


class CrawlParts(Struct, frozen=True):
    """The parts of a crawl as one launch sees them. `before`: the launches that it continues, the earliest first.

    `broken`: why there may be more of them; '' if the first of them began afresh.
    """

    launch: Launch
    before: tuple[Launch, ...] = ()
    broken: str = ""

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches that it continues, and itself."""
        return *self.before, self.launch


def of(state: MarkerStore, launch: Launch) -> CrawlParts:
    """The parts of a crawl up to a launch, by their markers."""
    before: tuple[Launch, ...] = ()
    while True:
        one = before[0] if before else launch
        try:
            earlier = continued(state, one)
        except (BadInput, Foreign) as error:
            return CrawlParts(launch, before, f"it is not known which launch {one.id} continues: {error}")
        if earlier is None:
            return CrawlParts(launch, before)
        if earlier >= one:
            return CrawlParts(launch, before, f"{one.id} should continue {earlier.id}, which did not begin before it")
        if not state.store.names(layout.state_folder(earlier)):
            return CrawlParts(launch, before, f"{one.id} continues {earlier.id}, which has no marker in the state")
        before = (earlier, *before)


def continued(state: MarkerStore, launch: Launch) -> Launch | None:
    """The launch that one continues, by the first of its markers that has it: 01.started, 04, 03. None for a fresh one.

    BadInput or Foreign for a marker that cannot be read.
    """
    if started := state.read(layout.key("pulse.Started", launch)):
        found = Started.from_claim(started.claim).continues
    elif complete := state.read(layout.step("process", launch)):
        found = Complete.from_claim(complete.claim).continues
    else:
        markers = (state.read(layout.step("assemble", launch, stage)) for stage in sorted(state.stages(launch)))
        assembled = next(filter(None, markers), None)
        found = Assembled.from_claim(assembled.claim).continues if assembled else None
    return found.launch if found else None


def later(state: MarkerStore, launch: Launch) -> tuple[Launch, ...]:
    """The launches that continue one, or continue one that does; in their order, of the MOST_LATER after it."""
    known, after = {launch}, [*takewhile(lambda one: one > launch, discovery.of_job(state, launch.job))]
    for one in after[::-1][:MOST_LATER]:
        try:
            if continued(state, one) in known:
                known.add(one)
        except (BadInput, Foreign):
            continue  # a marker that does not fit is a gap of its own launch
    return tuple(sorted(known - {launch}))


def stages(state: MarkerStore, parts: CrawlParts) -> tuple[Part, ...]:
    """The stages of all parts that have a marker, the earliest first; those after a checkpoint that was continued, too:
    their pages were fetched."""
    return tuple((launch, stage) for launch in parts.launches for stage in sorted(state.stages(launch)))
