"""Which lost seeds of a launch an operator has accepted: by the decisions on its job. Reads only.

A seed that was accepted in one launch is accepted in later launches of the job too, until one of them gets it: from
then on, a new loss is a new finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.formats.seeds import comparable
from warcmill.markers import decisions
from warcmill.markers.decisions import ACCEPTED, Decision
from warcmill.markers.facts import Seeds, SeedState
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch

KIND = "seed"
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_GOT = (SeedState.ALIVE, SeedState.REDIRECTED)


def of(state: MarkerStore, launch: Launch, found: Seeds) -> frozenset[str]:
    """The lost seeds of a launch that are accepted, in their comparable form. A damaged decision accepts none."""
    lost = found.lost()
    since = _since(state, launch) if lost else {}
    wanted = frozenset(url for url in (comparable(fate.seed) for fate in lost) if url in since)
    if not wanted:
        return frozenset()
    got: dict[str, str] = {}  # the newest launch before this one that got it
    for launch_id in _between(state, launch, min(since[url] for url in wanted)):
        earlier = Launch(launch.job, launch_id)
        stamp = state.store.changed(layout.state_folder(earlier))
        got.update(dict.fromkeys(_got(state, earlier, stamp, wanted), launch_id))
    return frozenset(url for url in wanted if since[url] == launch.id or got.get(url, "") <= since[url])


def targets(found: Seeds, accepted: frozenset[str]) -> frozenset[str]:
    """The targets of which a launch has lost seeds, and all of these are accepted."""
    lost = [(fate.target, comparable(fate.seed) in accepted) for fate in found.lost()]
    return frozenset(target for target, _ in lost) - {target for target, is_accepted in lost if not is_accepted}


def facts(launch: Launch, names: list[str], reason: str) -> dict[str, Json]:
    """The facts of a decision that accepts some seeds from a launch on."""
    named: dict[str, Json] = {"name": names[0]} if len(names) == 1 else {"names": [*names]}
    return {"kind": KIND, "job": launch.job, "launch_id": launch.id, "reason": reason, **named}


def _since(state: MarkerStore, launch: Launch) -> Mapping[str, str]:
    """The seeds that are accepted, each with the newest launch, up to this one, in which it was."""
    since: dict[str, str] = {}
    for one in _made(state, state.store.changed(f"{decisions.FOLDER}/{ACCEPTED}")):
        launch_id = one.facts.get("launch_id")
        is_ours = one.facts.get("kind") == KIND and one.facts.get("job") == launch.job
        if is_ours and isinstance(launch_id, str) and launch_id <= launch.id:
            for name in _names(one):
                since[comparable(name)] = max(launch_id, since.get(comparable(name), ""))
    return since


@lru_cache(4)
def _made(state: MarkerStore, _stamp: tuple[int, int]) -> tuple[Decision, ...]:
    """The decisions that can be read; `_stamp` changes with their folder. Whoever reports on days names the others."""
    return tuple(decisions.readable(state.store, ACCEPTED)[0])


def _names(one: Decision) -> Iterator[str]:
    names = one.facts.get("names", [one.facts.get("name")])
    yield from (name for name in (names if isinstance(names, list) else ()) if isinstance(name, str))


def _between(state: MarkerStore, launch: Launch, first: str) -> Iterator[str]:
    """The launches of the job from `first` up to, not including, this one, by their folders in the state; in order."""
    months = sorted(name for name in state.store.names("") if _MONTH.fullmatch(name))
    for month in months:
        if f"{first[:4]}-{first[4:6]}" <= month <= f"{launch.id[:4]}-{launch.id[4:6]}":
            names = state.store.names(f"{month}/{launch.job}")
            yield from sorted(name for name in names if len(name) == len(launch.id) and first <= name < launch.id)


@lru_cache(4_096)
def _got(state: MarkerStore, launch: Launch, _stamp: tuple[int, int], wanted: frozenset[str]) -> frozenset[str]:
    """Which of some seeds a launch got; `_stamp` changes with its markers. None if its marker is broken: that is a gap
    of its own."""
    marker = state.read(layout.step("seeds", launch))
    try:
        seeds = Seeds.from_claim(marker.claim).seeds if marker else ()
    except BadInput:
        return frozenset()
    return wanted.intersection(comparable(fate.seed) for fate in seeds if fate.state in _GOT)
