"""Write a new file whole, or not at all: never over one that is there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from warcmill.errors import Conflict, Unavailable
from warcmill.stores import temporary

_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)  # of a file system without hard links, as on a USB stick


@contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write; at the end it is durable, and gets its name. After an error nothing is left.

    Conflict if there is a file of that name; Unavailable if the folder is missing, full, or not to be written to. What
    a killed run left is removed.
    """
    refuse_existing(path)
    try:
        _sweep(path)
        temp = path.parent / temporary.name(path.name)
        try:
            with temp.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            _name(temp, path)
            _sync_folder(path.parent)
        finally:
            with suppress(FileNotFoundError):
                temp.unlink()
    except FileExistsError:
        raise _conflict(path) from None
    except OSError as error:
        raise Unavailable(str(error.filename or path), f"{error.strerror or error}; {path} was not written") from error


def refuse_existing(path: Path) -> None:
    """Raise Conflict if there is a file of that name."""
    if os.path.lexists(path):
        raise _conflict(path)


def _name(temp: Path, path: Path) -> None:
    try:
        os.link(temp, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        refuse_existing(path)
        os.rename(temp, path)


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _conflict(path: Path) -> Conflict:
    return Conflict(str(path), "is there already and was left as it is; remove it, or choose another name")


def _sweep(path: Path) -> None:
    for entry in os.scandir(path.parent):
        if entry.name.startswith(f".{path.name}.") and temporary.is_dead(entry.name):
            with suppress(FileNotFoundError):
                os.unlink(entry.path)
