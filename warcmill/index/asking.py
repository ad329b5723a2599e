"""Ask the current version of the CDX for single captures. Other code than the one that writes and folds its segments.

It shares the description of the form alone: it searches a list of the keys of an `.idx`, and inflates with zlib.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from warcmill.errors import BadInput, NotReady
from warcmill.stores import LocalStore
from warcmill.versions import hidden
from warcmill.versions.hidden import Hidden
from warcmill.versions.inputs import Input
from warcmill.versions.lists import Lists
from warcmill.versions.payloads import Payloads
from warcmill.versions.segments import Segment, counts_of

_LARGEST = 1 << 30  # bytes of an .idx


class Place(NamedTuple):
    """Where a block is."""

    key: bytes
    offset: int
    length: int


class Asking:
    """The current version, open. NotReady if there is none."""

    def __init__(self, state: LocalStore, index: LocalStore, data_set: str) -> None:
        current = Payloads(index, data_set).current()
        if current is None:
            raise NotReady(f"the current version of {data_set}", "run index.ScanForIndexing, which publishes one")
        self.number = current.number
        listed = Lists(state, data_set).read(current.number)
        self._inputs = listed.by_name
        self.hidden: Hidden = hidden.at(state, listed.hiding)
        self._open = ExitStack()
        self._parts = [_Part(index, segment, self._open) for segment in current.segments]
        self._counts: dict[str, int] = {}
        for segment in current.segments:
            self._counts |= counts_of(index, segment)

    def close(self) -> None:
        """Close its segments."""
        self._open.close()

    def input(self, name: str, sha512: str) -> Input:
        """The WARC in the version's list. NotReady if the version does not list these bytes."""
        one = self._inputs.get(name)
        if one is None or one.sha512 != sha512:
            raise NotReady(name, f"version {self.number} does not list it; run index.ScanForIndexing")
        return one

    def count(self, name: str) -> int:
        """How many lines of a WARC were read back from the version."""
        return self._counts.get(name, 0)

    def captures(self, begin: bytes, name: str, offset: str) -> list[dict[str, str]]:
        """What the version has of one record, by the begin of its line (key, blank, time) and its place in a WARC."""
        found = (json.loads(line[len(begin) :]) for part in self._parts for line in part.beginning_with(begin + b" "))
        return [one for one in found if (one.get("filename"), one.get("offset")) == (name, offset)]


class _Part:
    def __init__(self, index: LocalStore, segment: Segment, opened: ExitStack) -> None:
        self._path = segment.files[".cdx.gz"].path
        self._stream = opened.enter_context(index.open(self._path))
        rows = index.read(segment.files[".idx"].path, _LARGEST).splitlines()
        self._places = [_place(row) for row in rows]
        self._keys = [one.key for one in self._places]
        self._held: tuple[int, list[bytes]] = -1, []

    def beginning_with(self, prefix: bytes) -> Iterator[bytes]:
        """The lines that begin with a text: of the last block that begins before it, and of those that follow."""
        for number in range(max(bisect_left(self._keys, prefix[:-1]) - 1, 0), len(self._places)):
            if self._keys[number] > prefix:
                return
            yield from (line for line in self._block(number) if line.startswith(prefix))

    def _block(self, number: int) -> list[bytes]:
        if self._held[0] != number:
            place = self._places[number]
            self._stream.seek(place.offset)
            try:
                content = zlib.decompress(self._stream.read(place.length), 16 + zlib.MAX_WBITS)
            except zlib.error as error:
                raise NotReady(f"index:{self._path}", f"damaged at offset {place.offset}: {error}") from error
            self._held = number, content.split(b"\n")
        return self._held[1]


def _place(row: bytes) -> Place:
    try:
        key, _, offset, length, _ = row.split(b"\t")
        return Place(key, int(offset), int(length))
    except ValueError as error:
        raise BadInput("an .idx", f"not five fields: {row[:80]!r}") from error
