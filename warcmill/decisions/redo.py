"""The redo of a step: its marker and all that rest on it move to `aside/`, and the steps run again. Writes the state.

Every claim names the markers that it rests on, so descendants need no registry. They are moved first: a kill half-way
leaves no marker that rests on a missing one. A step's attempts are moved before its marker, so that it also repeats
the files that they settled. Each move is logged first, in `aside/redo.{host}.{pid}.jsonl`.

The redo of one file of a stage moves the same markers, but no attempts: the other files stay settled. Each step gets
one line more in its attempts: forget this file. These lines are written first: a kill after them costs at most one more
reading of the file.
"""

from __future__ import annotations

import json
import os
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from graphlib import TopologicalSorter
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from warcmill import chain, layout
from warcmill.base import clock, digests
from warcmill.errors import Conflict
from warcmill.launches.roots import JobRoots
from warcmill.launches.view import how_ended
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim, Evidence
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Key, Launch, Root, Stage
from warcmill.output import pack_logs, stop
from warcmill.stores import Stat, Store, temporary_names

Markers = Mapping[Key, Evidence]


class Roots(Struct, frozen=True):
    """Where a step's inputs are: the state, the roots of engines and writers, the store."""

    state: MarkerStore
    engines: JobRoots
    store: Store

    def holds(self, file: FileRef) -> bool:
        """True if a file exists, with any content. Markers percent-encode a name that is not UTF-8."""
        own: dict[Root, Store] = {"store": self.store, "state": self.state.store}
        root = own.get(file.root) or self.engines.root(file.root)
        return any(root.stat(path) for path in (file.path, os.fsdecode(unquote_to_bytes(file.path))))


def markers(state: MarkerStore, launch: Launch) -> dict[Key, Evidence]:
    """The valid markers of a launch, by key; Foreign when a file holds the marker of something else."""
    return {marker.claim.key: marker for marker in state.folder(launch).values()}


def descendants(known: Markers, key: Key) -> list[Key]:
    """All keys whose claims rest on `key`, directly or not. Each comes before those that it rests on itself."""
    children: dict[str, list[Key]] = defaultdict(list)
    for child in sorted(known):
        for rests_on in known[child].claim.inputs:
            children[rests_on.marker].append(child)
    graph: dict[Key, list[Key]] = {}
    waiting = [key]
    while waiting:
        parent = waiting.pop()
        if parent not in graph:
            graph[parent] = children[layout.marker_path(parent)]
            waiting += graph[parent]
    return [descendant for descendant in TopologicalSorter(graph).static_order() if descendant != key]


def _row(key: Key) -> chain.Row:
    return chain.by_task(chain.ROWS)[key.task]


def outward(keys: Iterable[Key], also: frozenset[str]) -> list[str]:
    """The marker names of steps that acted outside the archive, without those in `also`."""
    return sorted({layout.marker_name(key) for key in keys if _row(key).outward} - also)


def missing_inputs(roots: Roots, known: Markers, keys: Iterable[Key]) -> list[str]:
    """The missing inputs that the steps of these keys would read again: `root:path` of a file, or a sentence."""
    storing = chain.storing(chain.ROWS)
    copies = [marker.claim for marker in known.values() if _row(marker.claim.key) in storing]
    stored = {(item.file.root, item.file.path) for claim in copies for item in claim.items}
    again = [known[key].claim for key in keys if key in known]
    made_again = {item.made for claim in again if _row(claim.key) in storing for item in claim.items}
    texts: set[str] = set()
    for claim in again:
        needed = (file for file in _reads(claim, stored) if file not in made_again)
        texts.update(f"{file.root}:{file.path}" for file in needed if not roots.holds(file))
        texts.update(_lost_end(roots.engines, claim))
    return sorted(texts)


def _reads(claim: Claim, stored: set[tuple[Root, str]]) -> Iterator[FileRef]:
    """The files outside the state that a step reads.

    AssembleOutput only lists files; but it would drop a WARC that is in the store and no longer on disk. The items of a
    dump are its own files.
    """
    reads = _row(claim.key).reads
    for item in claim.items:
        if reads == "made":
            yield from [item.made] if item.made else []
        elif item.file == item.made:
            continue
        elif item.file.root != "state" and (reads == "file" or (item.file.root, item.file.path) in stored):
            yield item.file


def _lost_end(engines: JobRoots, claim: Claim) -> Iterator[str]:
    """The end of a launch that only job.log recorded, and that it no longer does."""
    if _row(claim.key).word == "stop" and not claim.inputs:  # with inputs, StopJob or an operator is the evidence
        launch = layout.launch_of(claim.key)
        if not how_ended(engines, launch):
            yield f"jobs:{launch}/job.log, or the line in it, or in the job's, that records the end of the launch"


