"""The containers of a bag: a folder, a tar, a tar.gz or a zip, whose files are read in turn. Reads only.

Tars are read as a stream from begin to end, zips by their directory; nothing is ever extracted. A path in an archive or
a manifest is a name to compare, with its escapes undone: it is never opened, joined to another, or followed. Anything
that is not a plain file, and any path that leaves the bag, is refused by name.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import stat
import struct
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Protocol, Self, cast

from isal import igzip, isal_zlib
from msgspec import Struct
from msgspec.structs import replace

from warcmill.base.digests import Readable, drain
from warcmill.errors import BadInput

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


Opened = AbstractContextManager[Readable]


class BagEntry(Struct, frozen=True):
    """One thing in a bag: its path in the bag, and how to read it; a folder cannot be read.

    `fault` is the reason why it may not be there. It can be read until the next entry is asked for, and once.
    """

    path: str
    size: int = 0
    open: Callable[[], Opened] | None = None
    fault: str = ""


class Container(Protocol):
    """A bag's files, in an order of its own; each call begins anew. BadInput: an archive that cannot be read on."""

    def entries(self) -> Iterator[BagEntry]: ...


class Folder:
    """A bag that is a folder. The files beside bagit.txt come first, so that one pass is enough."""

    def __init__(self, folder: Path, watch: Callable[[BinaryIO], Readable] = lambda stream: stream) -> None:
        self._folder, self._watch = folder, watch

    def entries(self) -> Iterator[BagEntry]:
        return self._below(self._folder, "")

    def _below(self, folder: Path, prefix: str) -> Iterator[BagEntry]:
        with os.scandir(folder) as scan:
            found = sorted(scan, key=lambda entry: (entry.is_dir(follow_symlinks=False), entry.name))
        for entry in found:
            path = prefix + entry.name
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                yield BagEntry(path)
                yield from self._below(folder / entry.name, f"{path}/")
            elif stat.S_ISREG(status.st_mode):
                yield BagEntry(path, status.st_size, lambda name=entry.path: self._open(name))  # type: ignore[misc]
            else:
                yield BagEntry(path, fault=irregular(status.st_mode))

    def _open(self, path: str) -> Opened:
        return _Watched(open(path, "rb"), self._watch)


class _Watched:
    """A file of a folder whose reading somebody watches."""

    def __init__(self, stream: BinaryIO, watch: Callable[[BinaryIO], Readable]) -> None:
        self._stream, self._watch = stream, watch

    def __enter__(self) -> Readable:
        return self._watch(self._stream)

    def __exit__(self, *_: object) -> None:
        self._stream.close()


def irregular(mode: int) -> str:
    """Why something that is not a plain file may not be in a bag."""
    kinds = ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))
    kind = next((name for check, name in kinds if check(mode)), "a device")
    return not_a_file(kind)


def not_a_file(kind: str) -> str:
    """The fault of an entry that is something else than a file or a folder."""
    return f"{kind}: a bag holds files and folders alone"


class BaseFolder:
    """The folder that an archived bag is in: its entries are named from the folder above (RFC 8493, 4)."""

    def __init__(self) -> None:
        self._base: str | None = None

    def entry(self, name: str, *, is_folder: bool) -> BagEntry:
        """The entry of an archive's name, with its path in the bag; it cannot be read yet."""
        name = without_dot(name)
        if name in ("", "."):
            return BagEntry("")
        if why := unsafe(name):
            return BagEntry(name, fault=why)
        first, slash, rest = name.partition("/")
        if self._base is None:
            self._base = first if (slash or is_folder) and f"{first}/" != PAYLOAD else ""
        if not self._base:
            return BagEntry(name)
        if first != self._base:
            return BagEntry(
                name, fault=f"outside the bag's folder {self._base}/: an archive holds one bag in one folder"
            )
        return BagEntry(rest, fault="" if rest or is_folder else "a file where the bag's folder should be")

    @property
    def is_missing(self) -> bool:
        """True if the archive was made from inside the bag."""
        return self._base == ""


