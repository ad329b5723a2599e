"""Move a step's marker, and all whose claims descend from it, to `aside/`, so that they are done again.

Lineage needs no registry: every claim names the markers it rests on. What
descends goes first, so that a kill half-way leaves no marker that rests on one
that is gone. The attempts at a step go before its marker: what they settled is
to be done anew. Each move is written down first, in `aside/redo.{host}.{pid}.jsonl`.
"""

from __future__ import annotations

import json
import os
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from urllib.parse import unquote_to_bytes

from warcmill import chain, clock, evidence, fixity, launches, layout
from warcmill.errors import Conflict
from warcmill.evidence import Claim, Evidence
from warcmill.launches import Engines
from warcmill.model import FileRef, Key, Launch, Root, Stage
from warcmill.state import State
from warcmill.steps import pack_logs, stopped
from warcmill.stores import Stat, Store, temporary

Markers = Mapping[Key, Evidence]


@dataclass(frozen=True, slots=True)
class Roots:
    """What tells whether a step could be done again."""

    state: State
    engines: Engines
    store: Store

    def holds(self, file: FileRef) -> bool:
        """Whether a file is there, whatever it holds. A name that is not UTF-8 stands percent-encoded in a marker."""
        own: dict[Root, Store] = {"store": self.store, "state": self.state.store}
        root = own.get(file.root) or self.engines.root(file.root)
        return any(root.stat(path) for path in (file.path, os.fsdecode(unquote_to_bytes(file.path))))


def markers(state: State, launch: Launch) -> dict[Key, Evidence]:
    """The sound markers of a launch, by key; Foreign when one is not ours to judge."""
    return {found.claim.key: found for found in state.folder(launch).values()}


def descendants(found: Markers, key: Key) -> list[Key]:
    """All keys whose claims rest on `key`, directly or not; each comes before those it rests on."""
    children: dict[str, list[Key]] = defaultdict(list)
    for child in sorted(found):
        for rests_on in found[child].claim.inputs:
            children[rests_on.marker].append(child)
    graph: dict[Key, list[Key]] = {}
    waiting = [key]
    while waiting:
        one = waiting.pop()
        if one not in graph:
            graph[one] = children[layout.marker_path(one)]
            waiting += graph[one]
    return [one for one in TopologicalSorter(graph).static_order() if one != key]


def _row(key: Key) -> chain.Row:
    return chain.by_task(chain.ROWS)[key.task]


def outward(keys: Iterable[Key], also: frozenset[str]) -> list[str]:
    """The names of markers of outward acts that `also` does not name."""
    return sorted({layout.marker_name(key) for key in keys if _row(key).outward} - also)


def gone(roots: Roots, found: Markers, keys: Iterable[Key]) -> list[str]:
    """What the steps of these keys would read again, and that is no longer there."""
    storing = chain.storing(chain.ROWS)
    copies = [one.claim for one in found.values() if _row(one.claim.key) in storing]
    stored = {(item.file.root, item.file.path) for claim in copies for item in claim.items}
    again = [found[key].claim for key in keys if key in found]
    made_anew = {item.made for claim in again if _row(claim.key) in storing for item in claim.items}
    texts: set[str] = set()
    for claim in again:
        needed = (file for file in _reads(claim, stored) if file not in made_anew)
        texts.update(f"{file.root}:{file.path}" for file in needed if not roots.holds(file))
        texts.update(_unsaid(roots.engines, claim))
    return sorted(texts)


def _reads(claim: Claim, stored: set[tuple[Root, str]]) -> Iterator[FileRef]:
    """The files outside the state that a step reads.

    AssembleOutput only lists; but it would forget a WARC that is in the store and no longer on disk.
    """
    reads = _row(claim.key).reads
    for item in claim.items:
        if reads == "made":
            yield from [item.made] if item.made else []
        elif item.file.root != "state" and (reads == "file" or (item.file.root, item.file.path) in stored):
            yield item.file


