"""What a launch needs besides its own WARCs: those of other launches that have the payloads of its revisits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from warcmill import layout
from warcmill.errors import NotReady
from warcmill.launches.extracts import Extracts
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import LocalStore, Store
from warcmill.versions import revisits
from warcmill.versions.cdx_inputs import WARCS
from warcmill.versions.originals import Original, Originals
from warcmill.versions.revisits import Revisit
from warcmill.versions.viral import VIRAL


class Where(StrEnum):
    """Where a needed WARC is. `hidden`: it is in the store, and an index shows none of what is needed of it. `viral`:
    it is among the store's viral WARCs, which no index has."""

    STORED = "stored"
    HIDDEN = "hidden"
    VIRAL = "viral"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Need:
    """A WARC that has the payloads of so many revisits; its name is below the store's `warcs/`, or `viral/`."""

    warc: str
    where: Where
    revisits: int

    @property
    def launch(self) -> Launch:
        """The launch it is of."""
        return Launch.parse(*self.warc.split("/")[:2])


@dataclass(frozen=True, slots=True)
class Needs:
    """All that a launch needs, and the revisits whose payload was not found.

    `unknown`: why it may be archived all the same; '' if it is archived nowhere.
    """

    warcs: tuple[Need, ...]
    nowhere: tuple[Revisit, ...]
    unknown: str


def needs(state: MarkerStore, index: LocalStore, store: Store, launch: Launch) -> Needs:
    """Find what a launch needs. NotReady until VerifyCdx has verified all of its stages, or without a version."""
    searched = Originals(state, index, store).search(_revisits(state, index, launch))
    found, nowhere = Counter[Original](), list[Revisit]()
    for one in _revisits(state, index, launch):
        if original := searched.originals.get(one.wanted):
            found[original] += 1
        else:
            nowhere.append(one)
    others = {one: number for one, number in found.items() if not one.warc.startswith(f"{launch}/")}
    warcs = tuple(Need(one.warc, _where(store, one), others[one]) for one in sorted(others))
    return Needs(warcs, tuple(nowhere), searched.unknown() if nowhere else "")


def _revisits(state: MarkerStore, index: LocalStore, launch: Launch) -> Iterator[Revisit]:
    stages = sorted(state.stages(launch))
    if not stages:
        raise NotReady(str(launch), "no stage of it is assembled; 'warcmill why' says what is missing")
    for stage in stages:
        state.require(layout.step("verify-cdx", launch, stage))
        yield from revisits.of_stage(state, Extracts(index), launch, stage)


def _where(store: Store, one: Original) -> Where:
    if store.stat((VIRAL if one.is_viral else WARCS) + one.warc) is None:
        return Where.MISSING
    if one.is_viral:
        return Where.VIRAL
    return Where.STORED if one.is_shown else Where.HIDDEN
