"""The dumps of a package index's job, by their markers. Reads only."""

from __future__ import annotations

from collections.abc import Iterable

from warcmill import layout
from warcmill.launches import discovery
from warcmill.markers.claim import Evidence
from warcmill.markers.facts import Started
from warcmill.markers.facts.pypi import Dumped
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Window
from warcmill.pypi.feed import EarlierDump, projects_of

DUMP = "pypi.DumpDistributionData"


def newest(state: MarkerStore, job: str) -> EarlierDump | None:
    """The newest whole dump of a job; None for a job without any. A later launch's window begins where it ends."""
    marker = _newest_whole(state, discovery.of_job(state, job))
    if marker is None:
        return None
    dumped = Dumped.from_claim(marker.claim)
    asked = _asked(state, layout.launch_of(marker.claim.key))
    return EarlierDump(dumped.window.up_to, frozenset(dumped.lacking), asked)


def whole_before(state: MarkerStore, launch: Launch) -> Evidence | None:
    """The marker of the newest whole dump of a launch before this one; None without any."""
    return _newest_whole(state, (one for one in discovery.of_job(state, launch.job) if one.id < launch.id))


def next_generation(window: Window, before: Evidence | None) -> int:
    """The generation of the dump of a window: that of the whole dump before it, if the window begins where that ends.
    One that begins at 0 anew, as that of a full crawl, begins its own."""
    if before is None:
        return 1
    dumped = Dumped.from_claim(before.claim)
    return dumped.generation + (window.after == 0 < dumped.window.up_to)


def newest_generation(state: MarkerStore, job: str) -> int:
    """The generation of the newest whole dump of a job; 0 for a job without any."""
    marker = _newest_whole(state, discovery.of_job(state, job))
    return Dumped.from_claim(marker.claim).generation if marker else 0


def _newest_whole(state: MarkerStore, launches: Iterable[Launch]) -> Evidence | None:
    for launch in launches:
        if (marker := state.read(layout.key(DUMP, launch))) and Dumped.from_claim(marker.claim).whole:
            return marker
    return None


def _asked(state: MarkerStore, launch: Launch) -> frozenset[str] | None:
    """The projects that a launch was for; None: all."""
    started = state.require(layout.key("pulse.Started", launch))
    return projects_of(state, layout.feed_key(launch.job, Started.from_claim(started.claim).due))
