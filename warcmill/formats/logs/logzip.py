"""The logs of a stage in one zip, whose last member is the evidence of how it was made. Pure: streams in and out.

It is written in one pass, in constant memory. The same logs give the same
members on every machine: fixed time and mode, the caller's order, deflate level
6 (the deflated bytes may differ between versions of zlib; sizes and digests of
members do not). Logs that the engine compressed are stored as they are. Members
are read by name into streams, never extracted to a path.

`last_member` reads the evidence from the zip's end alone: a scan needs it of thousands of zips. It accepts only a plain
end, as `write` makes it, without ZIP64, extra fields or comments (APPNOTE 4.3). For any other it returns None, and
`evidence` reads the zip by `zipfile`. It reads 10,000 ends of 3 kB in 0.30 s of CPU time, `zipfile` in 0.79 s; a scan
of as many launches may take 1 s, and takes 0.6 s with it.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, BinaryIO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from msgspec import Struct

from warcmill.errors import BadInput, Mismatch

EVIDENCE = "warcmill-evidence.json"
EVIDENCE_LIMIT = 1 << 26
END = 1 << 15  # bytes: the end of a zip of logs; in nearly every one it holds all of the evidence and the directory
CHUNK = 1 << 18
_ENCRYPTED = 0x1  # APPNOTE 4.4.4, bit 0
_COMPRESSED = re.compile(r".*\.gz(\.cp\d{5}-\d{14})?", re.DOTALL)


class LogToPack(Struct, frozen=True):
    """A file to pack: its name in the zip, how many bytes it must have, and how to open it."""

    name: str
    size: int
    open: Callable[[], BinaryIO]


class PackedLog(Struct, frozen=True):
    """A packed file: its size in bytes and digests before compression."""

    name: str
    size: int
    sha512: str
    crc: int


class ListedLog(Struct, frozen=True):
    """A member as the zip's directory lists it; nothing of this is verified."""

    name: str
    size: int
    crc: int


def write(target: BinaryIO, members: Iterable[LogToPack], last: Callable[[list[PackedLog]], bytes]) -> None:
    """Pack members in their order, then the evidence `last(packed)`, uncompressed.

    Mismatch if a member has not the size it was announced with: a log that still grows is not packed.
    Writes only by `target.write`. After an error it writes nothing more, and `target` is not a valid zip.
    """
    sink = _Sink(target)
    archive = ZipFile(cast(IO[bytes], sink), "w")
    try:
        packed = [_pack(archive, member) for member in _distinct(members)]
        archive.writestr(_info(EVIDENCE, ZIP_STORED), last(packed))
        archive.close()
    except BaseException:
        sink.stop()
        raise


def evidence(stream: BinaryIO) -> bytes:
    """Return the evidence of a zip, its last member; BadInput if the stream is not a whole zip of logs."""
    with _opened(stream) as archive:
        info = archive.infolist()[-1]
        if info.file_size > EVIDENCE_LIMIT:
            raise BadInput(EVIDENCE, f"says it has {info.file_size:,} bytes, more than evidence can have")
        with archive.open(info) as member:
            return member.read(EVIDENCE_LIMIT)


def members(stream: BinaryIO) -> list[ListedLog]:
    """List the packed logs in their order, without the evidence; BadInput as `evidence`."""
    with _opened(stream) as archive:
        return [ListedLog(info.filename, info.file_size, info.CRC) for info in archive.infolist()[:-1]]


def open_member(stream: BinaryIO, name: str) -> BinaryIO:
    """Open one packed log, decompressed as it is read; keep `stream` open. Reading raises BadInput for damage."""
    with _opened(stream) as archive:
        if name not in archive.namelist():
            raise BadInput(name, "is not in the zip")
        # The large buffer saves a log reader most calls to the layers below.
        return io.BufferedReader(_Reader(name, archive.open(name)), CHUNK)


