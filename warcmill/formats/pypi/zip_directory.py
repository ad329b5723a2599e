"""The directory of a zip file, read from the whole file or from its tail, in bounded memory; nothing is unpacked. Pure.

Names are given as they are: a caller must use none as a path. `zipfile` keeps an object for each member; here a few kB
of the directory are held, whatever its length.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Protocol

from warcmill.errors import BadInput

TAIL = 1 << 16  # bytes of a wheel's end that are asked for first
MOST_MEMBERS = 4_000_000
_AT_ONCE = 1 << 18  # bytes
_END = struct.Struct("<4s4H2LH")  # APPNOTE 4.3.16
_END_64 = struct.Struct("<4sQ2H2L4Q")  # 4.3.14
_LOCATOR = struct.Struct("<4sLQL")  # 4.3.15
_ENTRY = struct.Struct("<4s4B4H3L5H2L")  # 4.3.12
_LOCAL = struct.Struct("<4s5H3L2H")  # 4.3.7
_LONGEST_COMMENT = 0xFFFF
_UTF8, _ENCRYPTED = 1 << 11, 1
_STORED, _DEFLATED = 0, 8
_NONE_32 = 0xFFFFFFFF


class TooEarly(Exception):
    """The bytes begin too late in the file: `needed` is the offset from which they suffice."""

    def __init__(self, needed: int) -> None:
        super().__init__(f"bytes from {needed} on are needed")
        self.needed = needed


class ZipMember(NamedTuple):
    """A member of a zip. `name` is as Python's `zipfile` decodes it; at `offset` is its local header."""

    name: str
    method: int
    flags: int
    crc: int
    packed: int
    size: int
    offset: int