def _unsaid(engines: Engines, claim: Claim) -> Iterator[str]:
    """A job.log that said how a launch ended, and no longer does."""
    if _row(claim.key).word == "stop" and claim.facts["how"] in ("finished", "superseded"):
        launch = layout.launch_of(claim.key)
        if not launches.how_ended(engines, launch):
            yield f"jobs:{launch}/job.log, or the line in it, or in the job's, that says that the launch has ended"


def stored_otherwise(roots: Roots, found: Markers, keys: Collection[Key]) -> Iterator[str]:
    """The stored zips of logs that these steps would not make again byte for byte: the store replaces nothing."""
    for key in keys:
        if _row(key).word == "pack" and key in found:
            path = layout.stored_path("logs", layout.launch_of(key), layout.marker_name(key))
            if roots.store.stat(path) is not None and not _is_packed_alike(roots, found, keys, key, path):
                yield f"store:{path}"


def _is_packed_alike(roots: Roots, found: Markers, keys: Collection[Key], key: Key, path: str) -> bool:
    if not _ends_alike(roots, found, keys, key):
        return False
    stage = Stage.parse(key["stage"])
    with roots.state.scratch() as folder:
        _, packed = pack_logs.pack(roots.state, roots.engines, layout.launch_of(key), stage, folder)
        with packed.open("rb") as anew, roots.store.open(path) as stored:
            return fixity.sha512(anew) == fixity.sha512(stored)


def _ends_alike(roots: Roots, found: Markers, keys: Collection[Key], packed: Key) -> bool:
    """Whether the 01.stopped that a zip rests on stays, or would be made again as it is."""
    launch = layout.launch_of(packed)
    ended = layout.step("stop", launch)
    rests_on = {one.marker for one in found[packed].claim.inputs}
    if ended not in keys or layout.marker_path(ended) not in rests_on:
        return True
    if any(layout.key(task, launch) in keys for task in ("operator.Close", "pulse.StopJob")):
        return False  # it is not known yet how the launch will have ended
    claim = stopped.stopped(roots.state, roots.engines, launch)
    return ended in found and evidence.claim_digest(claim) == found[ended].digest


def move_aside(
    state: State, found: Markers, keys: Iterable[Key], reason: str, remembered: Collection[Key] = ()
) -> Iterator[str]:
    """Move these markers and the attempts at them, in this order; the path of each marker that was moved.

    The attempts at the steps that are `remembered` stay: what they settled is not done again.

    Conflict when a marker is no longer the one that was looked at.
    """
    for key in keys:
        if not _row(key).remembered and key not in remembered:
            for attempt in _attempts(state, key):
                _move(state, attempt, reason)
        path = layout.marker_path(key)
        stat = state.store.stat(path)
        if stat and key in found:
            if state.read(key) != found[key]:
                raise Conflict(path, "it was written anew this moment; look at it, and try again")
            if run := state.store.stat(layout.run_path(key)):  # first: it must not be taken for that of the next zip
                _move(state, run, reason)
            _move(state, stat, reason)
            yield path


def _attempts(state: State, key: Key) -> list[Stat]:
    folder = f"{layout.state_folder(layout.launch_of(key))}/attempts"
    begin = f"{layout.marker_name(key)}."
    return [entry for entry in state.store.list(folder) if entry.name.startswith(begin)]


def _move(state: State, only: Stat, reason: str) -> None:
    aside = f"{'/'.join(only.path.split('/')[:3])}/aside"
    to = f"{aside}/{only.name}.{clock.stamp()}.{secrets.token_hex(4)}"
    line = {"moved": only.path, "to": to, "reason": reason, "at": clock.now()}
    journal = f"{aside}/redo.{temporary.host()}.{os.getpid()}.jsonl"
    state.store.append(journal, json.dumps(line, ensure_ascii=False, sort_keys=True).encode())
    if not state.store.move_aside(only.path, to, only):
        raise Conflict(only.path, "it was moved or written anew this moment; look at it, and try again")
