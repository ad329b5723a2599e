"""Extracts: what was derived from a WARC, in the index root, under the digest of the bytes that it was derived from.

    extracts/{kind}-{generation}/{sha512[:2]}/{sha512}.{ext}

Every extract is one gzip member with a fixed header, so that the same content gives the same file. It is never
evidence: where one is missing or damaged, `make` reads the stored WARC once and leaves a new one. Its own digest is
that of its content, since another zlib may compress it to other bytes.
"""

from __future__ import annotations

import hashlib
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from msgspec import Struct

from warcmill.base.digests import Readable
from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable
from warcmill.formats.index.cdxj import NO_DATE, NO_URL
from warcmill.formats.warc import gate
from warcmill.formats.warc.gzip import Members
from warcmill.formats.warc.hearers import Hearer
from warcmill.model import Json
from warcmill.stores import LocalStore, Store

FOLDER = "extracts"
LEVEL = 1  # zlib's: it costs a third of its default, for a fifth more bytes
_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"  # RFC 1952, 2.3: no time, no name; fastest; of no known system
_DIGITS = 128  # of a SHA-512, in hex
_AT_ONCE = 1 << 16  # bytes compressed at a time
_SMALL = 1 << 14  # compressed bytes of an extract that is read at once: a package reads one for every WARC
_IN_MEMORY = 1 << 22  # compressed bytes; more of them go to a nameless file in the index root


class ExtractKind(Struct, frozen=True):
    """A kind of extract. Raise `generation` when its content changes for the same WARC; `ext` ends in `.gz`."""

    name: str
    generation: int
    ext: str

    def path(self, sha512: str) -> str:
        """The path in the index root of the extract of a WARC with this SHA-512, in hex."""
        if len(sha512) != _DIGITS or not _is_hex(sha512):
            raise BadInput(sha512, "not a SHA-512 in hex")
        return f"{FOLDER}/{self.name}-{self.generation}/{sha512[:2]}/{sha512}.{self.ext}"


class Maker(Hearer):
    """A hearer that makes an extract of the WARC that it hears."""

    def leave(self, sha512: str) -> None:
        """Publish the extract of the WARC with this SHA-512, which was heard to its end."""
        raise NotImplementedError(type(self).__name__)

    def close(self) -> None:
        """Free what it holds, published or not."""


class Extracts:
    """The extracts in an index root."""

    def __init__(self, index: LocalStore) -> None:
        self._index = index

    @property
    def index(self) -> LocalStore:
        """The index root."""
        return self._index

    @property
    def folder(self) -> Path:
        """The folder of the index root, for nameless files."""
        return self._index.base

    def has(self, kind: ExtractKind, sha512: str) -> bool:
        """True if there is an extract, sound or not. The folder is listed: NFS may remember that a file was missing."""
        folder, _, name = kind.path(sha512).rpartition("/")
        return name in self._index.names(folder)

    def digest(self, kind: ExtractKind, sha512: str) -> str | None:
        """Read an extract to its end; return the SHA-512 of its content. None if it is missing or damaged."""
        digest = hashlib.sha512()
        try:
            for piece in self.read(kind, sha512):
                digest.update(piece)
        except (NotReady, BadInput):
            return None
        return digest.hexdigest()

    def read(self, kind: ExtractKind, sha512: str) -> Iterator[bytes]:
        """Yield the content in pieces. NotReady if there is no such extract.

        BadInput if it is damaged, at the latest after the last piece: use nothing of it before.
        """
        path = kind.path(sha512)
        with self._index.open(path) as stream:
            if stream.read(len(_HEADER)) != _HEADER:
                raise BadInput(path, "not the header of an extract", 0)
            members = Members(_Resumed(stream), path)
            members.begin()
            while piece := members.read():
                yield piece
            if members.begin():
                raise BadInput(path, "bytes after the end of the extract", members.offset)

    def whole(self, kind: ExtractKind, sha512: str) -> bytes:
        """Return the content of an extract that is known to be small; otherwise as `read`."""
        small = self._small(kind, sha512)
        return b"".join(self.read(kind, sha512)) if small is None else small

    def lines(self, kind: ExtractKind, sha512: str) -> Iterator[bytes]:
        """Yield the content in lines, with their ends; otherwise as `read`."""
        small = self._small(kind, sha512)
        held = b""
        for piece in self.read(kind, sha512) if small is None else (small,):
            *whole, held = (held + piece).split(b"\n")
            for line in whole:
                yield line + b"\n"
        if held:
            yield held

    def _small(self, kind: ExtractKind, sha512: str) -> bytes | None:
        """The content of a small extract; None for any that `read` has to look at: a large or a damaged one."""
        data = self._index.read(kind.path(sha512), _SMALL + 1)
        if len(data) > _SMALL or not data.startswith(_HEADER):
            return None
        inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            content = inflater.decompress(data, _IN_MEMORY)
        except zlib.error:
            return None
        return content if inflater.eof and not inflater.unused_data else None

    def leave(self, kind: ExtractKind, sha512: str, content: Iterable[bytes]) -> None:
        """Publish the extract of a WARC with this SHA-512. If one is there, it stays; a damaged one is replaced."""
        path = kind.path(sha512)
        self._index.sweep(path.rpartition("/")[0])
        with tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=str(self.folder)) as spool:
            written = self._spool(cast("BinaryIO", spool), content, path)
            if not self._commit(path, cast("BinaryIO", spool), *written):
                self.remove(kind, sha512, if_damaged=True)
                self._commit(path, cast("BinaryIO", spool), *written)

    def _spool(self, spool: BinaryIO, content: Iterable[bytes], path: str) -> tuple[int, str]:
        """Compress the content into a nameless file; return its length in bytes and its SHA-512."""
        digest, size = hashlib.sha512(), 0
        try:
            for piece in _compressed(content):
                size += spool.write(piece)
                digest.update(piece)
        except OSError as error:
            raise Unavailable(f"index:{path}", f"{error.strerror or error} (root {self._index.base})") from error
        return size, digest.hexdigest()

    def _commit(self, path: str, spool: BinaryIO, size: int, sha512: str) -> bool:
        spool.seek(0)
        return self._index.commit_new(path, spool, size, sha512)

    def remove(self, kind: ExtractKind, sha512: str, *, if_damaged: bool = False) -> None:
        """Remove an extract, or only a damaged one; not one that another worker has just put in its place."""
        path = kind.path(sha512)
        found = self._index.stat(path)
        if found and not (if_damaged and self.digest(kind, sha512) is not None):
            with suppress(Mismatch):
                self._index.remove(path, found)


