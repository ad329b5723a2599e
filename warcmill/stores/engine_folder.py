"""A store for a folder that engines write. It reads through the symbolic links that `links` allows, and no others;
it removes nothing through a link.

Every folder is opened from the root on, one component at a time, and never by its path: so a folder that is
replaced by a link while a step is at work is not entered.
"""

from __future__ import annotations

import errno
import io
import os
import stat as modes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from warcmill.errors import Mismatch, NotFollowed, NotReady
from warcmill.layout import NEVER_A_LAUNCH
from warcmill.model import Root
from warcmill.stores import Stat
from warcmill.stores.file import ABSENT, FileStore, no_follow, stat_of
from warcmill.stores.links import FOLDER, Links
from warcmill.stores.plain import Plain

_NOT_A_FOLDER = (errno.ENOTDIR, errno.ELOOP)  # errors of open(2) for a link with O_NOFOLLOW


class EngineFolder(FileStore):
    """The folder `base` of an engine or another writer."""

    def __init__(self, root: Root, base: Path, links: Links) -> None:
        super().__init__(root, base)
        self._links, self._levels = links, links.levels(str(base))

    def stat(self, path: str) -> Stat | None:
        folder, _, name = path.rpartition("/")
        with self._outage(path):
            try:
                with self._folder(folder) as descriptor:
                    return self._entry(path, os.stat(name or ".", dir_fd=descriptor, follow_symlinks=False))
            except OSError as error:
                if error.errno not in ABSENT:
                    raise
        self._check_sentinel()
        return None

    def list(self, folder: str) -> Iterator[Stat]:
        prefix = f"{folder}/" if folder else ""
        with self._outage(folder):
            try:
                with self._folder(folder) as descriptor:
                    entries = list(self._entries(prefix, descriptor))
            except OSError as error:
                if error.errno not in ABSENT:
                    raise
                self._check_sentinel()
                return
        yield from entries

    def names(self, folder: str) -> frozenset[str]:
        return frozenset(entry.name for entry in self.list(folder))

    def open(self, path: str, start: int = 0) -> BinaryIO:
        folder, _, name = path.rpartition("/")
        with self._outage(path):
            try:
                with self._folder(folder) as descriptor:
                    file = open(  # noqa: SIM115 - the caller's to close
                        self.real(path),
                        "rb",
                        buffering=0,
                        opener=lambda _, flags: no_follow(name, flags, descriptor),
                    )
            except OSError as error:
                if error.errno not in ABSENT:
                    raise
            else:
                file.seek(start)
                return io.BufferedReader(Plain(file, self.where(path)))
        self._check_sentinel()
        raise NotReady(self.where(path), "there is no such file")

    def remove(self, path: str, only: Stat) -> None:
        folder, _, name = path.rpartition("/")
        with self._outage(path), self._folder(folder, through_links=False) as descriptor:
            found = self._entry(path, os.stat(name, dir_fd=descriptor, follow_symlinks=False))
            if found != only:
                raise Mismatch(f"{self.where(path)} is no longer the file that was to be removed", only, found)
            os.unlink(name, dir_fd=descriptor)
            os.fsync(descriptor)

    def is_linked(self, folder: str) -> bool:
        """True if a folder is reached through a symbolic link."""
        with self._outage(folder):
            try:
                with self._folder(folder, through_links=False):
                    return False
            except NotFollowed:
                return True
            except OSError as error:
                if error.errno not in ABSENT:
                    raise
                return False

    @contextmanager
    def _folder(self, path: str, *, through_links: bool = True) -> Iterator[int]:
        """Open a folder, one component after the other. NotFollowed at a link that is not allowed; else as open(2)."""
        self.real(path)
        parts = path.split("/") if path else []
        descriptor = os.open(self.base, FOLDER)
        try:
            for level, name in enumerate(parts):
                inner = self._inner(descriptor, "/".join(parts[: level + 1]), name, through_links)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def _inner(self, descriptor: int, path: str, name: str, through_links: bool) -> int:
        try:
            return os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
        except OSError as error:
            if error.errno not in _NOT_A_FOLDER or not _is_link(name, descriptor):
                raise
        if not through_links:
            raise NotFollowed(self.where(path), "it is a link; nothing is removed through one")
        why = self._why_never(path)
        if why != "":
            raise NotFollowed(self.where(path), why or "a link; it is never followed")
        return self._links.open(str(self.base / path))

    def _entries(self, prefix: str, descriptor: int) -> Iterator[Stat]:
        with os.scandir(descriptor) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield Stat(path, "folder")  # known from the listing alone: a scan meets many folders
                continue
            try:
                status = os.stat(entry.name, dir_fd=descriptor, follow_symlinks=False)
            except FileNotFoundError:
                continue  # renamed or removed while the folder was read
            yield self._entry(path, status)

    def _entry(self, path: str, status: os.stat_result) -> Stat:
        if not modes.S_ISLNK(status.st_mode):
            return stat_of(path, status)
        why = self._why_never(path)
        if why is None:
            return Stat(path, "other")  # `latest`, and other links that engines keep beside launches
        why = why or self._links.judge(str(self.base / path)).why
        return Stat(path, "other", why=why) if why else Stat(path, "folder")

    def _why_never(self, path: str) -> str | None:
        """Return why a link at this place is never followed; '' when it may be, None when it need not be reported."""
        name = path.rpartition("/")[2]
        if name.startswith(".") or ("/" in path and NEVER_A_LAUNCH.fullmatch(name)):
            return None
        deep = path.count("/") >= self._levels
        return "a link; links are followed only where a kind's, a job's or a launch's folder may be" if deep else ""


def _is_link(name: str, descriptor: int) -> bool:
    return modes.S_ISLNK(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