_InflateError = cast("type[Exception]", isal_zlib.error)  # its stub calls it an instance
_BUFFER = 1 << 16  # tarfile copies what is left of it at each header
_EXTENDED_HEADER = 1 << 20  # it is read as a whole: no path is that long
_ENCRYPTED, _UTF8 = 0x1, 0x800  # bits of a zip's flags
# What the libraries raise for an archive that is damaged.
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    NotImplementedError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    ValueError,
    OverflowError,
    struct.error,
)
FROM_INSIDE = "made from inside the bag: its folder has to be in the archive (RFC 8493, 4)"


class Tar:
    """A bag in a tar: one pass over the stream that `opening` gives, which is read to its end."""

    def __init__(self, name: str, opening: Callable[[], AbstractContextManager[Readable]]) -> None:
        self._name, self._opening = name, opening

    def entries(self) -> Iterator[BagEntry]:
        with self._opening() as stream:
            with _damage(self._name, "tar"):
                yield from self._members(stream)
            drain(stream)

    def _members(self, stream: Readable) -> Iterator[BagEntry]:
        base = BaseFolder()
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header, bufsize=_BUFFER) as tar:  # type: ignore[call-overload]
            while member := tar.next():
                tar.members = []  # else it keeps them all
                entry = base.entry(member.name, is_folder=member.isdir())
                yield self._filled(entry, member, tar)
        if base.is_missing:
            yield BagEntry("", fault=FROM_INSIDE)

    def _filled(self, entry: BagEntry, member: tarfile.TarInfo, tar: tarfile.TarFile) -> BagEntry:
        if entry.fault or member.isdir():
            return entry
        if member.issparse():
            return replace(entry, fault="a sparse file: archive it without holes")
        if not member.isreg():
            return replace(entry, fault=not_a_file(_KINDS.get(member.type, "a device")))
        return replace(
            entry, size=member.size, open=lambda: _Guarded(self._name, "tar", lambda: tar.extractfile(member))
        )


_KINDS = {tarfile.SYMTYPE: "a symbolic link", tarfile.LNKTYPE: "a hard link", tarfile.FIFOTYPE: "a pipe"}


class _Header(tarfile.TarInfo):
    """A header as tarfile reads it, but a damaged one is an error: tarfile takes it for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tarfile_)
        except tarfile.HeaderError as error:
            if type(error).__name__ == "EOFHeaderError":  # the end, as it should be; its class is not in the stubs
                raise
            raise tarfile.ReadError(f"at offset {tarfile_.offset}: {error}") from error

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        is_extended = header.type in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME)
        if (is_extended or header.type == tarfile.GNUTYPE_LONGLINK) and header.size > _EXTENDED_HEADER:
            raise tarfile.ReadError(f"an extended header of {header.size} bytes")
        return header


@contextmanager
def gunzipped(name: str, stream: Readable) -> Iterator[Readable]:
    """The bytes inside a gzip stream; damage is BadInput."""
    with igzip.IGzipFile(fileobj=_Raw(stream)) as inflated:  # type: ignore[no-untyped-call]
        yield _Gunzipped(name, inflated)


class _Raw(io.RawIOBase):
    """A stream as igzip wants it: it reads into a buffer of its own."""

    def __init__(self, stream: Readable) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._stream.read(len(view))
        view[: len(data)] = data
        return len(data)


class _Gunzipped:
    def __init__(self, name: str, stream: igzip.IGzipFile) -> None:
        self._name, self._stream = name, stream

    def read(self, size: int, /) -> bytes:
        try:
            return self._stream.read(size)
        except (gzip.BadGzipFile, EOFError, _InflateError) as error:
            raise BadInput(self._name, f"not whole gzip: {error}") from error


class Zip:
    """A bag in a zip, read by its directory; the files beside bagit.txt come first."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self._name, self._stream = name, stream

    def entries(self) -> Iterator[BagEntry]:
        with _damage(self._name, "zip"), zipfile.ZipFile(self._stream) as archive:
            yield from self._members(archive)

    def _members(self, archive: zipfile.ZipFile) -> Iterator[BagEntry]:
        base = BaseFolder()
        entries = [(base.entry(_name(info), is_folder=info.is_dir()), info) for info in archive.infolist()]
        for entry, info in sorted(entries, key=lambda both: ("/" in both[0].path, both[0].path)):
            yield self._zipped(entry, info, archive)
        if base.is_missing:
            yield BagEntry("", fault=FROM_INSIDE)

    def _zipped(self, entry: BagEntry, info: zipfile.ZipInfo, archive: zipfile.ZipFile) -> BagEntry:
        mode = info.external_attr >> 16
        if entry.fault or info.is_dir():
            return entry
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            return replace(entry, fault=irregular(mode))
        if info.flag_bits & _ENCRYPTED:
            return replace(entry, fault="encrypted: nobody can check it")
        return replace(entry, size=info.file_size, open=lambda: _Guarded(self._name, "zip", lambda: archive.open(info)))


