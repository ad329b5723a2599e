"""The targets of redirects, by their records in the store: no crawl log has them. Reads only."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from functools import cached_property
from urllib.parse import urljoin

from warcmill.launches import holdings
from warcmill.markers.claim import Evidence
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Stage
from warcmill.reports.seed_lines import SeedAnswer
from warcmill.stores import Store

_HEAD = 1 << 16  # bytes of a record in which its Location is looked for
_LONGEST = 1 << 13  # characters of a URL
_LOCATION = re.compile(rb"\nlocation:[ \t]*+([^\r\n]++)", re.IGNORECASE)
_GZIP = b"\x1f\x8b"


class Locations:
    """Reads records of the WARCs of some stages, which `verified` are the markers of."""

    def __init__(self, state: MarkerStore, store: Store, verified: Mapping[tuple[Launch, Stage], Evidence]) -> None:
        self._state, self._store, self._stages = state, store, tuple(verified)

    def of(self, answer: SeedAnswer) -> str:
        """The URL that an answer leads to; '' if its record is not there, cannot be read or has none."""
        path = self._paths.get(answer.warc) or self._paths.get(f"{answer.warc}.open")
        if path is None or answer.offset is None:
            return ""
        with self._store.open(path) as warc:
            warc.seek(answer.offset)
            head = _inflated(warc.read(_HEAD))
        match = _LOCATION.search(head.partition(b"\r\n\r\n")[2].partition(b"\r\n\r\n")[0])
        text = match[1].decode("utf-8", "replace").strip() if match else ""
        return _joined(answer.uri, text) if 0 < len(text) <= _LONGEST else ""

    @cached_property
    def _paths(self) -> dict[str, str]:
        """Where each WARC is in the store, by its name."""
        held = (holdings.of_stage(self._state, *stage).holdings for stage in self._stages)
        return {one.name: one.stored.path for each in held for one in each}


def _joined(base: str, text: str) -> str:
    try:
        return urljoin(base, text)
    except ValueError:  # brackets that are not an address
        return ""


def _inflated(data: bytes) -> bytes:
    if not data.startswith(_GZIP):
        return data
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data, _HEAD)
    except zlib.error:
        return b""
