"""The folders and the lock that a launch holds, watched: they have to stay where it opened them. Reads only.

A folder that was deleted, or a lock file that was replaced, stops no write: the system keeps what is open. So they are
looked at, again and again.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from warcmill.base import disk
from warcmill.errors import Conflict, Unavailable

Identity = tuple[int, int]
LOST = "Nothing more is written. Put it back, then start the crawl again: it continues from what is there"


class Watched:
    """Some folders and files, from now until `close`. A file that is not there yet is not watched."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._known = {path: found for path in paths if (found := _identity(path))}
        self._open = {path: os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in self._known if _may_open(path)}

    def refuse_deleted(self) -> None:
        """Unavailable when one was deleted: also when its disk seems to be away, as after `rm -r` of all."""
        for path, descriptor in self._open.items():
            if os.fstat(descriptor).st_nlink == 0:
                raise Unavailable(str(path), f"it was deleted while the crawl used it. {LOST}")

    def refuse_moved(self) -> None:
        """Unavailable when one is not there any more, Conflict when another is in its place. Its disk must be there."""
        for path, known in self._known.items():
            found = _identity(path)
            if found is None:
                raise Unavailable(str(path), f"it was renamed or deleted while the crawl used it. {LOST}")
            if found != known:
                why = "another one is there since the crawl began, which may be another crawl's; this one has ended"
                raise Conflict(str(path), f"{why}. Compare them, move the wrong one away, then start the crawl again")

    def close(self) -> None:
        """Watch no more."""
        while self._open:
            os.close(self._open.popitem()[1])


def _identity(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error
    return found.st_dev, found.st_ino


def _may_open(path: Path) -> bool:
    """A database must not: to close any descriptor of it would end SQLite's locks."""
    return path.suffix != ".sqlite" and not stat.S_ISSOCK(path.stat().st_mode)
