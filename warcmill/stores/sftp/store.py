"""A store on another host, by SFTP.

Publishing writes a unique temporary file beside the target, syncs it, compares its length, and renames it by a plain
RENAME, which on OpenSSH never replaces; then it syncs the folder. SFTP reports no inode, and times in whole seconds:
a file that is rewritten within one second with the same length looks unchanged; only its digest differs.

`Together` does work that several threads wait for once for all of them, such as the sync of a folder.
"""

from __future__ import annotations

import io
import stat as modes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import BinaryIO, Literal, cast

from warcmill.base import digests
from warcmill.base.digests import Readable
from warcmill.errors import BadConfig, Mismatch, NotFollowed, NotReady, Unavailable
from warcmill.layout import SENTINEL, check_sentinel
from warcmill.model import Root
from warcmill.stores import Promise, Sha512, Stat, sentinel, temporary_names
from warcmill.stores.remote_files import (
    CHECKED_FOR,
    LARGEST_SENTINEL,
    SMALL,
    Body,
    Broken,
    RemoteReader,
    beside,
    check_path,
    check_removable,
    is_movable,
    parent,
    read_digest,
    rewound,
)
from warcmill.stores.sftp import packets
from warcmill.stores.sftp.packets import Attributes, Code
from warcmill.stores.sftp.pool import Lent, SessionPool
from warcmill.stores.sftp.session import FSYNC, POSIX_RENAME, SftpRefusal, SftpSession, Upload