class ZipDirectory:
    """The directory of a zip file, of which `stream` has the bytes from `begin` on, to its end at `size`.

    TooEarly if they begin after the directory, or after a member that is read. BadInput if it is not a sound zip.
    """

    def __init__(self, stream: BinaryIO, path: str, size: int, begin: int = 0) -> None:
        self._stream, self._path, self._size, self._begin = stream, path, size, begin
        self.offset, self.length, self.shift = self._found()
        """Where the directory begins, its length in bytes, and how many bytes stand before the zip."""

    def _found(self) -> tuple[int, int, int]:
        first = max(0, self._size - _END.size - _LONGEST_COMMENT)
        begin = max(first, self._begin)
        end = self._bytes(begin, self._size - begin)
        place = len(end)
        while (place := end.rfind(b"PK\5\6", 0, place)) >= 0:
            if place + _END.size <= len(end):
                fields = _END.unpack_from(end, place)
                if place + _END.size + fields[7] == len(end):
                    break
        else:
            if begin > first:
                raise TooEarly(first)
            raise BadInput(self._path, "no zip: it has no end of a directory")
        length, offset, at = int(fields[5]), int(fields[6]), begin + place
        if (wide := self._wide(at)) is not None:
            length, offset, at = wide
        shift = at - length - offset
        if length > at or shift < 0:
            raise BadInput(self._path, "its zip directory reaches over the file's begin or end", at)
        return at - length, length, shift

    def _wide(self, end: int) -> tuple[int, int, int] | None:
        """The same of a zip64: length, offset, and the place of the record that has them."""
        at = end - _LOCATOR.size
        if at < 0:
            return None
        if at < self._begin:
            raise TooEarly(max(0, end - _LOCATOR.size - _END_64.size))
        mark, _, _, _ = _LOCATOR.unpack(self._bytes(at, _LOCATOR.size))
        if mark != b"PK\6\7":
            return None
        at -= _END_64.size  # as `zipfile` does: the record has no data of its own after it
        if at < 0:
            raise BadInput(self._path, "its zip64 directory begins before the file", end)
        found = _END_64.unpack(self._bytes(at, _END_64.size))
        if found[0] != b"PK\6\6":
            raise BadInput(self._path, "its zip64 directory has no end where it should", at)
        return int(found[8]), int(found[9]), at

    def _bytes(self, offset: int, length: int) -> bytes:
        """Some bytes of the file."""
        if offset < self._begin:
            raise TooEarly(offset)
        self._stream.seek(offset - self._begin)
        data = self._stream.read(length)
        if len(data) < length:
            raise BadInput(self._path, "the zip is cut", offset + len(data))
        return data

    def __iter__(self) -> Iterator[ZipMember]:
        """Every member, in the directory's order; no more than a few kB of them are held."""
        place, end, held, number = self.offset, self.offset + self.length, b"", 0
        while place < end or held:
            if len(held) < _ENTRY.size + 3 * 0xFFFF and place < end:
                more = self._bytes(place, min(_AT_ONCE, end - place))
                held, place = held + more, place + len(more)
            used = 0
            while len(held) - used >= (_ENTRY.size + 3 * 0xFFFF if place < end else 1):
                member, length = self._member(held, used, place - len(held) + used)
                number, used = number + 1, used + length
                if number > MOST_MEMBERS:
                    raise BadInput(self._path, f"the zip has more than {MOST_MEMBERS:,} members")
                yield member
            held = held[used:]

    def _member(self, held: bytes, at: int, offset: int) -> tuple[ZipMember, int]:
        if len(held) - at < _ENTRY.size or not held.startswith(b"PK\1\2", at):
            raise BadInput(self._path, "the zip directory is damaged", offset)
        fields = _ENTRY.unpack_from(held, at)
        flags, method, crc, packed, size = fields[5], fields[6], fields[9], fields[10], fields[11]
        name_length, extra_length, comment_length = fields[12:15]
        length = _ENTRY.size + name_length + extra_length + comment_length
        if len(held) - at < length:
            raise BadInput(self._path, "the zip directory is cut", offset)
        begin = at + _ENTRY.size
        raw, local = held[begin : begin + name_length], int(fields[18])
        if _NONE_32 in (packed, size, local):
            extra = held[begin + name_length : begin + name_length + extra_length]
            size, packed, local = self._wide_fields(extra, size, packed, local, offset)
        try:
            name = raw.decode("utf-8" if flags & _UTF8 else "cp437")
        except UnicodeDecodeError:
            name = raw.decode("latin-1")
        return ZipMember(name, method, flags, crc, packed, size, local + self.shift), length

    def _wide_fields(self, extra: bytes, size: int, packed: int, local: int, offset: int) -> tuple[int, int, int]:
        """Sizes and offset of a zip64 member (APPNOTE 4.5.3): only those that have no room are there, in this order."""
        at = 0
        while at + 4 <= len(extra):
            kind, length = struct.unpack_from("<2H", extra, at)
            if kind == 1:
                data, values = extra[at + 4 : at + 4 + length], [size, packed, local]
                for place, value in enumerate(values):
                    if value == _NONE_32:
                        if len(data) < 8:
                            raise BadInput(self._path, "a zip64 member lacks its sizes", offset)
                        values[place], data = int.from_bytes(data[:8], "little"), data[8:]
                return values[0], values[1], values[2]
            at += 4 + length
        return size, packed, local

    def read(self, member: ZipMember) -> Iterator[bytes]:
        """The content of a member, in pieces; BadInput if it is encrypted, packed by another method than `deflate`,
        damaged or longer than its size, or if it is not there. The last piece may come before the error."""
        if member.flags & _ENCRYPTED or member.method not in (_STORED, _DEFLATED):
            raise BadInput(self._path, f"{member.name!a} is encrypted, or packed by method {member.method}")
        if member.offset + _LOCAL.size > self._size:
            raise BadInput(self._path, f"{member.name!a} begins after the end of the file", member.offset)
        local = _LOCAL.unpack(self._bytes(member.offset, _LOCAL.size))
        if local[0] != b"PK\3\4":
            raise BadInput(self._path, f"{member.name!a} is not where the directory has it", member.offset)
        at = member.offset + _LOCAL.size + local[9] + local[10]
        if at + member.packed > self._size:
            raise BadInput(self._path, f"{member.name!a} reaches over the end of the file", member.offset)
        inflater = zlib.decompressobj(-zlib.MAX_WBITS) if member.method == _DEFLATED else None
        left, size, crc = member.packed, 0, 0
        while left and not (inflater and inflater.eof):
            packed = self._bytes(at, min(_AT_ONCE, left))
            left, at = left - len(packed), at + len(packed)
            for piece in _unpacked(inflater, packed, self._path):
                size, crc = size + len(piece), zlib.crc32(piece, crc)
                if size > member.size:
                    raise BadInput(self._path, f"{member.name!a} is longer than the directory has it", member.offset)
                yield piece
        if (size, crc) != (member.size, member.crc):
            raise BadInput(self._path, f"{member.name!a} is damaged: its length or CRC-32 differs", member.offset)


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes: ...


def _unpacked(inflater: _Inflater | None, packed: bytes, path: str) -> Iterator[bytes]:
    if inflater is None:
        yield packed
        return
    while packed:
        try:
            piece = inflater.decompress(packed, _AT_ONCE)
        except zlib.error as error:
            raise BadInput(path, f"compressed data is damaged: {error}") from error
        if piece:
            yield piece
        if inflater.eof or (not piece and inflater.unconsumed_tail == packed):
            return
        packed = inflater.unconsumed_tail
