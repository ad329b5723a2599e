"""Files that outlive a kill or a power cut: a small one is whole or not there. Writes to the disk.

`Appended` is a file that only grows; after a kill it is cut to the length that the books have.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from warcmill.base import disk
from warcmill.errors import Mismatch, Unavailable


def replace(path: Path, data: bytes | bytearray) -> None:
    """Write a file, durable and whole; what was there is replaced at once, and its permissions kept. A half that a kill
    left is written over."""
    half = path.with_name(f".{path.name}.tmp")
    try:
        with half.open("wb") as file:
            if path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(half, path)
    except OSError as error:
        raise failed(path, error) from error
    sync_folder(path.parent)


def copy(source: Path, path: Path) -> None:
    """Copy a file, durable and whole; what was at `path` is replaced at once."""
    half = path.with_name(f".{path.name}.tmp")
    try:
        with source.open("rb") as file, half.open("wb") as target:
            shutil.copyfileobj(file, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
        os.rename(half, path)
    except OSError as error:
        raise failed(path, error) from error
    sync_folder(path.parent)


def sync(path: Path) -> None:
    """Make a file that others have written durable, and its name."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise failed(path, error) from error
    sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, durable. One that is there is taken."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise failed(path, error) from error
    for one in reversed(missing):
        sync_folder(one.parent)


def is_cut(path: Path) -> bool:
    """True if a kill left a last line without its end: the next one must not be taken for the rest of it."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1))
        return file.read(1) not in (b"", b"\n")


def failed(path: Path, error: OSError) -> Unavailable:
    """Our error for one of the disk."""
    return Unavailable(str(path), f"{disk.reason(error, path)}. It was not written")


T = TypeVar("T")
ORPHAN = ".orphan"


class Appended:
    """A file that is appended to. After an error it must not be written again: cut it, and open it anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = self._try(lambda: os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644))
        self.length = os.fstat(self._fd).st_size
        sync_folder(path.parent)

    def append(self, data: bytes) -> None:
        """Write bytes at its end."""
        rest = memoryview(data)
        while rest:
            written = self._try(partial(os.write, self._fd, rest))
            self.length += written
            rest = rest[written:]

    def sync(self) -> None:
        """Make all that was appended durable."""
        self._try(lambda: os.fdatasync(self._fd))
        refuse_deleted(self._fd, self.path)

    def close(self) -> None:
        """Close it."""
        os.close(self._fd)

    def _try(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except OSError as error:
            raise unavailable(self.path, error) from error


def cut(path: Path, length: int) -> Path | None:
    """Cut a file to a length; what was after it is kept beside, in a file whose path is returned. None: nothing was.

    Mismatch when the file is shorter: it has lost what the books know to be durable.
    """
    try:
        size = path.stat().st_size
        if size == length:
            return None
        if size < length:
            raise Mismatch(f"the length of {path} by the crawl's books", length, size)
        orphan = _keep_tail(path, length)
        os.truncate(path, length)
        _sync(path)
    except OSError as error:
        raise unavailable(path, error) from error
    return orphan


def set_aside(path: Path, name: str) -> Path:
    """Rename a file that the books do not know to an orphan of this name."""
    try:
        orphan = free_orphan(path.with_name(name))
        os.rename(path, orphan)
    except OSError as error:
        raise unavailable(path, error) from error
    sync_folder(path.parent)
    return orphan


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    try:
        _sync(folder)
    except OSError as error:
        raise unavailable(folder, error) from error


def refuse_deleted(file: int, path: Path) -> None:
    """Unavailable when an open file has no name any more: what is written to it is lost."""
    if os.fstat(file).st_nlink == 0:
        raise Unavailable(str(path), "it was deleted while the crawl wrote to it")


def unavailable(path: Path, error: OSError) -> Unavailable:
    """Our error for one of the disk."""
    why = f"{disk.reason(error, path)}. Nothing of this group was kept, and all before it is safe"
    return Unavailable(str(path), why)


def free_orphan(path: Path) -> Path:
    """Return a name for an orphan that no file has: `x.orphan`, `x.2.orphan`."""
    names = (path.with_name(f"{path.name}{'' if n == 1 else f'.{n}'}{ORPHAN}") for n in count(1))
    return next(name for name in names if not name.exists())


def _keep_tail(path: Path, length: int) -> Path:
    orphan = free_orphan(path)
    with path.open("rb") as source, orphan.open("xb") as target:
        source.seek(length)
        shutil.copyfileobj(source, target)
        target.flush()
        os.fsync(target.fileno())
    _sync(path.parent)
    return orphan


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
