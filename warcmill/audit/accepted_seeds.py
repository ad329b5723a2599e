"""Lost seeds of a launch that are not a gap, as an operator has accepted them. Reads only.

A seed that was accepted in one launch is accepted in later launches of the job too, until one of them gets it: from
then on, a new loss is a new finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from warcmill.formats.seeds import comparable
from warcmill.launches.later_launches import got_by
from warcmill.markers import decisions
from warcmill.markers.decisions import ACCEPTED, RecordedDecision
from warcmill.markers.facts.reports import Seeds
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch

KIND = "seed"
_MONTH, _ID = re.compile(r"[0-9]{4}-[0-9]{2}"), re.compile(r"[0-9]{14}")


def of(state: MarkerStore, launch: Launch, found: Seeds) -> frozenset[str]:
    """The lost seeds of a launch that are accepted, as its list has them. A damaged decision accepts none."""
    lost = found.lost()
    since = _since(state, launch) if lost else {}
    spelled = {fate.seed: comparable(fate.seed) for fate in lost} if since else {}
    wanted = frozenset(url for url in spelled.values() if url in since)
    if not wanted:
        return frozenset()
    got: dict[str, str] = {}  # the newest launch before this one that got it
    for earlier in _launches(state, launch.job, min(since[url] for url in wanted), launch.id):
        got.update(dict.fromkeys(got_by(state, earlier, wanted), earlier.id))
    accepted = {url for url in wanted if since[url] == launch.id or got.get(url, "") <= since[url]}
    return frozenset(seed for seed, url in spelled.items() if url in accepted)


def targets(found: Seeds, accepted: frozenset[str]) -> frozenset[str]:
    """The targets of which a launch has lost seeds, and all of these are accepted."""
    lost = [(fate.target, fate.seed in accepted) for fate in found.lost()]
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
def _made(state: MarkerStore, _stamp: tuple[int, int]) -> tuple[RecordedDecision, ...]:
    """The decisions that can be read; `_stamp` changes with their folder. `audit.answers.dues` names the others."""
    return tuple(decisions.readable(state.store, ACCEPTED)[0])


def _names(one: RecordedDecision) -> Iterator[str]:
    names = one.facts.get("names", [one.facts.get("name")])
    yield from (name for name in (names if isinstance(names, list) else ()) if isinstance(name, str))


def _launches(state: MarkerStore, job: str, first: str, end: str) -> Iterator[Launch]:
    """The launches of a job with an id from `first` up to, not including, `end`, by their folders in the state; in
    order."""
    for month in sorted(name for name in state.store.names("") if _MONTH.fullmatch(name)):
        if first[:6] <= month.replace("-", "") <= end[:6]:
            names = sorted(state.store.names(f"{month}/{job}"))
            yield from (Launch(job, name) for name in names if _ID.fullmatch(name) and first <= name < end)
