"""Gzip files as web archives use them, read: one member for each record (RFC 1952). Reads its stream only.

`Members` reads a file once and strictly. It uses a few hundred kilobytes at most, whatever a member claims to contain,
and needs only `read(size)`: a stream that also computes digests needs no second pass over the disk.

ISA-L (`isal`) inflates. Two checks that it lacks are made here: reserved header flags, and the header's own CRC when
the header spans two windows.
"""

from __future__ import annotations

import zlib
from typing import cast

from isal import isal_zlib

from warcmill.base.digests import Readable
from warcmill.errors import BadInput

CHUNK = 1 << 18  # raw bytes read from the stream at a time
FIRST = 1 << 11  # raw bytes inflated first: most members fit, and what is left over must be copied
WINDOW = 1 << 16  # raw bytes inflated at a time after that
PIECE = 1 << 18  # inflated bytes at a time
HEADER_LIMIT = 1 << 17  # bytes of a member's header: 64 KiB of extra field, a name, a comment

MAGIC = b"\x1f\x8b"
InflateError = cast("type[Exception]", isal_zlib.error)  # its stub calls it an instance
_PLAIN = b"\x1f\x8b\x08\x00"  # deflate, and no optional field (RFC 1952, 2.3)
_BARE_HEADER = _PLAIN + bytes(6)
_FHCRC, _FEXTRA, _FNAME, _FCOMMENT, _RESERVED = 0x02, 0x04, 0x08, 0x10, 0xE0


class Members:
    """The members of a gzip file in order: `begin` one, `read` it until b"", begin the next.

    A cut or damaged member raises BadInput with the raw offset at which it
    begins. `offset` is where the current member begins, `position` the end of
    what was consumed, both raw; `count` is the number of whole members; `whole`:
    the current one has ended and is sound. The stream begins `at` an offset.
    """

    def __init__(self, stream: Readable, path: str, at: int = 0) -> None:
        self._stream, self._path = stream, path
        self._chunk, self._at, self._chunk_offset, self._ended = b"", 0, at, False
        self._inflater = isal_zlib.decompressobj(31)
        self.whole, self._raw = True, b""  # the latter is inflated first
        self.is_damaged = False
        self.offset = at
        self.count = 0

    @property
    def position(self) -> int:
        return self._chunk_offset + self._at

    def bad(self, why: str) -> BadInput:
        """Make the error for the current member."""
        return BadInput(self._path, why, self.offset)

    def begin(self) -> bool:
        """Go to the next member; False at the end of the file. Call it after `read` returned b""."""
        if len(self._chunk) - self._at < FIRST:
            self._fill(FIRST)
        chunk, at = self._chunk, self._at
        self.offset = self._chunk_offset + at
        if at == len(chunk):
            return False
        self._inflater = isal_zlib.decompressobj(31)
        self.whole = False
        if chunk.startswith(_PLAIN, at):
            self._raw = raw = chunk[at : at + FIRST]
            self._at = at + len(raw)
        else:
            self._raw = b""
            self._unusual_header()
        return True

    def read(self) -> bytes:
        """Return the next bytes of the member, at most PIECE; b"" at its end, when its CRC and length are right."""
        inflater = self._inflater
        while not self.whole:
            raw = self._raw or inflater.unconsumed_tail or self._next_window()
            self._raw = b""
            try:
                piece = inflater.decompress(raw, PIECE)
            except InflateError as error:
                self.is_damaged = True
                raise self.bad(f"damaged gzip member: {error}") from error
            if inflater.eof:
                self.whole = True
                self._at -= len(inflater.unused_data)
                self.count += 1
            if piece:
                return piece
            if not raw:
                self.is_damaged = True
                raise self.bad(f"the gzip member is cut short: the file ends at {self.position}")
        return b""

    def skip_rest(self, most: int) -> int | None:
        """Read on to the end of the current member, whatever is in it; return the inflated bytes that were skipped.

        None if it is damaged, or if there are more than `most`.
        """
        skipped = 0
        try:
            while not self.is_damaged and skipped <= most:
                piece = self.read()
                if not piece:
                    return skipped
                skipped += len(piece)
        except BadInput:
            pass
        return None

    def _next_window(self) -> bytes:
        if self._at == len(self._chunk):
            self._fill(1)
        raw = self._chunk[self._at : self._at + WINDOW]
        self._at += len(raw)
        return raw

    def _fill(self, wanted: int) -> None:
        """Read until `wanted` bytes are ahead in the chunk, or the file ends."""
        parts = [self._chunk[self._at :]]
        ahead = len(parts[0])
        while ahead < wanted and not self._ended:
            parts.append(self._stream.read(CHUNK))
            ahead += len(parts[-1])
            self._ended = not parts[-1]
        self._chunk_offset += self._at
        self._chunk, self._at = b"".join(parts), 0

    def _unusual_header(self) -> None:
        """Check a header that has optional fields, and pass the inflater a bare one instead."""
        self._fill(HEADER_LIMIT)
        size = self._header_size(self._chunk[:HEADER_LIMIT])
        self._at = size
        self._inflater.decompress(_BARE_HEADER)

    def _header_size(self, data: bytes) -> int:
        """The length in bytes of the member header at the begin of `data` (RFC 1952, 2.3.1)."""
        self._check_fixed_part(data)
        flags, at = data[3], 10
        if flags & _FEXTRA:
            at += 2 + int.from_bytes(data[at : at + 2], "little")
        for flag in (_FNAME, _FCOMMENT):
            if flags & flag:
                at = data.find(b"\0", at) + 1 or len(data)
        crc_at = at
        if flags & _FHCRC:
            at += 2
        if at >= len(data):
            raise self.bad(f"the gzip member's header has no end within {len(data)} bytes")
        if flags & _FHCRC and int.from_bytes(data[crc_at:at], "little") != zlib.crc32(data[:crc_at]) & 0xFFFF:
            raise self.bad("damaged gzip member: its header's CRC is wrong")
        return at

    def _check_fixed_part(self, data: bytes) -> None:
        if not MAGIC.startswith(data[:2]):
            what = "named .gz, but not gzip" if self.offset == 0 else "bytes that are no gzip member"
            raise self.bad(f"{what}: {data[:8]!r}")
        if len(data) < 10:
            raise self.bad(f"the gzip member is cut short: the file ends at {self.position + len(data)}")
        if data[2] != 8:
            raise self.bad(f"damaged gzip member: compression method {data[2]}, and only 8 (deflate) exists")
        if data[3] & _RESERVED:
            raise self.bad(f"damaged gzip member: reserved header flags are set ({data[3]:#04x})")
