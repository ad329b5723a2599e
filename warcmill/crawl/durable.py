"""Write small files of a launch so that a kill leaves them whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from warcmill.base import disk
from warcmill.crawl.appended import sync_folder
from warcmill.errors import Unavailable


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
