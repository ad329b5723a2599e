"""Distributions that are made to harm whoever reads them. Each is written in pieces, so that making it takes no memory.

A function writes one file into a folder, named as its project is, and returns its path.
"""

from __future__ import annotations

import gzip
import struct
import tarfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from servers import distributions

MB = 1 << 20


def wheel_of(folder: Path, project: str, files: Mapping[str, bytes | Iterable[bytes]], version: str = "1.0") -> Path:
    """Make a wheel of these members; it gets a sound METADATA unless one of them is that."""
    path = folder / f"{project}-{version}-py3-none-any.whl"
    paper = f"{project}-{version}.dist-info/METADATA"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in {**files, **({} if paper in files else {paper: _paper(project, version)})}.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            with packed.open(info, "w", force_zip64=True) as member:
                for piece in [content] if isinstance(content, bytes) else content:
                    member.write(piece)
    return path


def long_metadata(folder: Path, project: str, header: bytes, length: int, filler: bytes) -> Path:
    """A wheel whose METADATA has a header, and `length` bytes in all, by the same piece over and over."""
    paper = f"{project}-1.0.dist-info/METADATA"
    return wheel_of(folder, project, {f"{project}.py": b"", paper: _filled(header, length, filler)})


def _filled(header: bytes, length: int, filler: bytes) -> Iterator[bytes]:
    yield header
    piece = filler * (MB // len(filler))
    for _ in range((length - len(header)) // len(piece) + 1):
        yield piece


def many_members(folder: Path, project: str, number: int, end: bytes = b".txt") -> Path:
    """A wheel with a number of empty members whose names end so, all at one local header."""
    files = {f"{project}.py": b""}
    small = wheel_of(folder, project, files)
    data = small.read_bytes()
    begin, length = struct.unpack("<L", data[-6:-2])[0], struct.unpack("<L", data[-10:-6])[0]
    small.unlink()
    entry = struct.pack("<4s4B4H3L5H2L", b"PK\1\2", 20, 0, 20, 0, *[0] * 7, 8 + len(end), *[0] * 6)
    with (path := folder / small.name).open("wb") as stream:
        stream.write(data[:begin])
        added = 0
        for first in range(0, number, 10_000):
            added += stream.write(b"".join(b"%bm%07d%b" % (entry, at, end) for at in range(first, first + 10_000)))
        stream.write(data[begin : begin + length])
        stream.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, length + added, begin, 0))
    return path


def far_member(folder: Path, project: str, offset: int) -> Path:
    """A wheel whose METADATA begins at this offset, by a field of zip64."""
    path = wheel_of(folder, project, {f"{project}.py": b""})
    data = bytearray(path.read_bytes())
    at, end = data.rindex(b"PK\1\2"), data.rindex(b"PK\5\6")
    name, extra = struct.unpack_from("<2H", data, at + 28)
    assert not extra
    field = struct.pack("<2HQ", 1, 8, offset)
    struct.pack_into("<H", data, at + 30, len(field))
    struct.pack_into("<L", data, at + 42, 0xFFFFFFFF)
    struct.pack_into("<L", data, end + 12, struct.unpack_from("<L", data, end + 12)[0] + len(field))
    data[at + 46 + name : at + 46 + name] = field
    path.write_bytes(data)
    return path


def pax_bomb(folder: Path, project: str, length: int) -> Path:
    """An sdist whose first pax header has a path of `length` bytes."""
    return _tar(folder, project, [_header("pax", length, tarfile.XHDTYPE)], length, _sound(project))


def tar_bomb(folder: Path, project: str, declared: int, there: int) -> Path:
    """An sdist with a file of `declared` bytes of zeros, of which some are there; a sound one if all are."""
    head = _header(f"{project}-1.0/{project}.dat", declared)
    return _tar(folder, project, [*_sound(project), head], there, [bytes(1024)] if there == declared else [])


def _tar(folder: Path, project: str, first: Iterable[bytes], zeros: int, last: Iterable[bytes]) -> Path:
    """A tar with so many zeros in it. They are members of gzip, all of them the same."""
    path = folder / f"{project}-1.0.tar.gz"
    with path.open("wb") as stream:
        stream.write(gzip.compress(b"".join(first)))
        stream.write(gzip.compress(bytes(16 * MB)) * (zeros // (16 * MB)))
        stream.write(gzip.compress(b"".join(last)))
    return path


def _sound(project: str) -> Iterator[bytes]:
    for name, data in {"PKG-INFO": _paper(project, "1.0"), f"{project}.py": b""}.items():
        yield _header(f"{project}-1.0/{name}", len(data)) + data + bytes(-len(data) % 512)


def _header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def _paper(project: str, version: str) -> bytes:
    return distributions.metadata(project, version, ["six"], ">=3.8")
