"""Bags in archives: tar and tar.gz as a stream from begin to end, zip by its directory. Nothing is extracted."""

from __future__ import annotations

import gzip
import io
import lzma
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, BinaryIO, Self, cast

from isal import igzip, isal_zlib

from warcmill.base.digests import Readable, drain
from warcmill.errors import BadInput
from warcmill.formats.bagit.containers import BaseFolder, Entry, irregular, not_a_file

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

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

    def entries(self) -> Iterator[Entry]:
        with self._opening() as stream:
            with _damage(self._name, "tar"):
                yield from self._members(stream)
            drain(stream)

    def _members(self, stream: Readable) -> Iterator[Entry]:
        base = BaseFolder()
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header, bufsize=_BUFFER) as tar:  # type: ignore[call-overload]
            while member := tar.next():
                tar.members = []  # else it keeps them all
                entry = base.entry(member.name, is_folder=member.isdir())
                yield self._filled(entry, member, tar)
        if base.is_missing:
            yield Entry("", fault=FROM_INSIDE)

    def _filled(self, entry: Entry, member: tarfile.TarInfo, tar: tarfile.TarFile) -> Entry:
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

    def entries(self) -> Iterator[Entry]:
        with _damage(self._name, "zip"), zipfile.ZipFile(self._stream) as archive:
            yield from self._members(archive)

    def _members(self, archive: zipfile.ZipFile) -> Iterator[Entry]:
        base = BaseFolder()
        entries = [(base.entry(_name(info), is_folder=info.is_dir()), info) for info in archive.infolist()]
        for entry, info in sorted(entries, key=lambda both: ("/" in both[0].path, both[0].path)):
            yield self._zipped(entry, info, archive)
        if base.is_missing:
            yield Entry("", fault=FROM_INSIDE)

    def _zipped(self, entry: Entry, info: zipfile.ZipInfo, archive: zipfile.ZipFile) -> Entry:
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