def verify(stream: BinaryIO, expected: Iterable[PackedLog]) -> None:
    """Read every packed log again and compare it with `expected`; BadInput names the first that differs."""
    wanted = list(expected)
    listed, names = [entry.name for entry in members(stream)], [packed.name for packed in wanted]
    if listed != names:
        raise BadInput(_path(stream), f"holds {listed}, not {names}: pack the stage again")
    for packed in wanted:
        with open_member(stream, packed.name) as member:
            size, sha512 = _digest(member)
        if (size, sha512) != (packed.size, packed.sha512):
            now, once = f"{size} bytes, sha512 {sha512}", f"{packed.size} bytes, sha512 {packed.sha512}"
            raise BadInput(packed.name, f"has {now}; packed were {once}: pack the stage again")


def _pack(archive: ZipFile, member: LogToPack) -> PackedLog:
    info = _info(member.name, ZIP_STORED if _COMPRESSED.fullmatch(member.name) else ZIP_DEFLATED)
    info.file_size = member.size  # zipfile decides by it, before writing, whether it needs zip64
    sha512, size = hashlib.sha512(), 0
    with member.open() as source, archive.open(info, "w") as packed:
        while size <= member.size and (chunk := source.read(CHUNK)):
            size += len(chunk)
            if size <= member.size:
                sha512.update(chunk)
                packed.write(chunk)
        if size != member.size:
            actual = size if size < member.size else f"{size} or more"
            raise Mismatch(f"size of {member.name} in bytes while it was packed", member.size, actual)
    return PackedLog(member.name, size, sha512.hexdigest(), info.CRC)


def _info(name: str, method: int) -> ZipInfo:
    info = ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = method  # deflate at zlib's own default, level 6
    info.create_system, info.external_attr = 3, 0o100644 << 16  # Unix, a plain file
    return info


def _distinct(members: Iterable[LogToPack]) -> Iterator[LogToPack]:
    seen = {EVIDENCE}
    for member in members:
        if member.name in seen:
            raise BadInput(member.name, "would be in the zip twice")
        if not member.name or not member.name.isprintable():
            raise BadInput(ascii(member.name), "is no name that a zip can carry to every machine")
        seen.add(member.name)
        yield member


@contextmanager
def _opened(stream: BinaryIO) -> Iterator[ZipFile]:
    """Open a zip of logs; BadInput if it is not one, as `write` makes it."""
    with _damage_as_bad_input(_path(stream)):
        archive = ZipFile(cast(IO[bytes], _Bounded(stream)))
        infos = archive.infolist()
        names = [info.filename for info in infos]
        if names[-1:] != [EVIDENCE] or len(set(names)) < len(names) or not all(map(_is_ours, infos)):
            raise BadInput(_path(stream), f"is a zip, but not one of logs ending in {EVIDENCE}")
        yield archive


def _is_ours(info: ZipInfo) -> bool:
    return info.compress_type in (ZIP_STORED, ZIP_DEFLATED) and not info.flag_bits & _ENCRYPTED


@contextmanager
def _damage_as_bad_input(path: str) -> Iterator[None]:
    """Turn what zipfile raises for bad bytes into BadInput; a disk's own errors pass unchanged."""
    try:
        yield
    except (BadZipFile, zlib.error, struct.error, EOFError, ValueError, NotImplementedError, OverflowError) as error:
        if isinstance(error.__context__, OSError):  # zipfile reports a disk that failed as "not a zip"
            raise error.__context__ from None
        raise BadInput(path, f"is not a whole zip: {error!r}. Move it away and pack the stage again") from error


def _path(stream: BinaryIO) -> str:
    return str(getattr(stream, "name", "zip"))


def _digest(stream: BinaryIO) -> tuple[int, str]:
    sha512, size = hashlib.sha512(), 0
    while chunk := stream.read(CHUNK):
        sha512.update(chunk)
        size += len(chunk)
    return size, sha512.hexdigest()


class _Sink:
    """Write all bytes to the target, even if it accepts fewer at a time.

    Once stopped it discards them: zipfile writes a directory when it drops an archive that was not closed.
    """

    def __init__(self, target: BinaryIO) -> None:
        self._target, self._stopped, self._pretended = target, False, 0

    def write(self, data: bytes) -> int:
        self._pretended += len(data)
        rest = memoryview(data)
        while rest and not self._stopped:
            rest = rest[self._target.write(rest) :]
        return len(data)

    def tell(self) -> int:
        return self._pretended if self._stopped else self._target.tell()

    def seek(self, offset: int, whence: int = 0) -> int:
        self._pretended = offset
        return offset if self._stopped else self._target.seek(offset, whence)

    def flush(self) -> None:
        """Do nothing: the owner of the target makes it durable."""

    def stop(self) -> None:
        self._stopped = True