class SftpStore:
    """The folder `base` of a host.

    `new`: the folder will become a root; its sentinel is not checked.
    """

    at_once = 6

    def __init__(self, root: Root, pool: SessionPool, base: str, *, new: bool = False) -> None:
        self.root: Root = root
        self._pool, self._base, self._new = pool, base, new
        self._sentinel, self._checked = "", 0.0
        self._syncs: dict[str, Together] = {}
        self._no_links: set[str] = set()  # folders that are known not to be links
        self._check_sentinel()

    def stat(self, path: str) -> Stat | None:
        entry = self._lstat(path)
        if entry is None:
            self._check_sentinel()
        return entry

    def list(self, folder: str) -> Iterator[Stat]:
        self._check_no_link(folder)
        real = self._real(folder)
        try:
            entries = self._pool.ask(lambda session: list(session.entries(real)))
        except SftpRefusal as error:
            there = self.stat(folder) if folder else None
            if there is not None and there.kind == "folder":
                if error.code != Code.NO_SUCH_FILE:
                    raise
                yield from self.list(folder)  # another process has made it between our two requests
            self._check_sentinel()
            return
        prefix = f"{folder}/" if folder else ""
        for name, attributes in sorted(entries, key=lambda entry: entry[0]):
            yield _stat(prefix + name.decode("utf-8", "surrogateescape"), attributes)

    def open(self, path: str, start: int = 0) -> BinaryIO:
        self._check_no_link(parent(path))
        found = self.stat(path)
        if found is None:
            raise NotReady(self.where(path), "there is no such file")
        if found.kind != "file":
            raise Unavailable(self.where(path), f"not a plain file ({self._pool.name})")
        return self._reader(path, found.size, start)

    def read_back(self, path: str) -> BinaryIO:
        return self.open(path)  # our memory caches no file of another host

    def commit_new(self, path: str, source: Readable, size: int, sha512: Sha512) -> bool:
        if time.monotonic() - self._checked > CHECKED_FOR:
            self._check_sentinel()
        promise = Promise(size, sha512)
        while True:
            try:
                return self._commit(path, source, promise)
            except Broken:
                if not rewound(source) or not self._pool.budget.wait():
                    raise

    def server_digest(self, path: str) -> tuple[str, str] | None:
        """Read the file: SFTP has no digest of its own."""
        return read_digest(self, path)

    def move_aside(self, path: str, to: str, only: Stat) -> bool:
        if not is_movable(self, path, to, only):
            return False
        self._pool.ask(lambda session: self._make_folder(session, parent(to)))
        if not self._move(path, to):
            return False
        self._pool.ask(lambda session: self._sync_folders(session, {parent(path), parent(to)}))
        return True

    def remove(self, path: str, only: Stat) -> None:
        self._check_no_link(parent(path))
        check_removable(self, path, only)
        self._pool.ask(lambda session: self._remove_only(session, path, only))
        self._pool.ask(lambda session: self._sync_folders(session, {parent(path)}))

    def sweep(self, folder: str) -> int:
        dead = [entry.path for entry in self.list(folder) if temporary_names.is_dead(entry.name)]
        for path in dead:
            self._pool.ask(lambda session, path=path: self._remove(session, path))  # type: ignore[misc]
        return len(dead)

    def where(self, path: str) -> str:
        """Return a path as messages show it."""
        return f"{self.root}:{path}"

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def _commit(self, path: str, source: Readable, promise: Promise) -> bool:
        made = not self._is_there_already(path, promise) and self._publish(path, source, promise)
        self._sync_together(parent(path))  # also when a racer was first: it may not have synced yet
        return made

    def _is_there_already(self, path: str, promise: Promise) -> bool:
        """True if the file exists. Small files are sent without asking, unless a function judges their digest."""
        return (promise.size > SMALL or promise.is_judged) and self._lstat(path) is not None

    def _sync_together(self, folder: str) -> None:
        """Sync a folder, once for all threads whose renames are done by now."""
        sync = partial(self._pool.ask, lambda session: self._sync_folders(session, {folder}))
        self._syncs.setdefault(folder, Together(sync))()

    def _publish(self, path: str, source: Readable, promise: Promise) -> bool:
        temp = beside(path, temporary_names.name(path.rpartition("/")[2]))
        done = False
        try:
            self._write(temp, path, source, promise)
            done = self._rename(temp, path)
            return done
        except SftpRefusal:
            if self._lstat(path) is None:
                raise
            return False  # the file is there already, so a full disk does not matter
        finally:
            if not done:
                with suppress(Unavailable), self._pool.session() as session:
                    self._remove(session, temp)

    def _write(self, temp: str, path: str, source: Readable, promise: Promise) -> None:
        """Write a temporary file and sync it; Mismatch when its bytes are not the promised ones."""
        with self._pool.session() as session:
            self._require(session, FSYNC)
            upload, body = self._begin(session, temp), Body(self.where(path), source, promise)
            for chunk in body:
                upload.write(chunk)
            kept = upload.finish()
        if kept != body.size:
            raise Mismatch(f"{body.name}, as the server keeps it (bytes)", body.size, kept)
        body.check()

    def _require(self, session: SftpSession, extension: bytes) -> None:
        if extension not in session.extensions:
            raise BadConfig(f"[warcmill] {self.root}", f"{self._pool.name} does not offer {extension.decode()}")

    def _begin(self, session: SftpSession, temp: str) -> Upload:
        """Make the file, and its folder when it is missing."""
        try:
            return Upload(session, self._real(temp))
        except SftpRefusal as error:
            if error.code != Code.NO_SUCH_FILE:
                raise
        self._make_folder(session, parent(temp))
        return Upload(session, self._real(temp))

    def _rename(self, path: str, to: str) -> bool:
        """True if `path` now has the name `to`. Only we rename `path`: if it is gone and `to` exists, we did it."""
        source, target = self._real(path), self._real(to)
        while True:
            try:
                with self._pool.session() as session:
                    session.rename(source, target)
                return True
            except (Broken, SftpRefusal) as error:
                left, renamed = self._lstat(path), self._lstat(to)
                if renamed is not None:
                    return left is None
                if isinstance(error, SftpRefusal) or not self._pool.budget.wait():
                    raise

    def _move(self, path: str, to: str) -> bool:
        """True if we moved a file that others may move as well, to the same name or another. A plain RENAME links, then
        unlinks: another program that takes the file at its new name in between would leave it at the old one."""
        try:
            with self._pool.session() as session:
                self._require(session, POSIX_RENAME)
                session.replace(self._real(path), self._real(to))
        except SftpRefusal as error:
            if error.code != Code.NO_SUCH_FILE:
                raise
            return False
        except Broken:
            if self._lstat(path) is not None or self._lstat(to) is None:
                raise
        return True

    def _lstat(self, path: str) -> Stat | None:
        real = self._real(path)
        attributes = self._pool.ask(lambda session: session.lstat(real))
        return _stat(path, attributes) if attributes else None

    def _check_no_link(self, folder: str) -> None:
        """Raise NotFollowed when a folder of an engine is reached through a link: a server follows every link."""
        if self.root in sentinel.OWN or not folder or folder in self._no_links:
            return
        self._check_no_link(parent(folder))
        found = self._lstat(folder)
        if found and found.why:
            raise NotFollowed(self.where(folder), found.why)
        if found:
            self._no_links.add(folder)

    def _remove_only(self, session: SftpSession, path: str, only: Stat) -> None:
        """Check before each try: after a lost answer, another file may have the name by now."""
        attributes = session.lstat(self._real(path))
        if attributes is not None and _stat(path, attributes) == only:
            self._remove(session, path)

    def _remove(self, session: SftpSession, path: str) -> None:
        """Remove a file; one that is gone already is fine."""
        try:
            session.remove(self._real(path))
        except SftpRefusal as error:
            if error.code != Code.NO_SUCH_FILE:
                raise

    def _make_folder(self, session: SftpSession, folder: str) -> None:
        """Make a folder and its parents, and sync each parent."""
        if not folder or session.lstat(self._real(folder)) is not None:
            return
        self._make_folder(session, parent(folder))
        try:
            session.mkdir(self._real(folder))
        except SftpRefusal:
            if session.lstat(self._real(folder)) is None:
                raise
        self._sync_folders(session, {parent(folder)})

    def _sync_folders(self, session: SftpSession, folders: set[str]) -> None:
        for folder in folders:
            session.end(session.open(self._real(folder), packets.READ))

    def _reader(self, path: str, size: int, start: int = 0) -> BinaryIO:
        real = self._real(path)
        raw = RemoteReader(lambda at: Lent(self._pool, real, at, size), size, start, self._pool.budget)
        return cast(BinaryIO, io.BufferedReader(raw, digests.CHUNK))

    def _check_sentinel(self) -> None:
        if self._new:
            return
        self._checked = 0.0
        found = self._lstat(SENTINEL)
        name = f"root '{self.root}' (sftp {self._pool.name}{self._base})"
        if found is None:
            raise Unavailable(name, f"{SENTINEL} is not there. Mount its disk, or correct its path in luigi.cfg")
        if found.version != self._sentinel:
            with self._reader(SENTINEL, found.size) as file:
                check_sentinel(self.root, file.read(LARGEST_SENTINEL), f"{name}: {SENTINEL}")
            self._sentinel = found.version
        self._checked = time.monotonic()

    def _real(self, path: str) -> bytes:
        """Return the path on the server, or BadInput for a path that would leave the root."""
        check_path(self.root, path)
        return f"{self._base}/{path}".encode("utf-8", "surrogateescape") if path else self._base.encode()


