"""WARCs that lie in no folder of their launch: web-rendered ones, told by the prefix of their names.

A renderer (warcprox, a browser behind it) writes them flat into its root, or
into folders there, by date say, one or two deep. The crawl log of the engine
that had a page rendered names their `warcPrefix`.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from itertools import islice, takewhile

from warcmill import layout
from warcmill.model import FileRef
from warcmill.stores import Stat, Store

DEEPEST = 2
log = logging.getLogger(__name__)


class Rendered:
    """The WARCs in a renderer's root, listed once."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def of(self, prefix: str) -> Iterator[FileRef]:
        """The WARCs whose names begin with a prefix, and with more after its end."""
        begin = bisect_left(self._files, prefix, key=lambda file: file.name)
        alike = takewhile(lambda file: file.name.startswith(prefix), islice(self._files, begin, None))
        return (file for file in alike if layout.prefixes_of(file.name, (prefix,)))

    @cached_property
    def _files(self) -> list[FileRef]:
        found = (entry for entry in self._entries("", 0) if layout.is_warc_name(entry.name))
        files = (FileRef(self.store.root, entry.path, entry.size) for entry in found)
        return sorted(files, key=lambda file: (file.name, file.path))

    def _entries(self, folder: str, depth: int) -> Iterator[Stat]:
        for entry in self.store.list(folder):
            if entry.kind == "file":
                yield entry
            elif entry.kind == "folder" and depth < DEEPEST and not entry.name.startswith("."):
                yield from self._entries(entry.path, depth + 1)
            elif entry.why:
                log.warning("%s:%s: %s", self.store.root, entry.path, entry.why)