class _Bounded:
    """Refuse a read so large that only a hostile directory can cause it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.seek, self.tell, self.seekable = stream.seek, stream.tell, stream.seekable

    def read(self, size: int = -1) -> bytes:
        if size > EVIDENCE_LIMIT:
            raise BadInput(_path(self._stream), f"has a directory of {size:,} bytes, more than a zip of logs can have")
        return self._stream.read(size)


class _Reader(io.RawIOBase):
    """A member as a raw stream that raises BadInput for damage."""

    def __init__(self, name: str, member: IO[bytes]) -> None:
        self._name, self._member = name, member

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with _damage_as_bad_input(self._name):
            data = self._member.read(len(buffer))
            buffer[: len(data)] = data
            return len(data)

    def close(self) -> None:
        self._member.close()
        super().close()


_LOCAL = struct.Struct("<4s5H3L2H")  # 4.3.7
_MEMBER = struct.Struct("<4s6H3L5H2L")  # 4.3.12
_END = struct.Struct("<4s4H2LH")  # 4.3.16
_STORED, _DEFLATED = 0, 8  # 4.4.5
_ENCODINGS = {0: "ascii", 0x800: "utf-8"}  # by the flags, 4.4.4: no other bit may be set
_NEWEST = 20  # the version needed to extract deflated members, 4.4.3


class _Member(Struct, frozen=True):
    """A member as the directory lists it."""

    name: str
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    offset: int


def last_member(end: bytes, size: int, name: str) -> bytes | None:
    """Return the bytes of a zip's last member, if it is stored uncompressed and has this name.

    `end` are the last bytes of the zip, `size` is its length. None if the member is another, or not
    all of it is within `end`, or the end is not plain.
    """
    cut = len(end) - _END.size
    if cut < 0:
        return None
    sign, disk, first_disk, here, count, length, start, comment = _END.unpack_from(end, cut)
    if (sign, disk, first_disk, here, comment, start + length) != (b"PK\5\6", 0, 0, count, 0, size - _END.size):
        return None
    members = _members(end[cut - length : cut]) if length <= cut else []
    if len(members) != count or not members or len({member.name for member in members}) < count:
        return None
    last = members[-1]
    if last.name != name or any(member.offset >= last.offset for member in members[:-1]):
        return None
    return _stored(end[: cut - length], last, start)


def _members(directory: bytes) -> list[_Member]:
    """The members that a directory lists; none if anything in it is not plain."""
    members, place = [], 0
    while place + _MEMBER.size <= len(directory):
        sign, _, needed, flags, method, _, _, crc, packed, size, length, extra, comment, disk, _, _, offset = (
            _MEMBER.unpack_from(directory, place)
        )
        place += _MEMBER.size + length
        raw = directory[place - length : place]
        if sign != b"PK\1\2" or needed > _NEWEST or extra or comment or disk or flags not in _ENCODINGS or b"\0" in raw:
            return []
        try:
            name = raw.decode(_ENCODINGS[flags])
        except UnicodeDecodeError:
            return []
        members.append(_Member(name, flags, method, crc, packed, size, offset))
    methods = {member.method for member in members}
    return members if place == len(directory) and methods <= {_STORED, _DEFLATED} else []


def _stored(before: bytes, last: _Member, start: int) -> bytes | None:
    """The last member's bytes, which end where the directory begins; None if its header or CRC does not match."""
    raw = last.name.encode()
    begin = len(before) - last.size - len(raw) - _LOCAL.size
    if last.method != _STORED or last.packed != last.size or begin < 0 or start - len(before) + begin != last.offset:
        return None
    sign, _, flags, *_, length, extra = _LOCAL.unpack_from(before, begin)
    data = before[len(before) - last.size :] if last.size else b""
    named = before[begin + _LOCAL.size : len(before) - last.size]
    sound = (sign, flags, length, extra, named) == (b"PK\3\4", last.flags, len(raw), 0, raw)
    return data if sound and zlib.crc32(data) == last.crc else None
