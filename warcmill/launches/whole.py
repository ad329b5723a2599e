"""The launches that lacked nothing when a scan last looked: the next one reads no folder and no marker of theirs.

    {index}/looked/{scan}    {"daily/20161019234428": ["index.VerifyCdx", "5242881.1477006…", [["2016-10/…", "…"]]], …}

Kept are the folder of a launch and the marker of each task for each stage, each by its inode and the time of its last
change, which nobody can set. What is put into a folder, or taken from it, changes the folder; what is written into a
marker changes the marker. What has changed just now is not kept. The file may be lost at any time.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

from warcmill import chain, layout
from warcmill.errors import NotReady
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import LocalStore

SETTLED = 10  # seconds since a change after which it counts: disks tell changes apart that are 2 s from one another
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
        """What a file or folder is, and when it last changed; '' if it is not there, or has just changed."""
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
