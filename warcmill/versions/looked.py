"""What the last fold saw of each launch's markers, so that the next one reads only those of folders that have changed.

    {index}/versions/{data set}/looked    {"launches": {"daily/20161019234428": ["5242881.1477006…", "9f86d0…"], …},
                                           "reads": ["index.cdx.{job}.{launch_id}.{stage}", …]}

A marker comes and goes by its name in the launch's folder, and the disk notes when a folder has last changed. What has
changed just now is not remembered: it may change again in the same tick of the disk's clock. The file may be lost; one
of a Warcmill that read other markers does not count.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from warcmill import chain, layout
from warcmill.errors import NotReady
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import LocalStore
from warcmill.versions.lists import FOLDER, LARGEST

SETTLED = 10  # seconds since its last change after which a folder is remembered; clocks tick up to 2 s apart


class Looked:
    """The digests of launches by what `read` makes of their markers of some steps, kept in a file of the index root."""

    def __init__(self, state: MarkerStore, index: LocalStore, data_set: str, steps: Sequence[str]) -> None:
        self._state, self._index, self._path = state.store, index, f"{FOLDER}/{data_set}/looked"
        self._reads = [chain.by_word(chain.ROWS)[word].marker for word in steps]
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
            seen = {"launches": self._now, "reads": self._reads}
            self._index.replace(self._path, json.dumps(seen, sort_keys=True).encode())

    def _remembered(self) -> dict[str, list[str]]:
        with suppress(NotReady, ValueError):  # lost or damaged: every folder is read again
            seen = json.loads(self._index.read(self._path, LARGEST))
            if isinstance(seen, dict) and seen.get("reads") == self._reads:
                known = seen.get("launches")
                if isinstance(known, dict) and all(isinstance(one, list) and len(one) == 2 for one in known.values()):
                    return known
        return {}
