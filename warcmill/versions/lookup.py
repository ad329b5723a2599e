"""Find captures in a version: by key, by the begin of a key, by time. A lookup reads few blocks of few segments."""

from __future__ import annotations

import heapq
import mmap
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice, takewhile

from warcmill.errors import NotReady
from warcmill.formats import zipnum
from warcmill.formats.zipnum import CDX, IDX
from warcmill.stores import LocalStore
from warcmill.versions import hidden
from warcmill.versions.hidden import Hidden
from warcmill.versions.lists import Lists
from warcmill.versions.payloads import Payloads, Published
from warcmill.versions.segments import Segment


class Lookup:
    """Answers from segments. They stay open: a version that is retired meanwhile still answers."""

    def __init__(self, index: LocalStore, segments: Sequence[Segment]) -> None:
        self._open = ExitStack()
        self._parts = [_Part(index, segment, self._open) for segment in segments]

    def close(self) -> None:
        """Close the segments."""
        self._open.close()

    def beginning_with(self, prefix: bytes) -> Iterator[bytes]:
        """The lines that begin with these bytes, in order."""
        parts = [part.following(prefix) for part in self._parts]
        return takewhile(lambda line: line.startswith(prefix), heapq.merge(*parts))

    def captures(self, key: str, first: str = "", last: str = "9" * 14) -> Iterator[bytes]:
        """The lines of a key, from the time `first` to `last`: 14 digits, or the first ones of them."""
        begin, end = f"{key} {first}".encode(), f"{key} {last}".encode() + b"~"
        parts = [part.following(begin) for part in self._parts]
        return takewhile(lambda line: line < end, heapq.merge(*parts))


class _Part:
    """One open segment."""

    def __init__(self, index: LocalStore, segment: Segment, opened: ExitStack) -> None:
        self._where = f"index:{segment.files[CDX].path}"
        self._stream = opened.enter_context(index.open(segment.files[CDX].path))
        idx = opened.enter_context(index.open(segment.files[IDX].path))
        self._idx = opened.enter_context(mmap.mmap(idx.fileno(), 0, access=mmap.ACCESS_READ))
        self._held: tuple[int, list[bytes]] = -1, []

    def following(self, key: bytes) -> Iterator[bytes]:
        """All lines that are not before a key."""
        for block in zipnum.blocks(self._idx, zipnum.find(self._idx, key), self._where):
            lines = self._lines(block)
            yield from islice(lines, bisect_left(lines, key), None)

    def _lines(self, block: zipnum.Block) -> list[bytes]:
        """The lines of a block. The last one is kept: keys that are asked for in order are often in it."""
        if self._held[0] != block.offset:
            self._stream.seek(block.offset)
            packed = self._stream.read(block.length)
            self._held = block.offset, zipnum.unpack(packed, self._where, block.offset)
        return self._held[1]


def hidden_now(state: LocalStore, index: LocalStore, data_set: str) -> Hidden:
    """What is hidden now. NotReady or Conflict if the state lacks what the current version names, as a lost one does:
    what is hidden would be shown."""
    current = Payloads(index, data_set).current()
    if current is None:
        return hidden.read(state)
    return hidden.now(state, Lists(state, data_set).hiding(current.number))


def open_version(index: LocalStore, data_set: str, number: int | None = None) -> tuple[Published, Lookup]:
    """Open a version by its number, or the current one. NotReady if it is not there."""
    payloads = Payloads(index, data_set)
    found = payloads.current() if number is None else payloads.numbered(number)
    if found is None:
        what = f"the current version of {data_set}" if number is None else f"version {number} of {data_set}"
        why = "its files are not in the index root; index.ScanForIndexing makes the newest"
        raise NotReady(what, why)
    return found, Lookup(index, found.segments)