class _Resumed:
    """A stream whose header was read already: it gives the header again, then the rest."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._header = stream, _HEADER

    def read(self, size: int, /) -> bytes:
        header, self._header = self._header, b""
        return header or self._stream.read(size)


def _is_hex(text: str) -> bool:
    """True if a text is bytes in lower-case hex. A pattern takes three times as long: a package asks for each WARC."""
    try:
        return bytes.fromhex(text).hex() == text
    except ValueError:
        return False


def _compressed(content: Iterable[bytes]) -> Iterator[bytes]:
    """One gzip member (RFC 1952)."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    crc = size = 0
    yield _HEADER
    for piece in _joined(content):
        crc, size = zlib.crc32(piece, crc), size + len(piece)
        yield packer.compress(piece)
    yield packer.flush()
    yield crc.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")


def _joined(content: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces joined to larger ones: compressing line by line takes twice as long."""
    held, size = list[bytes](), 0
    for piece in content:
        held.append(piece)
        size += len(piece)
        if size >= _AT_ONCE:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


OFFSET_DATES = "offset_dates"


def dating(left_out: Mapping[str, int], offset_dates: int) -> dict[str, Json]:
    """The count of dates with an offset from UTC, for the first line of an extract. Where all dates and URLs are plain,
    the line is as earlier versions wrote it, which took such dates for invalid."""
    return {OFFSET_DATES: offset_dates} if offset_dates or left_out.keys() & {NO_URL, NO_DATE} else {}


def read_dating(counts: Mapping[str, Any], path: str) -> int:
    """Read that count. BadInput for an extract that lacks it, and needs it: it is to be made again."""
    if OFFSET_DATES not in counts and counts["left_out"].keys() & {NO_URL, NO_DATE}:
        raise BadInput(path, "an earlier version made it, and left out captures by dates that are read now", 0)
    return int(counts.get(OFFSET_DATES, 0))


def make(store: Store, path: str, sha512: str, maker: Maker) -> None:
    """Have a maker hear the sound and odd records of a stored WARC, and leave its extract.

    NotReady if the WARC is missing, Mismatch if it is no longer as it was verified.
    """
    with store.open(path) as stream:
        reading = _Reading(stream)
        verdict = gate.examine(reading, path.rpartition("/")[2], hearers=[maker], again=lambda: store.open(path))
        for failure in verdict.unheard:
            raise failure.error
        found = reading.sha512.hexdigest()
        if found != sha512:
            raise Mismatch(f"store:{path} is no longer as it was verified; sha512", sha512, found)
        maker.leave(found)


class _Reading:
    """A stream, digested while it is read."""

    def __init__(self, stream: Readable) -> None:
        self._stream, self.sha512 = stream, hashlib.sha512()

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self.sha512.update(data)
        return data