def _stat(path: str, attributes: Attributes) -> Stat:
    if modes.S_ISDIR(attributes.mode):
        return Stat(path, "folder")
    if modes.S_ISLNK(attributes.mode):
        return Stat(path, "other", why="a link; on sftp none is followed")
    kind: Literal["file", "other"] = "file" if modes.S_ISREG(attributes.mode) else "other"
    return Stat(path, kind, attributes.size, f"{attributes.size}:{attributes.mtime}")


class Together:
    """`work` that serves, by one run, all callers that called before the run began."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work, self._changed = work, threading.Condition()
        self._begun = self._done = 0  # the number of runs begun; the number of the last one that succeeded
        self._busy = False

    def __call__(self) -> None:
        """Return after a run that began after this call, in this thread or another. A failed run serves nobody: its
        thread gets the error, and another caller runs the work again."""
        with self._changed:
            wanted = self._begun + 1
            self._changed.wait_for(lambda: self._done >= wanted or not self._busy)
            if self._done >= wanted:
                return
            self._busy = True
            self._begun += 1
        self._run(self._begun)

    def _run(self, number: int) -> None:
        done = False
        try:
            self._work()
            done = True
        finally:
            with self._changed:
                self._busy = False
                self._done = number if done else self._done
                self._changed.notify_all()
