"""ZipNum: sorted CDXJ lines in one compressed file, of which a query reads a few blocks. Pure.

    X.cdx.gz   gzip members (RFC 1952) of 3,000 lines
    X.idx      a line for each member, fields separated by tabs: key and time of its first line, part, offset, length,
               and its number, from 1
    X.loc      part, tab, file name relative to this folder

pywb reads this form, and finds `X.loc` by the name of `X.idx`. It cannot read an `X.idx` without a line.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple, Protocol, cast

from isal import isal_zlib

from warcmill.errors import BadInput

CDX, IDX, LOC = ".cdx.gz", ".idx", ".loc"
LINES = 3_000  # of a block: pywb's and py-wacz's number
BYTES = 4 << 20  # of its lines; more of them begin a new block: one URL may have megabytes
_LEVEL, _GZIP = 2, 31  # ISA-L's level 2: 5 % larger than zlib's 6, in a tenth of the time
_DAMAGE = (zlib.error, cast("type[Exception]", isal_zlib.error))  # its stub calls it an instance


class Index(Protocol):
    """The bytes of an `.idx`: in memory, or a file mapped into it."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> bytes: ...
    def find(self, sub: bytes, start: int, end: int, /) -> int: ...
    def rfind(self, sub: bytes, start: int, end: int, /) -> int: ...


class IndexBlock(NamedTuple):
    """A line of an `.idx`: where the block is whose first line begins with `key`, which is key, blank and time."""

    key: bytes
    offset: int
    length: int
    number: int

    def line(self, part: str) -> bytes:
        """The line, with its end."""
        return b"%s\t%s\t%d\t%d\t%d\n" % (self.key, part.encode(), self.offset, self.length, self.number)


class PackedBlock(NamedTuple):
    """A compressed block, its line for the `.idx`, and how many lines it has."""

    data: bytes
    block: IndexBlock
    lines: int


def pack(lines: Iterable[bytes]) -> Iterator[PackedBlock]:
    """Compress sorted lines, each with its end, block by block."""
    offset = 0
    for number, batch in enumerate(_batches(iter(lines)), 1):
        data = isal_zlib.compress(b"".join(batch), _LEVEL, _GZIP)
        yield PackedBlock(data, IndexBlock(_first_fields(batch[0]), offset, len(data), number), len(batch))
        offset += len(data)


def _batches(lines: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Up to LINES lines at a time; fewer where they are long."""
    while batch := list(islice(lines, LINES)):
        while sum(map(len, batch)) > BYTES and len(batch) > 1:
            size = most = 0
            while size <= BYTES:
                size += len(batch[most])
                most += 1
            yield batch[: max(most - 1, 1)]
            batch = batch[max(most - 1, 1) :]
        yield batch


def _first_fields(line: bytes) -> bytes:
    key, _, rest = line.partition(b" ")
    return key + b" " + rest.partition(b" ")[0]


def unpack(data: bytes, where: str, offset: int) -> list[bytes]:
    """The lines of a block, with their ends. BadInput if it is damaged; `where` and `offset` are for the message."""
    try:
        content = isal_zlib.decompress(data, _GZIP)
    except _DAMAGE as error:
        raise BadInput(where, f"a block of the index is damaged: {error}", offset) from error
    return content.splitlines(keepends=True)


def find(idx: Index, key: bytes) -> int:
    """Where in an `.idx` the line begins of the first block that may hold a line at or after `key`."""
    low, high = 0, len(idx)
    while low < high:
        middle = (low + high) // 2
        begin = idx.rfind(b"\n", low, middle) + 1 or low
        if idx[begin : idx.find(b"\t", begin, high)] < key:
            low = idx.find(b"\n", middle, high) + 1 or high
        else:
            high = begin
    # The block before begins with less than `key`, and may continue with it.
    return idx.rfind(b"\n", 0, low - 1) + 1 if low else 0


def blocks(idx: Index, start: int, where: str) -> Iterator[IndexBlock]:
    """The blocks from the line at `start` on. BadInput for a line of another form."""
    while start < len(idx):
        end = idx.find(b"\n", start, len(idx))
        try:
            key, _part, offset, length, number = idx[start : end if end >= 0 else len(idx)].split(b"\t")
            yield IndexBlock(key, int(offset), int(length), int(number))
        except ValueError as error:
            raise BadInput(where, f"not a line of five fields with tabs: {error}", start) from error
        if end < 0:
            raise BadInput(where, "its last line has no end: it was cut", start)
        start = end + 1


def loc_line(part: str) -> bytes:
    """The `.loc` of a part whose file is beside it."""
    return f"{part}\t{part}{CDX}\n".encode()
