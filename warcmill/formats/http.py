"""The body of an HTTP message as others read it: de-chunked, or decoded too (RFC 9112, 7.1; RFC 9110, 8.4).

Lenient, as clients are: what a server sent wrong is still what it sent. A body
that breaks off counts as far as it goes.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from warcmill.formats.digest import NewHash

DECHUNKED, DECODED = "de-chunked", "decoded"
DECODED_RATIO = 128  # a body that decodes to more than this many times its block is given up: a bomb
DECODED_FREE = 1 << 20  # but never for less than this
_PIECE = 1 << 18
_PORTION = 1 << 13  # of a coded body at a time: what follows a gzip member in it is copied
_CHUNK_LINE_LIMIT = 1 << 12
CHUNKS_FREE, CHUNK_MEAN = 10_000, 32  # more chunks than this, of fewer bytes than this in the mean, are given up

_CHUNK_LINE = re.compile(rb"(?:\r?\n)?[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]*)?\r?\n")
_CODED = re.compile(rb"\n(transfer|content)-encoding[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)
_INFLATED = {b"gzip": 31, b"x-gzip": 31, b"deflate": 15}


def payload_start(head: bytes | bytearray, search_from: int, *, response: bool) -> int:
    """Where the body begins in a block that begins with `head`; -1 when the header goes on.

    Servers end lines in CR LF or in LF. A response without a status line is
    HTTP/0.9: all of it is body.
    """
    if response and not head.startswith(b"HTTP/"[: len(head)]):
        return 0
    crlf = head.find(b"\n\r\n", search_from)
    lf = head.find(b"\n\n", search_from, crlf if crlf >= 0 else len(head))
    if lf >= 0:
        return lf + 2
    return crlf + 3 if crlf >= 0 else -1


class Reading:
    """One more way to read a body, and the digest of it that way."""

    def __init__(self, name: str, new: NewHash, steps: list[Step], limit: int) -> None:
        self.name = name
        self._hash, self._steps, self._left = new(), steps, limit

    def feed(self, piece: memoryview) -> None:
        self._push(bytes(piece), 0)

    def finish(self) -> bytes | None:
        """The digest; None when the reading was given up."""
        for at, step in enumerate(self._steps):
            self._push_all(step.close(), at + 1)
        return None if self._left < 0 or any(step.gave_up for step in self._steps) else self._hash.digest()

    def _push(self, data: bytes, at: int) -> None:
        """Send `data` through the steps from number `at` on, then into the hash."""
        if at < len(self._steps):
            self._push_all(self._steps[at].feed(data), at + 1)
        else:
            self._hash.update(data)
            self._left -= len(data)

    def _push_all(self, parts: Iterator[bytes], at: int) -> None:
        while self._left >= 0 and (part := next(parts, None)) is not None:
            self._push(part, at)


class Step:
    """Bytes in, other bytes out; after `gave_up` no more."""

    gave_up = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        raise NotImplementedError

    def close(self) -> Iterator[bytes]:
        return iter(())


class Dechunk(Step):
    """The chunks' data. A body that is not chunked after all is passed on as it is."""

    def __init__(self) -> None:
        self._held, self._left = b"", 0
        self._chunks, self._bytes, self._ended = 0, 0, False

    def feed(self, data: bytes) -> Iterator[bytes]:
        data, self._held, at = self._held + data, b"", 0
        while at < len(data) and not self._ended:
            if self._left:
                part = data[at : at + self._left]
                at, self._left = at + len(part), self._left - len(part)
                yield part
                continue
            line = _CHUNK_LINE.match(data, at)
            if line is None:
                yield from self._no_line(data[at:])
                return
            at, self._left = line.end(), int(line[1], 16)
            self._count(self._left)

    def _count(self, size: int) -> None:
        self._chunks, self._bytes = self._chunks + 1, self._bytes + size
        self.gave_up = self._chunks > CHUNKS_FREE and self._bytes < self._chunks * CHUNK_MEAN
        self._ended = self.gave_up or not size

    def _no_line(self, rest: bytes) -> Iterator[bytes]:
        """Wait for the rest of a line; one that is too long ends the chunks, or tells that there are none."""
        if len(rest) <= _CHUNK_LINE_LIMIT:
            self._held = rest
        elif self._chunks:
            self._ended = True
        else:
            self._left = 1 << 62
            yield rest

    def close(self) -> Iterator[bytes]:
        if not self._chunks:
            yield self._held


class Inflate(Step):
    """Content-Encoding gzip, of one member or more, or deflate, with zlib's wrapper or without."""

    def __init__(self, coding: bytes) -> None:
        self._wbits = _INFLATED[coding]
        self._inflater: zlib._Decompress | None = None
        self._ended = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), _PORTION):
            yield from self._inflated(data[at : at + _PORTION])

    def _inflated(self, data: bytes) -> Iterator[bytes]:
        while data and not self._ended:
            if self._inflater is None:
                bare = self._wbits == 15 and data[0] & 0x0F != 8  # RFC 1950, 2.2
                self._inflater = zlib.decompressobj(-15 if bare else self._wbits)
            try:
                yield self._inflater.decompress(data, _PIECE)
            except zlib.error:
                self._ended = True
                return
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:
                data = self._inflater.unused_data
                self._inflater = None
                self._ended = self._wbits == 15

    def close(self) -> Iterator[bytes]:
        if self._inflater is not None and not self._ended:
            yield self._inflater.flush()


def other_readings(header: bytes, new: NewHash, length: int) -> list[Reading]:
    """The readings that an HTTP header allows beside "as transferred"; `length` is the block's."""
    codings: dict[bytes, list[bytes]] = {b"transfer": [], b"content": []}
    for kind, value in _CODED.findall(header):
        words = (word.strip() for word in value.lower().split(b","))
        codings[kind.lower()] += [word for word in words if word not in (b"", b"identity", b"none")]
    limit = DECODED_RATIO * length + DECODED_FREE
    chunked = codings[b"transfer"] == [b"chunked"]
    readings = [Reading(DECHUNKED, new, [Dechunk()], limit)] if chunked else []
    if codings[b"content"]:
        readings.append(_decoded(codings[b"content"], new, chunked, limit))
    return readings


def _decoded(codings: list[bytes], new: NewHash, chunked: bool, limit: int) -> Reading:
    """The reading that undoes `codings`; one that is given up at once when we cannot."""
    if len(codings) > 1 or codings[0] not in _INFLATED:
        return Reading(DECODED, new, [], -1)
    steps: list[Step] = [Dechunk()] if chunked else []
    return Reading(DECODED, new, [*steps, Inflate(codings[0])], limit)
