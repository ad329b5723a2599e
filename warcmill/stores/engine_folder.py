"""Stores for folders that other programs write. Nothing is put into them; an engine's files can be removed.

`EngineFolder` is the folder of an engine. It reads through the symbolic links that `links` allows, and no others; it
removes nothing through a link. Every folder is opened from the root on, one component at a time, and never by its
path: so a folder that is replaced by a link while a step is at work is not entered.

`LinkRules` decides which symbolic links in the engines' roots are followed, and gives the reason for the others. A job
or a launch may be on another disk, behind a link. A link is followed only if all of this holds:
- it is at most `levels` below a root, where launches are searched;
- it leads to a folder strictly below one that `[warcmill] follow_links` names;
- that folder is in no root, and has no root in it;
- no second path leads to that folder.
The folder is opened by its real path, component by component from the named folder on. No component may
be a link, so a link that is changed meanwhile leads nowhere else.

`OtherFolder` is a folder of another system: read only, without a sentinel, for nothing may be put there.

`SourceFolder` is a folder of WARCs that no engine of the line wrote. It is read once, has no sentinel, and no link in
it is followed.
"""

from __future__ import annotations

import errno
import io
import os
import stat as modes
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from warcmill.errors import Mismatch, NotFollowed, NotReady, Unavailable
from warcmill.layout import NEVER_A_LAUNCH
from warcmill.model import Root
from warcmill.stores import Stat
from warcmill.stores.file import ABSENT, FileStore, no_follow, stat_of
from warcmill.stores.plain_file import Plain

_NOT_A_FOLDER = (errno.ENOTDIR, errno.ELOOP)  # errors of open(2) for a link with O_NOFOLLOW


class EngineFolder(FileStore):
    """The folder `base` of an engine or another writer."""

    def __init__(self, root: Root, base: Path, links: LinkRules) -> None:
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


FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class FolderLink(Struct, frozen=True):
    """A link in a root: its path on disk, the real path it leads to, and why it is not followed ('': it may be)."""

    path: str
    target: str = ""
    why: str = ""


class LinkRules:
    """The rule for all roots. `roots`: each root that is a folder, and how many levels of it may be links."""

    def __init__(self, follow: Iterable[str] = (), roots: Mapping[str, int] | None = None) -> None:
        self._follow = tuple(os.path.realpath(folder) for folder in follow)
        self._roots = {os.path.realpath(base): levels for base, levels in (roots or {}).items()}

    def levels(self, base: str) -> int:
        """Return how many levels of a root may be links."""
        return self._roots.get(os.path.realpath(base), 0)

    def judge(self, path: str) -> FolderLink:
        """Return the link at an absolute path, with the reason if it is not followed."""
        link = self._judge(path)
        return link if link.why else self._ways.get(_name(path), FolderLink(path, link.target, "it came a moment ago"))

    def open(self, path: str) -> int:
        """Open the folder that the link at an absolute path leads to; return its descriptor, or raise NotFollowed."""
        now = self._judge(path)
        known = now if now.why else self.judge(path)
        if known.why or known.target != now.target:
            raise NotFollowed(path, known.why or "it leads elsewhere than a moment ago")
        return self._enter(now)

    def all(self) -> Iterator[FolderLink]:
        """Yield every link of all roots, at the levels where links may be followed."""
        yield from self._ways.values()

    def _judge(self, path: str) -> FolderLink:
        """Judge a link by itself: whether a second path leads to its folder is not checked."""
        try:
            target = os.path.realpath(path, strict=True)
        except OSError as error:
            return FolderLink(path, "", f"a link that leads nowhere: {error.strerror}")
        if not os.path.isdir(target):
            return FolderLink(path, target, f"a link to {target}, which is no folder; such links are never followed")
        if not any(_is_below(target, folder) for folder in self._follow):
            return FolderLink(
                path, target, f"a link to {target}, which lies below no folder of [warcmill] follow_links"
            )
        for root in self._roots:
            if target == root or _is_below(target, root) or _is_below(root, target):
                return FolderLink(path, target, f"a link to {target}, which lies in the root {root}, or holds it")
        return FolderLink(path, target)

    def _enter(self, link: FolderLink) -> int:
        """Open the real path of a link, from the folder in `follow_links` on, through no other link."""
        allowed = max((folder for folder in self._follow if _is_below(link.target, folder)), key=len)
        descriptor = os.open(allowed, FOLDER)
        try:
            for name in os.path.relpath(link.target, allowed).split("/"):
                inner = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
        except OSError as error:
            os.close(descriptor)
            raise NotFollowed(link.path, f"{link.target} changed while it was opened: {error.strerror}") from error
        return descriptor

    @cached_property
    def _ways(self) -> dict[str, FolderLink]:
        """Every link of all roots, by its real place; if two lead into one folder, both are refused."""
        links = {_name(link.path): link for root, levels in self._roots.items() for link in self._in(root, levels)}
        good = sorted((link for link in links.values() if not link.why), key=lambda link: f"{link.target}/")
        for place, link in enumerate(good):
            for other in good[place + 1 :]:
                if other.target != link.target and not _is_below(other.target, link.target):
                    break  # sorted: the content of a folder follows it directly
                for first, second in ((link, other), (other, link)):
                    why = f"two ways lead to {other.target}: this link and {second.path}; neither is read"
                    links[_name(first.path)] = FolderLink(first.path, first.target, why)
        return links

    def _in(self, folder: str, levels: int) -> Iterator[FolderLink]:
        """Yield the links in a folder and below it that may be followed. The store that lists it reports errors."""
        try:
            with os.scandir(folder) as listing:
                entries = [(entry.path, entry.is_symlink(), entry.is_dir(follow_symlinks=False)) for entry in listing]
        except OSError:
            return
        for path, is_link, is_folder in entries if levels else ():
            name = os.path.basename(path)
            if name.startswith(".") or (folder not in self._roots and NEVER_A_LAUNCH.fullmatch(name)):
                continue
            link = self._judge(path) if is_link else None
            if link:
                yield link
            if is_folder or (link and not link.why):
                yield from self._in(path, levels - 1)


def _name(path: str) -> str:
    """Return a link's real place, however the path to it is written."""
    folder, name = os.path.split(path)
    return os.path.join(os.path.realpath(folder), name)


def _is_below(path: str, folder: str) -> bool:
    """True if a real path is strictly below another."""
    return path.startswith(f"{folder.rstrip('/')}/") and path != folder


class OtherFolder(FileStore):
    """The folder `base` of another system. Without a sentinel, an empty mount point looks like an empty folder."""

    def _check_sentinel(self) -> None:
        if not self.base.is_dir():
            raise Unavailable(
                f"{self.root} ({self.base})", "there is no such folder; mount its disk, or correct the key"
            )


class SourceFolder(EngineFolder):
    """The folder `base`. Each folder in it is opened from there on, so that a link put in its place leads nowhere."""

    def __init__(self, base: Path) -> None:
        super().__init__("output", base, LinkRules())

    def where(self, path: str) -> str:
        """Return a path as messages show it."""
        return f"{self.base}/{path}"

    def _check_sentinel(self) -> None:
        if not self.base.is_dir():
            raise Unavailable(str(self.base), "there is no such folder; mount its disk, or correct the path")
