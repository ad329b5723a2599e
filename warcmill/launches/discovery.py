"""The launches in the roots, those with markers, and those that a scan need not read again. Writes `looked/` alone.

Each folder of a root is listed once, and a root that does not answer is reported. `with_markers` looks at no disk of an
engine. `Whole` keeps, for the next scan, the launches that lacked nothing:

    {index}/looked/{scan}    {"daily/20161019234428": ["index.VerifyCdx", "5242881.1477006…", [["2016-10/…", "…"]]], …}

For each it keeps the folder and the marker of each task for each stage, each by its inode and the time of its last
change, which nobody can set: a folder changes when something is put into it or taken out, a marker when it is written.
Changes of the last seconds are not kept. The file may be lost at any time. A scan of 10,000 indexed launches takes
0.9 s of CPU with it and 1.8 s without; the bound is 1 s.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

from msgspec import Struct

from warcmill import chain, layout
from warcmill.base import clock
from warcmill.errors import BadInput, NotFollowed, NotReady, Unavailable
from warcmill.launches import empty_roots
from warcmill.launches.empty_roots import Bare
from warcmill.launches.roots import Look, RootMap
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Root
from warcmill.stores import LocalStore, Stat, Store

_STAMP = 14  # digits of a launch id
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")


class Discovery(Struct, frozen=True):
    """The launches of a span of days.

    `unexpected`: folders that are not launches, each with the reason. `unreachable`: roots that did not answer;
    launches that have folders only there are missing. `bare`: roots that hold no launch of any day.
    """

    launches: tuple[Launch, ...]
    unexpected: tuple[str, ...]
    unreachable: tuple[Unavailable, ...] = ()
    bare: tuple[Bare, ...] = ()


def find(rootmap: RootMap, first: date, end: date) -> Discovery:
    """Return all launches with an id from the day `first` up to, not including, the day `end`.

    Each folder is listed once, even when engines share it. Unavailable when no engine's roots all answer.
    """
    search = _searched(rootmap, first, end)
    if all({section.output, section.jobs} & set(search.unreachable) for section in rootmap.all()):
        raise next(iter(search.unreachable.values()))
    return search.result()


def look(rootmap: RootMap, first: date, end: date) -> Discovery:
    """Return the same as far as roots answer: also when none does."""
    return _searched(rootmap, first, end).result()


def _searched(rootmap: RootMap, first: date, end: date) -> _Search:
    search = _Search(rootmap, clock.day_digits(first), clock.day_digits(end))
    for (place, folder), root in rootmap.all_folders().items():
        search.look_into(root, place, folder)
    return search


class _Search:
    """A walk over the folders of all sections, for launches of some days."""

    def __init__(self, rootmap: RootMap, first: str, end: str) -> None:
        self._rootmap, self._first, self._end = rootmap, first, end
        self._names: dict[tuple[str, str], str] = {}
        self._unexpected: list[str] = []
        self._looked: dict[Look, Store] = {}
        self._held: set[Look] = set()  # places in which a launch of any day was seen
        self.unreachable: dict[str, Unavailable] = {}

    def look_into(self, root: Root, place: str, folder: str) -> None:
        """List one folder of jobs; note a root that does not answer."""
        if place in self.unreachable:
            return
        try:
            store = self._rootmap.open(root, place)
            self._looked.setdefault((root, place), store)
            for job in store.list(folder):
                self._note_link(place, job)
                if job.kind == "folder" and not job.name.startswith("."):
                    self._job(store, (root, place), folder, job)
        except NotFollowed as error:
            self._unexpected.append(f"{place}/{folder}: {error.why}")
        except Unavailable as error:
            named = place in error.what or error.what.startswith("root ")
            self.unreachable[place] = (
                error if named else Unavailable(f"root '{root}' ({place})", f"{error.what}: {error.why}")
            )

    def _note_link(self, place: str, entry: Stat) -> None:
        if entry.why and not layout.NEVER_A_LAUNCH.fullmatch(entry.name):
            self._unexpected.append(f"{place}/{entry.path}: {entry.why}")

    def _job(self, store: Store, look: Look, folder: str, job: Stat) -> None:
        place = look[1]
        try:
            launches = dict(self._dated_folders(store, look, job))
        except NotFollowed as error:  # the link has changed since it was listed
            self._unexpected.append(f"{place}/{job.path}: {error.why}")
            return
        if (place, folder) in self._rootmap.folders(job.name):
            self._names.update(launches)
        elif number := sum(name.isdigit() for name, _ in launches):
            section = self._rootmap.section(job.name)
            why = f"launches of these days: {number}, of a job that lies elsewhere, as {section.name} says"
            self._unexpected.append(f"{place}/{job.path}: {why}; nothing here is read")

    def _dated_folders(self, store: Store, look: Look, job: Stat) -> Iterator[tuple[tuple[str, str], str]]:
        """Yield the folders of a job that may be launches of these days: (launch id, job), and the path."""
        for entry in store.list(job.path):
            name = entry.name
            self._note_link(look[1], entry)
            if entry.kind == "folder" and len(name) == _STAMP and name.isdigit():
                self._held.add(look)
            if entry.kind != "folder" or (name[:8].isdigit() and not self._first <= name[:8] < self._end):
                continue
            if not layout.NEVER_A_LAUNCH.fullmatch(name):
                yield (name, job.name), entry.path

    def result(self) -> Discovery:
        """Return the launches, and everything else that was noted."""
        launches: list[Launch] = []
        for (launch_id, job), path in sorted(self._names.items()):
            try:
                launches.append(Launch.parse(job, launch_id))
            except BadInput as error:
                self._unexpected.append(f"{path}: {error.path} is {error.why}")
        return Discovery(
            tuple(launches), tuple(self._unexpected), tuple(self.unreachable.values()), tuple(self._without_a_launch())
        )

    def _without_a_launch(self) -> Iterator[Bare]:
        """Describe the content of the roots in which no launch was seen."""
        expected = self._rootmap.expected()
        imports = self._rootmap.imported.output if self._rootmap.imported else ""
        has_imports = any(place == imports for _, place in self._held)
        for look, store in self._looked.items():
            if look in self._held or look[1] in self.unreachable or look[1] == imports:
                continue  # no import is ordinary
            bare = empty_roots.look(store, look[1], expected[look])
            if not (bare.is_empty and has_imports):  # a line of imports alone has no engine
                yield bare


def with_markers(state: MarkerStore, first: date, end: date) -> Iterator[Launch]:
    """The launches from `first` up to, not including, `end` that have a folder in the state root, in any order."""
    days = clock.day_digits(first), clock.day_digits(end)
    yield from (launch for launch in _in_months(state, first, end) if days[0] <= launch.id[:8] < days[1])


def of_job(state: MarkerStore, job: str) -> Iterator[Launch]:
    """Yield the launches of a job that have a folder in the state root, the newest first: a month at a time."""
    months = (entry.name for entry in state.store.list("") if _MONTH.fullmatch(entry.name))
    for month in sorted(months, reverse=True):
        for name in sorted(state.store.names(f"{month}/{job}"), reverse=True):
            with suppress(BadInput):  # a marker of a due crawl, or the folder of its attempts
                yield Launch.parse(job, name)


def _in_months(state: MarkerStore, first: date, end: date) -> Iterator[Launch]:
    months = clock.month(first), clock.month(end - timedelta(days=1))
    for month in state.store.list(""):
        if not months[0] <= month.name <= months[1]:
            continue
        for job in state.store.list(month.path):
            for name in state.store.names(job.path) if job.kind == "folder" else ():
                try:
                    yield Launch.parse(job.name, name)
                except BadInput:
                    continue  # no step made this folder


SETTLED = 10  # seconds since a change after which it counts: disks distinguish changes that are 2 s from one another
_LARGEST = 1 << 28  # bytes
_ASSEMBLE = chain.by_word(chain.ROWS)["assemble"].task


class Whole:
    """The launches that lack nothing, as one scan finds them. Changes before it was made are seen."""

    def __init__(self, state: MarkerStore, index: LocalStore, scan: str) -> None:
        self._state, self._index, self._path = state.store, index, f"looked/{scan}"
        self._settled = time.time_ns() - SETTLED * 10**9
        self._known = _read(index, self._path)
        self._now = dict(self._known)

    def has(self, launch: Launch, tasks: str) -> bool:
        """True if a launch lacked none of these tasks, and has not changed since."""
        known = self._now.get(str(launch))
        if not known or known[0] != tasks or known[1] != self._token(layout.state_folder(launch)):
            return False
        return all(token == self._token(path) for path, token in known[2])

    def add(self, launch: Launch, tasks: str) -> None:
        """Keep a launch that was just found to lack none of these tasks, separated by blanks."""
        folder = layout.state_folder(launch)
        stages = sorted(layout.stages_with(self._state.names(folder), _ASSEMBLE, launch))
        keys = (layout.key(task, launch, stage=stage) for task in tasks.split() for stage in stages)
        paths = [layout.marker_path(key) for key in keys]
        tokens = [self._token(path) for path in (folder, *paths)]
        self._now.pop(str(launch), None)
        if all(tokens):
            self._now[str(launch)] = [tasks, tokens[0], [list(pair) for pair in zip(paths, tokens[1:], strict=True)]]

    def keep(self) -> None:
        """Keep what was found for the next scan."""
        if self._now != self._known:
            self._index.replace(self._path, json.dumps(self._now, sort_keys=True).encode())

    def _token(self, path: str) -> str:
        """The inode of a file or folder, and its last change; '' if it is not there, or has just changed."""
        inode, changed = self._state.changed(path)
        return f"{inode}.{changed}" if 0 < changed < self._settled else ""


def _read(index: LocalStore, path: str) -> dict[str, Any]:
    with suppress(NotReady, ValueError):  # lost or damaged: every launch is looked at
        known = json.loads(index.read(path, _LARGEST))
        if isinstance(known, dict) and all(map(_is_fit, known.values())):
            return known
    return {}


def _is_fit(one: object) -> bool:
    return isinstance(one, list) and len(one) == 3 and isinstance(one[2], list)
