"""A WACZ that others wrote: its members, each read within limits and compared with its declared digest. Reads only.

Nothing that the zip says is believed before it is read: a path is a label, never a place on disk; a member gives no
more bytes than it declares, and none if it declares far more than it is packed into. Indexes are not read here.

`datapackage.json` declares the digest of each file, and `datapackage-digest.json` that of the former. Files are
compared with a package that fits its digest, or that has none. With one that does not fit, or of which there are two, a
difference is a remark alone.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import IO, BinaryIO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from msgspec import Struct

from warcmill.errors import BadInput
from warcmill.formats.wacz import DIGEST, PACKAGE

MULTI = "multi-wacz-package"
_NAMED = 3  # other WACZ files
_DIRECTORY = 8 << 20  # bytes of the zip's list of members: more than any WACZ has
_PACKAGE = 64 << 20  # bytes of datapackage.json
_FOLD, _FREE = 200, 16 << 20  # a member may be that many times as long as it is packed, and that many bytes more
_ENCRYPTED = 0x41  # bits of its flags
_ALGORITHMS = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}  # hex digits
_hash = re.compile(r"(?:(?P<name>[a-z]+-?[0-9]+):)?(?P<hex>[0-9a-f]+)").fullmatch
# All that zipfile raises over bytes that are not a zip's; errors of the disk are the file's own.
_FAULTS = (BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, IndexError, struct.error, zlib.error)


class Member(Struct, frozen=True):
    """A file in the zip. `path` is its own: where two have one `name`, the second is `(2)/name`.

    `why`: why it cannot be read; '' if it can.
    """

    path: str
    name: str
    info: ZipInfo
    why: str

    @property
    def size(self) -> int:
        """The bytes that it declares."""
        return self.info.file_size

    @property
    def version(self) -> str:
        """Another one for another member of the same zip."""
        return f"{self.info.header_offset}:{self.info.file_size}:{self.info.CRC}"


class Declared(Struct, frozen=True):
    """The declaration of a file in the package: its bytes, and its digest by an algorithm; None and '' without them."""

    size: int | None
    algorithm: str
    digest: str

    def why_not(self, size: int, digest: str) -> str:
        """Why a file of this length and digest is not the one that was declared; '' if it is."""
        if self.size is not None and self.size != size:
            return f"it has {size} bytes, and {PACKAGE} declares {self.size}"
        if self.digest and self.digest != digest:
            return f"its {self.algorithm} is {digest}, and {PACKAGE} declares {self.digest}"
        return ""


class ForeignWacz:
    """A WACZ in a file that can seek. BadInput if it is not a whole zip, or a list of other WACZ files."""

    def __init__(self, file: BinaryIO, where: str) -> None:
        self._where, self.remarks = where, list[str]()
        self.bad: dict[str, str] = {}  # files of the package that are not believed: paths, each with the reason
        try:
            self._zip = ZipFile(cast(IO[bytes], _Guarded(file)))
        except _FAULTS as error:
            what = "a list of other WACZ files" if _begins_as_json(file) else f"not a whole zip ({_words_of(error)})"
            raise BadInput(where, f"{what}; get the WACZ itself again, whole") from error
        self.members = tuple(_members(self._zip.infolist()))
        if sum(member.info.compress_size for member in self.members) > file.seek(0, io.SEEK_END):
            raise BadInput(where, "not a whole zip (its members overlap); get the WACZ itself again, whole")
        self.declared: Mapping[str, Declared] = {}
        self.is_believed = False
        self._read_package()

    def open(self, member: Member, seen: Callable[[str], object] = lambda _: None) -> BinaryIO:
        """Open a member. At its end, and at damage, reading raises BadInput unless it is as declared.

        `seen` gets the difference from a declaration that is not believed.
        """
        if member.why:
            raise BadInput(f"{self._where}/{member.path}", member.why)
        expected = self.declared.get(member.name)
        try:
            opened = self._zip.open(member.info)
        except _FAULTS as error:
            raise BadInput(f"{self._where}/{member.path}", f"damaged in the zip ({_words_of(error)})") from error
        where, doubted = f"{self._where}/{member.path}", None if self.is_believed else seen
        return cast(BinaryIO, _Compared(opened, where, member.size, expected, doubted))

    def close(self) -> None:
        """Close the zip; the file stays open."""
        self._zip.close()

    def absent(self) -> Iterator[str]:
        """The files that the package lists, and that are not in the zip."""
        there = {member.name for member in self.members}
        yield from sorted(name for name in self.declared if name not in there)

    def _read_package(self) -> None:
        packages = [member for member in self.members if member.name == PACKAGE]
        if not packages:
            self.remarks.append(f"it has no {PACKAGE}, so no digest was compared")
            return
        for member in packages[1:]:
            self.bad[member.path] = f"one of {len(packages)} of this name; none is believed"
        try:
            data = self._small(packages[0])
            is_multi, self.declared = _package(data)
        except BadInput as error:
            self.bad[packages[0].path] = f"{error.why}, so no digest was compared"
            return
        if is_multi:
            some = ", ".join(list(self.declared)[:_NAMED]) + (", ..." if len(self.declared) > _NAMED else "")
            why = f"a multi-WACZ, which only lists other WACZ files ({some}); unpack it, and import these by name"
            raise BadInput(self._where, why)
        proven = {path for path, one in self.declared.items() if one.digest}
        if others := [member.name for member in self.members if member.name not in {*proven, PACKAGE, DIGEST}]:
            number = f"{len(others)} of its {len(self.members)} files"
            self.remarks.append(f"{number} have no digest in {PACKAGE} that is known, such as {others[0]}")
        self.is_believed = self._fits_digest(packages[0], data) and len(packages) == 1
        if len(packages) > 1:
            self.bad[packages[0].path] = f"one of {len(packages)} of this name; none is believed"

    def _fits_digest(self, package: Member, data: bytes) -> bool:
        """True unless the digest of the package is another one than is declared for it."""
        for member in (member for member in self.members if member.name == DIGEST):
            try:
                about = json.loads(self._small(member))
                expected = _declared({"hash": about["hash"]}) if about.get("path", PACKAGE) == PACKAGE else None
                if expected is None:
                    raise ValueError("it has no hash of the package")
            except (BadInput, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                why = error.why if isinstance(error, BadInput) else "it cannot be read"
                self.bad[member.path] = f"{why}, so the digest of {PACKAGE} was not compared"
                continue
            found = hashlib.new(expected.algorithm, data).hexdigest()
            if expected.digest != found:
                why = f"its {expected.algorithm} is {found}, and {DIGEST} declares {expected.digest}"
                self.bad[package.path] = f"{why}; what it declares is not believed"
                return False
        return True

    def _small(self, member: Member) -> bytes:
        if member.size > _PACKAGE:
            raise BadInput(self._where, f"it is larger than {_PACKAGE:,} bytes")
        with self.open(member) as stream:
            return b"".join(iter(lambda: stream.read(1 << 16), b""))


def _members(infos: list[ZipInfo]) -> Iterator[Member]:
    seen = Counter[str]()
    for info in infos:
        name = info.filename.replace("\\", "/")
        if name.endswith("/"):
            continue
        seen[name] += 1
        yield Member(f"({seen[name]})/{name}" if seen[name] > 1 else name, name, info, _why_unread(info))


def _why_unread(info: ZipInfo) -> str:
    if info.flag_bits & _ENCRYPTED:
        return "encrypted, so it cannot be read; decrypt it, and import its folder"
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        return "packed by a method that is not read; unpack it, and import its folder"
    if info.compress_type == ZIP_STORED and info.file_size != info.compress_size:
        return "damaged in the zip, which has two lengths of it"
    if info.file_size > _FOLD * info.compress_size + _FREE:
        return f"{info.compress_size:,} bytes that claim to unpack to {info.file_size:,}, so they are not unpacked"
    return ""


def _package(data: bytes) -> tuple[bool, Mapping[str, Declared]]:
    """True if a package is a list of other WACZ files; and the files that it lists. BadInput if it is damaged."""
    try:
        package = json.loads(data)
        listed = [one for one in package["resources"] if "path" in one]
        declared = {str(one["path"]).replace("\\", "/"): _declared(one) for one in listed}
        are_all = bool(declared) and all(path.lower().endswith(".wacz") for path in declared)
        return package.get("profile") == MULTI or are_all, declared
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(PACKAGE, "it is not the JSON of a data package") from error


def _declared(about: Mapping[str, object]) -> Declared:
    """The declaration of a file, here or, as WACZ 1.0 has it, in `stats`. An algorithm that is not known: none."""
    stats = about.get("stats")
    both = {**stats, **about} if isinstance(stats, dict) else about
    size, text = both.get("bytes"), both.get("hash")
    match = _hash(text.lower()) if isinstance(text, str) else None
    names = {length: name for name, length in _ALGORITHMS.items()}
    name = (match["name"] or names.get(len(match["hex"]), "")).replace("-", "") if match else ""
    length = size if isinstance(size, int) and not isinstance(size, bool) else None
    if match is None or _ALGORITHMS.get(name) != len(match["hex"]):
        return Declared(length, "", "")
    return Declared(length, name, match["hex"])


def _begins_as_json(file: BinaryIO) -> bool:
    file.seek(0)
    return file.read(64).lstrip().startswith(b"{")


def _words_of(error: BaseException) -> str:
    """The words of an error, in a text that begins with a name and a colon."""
    return (str(error) or type(error).__name__).replace(": ", " ")


class _Guarded:
    """A file for zipfile, which reads the list of members at once, however long the zip says that it is."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        if size > _DIRECTORY:
            raise BadZipFile(f"a list of members of {size:,} bytes")
        return self._file.read(_DIRECTORY if size < 0 else size)  # without a size, a comment behind the list

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if whence == io.SEEK_SET and offset < 0:
            raise BadZipFile("it points before its begin")
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """The file is closed by who opened it."""