def _name(info: zipfile.ZipInfo) -> str:
    """The name as it was written, without a folder's slash. Without the flag for UTF-8, most are UTF-8 all the same."""
    name = info.orig_filename.removesuffix("/")
    if info.flag_bits & _UTF8 or name.isascii():
        return name
    return name.encode("cp437").decode("utf-8", "surrogateescape")


class _Guarded:
    """A file in an archive: damage is BadInput, with the archive's name."""

    def __init__(self, name: str, kind: str, opening: Callable[[], IO[bytes] | None]) -> None:
        with _damage(name, kind):
            stream = opening()
        if stream is None:
            raise BadInput(name, f"not a whole {kind}: a file without content")
        self._name, self._kind, self._stream = name, kind, stream

    def read(self, size: int, /) -> bytes:
        with _damage(self._name, self._kind):
            return self._stream.read(size)

    def __enter__(self) -> Readable:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()


@contextmanager
def _damage(name: str, kind: str) -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise BadInput(name, f"not a whole {kind}: {str(error) or type(error).__name__}") from error


_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_PARTS = re.compile(r"[\\/]")
_LINE_ENDS = re.compile(r"%0[AaDd]")
_LINE_ENDS_AND_PERCENT = re.compile(r"%(?:0[AaDd]|25)")
_BARE_PERCENT = re.compile(r"%(?!0[AaDd]|25)")
PAYLOAD = "data/"


def decode(written: str, version: str) -> str:
    """Undo the escapes of a path: those of line feed, carriage return and, since 1.0, % (RFC 8493, 2.1.3)."""
    escapes = _LINE_ENDS_AND_PERCENT if version == "1.0" else _LINE_ENDS
    return escapes.sub(lambda escape: chr(int(escape[0][1:], 16)), written)


def has_bare_percent(written: str, version: str) -> bool:
    """True if a path has a % that its version has to be written as %25."""
    return version == "1.0" and _BARE_PERCENT.search(written) is not None


def unsafe(path: str) -> str:
    """Why a path may not be in a bag; '' if it may. Also what another system would take for a way out is refused."""
    if path.startswith(("/", "\\")) or _DRIVE.match(path):
        return "an absolute path: a bag's paths begin in the bag"
    if path.startswith("~"):
        return "a path that begins with '~', which a shell takes for a home folder"
    parts = _PARTS.split(path)
    if ".." in parts:
        return "a path with '..', which leads out of the bag"
    if "\0" in path:
        return "a path with a NUL"
    return "" if "" not in parts and "." not in parts else "not a plain path: it has an empty part, or '.'"


def without_dot(path: str) -> str:
    """The path without the './' before it that some tools write."""
    while path.startswith("./"):
        path = path[2:]
    return path


def composed(path: str) -> str:
    """The path in Unicode's composed form (NFC): some file systems change the form of a name."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


def folded(path: str) -> str:
    """A path without case and form of its characters, as some file systems compare it."""
    return composed(path).casefold()
