"""The reason for which a disk refused a file, and a remedy: it is full, read-only, or another user's. Reads only."""

from __future__ import annotations

import errno
import os
import pwd
import stat
from collections.abc import Iterable
from pathlib import Path

FULL = (errno.ENOSPC, errno.EDQUOT)
REFUSED = (errno.EACCES, errno.EPERM)
ROOM, INODES = 1 << 20, 8  # bytes, files; a disk with fewer is full: what did not fit may have left some


def reason(error: OSError, path: Path) -> str:
    """The system's reason for an error of a file, with what to do if that is known."""
    said = error.strerror or str(error)
    if error.errno in FULL:
        what = (
            "delete files on its disk, which has no inode left"
            if _lacks_inodes(path.parent)
            else "make room on its disk"
        )
        return f"{said}; {what}, and do the same again"
    if error.errno == errno.EROFS:
        return f"{said}; mount its disk for writing, and do the same again"
    if error.errno in REFUSED:
        return f"{said}; {_refusal(path)}"
    return said


def is_refused(error: OSError) -> bool:
    """True if the file is there, but its owner or its disk lets us not use it."""
    return error.errno in (*REFUSED, errno.EROFS)


def full(folders: Iterable[Path]) -> Path | None:
    """The first of these folders whose disk has no room left, or no inode; None if there is none."""
    return next((folder for folder in folders if _lacks_room(folder) or _lacks_inodes(folder)), None)


def _lacks_room(folder: Path) -> bool:
    found = _figures(folder)
    return found is not None and found.f_bavail * found.f_frsize < ROOM


def _lacks_inodes(folder: Path) -> bool:
    found = _figures(folder)  # a file system that makes inodes as it needs them has 0 of 0
    return found is not None and found.f_files > 0 and found.f_favail < INODES


def _figures(folder: Path) -> os.statvfs_result | None:
    try:
        return os.statvfs(folder)
    except OSError:  # that it cannot be reached is another fault, which its next use names
        return None


def _refusal(path: Path) -> str:
    """Who may not use what: the first folder on the way that may not be entered, else the file, or its folder."""
    way = [*reversed(path.parents), path]
    closed = (one for one in way[:-1] if not os.access(one, os.X_OK, effective_ids=True))
    last = path if os.path.lexists(path) else path.parent
    culprit = next(closed, last)
    name = "" if culprit == path else f"{culprit} "
    try:
        found = culprit.stat()
    except OSError:
        return f"user {_user(os.geteuid())} may not use it; change its owner or mode, and do the same again"
    return (
        f"{name}belongs to user {_user(found.st_uid)}, mode {stat.S_IMODE(found.st_mode):04o}, and this is user"
        f" {_user(os.geteuid())}; change its owner or mode, or do the same as user {_user(found.st_uid)}"
    )


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container's user has no name
        return str(number)
