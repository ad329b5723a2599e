"""The other launches of a job, beside one that missed something: which of them got it. Reads only.

A page that a later launch got is not a gap of the earlier one any more: it was missed then, and got later. Claims stay
as they are: who reports asks here. A launch is read once, for as long as its folder does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import takewhile

from msgspec import Struct

from warcmill import layout
from warcmill.errors import BadInput, Foreign
from warcmill.formats.seeds import comparable
from warcmill.launches import crawl_parts, cut_short, discovery
from warcmill.markers.facts import readers
from warcmill.markers.facts.output import Complete
from warcmill.markers.facts.pulse import Started
from warcmill.markers.facts.reports import GOT, SeedFate, Seeds
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Key, Launch

Stamp = tuple[int, int]


class LaterLaunch(Struct, frozen=True):
    """A launch as earlier ones of its job look at it. `takes_on`: the one that it continues, or follows; `has_pages`:
    it got a seed; `is_whole`: and all that it knew."""

    id: str
    takes_on: Launch | None
    has_pages: bool
    is_whole: bool


def got_later(state: MarkerStore, launch: Launch, seeds: Iterable[str]) -> dict[str, str]:
    """Those of some lost seeds that a later launch got, as they are spelled here, each with that launch's id."""
    wanted, found = {seed: comparable(seed) for seed in seeds}, dict[str, str]()
    urls = frozenset(wanted.values())
    for later in _after(state, launch) if urls else ():
        for url in got_by(state, later, urls):
            found.setdefault(url, later.id)
        if len(found) == len(urls):
            break
    return {seed: found[url] for seed, url in wanted.items() if url in found}


def pages_later(state: MarkerStore, launch: Launch, targets: Iterable[str]) -> dict[str, str]:
    """Those of some targets of a feed of which a later launch got a page, each with that launch's id."""
    wanted, found = frozenset(targets), dict[str, str]()
    for later in _after(state, launch) if wanted else ():
        for target in pages_by(state, later, wanted):
            found.setdefault(target, later.id)
    return found


def anything_later(state: MarkerStore, launch: Launch) -> str:
    """The newest later launch that got a page of its seeds; '' without one."""
    return next((one.id for one in _looked_at(state, launch) if one.has_pages), "")


def rest_later(state: MarkerStore, launch: Launch) -> str:
    """The launch that has what a launch left when it was cut short: the one that takes it on, else a whole one; ''
    without any."""
    later = list(_looked_at(state, launch))
    took = next((one.id for one in reversed(later) if one.takes_on == launch), "")
    return took or next((one.id for one in later if one.is_whole), "")


def got_by(state: MarkerStore, launch: Launch, wanted: frozenset[str]) -> frozenset[str]:
    """Those of some comparable seeds that a launch got."""
    return _got(state, launch, _stamp(state, launch), wanted)


def got_before(state: MarkerStore, launch: Launch, seeds: Iterable[str]) -> frozenset[str]:
    """Those of some lost seeds that an earlier part of the same crawl got, as they are spelled here."""
    wanted, found = {seed: comparable(seed) for seed in seeds}, set[str]()
    for earlier in crawl_parts.of(state, launch).before if wanted else ():
        found |= got_by(state, earlier, frozenset(wanted.values()))
    return frozenset(seed for seed, url in wanted.items() if url in found)


def pages_by(state: MarkerStore, launch: Launch, wanted: frozenset[str]) -> frozenset[str]:
    """Those of some targets of a feed of which a launch got a page."""
    return _targets_of(state, launch, _stamp(state, launch), wanted)


def _after(state: MarkerStore, launch: Launch) -> Iterator[Launch]:
    """The launches of its job after a launch, the newest first."""
    return takewhile(lambda one: one.id > launch.id, discovery.of_job(state, launch.job))


def _looked_at(state: MarkerStore, launch: Launch) -> Iterator[LaterLaunch]:
    return (_about(state, one, _stamp(state, one)) for one in _after(state, launch))


def _stamp(state: MarkerStore, launch: Launch) -> Stamp:
    """It changes with the markers of a launch."""
    return state.store.changed(layout.state_folder(launch))


@lru_cache(4_096)
def _about(state: MarkerStore, launch: Launch, _stamp: Stamp) -> LaterLaunch:
    process, listed = layout.step("process", launch), layout.step("seeds", launch)
    keys = [layout.key("pulse.Started", launch), process, listed, layout.step("pack", launch, FINAL)]
    facts = {key: fact for key in keys if (fact := _fact(state, key)) is not None}
    started, complete, seeds = facts.get(keys[0]), facts.get(process), facts.get(listed)
    before = complete.continues if isinstance(complete, Complete) else None
    if isinstance(started, Started):
        before = started.continues or before
    retries = isinstance(started, Started) and started.retries
    follows = started.follows if isinstance(started, Started) and not retries else None
    takes_on = before.launch if before else follows
    has_pages = isinstance(seeds, Seeds) and any(seeds.numbers[one] for one in GOT)
    if not isinstance(seeds, Seeds) or not (has_pages or retries):
        return LaterLaunch(launch.id, takes_on, has_pages=False, is_whole=False)
    reports = (layout.step("crawl-report", launch, one) for one in state.stages(launch))
    facts |= {key: fact for key in reports if (fact := _fact(state, key)) is not None}
    is_whole = seeds.end in cut_short.WHOLE and cut_short.of_launch(state, launch, facts) is None
    return LaterLaunch(launch.id, takes_on, has_pages=has_pages, is_whole=is_whole)


def _fact(state: MarkerStore, key: Key) -> object | None:
    """The facts of a marker; None without one, and where it does not fit: that is a gap of its own launch."""
    try:
        marker = state.read(key)
        return readers.of(marker.claim) if marker else None
    except (BadInput, Foreign):
        return None


@lru_cache(4_096)
def _got(state: MarkerStore, launch: Launch, _stamp: Stamp, wanted: frozenset[str]) -> frozenset[str]:
    return wanted.intersection(comparable(fate.seed) for fate in _fates(state, launch))


@lru_cache(4_096)
def _targets_of(state: MarkerStore, launch: Launch, _stamp: Stamp, wanted: frozenset[str]) -> frozenset[str]:
    return wanted.intersection(fate.target for fate in _fates(state, launch))


def _fates(state: MarkerStore, launch: Launch) -> Iterator[SeedFate]:
    """The seeds that a launch got; none before they are listed."""
    seeds = _fact(state, layout.step("seeds", launch))
    return (fate for fate in seeds.seeds if fate.state in GOT) if isinstance(seeds, Seeds) else iter(())
