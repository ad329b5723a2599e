"""The files of a dump of a package index: a JSON array in gzip, a row a line; and their rows, read and written. Pure.

    [
    {"dist_type": "WHEEL", "filename": "six-1.17.0-py2.py3-none-any.whl", "modules": ["six"], "project": "six", …},
    {"dist_type": "SDIST", …}
    ]

A row of `python_distribution_data` is a `DistributionRow`, a row of `python_distribution_state` a `ProjectState`. Each
line but the first and the last is one JSON object, without the comma at its end: a reader needs no JSON parser that
streams. A file without rows has the brackets alone. The same rows give the same bytes on one version of `isal`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Any, Protocol, TypeVar

import msgspec
from isal import isal_zlib
from msgspec import Struct
from msgspec.structs import asdict, replace

from warcmill.base.digests import Readable
from warcmill.errors import BadInput

Row = TypeVar("Row")

LONGEST_ROW = 64 << 20  # bytes of a line: a page of PyPI with 20,000 files takes 12 MB
_LEVEL = 2  # isal's: a tenth of the time of zlib's 6, for as many bytes
_GZIP = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # RFC 1952, 2.3: no time, no name, of no known system
_AT_ONCE = 1 << 18  # bytes
_BEGIN, _BETWEEN, _END = b"[\n", b",\n", b"\n]\n"


class DistType(StrEnum):
    """The kind of a distribution. Eggs, and what installers of systems take, are BDIST."""

    WHEEL = "WHEEL"
    SDIST = "SDIST"
    BDIST = "BDIST"


class HeldFile(Struct, frozen=True):
    """The place of a whole file in the archive: the path of a WARC in the store, and the offset of its record."""

    warc: str
    offset: int


class DistributionRow(Struct, frozen=True, omit_defaults=True):
    """The known facts of one file of a package index. None is unknown; an empty tuple is known to be none.

    `project` is the normalised name. `requires_dist` are requirements as the file has them, sound or not;
    `requires` are the older `Requires` fields. `modules` are all that can be imported, with dots, sorted. `metadata`
    are the lines of a wheel's METADATA but for those that describe; none where readers of it differ. `held` None: the
    archive does not have the whole file. `modules_of`: the modules are those of this file, which differs in its
    platform; None: they were read of the file itself.

    `import_names`, `import_namespaces` are the fields of PEP 794. `namespaces` are packages that other distributions
    may add to, by the style in which the file declares them (`modules` shows those of PEP 420 by what is below them);
    `stubs` are the modules whose types alone it has. Of these, a line has those that are known.
    """

    filename: str
    project: str
    version: str | None
    dist_type: DistType
    sha256: str
    requires: tuple[str, ...] | None
    requires_dist: tuple[str, ...] | None
    requires_python: str | None
    modules: tuple[str, ...] | None
    metadata: tuple[str, ...] | None = None
    import_names: tuple[str, ...] | None = None
    import_namespaces: tuple[str, ...] | None = None
    namespaces: dict[str, str] | None = None
    stubs: tuple[str, ...] | None = None
    held: HeldFile | None = None
    modules_of: str | None = None

    def light(self) -> DistributionRow:
        """The row without its lists."""
        lists = {"requires": None, "requires_dist": None, "modules": None, "metadata": None, "stubs": None}
        names = {"import_names": None, "import_namespaces": None, "namespaces": None}
        return replace(self, **lists, **names)

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        more = {
            "metadata": _listed(self.metadata),
            "import_names": _listed(self.import_names),
            "import_namespaces": _listed(self.import_namespaces),
            "namespaces": self.namespaces,
            "stubs": _listed(self.stubs),
            "held": asdict(self.held) if self.held else None,
            "modules_of": self.modules_of,
        }
        return {name: value for name, value in more.items() if value is not None} | {
            "filename": self.filename,
            "project": self.project,
            "version": self.version,
            "dist_type": str(self.dist_type),
            "sha256": self.sha256,
            "requires": _listed(self.requires),
            "requires_dist": _listed(self.requires_dist),
            "requires_python": self.requires_python,
            "modules": _listed(self.modules),
        }


class ListedFile(Struct, frozen=True):
    """A file as the page of its project lists it. `yanked` is the reason, '' without one; None: it is not yanked.

    `core` is the digest of the METADATA beside it, '' without one; None: it is not there. No dump has it.
    """

    filename: str
    url: str
    sha256: str | None
    size: int | None
    requires_python: str | None
    yanked: str | None
    uploaded: str | None
    core: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The file as JSON has it."""
        found = asdict(self)
        del found["core"]
        return found


