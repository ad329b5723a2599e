"""What the last fold saw of each launch's markers, so that the next one reads only those of folders that have changed.

    {index}/versions/{data set}/looked    {"daily/20161019234428": ["5242881.1477006668123456789", "9f86d0…"], …}

A marker comes and goes by its name in the launch's folder, and the disk notes when a folder has last changed. What has
changed just now is not remembered: it may change again in the same tick of the disk's clock. The file may be lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress

from warcmill import layout
from warcmill.errors import NotReady
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import LocalStore
from warcmill.versions.lists import FOLDER, LARGEST

SETTLED = 10  # seconds since its last change after which a folder is remembered; clocks tick up to 2 s apart


class Looked:
    """The digests of launches by what `read` makes of one, kept in a file of the index root."""

    def __init__(self, state: MarkerStore, index: LocalStore, data_set: str) -> None:
        self._state, self._index, self._path = state.store, index, f"{FOLDER}/{data_set}/looked"
        self._known, self._now = self._remembered(), dict[str, list[str]]()
        self._settled = time.time_ns() - SETTLED * 10**9

    def digest(self, launch: Launch, read: Callable[[Launch], str]) -> str:
        """The digest of a launch: as it is remembered if its folder is the same, else as `read` makes it."""
        name, (folder, changed) = str(launch), self._state.changed(layout.state_folder(launch))
        token = f"{folder}.{changed}"
        known = self._known.get(name)
        digest = known[1] if known and known[0] == token else read(launch)
        if changed < self._settled:
            self._now[name] = [token, digest]
        return digest

    def remember(self) -> None:
        """Keep what was seen."""
        if self._now != self._known:
            self._index.replace(self._path, json.dumps(self._now, sort_keys=True).encode())

    def _remembered(self) -> dict[str, list[str]]:
        with suppress(NotReady, ValueError):  # lost or damaged: every folder is read again
            known = json.loads(self._index.read(self._path, LARGEST))
            if isinstance(known, dict) and all(isinstance(one, list) and len(one) == 2 for one in known.values()):
                return known
        return {}
