"""A store that is a folder, on a local disk or on NFS.

Publishing writes a unique temporary file beside the target, syncs and compares
it, and gives it its name by link(2), which never replaces; then it syncs the
folder. Every system error except "no such file" is an outage.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
import stat as modes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TypeVar

from warcmill.base import digests, disk
from warcmill.base.digests import Readable
from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable
from warcmill.layout import SENTINEL, check_sentinel
from warcmill.model import Root
from warcmill.stores import Promise, Sha512, Stat, temporary_names
from warcmill.stores.plain_file import Plain

ABSENT = (errno.ENOENT, errno.ENOTDIR)
T = TypeVar("T")
_OUTSIDE = frozenset({"", ".", ".."})


class FileStore:
    """The folder `base`, one of Warcmill's roots. It is also the `LocalStore` of the state."""

    at_once = 1

    def __init__(self, root: Root, base: Path) -> None:
        self.root: Root = root
        self.base = base
        self._check_sentinel()

    def stat(self, path: str) -> Stat | None:
        with self._outage(path):
            try:
                return stat_of(path, os.lstat(self.real(path)))
            except OSError as error:
                if error.errno not in ABSENT:
                    raise
        self._check_sentinel()
        return None

    def list(self, folder: str) -> Iterator[Stat]:
        with self._outage(folder):
            try:
                with os.scandir(self.real(folder)) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name, reverse=True)
            except OSError as error:
                if error.errno not in ABSENT:
                    raise
                self._check_sentinel()
                return
        prefix = f"{folder}/" if folder else ""
        while entries:
            entry = entries.pop()  # an entry keeps what it was asked: of 100,000 that is 50 MB
            try:
                found = _entry(prefix + entry.name, entry)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise self._unavailable(prefix + entry.name, error) from error
            yield found

    def names(self, folder: str) -> frozenset[str]:
        """Return the names in a folder; none when there is no such folder. Cheap enough for thousands of folders."""
        try:
            return frozenset(os.listdir(f"{self.base}/{self._inside(folder)}"))
        except OSError as error:
            if error.errno not in ABSENT:
                raise self._unavailable(folder, error) from error
        self._check_sentinel()
        return frozenset()

    def changed(self, folder: str) -> tuple[int, int]:
        """Return the inode of a folder, and when a name in it last changed, in ns; zeros when there is none. Nobody can
        set this time, unlike the time of the last modification."""
        try:
            status = os.stat(f"{self.base}/{self._inside(folder)}")
        except OSError as error:
            if error.errno not in ABSENT:
                raise self._unavailable(folder, error) from error
        else:
            return status.st_ino, status.st_ctime_ns
        self._check_sentinel()
        return 0, 0

    def open(self, path: str, start: int = 0) -> BinaryIO:
        with self._outage(path):
            try:
                file = open(self.real(path), "rb", buffering=0, opener=no_follow)  # noqa: SIM115 - the caller's to close
            except OSError as error:
                if error.errno not in ABSENT:
                    raise
            else:
                file.seek(start)
                return io.BufferedReader(Plain(file, self.where(path)))
        self._check_sentinel()
        raise NotReady(self.where(path), "there is no such file")

    def read_back(self, path: str) -> BinaryIO:
        """Return a reader from the disk, not from memory (POSIX_FADV_DONTNEED, which the system may ignore)."""
        stream = self.open(path)
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return stream

    def read(self, path: str, most: int) -> bytes:
        """Return the bytes of a small file, at most `most`; NotReady when there is none. It takes a third of the time
        of `open`, for callers that read tens of thousands."""
        return self._take(path, _read_first, most)

    def read_end(self, path: str, most: int) -> tuple[bytes, int]:
        """Return the last bytes of a file, at most `most`, and its length; NotReady when there is none."""
        return self._take(path, _read_last, most)

    def _take(self, path: str, take: Callable[[int, int, int], T], most: int) -> T:
        """Return the result of `take` for an open file's descriptor, its length and `most`."""
        try:
            descriptor, size = _open_plain(f"{self.base}/{self._inside(path)}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return take(descriptor, size, most)
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno not in ABSENT:
                raise self._unavailable(path, error) from error
        self._check_sentinel()
        raise NotReady(self.where(path), "there is no such file")

    def commit_new(self, path: str, source: Readable, size: int, sha512: Sha512) -> bool:
        target = self.real(path)
        self._check_sentinel()
        with self._outage(path):
            self._make_folder(target.parent)
            made = not os.path.lexists(target) and self._publish(target, source, Promise(size, sha512))
            _sync_folder(target.parent)  # also when a racer was first: it may not have synced yet
            return made

    def server_digest(self, path: str) -> tuple[str, str] | None:
        if self.stat(path) is None:
            return None
        with self._outage(path), self.open(path) as file:
            return "sha512", digests.sha512(file)[1]

    def move_aside(self, path: str, to: str, only: Stat) -> bool:
        source, target = self.real(path), self.real(to)
        with self._outage(path):
            self._make_folder(target.parent)
            with _folder_lock(source.parent):
                if self.stat(path) != only:
                    return False
                try:
                    os.rename(source, target)
                except FileNotFoundError:
                    if self.stat(path) == only:
                        raise
                    return False  # another was first: locks do not work on this file system
            _sync_folder(target.parent)
            _sync_folder(source.parent)
            return True

    def remove(self, path: str, only: Stat) -> None:
        found = self.stat(path)
        if found != only:
            raise Mismatch(f"{self.where(path)} is no longer the file that was to be removed", only, found)
        with self._outage(path):
            os.unlink(self.real(path))
            _sync_folder(self.real(path).parent)

    def sweep(self, folder: str) -> int:
        dead = [entry.path for entry in self.list(folder) if temporary_names.is_dead(entry.name)]
        for path in dead:
            with self._outage(path), suppress(FileNotFoundError):
                os.unlink(self.real(path))
        return len(dead)

    def replace(self, path: str, data: bytes) -> None:
        """Write a report, and replace an older one. Only reports may be replaced: they are not evidence."""
        target = self.real(path)
        self._check_sentinel()
        with self._outage(path):
            self._make_folder(target.parent)
            temp = target.parent / temporary_names.name(target.name)
            try:
                _write(temp, io.BytesIO(data), len(data))
                os.rename(temp, target)
            finally:
                _discard(temp)

    def append(self, path: str, line: bytes) -> None:
        """Append a line to a file that only this process writes, and sync it."""
        target = self.real(path)
        self._check_sentinel()
        with self._outage(path):
            self._make_folder(target.parent)
            descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            try:
                size = os.fstat(descriptor).st_size
                torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"  # a full disk cut our last line
                _write_all(descriptor, (b"\n" if torn else b"") + line + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def link(self, path: str, to: str) -> None:
        """Give the file at `path` a second name; if `to` is there already, it stays."""
        source, target = self.real(path), self.real(to)
        self._check_sentinel()
        with self._outage(to):
            self._make_folder(target.parent)
            if not os.path.lexists(target):
                _link(source, target)
            _sync_folder(target.parent)

    def point(self, path: str, to: str) -> None:
        """Make `path` a symbolic link to the name `to` beside it. An older link is replaced by rename."""
        target = self.real(path)
        self._check_sentinel()
        with self._outage(path):
            self._make_folder(target.parent)
            temp = target.parent / temporary_names.name(target.name)
            try:
                os.symlink(to, temp)
                os.rename(temp, target)
                _sync_folder(target.parent)
            finally:
                _discard(temp)

    def pointed(self, path: str) -> str | None:
        """Return the name that a symbolic link leads to; None when there is no link."""
        with self._outage(path):
            try:
                return os.readlink(self.real(path))
            except OSError as error:
                if error.errno not in (*ABSENT, errno.EINVAL):
                    raise
        self._check_sentinel()
        return None

    def remove_folder(self, path: str) -> None:
        """Delete an empty folder; nothing happens when it is gone, or not empty."""
        with self._outage(path):
            try:
                os.rmdir(self.real(path))
            except OSError as error:
                if error.errno not in (*ABSENT, errno.ENOTEMPTY):
                    raise
                return
            _sync_folder(self.real(path).parent)

    def real(self, path: str) -> Path:
        """Return the path on disk, or BadInput for a path that would leave the root."""
        return self.base / self._inside(path)

    def _inside(self, path: str) -> str:
        if "\0" in path or (path and not _OUTSIDE.isdisjoint(path.split("/"))):
            raise BadInput(path, f"not a path inside the root '{self.root}'")
        return path

    def where(self, path: str) -> str:
        """Return a path as messages show it."""
        return f"{self.root}:{path}"

    def _publish(self, target: Path, source: Readable, promise: Promise) -> bool:
        temp = target.parent / temporary_names.name(target.name)
        try:
            promise.check(target.name, *_write(temp, source, promise.size))
            return _link(temp, target)
        finally:
            _discard(temp)

    def _make_folder(self, folder: Path) -> None:
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for folder in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(folder)
            _sync_folder(folder.parent)

    def _check_sentinel(self) -> None:
        path = self.base / SENTINEL
        try:
            data = path.read_bytes()
        except OSError as error:
            more = "; where the state is lost for good, 'warcmill restore --new-state'" if self.root == "state" else ""
            todo = f". Mount the disk, or correct its path in luigi.cfg{more}"
            why = f"{SENTINEL}: {disk.reason(error, path)}{'' if disk.is_refused(error) else todo}"
            raise Unavailable(f"root '{self.root}' ({self.base})", why) from error
        check_sentinel(self.root, data, str(path))

    @contextmanager
    def _outage(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._unavailable(path, error) from error

    def _unavailable(self, path: str, error: OSError) -> Unavailable:
        return Unavailable(self.where(path), f"{disk.reason(error, self.base / path)} (root {self.base})")


def no_follow(path: str, flags: int, folder: int | None = None) -> int:
    """Open a plain file, in an open folder if given. A link, a pipe or a device raises OSError at once."""
    return _open_plain(path, flags, folder)[0]


def _open_plain(path: str, flags: int, folder: int | None = None) -> tuple[int, int]:
    """Open a plain file; return its descriptor and its length."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    status = os.fstat(descriptor)
    if not modes.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file")
    return descriptor, status.st_size


def _read_last(descriptor: int, size: int, most: int) -> tuple[bytes, int]:
    """Read the last bytes of a plain file of this size, at most `most`; return its size too."""
    return os.pread(descriptor, most, max(size - most, 0)), size


def _read_first(descriptor: int, size: int, most: int) -> bytes:
    """Read the first bytes of a plain file of this size, at most `most`; read(2) may return only a part."""
    size = min(size, most)
    data = os.read(descriptor, size)
    while len(data) < size and (chunk := os.read(descriptor, size - len(data))):
        data += chunk
    return data


def _entry(path: str, entry: os.DirEntry[str]) -> Stat:
    if entry.is_dir(follow_symlinks=False):
        return Stat(path, "folder")  # known from the listing alone: a scan meets many folders
    return stat_of(path, entry.stat(follow_symlinks=False))


def stat_of(path: str, status: os.stat_result) -> Stat:
    """Return the entry for a result of lstat(2); a link is `other`, wherever it leads."""
    if modes.S_ISDIR(status.st_mode):
        return Stat(path, "folder")
    version = f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"
    return Stat(path, "file" if modes.S_ISREG(status.st_mode) else "other", status.st_size, version)


def _write(temp: Path, source: Readable, announced: int) -> tuple[int, str]:
    """Copy into a new file and sync it; return its length and SHA-512. A failed sync is never retried on this file.

    A source that grows is not followed: one read beyond `announced` bytes is enough to notice.
    """
    descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        digest, size = hashlib.sha512(), 0
        while size <= announced and (chunk := source.read(digests.CHUNK)):
            _write_all(descriptor, chunk)
            digest.update(chunk)
            size += len(chunk)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return size, digest.hexdigest()


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`: write(2) may take only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _link(temp: Path, target: Path) -> bool:
    """True if our file now has the name. On NFS a link may succeed and still return an error: the inode decides."""
    try:
        os.link(temp, target)
    except OSError as error:
        try:
            same = os.path.samefile(temp, target)
        except FileNotFoundError:
            raise error from None
        if not same and error.errno != errno.EEXIST:
            raise
        return same
    return True


def _discard(temp: Path) -> None:
    with suppress(FileNotFoundError):
        os.unlink(temp)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _folder_lock(folder: Path) -> Iterator[None]:
    """Keep two processes of one host from moving each other's files; correctness does not depend on it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without flock: the caller reads again what it moved
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