class ProjectState(Struct, frozen=True):
    """The files that a project has, by its page. `serial` is the page's; None: the page does not have one.

    `removed`: the index has no such project any more, and so no file of it. `status`, `reason`: the project's (PEP
    792); None: unknown. `etag`, `modified`: by which the page is asked for again (RFC 9110, 13.1).
    """

    project: str
    serial: int | None
    removed: bool
    files: tuple[ListedFile, ...]
    status: str | None = None
    reason: str | None = None
    etag: str | None = None
    modified: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""
        files = [file.to_json() for file in self.files]
        more = {"status": self.status, "reason": self.reason, "etag": self.etag, "modified": self.modified}
        known = {name: value for name, value in more.items() if value is not None}
        return {"project": self.project, "serial": self.serial, "removed": self.removed, "files": files, **known}


class DumpRow(Protocol):
    """A row of a dump."""

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it."""


def row_line(row: DumpRow) -> bytes:
    """The JSON of a row, as its line in a dump has it, without a comma or the line's end."""
    return json.dumps(row.to_json(), ensure_ascii=True, sort_keys=True).encode("ascii")


def written(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes of a dump's file with these lines, in pieces."""
    packer = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, -15)
    crc = size = 0
    yield _GZIP
    for piece in _pieces(lines):
        crc, size = zlib.crc32(piece, crc), size + len(piece)
        yield packer.compress(piece)
    yield packer.flush()
    yield crc.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    held, size, first = [_BEGIN], len(_BEGIN), True
    for line in lines:
        held += [line] if first else [_BETWEEN, line]
        first = False
        size += len(line) + 2
        if size >= _AT_ONCE:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join([*held, _END])


def lines_of(stream: Readable, path: str) -> Iterator[bytes]:
    """The lines of a dump's file, without commas; BadInput if it is cut, damaged or no such file. Memory is bounded by
    the longest row. An error may come after lines: use none of them before the last."""
    rows, ended = 0, False
    lines = _inflated_lines(stream, path)
    if next(lines, b"") != b"[":
        raise BadInput(path, "it does not begin as a dump does, with a line of '['")
    for line in lines:
        if ended:
            raise BadInput(path, f"a line comes after the end of the array, which has {rows} rows")
        if line == b"]":
            ended = True
        elif line:
            rows += 1
            yield line.removesuffix(b",")
    if not ended:
        raise BadInput(path, f"the array does not end, after {rows} rows")


def rows_of(stream: Readable, path: str) -> Iterator[DistributionRow]:
    """The rows of a `python_distribution_data` file; fails as `lines_of`, and for a line that is not such a row."""
    return read(stream, path, decoder(DistributionRow))


def states_of(stream: Readable, path: str) -> Iterator[ProjectState]:
    """The rows of a `python_distribution_state` file; fails as `rows_of`."""
    return read(stream, path, decoder(ProjectState))


def read(stream: Readable, path: str, decode: Callable[[bytes], Row]) -> Iterator[Row]:
    """The rows of a file, as `decode` reads each; fails as `rows_of`."""
    for number, line in enumerate(lines_of(stream, path), 2):
        try:
            yield decode(line)
        except ValueError as error:
            raise BadInput(path, f"line {number}: {error}") from error


def decoder(kind: type[Row]) -> Callable[[bytes], Row]:
    """A function that reads JSON as a value of this type. It raises ValueError for any other."""
    fast = msgspec.json.Decoder(kind)

    def decode(data: bytes) -> Row:
        try:
            return fast.decode(data)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return slow(data)

    def slow(data: bytes) -> Row:
        """A name may have half of a surrogate pair, which Python's reader takes."""
        try:
            return msgspec.convert(json.loads(data), kind)
        except (msgspec.ValidationError, RecursionError) as error:
            raise ValueError(str(error)) from error

    return decode


def _inflated_lines(stream: Readable, path: str) -> Iterator[bytes]:
    """The lines of the one gzip member that a stream has, without their ends. An empty last line is left out."""
    inflater = zlib.decompressobj(16 + zlib.MAX_WBITS)
    held, size = list[bytes](), 0
    while not inflater.eof:
        piece = stream.read(_AT_ONCE)
        if not piece:
            raise BadInput(path, "the compressed data is cut")
        while piece:
            try:
                data = inflater.decompress(piece, _AT_ONCE)
            except zlib.error as error:
                raise BadInput(path, f"the compressed data is damaged: {error}") from error
            piece = inflater.unconsumed_tail
            first, *whole = data.split(b"\n")
            held.append(first)
            size += len(first)
            if size > LONGEST_ROW:
                raise BadInput(path, f"a row has more than {LONGEST_ROW:,} bytes")
            if whole:
                yield b"".join(held)
                held = [whole.pop()]
                size = len(held[0])
                yield from whole
    if inflater.unused_data or stream.read(1):
        raise BadInput(path, "bytes after the end of the compressed data")
    if size:
        yield b"".join(held)


def _listed(texts: tuple[str, ...] | None) -> list[str] | None:
    return None if texts is None else list(texts)
