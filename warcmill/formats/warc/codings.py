"""Decoders of an HTTP body while it is read: chunks, gzip, deflate, br and zstd. Pure.

They are lenient, as clients are: an archive keeps also what a server sent wrongly. A body that breaks off counts up to
there. Every decoder uses little memory, even for hostile bytes: it yields at most one piece at a time.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator

import brotli
import zstandard

_PIECE = 1 << 18
_PORTION = 1 << 13  # bytes of a gzip body at a time: what follows a member in it is copied
_ZSTD_PORTION = 1 << 6  # its decoder has no output limit, and four bytes may become 128 KiB (RFC 8878, 3.1.1.2)
_ZSTD_WINDOW = 1 << 23  # the largest that the coding allows (RFC 9659, 3)
_CHUNK_LINE_LIMIT = 1 << 12
CHUNKS_FREE, CHUNK_MEAN = 10_000, 32  # give up after this many chunks if they have fewer bytes than this on average

_chunk_line = re.compile(rb"(?:\r?\n)?+[ \t]*+([0-9A-Fa-f]{1,15}+)[ \t]*+(?:;[^\r\n]*+)?+\r?\n").match


class Decoder:
    """Decodes bytes: `feed` all pieces, then `close`; both yield decoded bytes.

    `gave_up`: it stopped at a limit, and more may follow. `unfit`: the bytes
    were never of this coding.
    """

    gave_up = unfit = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        raise NotImplementedError

    def close(self) -> Iterator[bytes]:
        return iter(())


class UnknownCoding(Decoder):
    """An unknown coding: yields nothing."""

    gave_up = True

    def feed(self, _data: bytes) -> Iterator[bytes]:
        return iter(())


class Dechunk(Decoder):
    """Joins the data of chunks (RFC 9112, 7.1). A body that is not chunked passes unchanged."""

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
            line = _chunk_line(data, at)
            if line is None:
                yield from self._without_line(data[at:])
                return
            at, self._left = line.end(), int(line[1], 16)
            self._count(self._left)

    def _count(self, size: int) -> None:
        self._chunks, self._bytes = self._chunks + 1, self._bytes + size
        self.gave_up = self._chunks > CHUNKS_FREE and self._bytes < self._chunks * CHUNK_MEAN
        self._ended = self.gave_up or not size

    def _without_line(self, rest: bytes) -> Iterator[bytes]:
        """Keep an incomplete chunk line; one over the limit ends the chunks or, if it is the first, proves none."""
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


class _Decoder(Decoder):
    """A library's decoder; its error ends the body."""

    error: type[Exception]

    def __init__(self) -> None:
        self._ended = self._given = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        parts = self._decoded(data)
        while not self._ended:
            try:
                part = next(parts, None)
            except self.error as error:
                self._fail(str(error))
                return
            if part is None:
                return
            self._given = self._given or bool(part)
            yield part

    def _fail(self, _why: str) -> None:
        self._ended, self.unfit = True, not self._given

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        raise NotImplementedError


class Gzip(_Decoder):
    """gzip, of one member or more (RFC 1952)."""

    error = zlib.error
    _several = True

    def __init__(self) -> None:
        super().__init__()
        self._inflater: zlib._Decompress | None = None

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), _PORTION):
            yield from self._portion(data[at : at + _PORTION])

    def _portion(self, data: bytes) -> Iterator[bytes]:
        while data and not self._ended:
            if self._inflater is None:
                self._inflater = zlib.decompressobj(self._wbits(data[0]))
            yield self._inflater.decompress(data, _PIECE)
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:
                data = self._inflater.unused_data
                self._inflater = None
                self._ended = not self._several

    def _wbits(self, _first: int) -> int:
        return 31

    def close(self) -> Iterator[bytes]:
        if self._inflater is not None and not self._ended:
            yield self._inflater.flush()


class Deflate(Gzip):
    """deflate, with zlib's wrapper as in the standard, or without it as some servers send it."""

    _several = False

    def _wbits(self, first: int) -> int:
        return -15 if first & 0x0F != 8 else 15  # RFC 1950, 2.2


class Brotli(_Decoder):
    """br (RFC 7932)."""

    error = brotli.error

    def __init__(self) -> None:
        super().__init__()
        self._decoder = brotli.Decompressor()

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        part = self._decoder.process(data, output_buffer_limit=_PIECE)
        while part or not self._decoder.can_accept_more_data():
            yield part
            part = self._decoder.process(b"", output_buffer_limit=_PIECE)
        self._ended = self._decoder.is_finished()


class Zstd(_Decoder):
    """zstd, of one frame or more (RFC 8878)."""

    error = zstandard.ZstdError

    def __init__(self) -> None:
        super().__init__()
        decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        self._decoder = decoder.decompressobj(read_across_frames=True)

    def _decoded(self, data: bytes) -> Iterator[bytes]:
        for at in range(0, len(data), _ZSTD_PORTION):
            yield self._decoder.decompress(data[at : at + _ZSTD_PORTION])

    def _fail(self, why: str) -> None:
        super()._fail(why)
        self.gave_up = "too much memory" in why


# RFC 9110, 8.4.1; the registry of HTTP content codings; RFC 9112, 7.2 for those of transfer.
STEPS: dict[bytes, Callable[[], Decoder]] = {
    b"chunked": Dechunk,
    b"gzip": Gzip,
    b"x-gzip": Gzip,
    b"deflate": Deflate,
    b"br": Brotli,
    b"zstd": Zstd,
}
