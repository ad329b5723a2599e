"""Where a bag lies: a folder, a tar, a tar.gz or a zip. Its files are read in turn; nothing is ever extracted.

A path in an archive is a name to compare, never one to open. What is no plain file is refused by name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from warcmill.base.digests import Readable
from warcmill.formats.bagit import paths

Opened = AbstractContextManager[Readable]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a bag: its path in the bag, and how to read it; a folder cannot be read.

    `fault` says why it may not be there. It can be read until the next entry is asked for, and once.
    """

    path: str
    size: int = 0
    open: Callable[[], Opened] | None = None
    fault: str = ""


class Container(Protocol):
    """A bag's files, in an order of its own; each call begins anew. BadInput: an archive that cannot be read on."""

    def entries(self) -> Iterator[Entry]: ...


class Folder:
    """A bag that is a folder. The files beside bagit.txt come first, so that one pass is enough."""

    def __init__(self, folder: Path, watch: Callable[[BinaryIO], Readable] = lambda stream: stream) -> None:
        self._folder, self._watch = folder, watch

    def entries(self) -> Iterator[Entry]:
        return self._below(self._folder, "")

    def _below(self, folder: Path, prefix: str) -> Iterator[Entry]:
        with os.scandir(folder) as scan:
            found = sorted(scan, key=lambda entry: (entry.is_dir(follow_symlinks=False), entry.name))
        for entry in found:
            path = prefix + entry.name
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                yield Entry(path)
                yield from self._below(folder / entry.name, f"{path}/")
            elif stat.S_ISREG(status.st_mode):
                yield Entry(path, status.st_size, lambda name=entry.path: self._open(name))  # type: ignore[misc]
            else:
                yield Entry(path, fault=irregular(status.st_mode))

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
    """Why something that is no plain file may not be in a bag."""
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

    def entry(self, name: str, *, is_folder: bool) -> Entry:
        """The entry of an archive's name, with its path in the bag; it cannot be read yet."""
        name = paths.without_dot(name)
        if name in ("", "."):
            return Entry("")
        if why := paths.unsafe(name):
            return Entry(name, fault=why)
        first, slash, rest = name.partition("/")
        if self._base is None:
            self._base = first if (slash or is_folder) and f"{first}/" != paths.PAYLOAD else ""
        if not self._base:
            return Entry(name)
        if first != self._base:
            return Entry(name, fault=f"outside the bag's folder {self._base}/: an archive holds one bag in one folder")
        return Entry(rest, fault="" if rest or is_folder else "a file where the bag's folder should be")

    @property
    def is_missing(self) -> bool:
        """True if the archive was made from inside the bag."""
        return self._base == ""
