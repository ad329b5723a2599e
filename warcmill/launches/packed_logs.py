"""Slices of the logs that a stage has packed, as text: out of its 02 zip, which the state has. Reads only.

A log is found by the name that the claim of the 02 gives it; nothing is extracted to a path. An inflated log can be
reached only from its beginning, so a slice costs the reading of all that is before it, up to REACH.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from typing import BinaryIO, cast

from msgspec import Struct
from msgspec.structs import replace

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.formats.logs import logzip
from warcmill.markers.facts.output import PackedLogs
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch, Stage

SLICE = 1 << 17  # bytes
REACH = 1 << 30  # bytes: a slice that begins later is not read: it would take many seconds
_PIECE = 1 << 20


class LogSlice(Struct, frozen=True):
    """A part of a log. `size`: of the whole log in bytes, None for one that the engine compressed. `after`: the place
    of the next part; None at the end. `damaged`: why the log ends here; '' where it does not. `is_cut_before`: it
    begins within a line."""

    launch: Launch
    stage: Stage
    name: str
    size: int | None
    begin: int
    data: bytes
    after: int | None
    damaged: str = ""
    is_cut_before: bool = False

    def whole_lines(self) -> LogSlice:
        """The same without the rest of a line that begins before it, and without the beginning of one that is longer
        than a part."""
        begin = self.data.find(b"\n") + 1 or len(self.data) if self.is_cut_before else 0
        end = len(self.data) if self.after is None else self.data.rfind(b"\n") + 1
        return replace(self, begin=self.begin + begin, data=self.data[begin:end], is_cut_before=False)

    @property
    def text(self) -> str:
        """The part as text; bytes that are not UTF-8 are replaced."""
        return self.data.decode("utf-8", "replace")

    @property
    def before(self) -> int | None:
        """The place of the part before; None at the beginning."""
        return max(0, self.begin - SLICE) if self.begin else None

    @property
    def last(self) -> int | None:
        """The place of the last part; None where this is it, or where it is not known or not within reach."""
        if self.size is None or self.after is None or self.size > REACH:
            return None
        return max(0, self.size - SLICE)

    def json(self) -> dict[str, Json]:
        """The slice for programs."""
        return {
            "job": self.launch.job,
            "launch_id": self.launch.id,
            "stage": str(self.stage),
            "name": self.name,
            "size": self.size,
            "begin": self.begin,
            "after": self.after,
            "damaged": self.damaged,
            "text": self.text,
        }


def read(state: MarkerStore, launch: Launch, stage: Stage, name: str, begin: int) -> LogSlice | None:
    """The part of a log that begins at this byte, cut at the end of a line; None if the stage has packed no such log.

    NotReady before the stage is packed; BadInput for a damaged zip, and for a place out of reach.
    """
    if begin > REACH:
        raise BadInput(name, f"a page shows the first {REACH:,} bytes of a log")
    key = layout.step("pack", launch, stage)
    names = PackedLogs.from_claim(state.require(key).claim).members
    size = next((file.size for file, member in names.items() if member == name), None)
    if size is None:
        return None
    is_gzip = name.removesuffix(f".{stage}").endswith(".gz")
    data, damaged, is_cut_before = bytearray(), "", False
    with state.store.open(layout.marker_path(key)) as packed, _inflated(packed, name, is_gzip=is_gzip) as log:
        try:
            is_cut_before = _skip(log, begin) not in b"\n"
            while len(data) <= SLICE and (piece := log.read1(SLICE + 1 - len(data))):
                data += piece
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            damaged = f"it cannot be inflated further: {error}"
    is_cut = len(data) > SLICE
    if is_cut:
        del data[data.rfind(b"\n", SLICE // 2, SLICE) + 1 or SLICE :]
    after = begin + len(data) if is_cut else None
    size_ = None if is_gzip else size
    return LogSlice(launch, stage, name, size_, begin, bytes(data), after, damaged, is_cut_before)


@contextmanager
def _inflated(packed: BinaryIO, name: str, *, is_gzip: bool) -> Iterator[BufferedIOBase]:
    with logzip.open_member(packed, name) as member:
        if is_gzip:
            with gzip.GzipFile(fileobj=member) as log:
                yield log
        else:
            yield cast(BufferedIOBase, member)


def _skip(log: BufferedIOBase, length: int) -> bytes:
    """Read over so many bytes; return the last one, empty at the beginning."""
    last = b""
    while length > 0 and (piece := log.read(min(length, _PIECE))):
        length, last = length - len(piece), piece[-1:]
    return last
