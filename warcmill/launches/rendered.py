"""WARCs outside the folders of their launch: web-rendered ones, known by the prefix of their names.

A renderer (warcprox and a browser) writes them into its root, or into folders
there, by date for example, one or two levels deep. The engine that had a page
rendered names their `warcPrefix` in its crawl log.
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

DEEPEST = 2  # levels of folders below the root
log = logging.getLogger(__name__)


class Rendered:
    """The WARCs in a renderer's root, listed once."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def of(self, prefix: str) -> Iterator[FileRef]:
        """Return the WARCs whose names begin with a prefix that ends at a dash, an underscore or a dot."""
        begin = bisect_left(self._files, prefix, key=lambda file: file.name)
        alike = takewhile(lambda file: file.name.startswith(prefix), islice(self._files, begin, None))
        return (file for file in alike if layout.prefixes_of(file.name, (prefix,)))

    @cached_property
    def _files(self) -> list[FileRef]:
        warcs = (entry for entry in self._entries("", 0) if layout.is_warc_name(entry.name))
        files = (FileRef(self.store.root, entry.path, entry.size) for entry in warcs)
        return sorted(files, key=lambda file: (file.name, file.path))

    def _entries(self, folder: str, depth: int) -> Iterator[Stat]:
        for entry in self.store.list(folder):
            if entry.kind == "file":
                yield entry
            elif entry.kind == "folder" and depth < DEEPEST and not entry.name.startswith("."):
                yield from self._entries(entry.path, depth + 1)
            elif entry.why:
                log.warning("%s:%s: %s", self.store.root, entry.path, entry.why)