def stored_otherwise(roots: Roots, known: Markers, keys: Collection[Key]) -> Iterator[str]:
    """The stored zips of logs that these steps would make differently: the store cannot replace them."""
    for key in keys:
        if _row(key).word == "pack" and key in known:
            path = layout.stored_path("logs", layout.launch_of(key), layout.marker_name(key))
            if roots.store.stat(path) is not None and not _is_packed_alike(roots, known, keys, key, path):
                yield f"store:{path}"


def _is_packed_alike(roots: Roots, known: Markers, keys: Collection[Key], key: Key, path: str) -> bool:
    launch, stage = layout.launch_of(key), Stage.parse(key["stage"])
    ended = layout.step("stop", launch)
    is_redone = ended in keys and layout.marker_path(ended) in {parent.marker for parent in known[key].claim.inputs}
    if is_redone and any(layout.key(task, launch) in keys for task in ("operator.Close", "pulse.StopJob")):
        return False  # the end that the new 01.stopped will record is not known yet
    ended_by = stop.stopped(roots.state, roots.engines, launch) if is_redone else None
    with roots.state.scratch() as folder:
        _, packed = pack_logs.pack(roots.state, roots.engines, launch, stage, folder, ended_by)
        with packed.open("rb") as again, roots.store.open(path) as stored:
            return digests.sha512(again) == digests.sha512(stored)


def move_aside(
    state: MarkerStore, known: Markers, keys: Iterable[Key], reason: str, remembered: Collection[Key] = (), by: str = ""
) -> Iterator[str]:
    """Move these markers and their attempts aside, in this order; yield the path of each moved marker. The journal has
    who did so, `by`, and the reason.

    Attempts of the `remembered` keys stay: what they settled is not repeated.
    Conflict when a marker has changed since `known` was read.
    """
    for key in keys:
        if not _row(key).remembered and key not in remembered:
            for attempt in _attempts(state, key):
                _move(state, attempt, reason, by)
        path = layout.marker_path(key)
        stat = state.store.stat(path)
        if stat and key in known:
            if state.read(key) != known[key]:
                raise Conflict(path, "it was replaced just now; look at it, and try again")
            if run := state.store.stat(layout.run_path(key)):  # first: the next zip must not get this run
                _move(state, run, reason, by)
            _move(state, stat, reason, by)
            yield path


def _attempts(state: MarkerStore, key: Key) -> list[Stat]:
    folder = layout.attempts_folder(layout.folder_of(key))
    return [entry for entry in state.store.list(folder) if layout.parse_attempt_name(entry.name) == key]


def _move(state: MarkerStore, only: Stat, reason: str, by: str) -> None:
    aside = f"{'/'.join(only.path.split('/')[:3])}/aside"
    to = f"{aside}/{only.name}.{clock.stamp()}.{secrets.token_hex(4)}"
    line = {"moved": only.path, "to": to, "reason": reason, "at": clock.now(), "by": by}
    journal = f"{aside}/redo.{temporary_names.host()}.{os.getpid()}.jsonl"
    state.store.append(journal, json.dumps(line, ensure_ascii=False, sort_keys=True).encode())
    if not state.store.move_aside(only.path, to, only):
        raise Conflict(only.path, "it was moved or replaced just now; look at it, and try again")


def repeatable() -> chain.Rows:
    """The steps that can redo one file of a stage. Not Retire: it must remember what it removed."""
    return tuple(row for row in chain.after_list(chain.ROWS) if not row.remembered)


def files(markers: Markers, key: Key) -> list[FileRef]:
    """The files in the claim of a step of a stage; empty without its marker."""
    return sorted({item.file for item in markers[key].claim.items}) if key in markers else []


def matching(name: str, known: list[FileRef]) -> list[FileRef]:
    """The files that match a name: by whole path, with or without root, else by file name."""
    by_path = [file for file in known if name in (file.label, file.path)]
    return by_path or [file for file in known if file.name == name]


def steps(key: Key) -> list[Key]:
    """The step, and the repeatable steps of its stage that come after it."""
    below = chain.below(chain.ROWS, chain.by_task(chain.ROWS)[key.task])
    return [key, *(Key(row.task, key.params) for row in below if row in repeatable())]


def forget(state: MarkerStore, key: Key, file: FileRef) -> Iterator[tuple[Key, int]]:
    """Forget a file in the step and all after it, the last first; yield how many other files each still remembers."""
    for step in reversed(steps(key)):
        yield step, Attempts(state, step).forget(file)