class _Compared(io.BufferedIOBase):
    """A member that is read: at its end its length and digest are compared. Once damaged, each read raises that."""

    def __init__(
        self,
        member: IO[bytes],
        where: str,
        size: int,
        expected: Declared | None,
        doubted: Callable[[str], object] | None,
    ) -> None:
        self._member, self._where, self._size = member, where, size
        self._expected, self._doubted = expected or Declared(None, "", ""), doubted
        self._digest = hashlib.new(self._expected.algorithm) if self._expected.algorithm else None
        self._read = 0
        self._fault: BadInput | None = None

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes."""
        if self._fault:
            raise self._fault
        try:
            piece = self._member.read(-1 if size is None else size)
        except _FAULTS as error:
            raise self._bad(f"damaged in the zip ({_words_of(error)})") from error
        self._read += len(piece)
        if self._digest:
            self._digest.update(piece)
        if not piece and size:
            self._compare()
        return piece

    def _compare(self) -> None:
        if self._read != self._size:
            raise self._bad(f"damaged in the zip, which has {self._read} of {self._size} bytes of it")
        why = self._expected.why_not(self._read, self._digest.hexdigest() if self._digest else "")
        if why and self._doubted is None:
            raise self._bad(why)
        if why and self._doubted:
            self._doubted(why)

    def _bad(self, why: str) -> BadInput:
        self._fault = BadInput(self._where, why)
        return self._fault

    def close(self) -> None:
        """Close the member."""
        super().close()
        self._member.close()
