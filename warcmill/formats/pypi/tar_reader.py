"""The members of a tar, compressed or not, read once in bounded memory; nothing is unpacked. Pure.

Names are given as they are: a caller must use none as a path. `tarfile` keeps an object for each member, and reads a
header of any length whole: a file of 1 MB was seen to take 631 MB.
"""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from isal.igzip_lib import DECOMP_GZIP, IgzipDecompressor, IsalError

from warcmill.base.digests import Readable
from warcmill.errors import BadInput

LARGEST = 1 << 34  # bytes of a tar, uncompressed; the largest sdists have a thirtieth
LONGEST_HEADER = 1 << 20  # bytes of a pax or GNU header
MOST_MEMBERS = 4_000_000
_AT_ONCE = 1 << 18  # bytes
_XZ_MEMORY = 128 << 20  # bytes that the decoder may take: xz -9 needs 65 MiB


class TarEntry(NamedTuple):
    """A member of a tar. `is_file`: a plain file, which has `size` bytes."""

    name: str
    size: int
    is_file: bool


_BLOCK = 512
_FILES = frozenset((b"0", b"\0", b"7"))
_WITHOUT_DATA = frozenset((b"1", b"2", b"3", b"4", b"5", b"6"))  # links, devices, folders


class TarReader:
    """The members of a tar, read once, in order. `coding` is gz, bz2, xz, or '' without one.

    `read` gives the content of the member that was yielded last. BadInput if the tar is cut or damaged, or beyond the
    limits on its length, the length of a header, and the number of its members.
    """

    def __init__(self, stream: Readable, path: str, coding: str = "") -> None:
        self._path = path
        self._pieces = _decoded(stream, path, coding)
        self._held, self._at, self._offset = b"", 0, 0
        self._left = self._padding = 0
        self._global = dict[str, str]()

    def __iter__(self) -> Iterator[TarEntry]:
        number, attributes = 0, dict[str, str]()
        while header := self._header(first=number == 0):
            number += 1
            if number > MOST_MEMBERS:
                raise BadInput(self._path, f"the tar has more than {MOST_MEMBERS:,} members", self._offset)
            kind, size = header[156:157], self._number(header[124:136])
            if kind in (b"L", b"K", b"x", b"g", b"X"):
                data = self._extended(size)
                if kind == b"L":
                    attributes["path"] = _text(data.partition(b"\0")[0])
                elif kind != b"K":
                    found = dict(self._pax(data))
                    (self._global if kind == b"g" else attributes).update(found)
                continue
            attributes = {**self._global, **attributes}
            size = 0 if kind in _WITHOUT_DATA else self._declared(attributes, size)
            if kind == b"S":
                self._skip_sparse_map(header)
            self._left, self._padding = size, -size % _BLOCK
            name = attributes.get("path") or _name(header)
            # An old tar has folders as files whose names end so.
            yield TarEntry(name, size, kind in _FILES and not name.endswith("/"))
            self._skip(self._left + self._padding)
            attributes = {}
        for piece in self._pieces:  # to the end: a checksum that does not fit is a fault
            self._offset += len(piece)

    def read(self, most: int) -> bytes:
        """The first `most` bytes of the content of the current member."""
        data = self._bytes(min(most, self._left))
        self._left -= len(data)
        return data

    def _declared(self, attributes: dict[str, str], size: int) -> int:
        declared = attributes.get("size", "")
        if not declared:
            return size
        if not (declared.isascii() and declared.isdigit() and len(declared) <= 18):
            raise BadInput(self._path, f"a pax header has the size {declared[:40]!a}", self._offset)
        return int(declared)

    def _extended(self, size: int) -> bytes:
        if size > LONGEST_HEADER:
            raise BadInput(self._path, f"a header of the tar has {size:,} bytes, {LONGEST_HEADER:,} is the limit")
        data = self._bytes(size)
        self._skip(-size % _BLOCK)
        return data

    def _pax(self, data: bytes) -> Iterator[tuple[str, str]]:
        """The names and values of a pax header that matter: lines of `LENGTH NAME=VALUE`."""
        at = 0
        while at < len(data) and data[at]:
            digits = data[at : at + 20].partition(b" ")[0]
            length = int(digits) if digits.isdigit() else 0
            line = data[at : at + length]
            if not len(digits) + 1 < length == len(line) or not line.endswith(b"\n"):
                raise BadInput(self._path, "a pax header is damaged", self._offset)
            name, _, value = line[len(digits) + 1 : -1].partition(b"=")
            if name in (b"path", b"size"):
                yield name.decode("ascii"), _text(value)
            at += length

    def _skip_sparse_map(self, header: bytes) -> None:
        more = header[482:483] not in (b"\0", b"0", b"")
        while more:
            more = self._bytes(_BLOCK)[504:505] not in (b"\0", b"0")

    def _header(self, *, first: bool) -> bytes:
        """The next header; b"" at the end: a block of zeros, or, as old programs wrote, the end of the file."""
        if not self._more():
            if first:
                raise BadInput(self._path, "no tar: it is empty", 0)
            return b""
        header = self._bytes(_BLOCK)
        if not header.strip(b"\0"):
            if first:
                raise BadInput(self._path, "no tar: it begins with zeros", 0)
            return b""
        declared = self._number(header[148:156])
        blank = header[:148] + b" " * 8 + header[156:]
        if declared != sum(blank) and declared != sum(blank) - 256 * sum(byte > 127 for byte in blank):
            why = "no tar: its first header" if first else "the tar is damaged: a header"
            raise BadInput(self._path, f"{why} has another checksum than it declares", self._offset - _BLOCK)
        return header

    def _number(self, field: bytes) -> int:
        """A number of a header: octal digits, or, after 0x80, bytes of base 256."""
        if field[0] in (0x80, 0xFF):
            value = int.from_bytes(field[1:], "big") if field[0] == 0x80 else -1
        else:
            digits = field.partition(b"\0")[0].strip()
            value = int(digits or b"0", 8) if not digits.strip(b"01234567") else -1
        if value < 0 or value > LARGEST:
            raise BadInput(self._path, f"a header of the tar has the number {field!r}", self._offset)
        return value

    def _more(self) -> bool:
        while self._at >= len(self._held):
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self._held, self._at = piece, 0
        return True

    def _bytes(self, length: int) -> bytes:
        pieces, left = [], length
        while left:
            if not self._more():
                raise BadInput(self._path, "the tar is cut", self._offset)
            piece = self._held[self._at : self._at + left]
            pieces.append(piece)
            self._at, left, self._offset = self._at + len(piece), left - len(piece), self._offset + len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _skip(self, length: int) -> None:
        while length:
            if not self._more():
                raise BadInput(self._path, "the tar is cut", self._offset)
            step = min(length, len(self._held) - self._at)
            self._at, length, self._offset = self._at + step, length - step, self._offset + step


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0]
    if header[257:263] == b"ustar\0" and prefix:  # in GNU's form these bytes are others
        name = prefix + b"/" + name
    return _text(name)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _decoded(stream: Readable, path: str, coding: str) -> Iterator[bytes]:
    """The bytes of a stream without its coding, in pieces, up to LARGEST."""
    total = 0
    for piece in _undone(stream, path, coding) if coding else iter(lambda: stream.read(_AT_ONCE), b""):
        total += len(piece)
        if total > LARGEST:
            raise BadInput(path, f"it is a bomb: more than {LARGEST:,} bytes uncompressed")
        yield piece


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


def _decoder(coding: str) -> _Decoder:
    if coding == "gz":
        return IgzipDecompressor(flag=DECOMP_GZIP)
    return bz2.BZ2Decompressor() if coding == "bz2" else lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)


def _undone(stream: Readable, path: str, coding: str) -> Iterator[bytes]:
    """The members of a compressed stream, one after another; other bytes after the last one are padding."""
    packed, members = stream.read(_AT_ONCE), 0
    if not packed:
        raise BadInput(path, "it is empty", 0)
    while packed:
        decoder = _decoder(coding)
        try:
            while not decoder.eof:
                if decoder.needs_input and not packed:
                    packed = stream.read(_AT_ONCE)
                    if not packed:
                        raise BadInput(path, "the compressed data is cut")
                if piece := decoder.decompress(packed, _AT_ONCE):
                    yield piece
                packed = b""
        except (IsalError, OSError, lzma.LZMAError, EOFError, ValueError, MemoryError) as error:  # type: ignore[misc]
            if members:
                return
            raise BadInput(path, f"the compressed data is damaged: {error}") from error
        members += 1
        packed = decoder.unused_data or stream.read(_AT_ONCE)
