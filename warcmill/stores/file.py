"""A store that is a folder: local, or NFS.

Publishing is a unique temporary file beside the target, synced, compared, then
link(2), which never replaces; then the folder is synced. Every error of the
system but "no such file" is an outage.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import os
import stat as modes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from warcmill import fixity, roots
from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable
from warcmill.fixity import Readable
from warcmill.layout import SENTINEL
from warcmill.model import Root
from warcmill.stores import Stat, temporary
from warcmill.stores.plain import Plain

ABSENT = (errno.ENOENT, errno.ENOTDIR)
_OUTSIDE = frozenset({"", ".", ".."})


class FileStore:
    """The folder `base`, one of Warcmill's four roots."""

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
                with os.scandir(self.real(folder)) as entries:
                    found = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                if error.errno not in ABSENT:
                    raise
                self._check_sentinel()
                return
        prefix = f"{folder}/" if folder else ""
        for entry in found:
            with self._outage(prefix + entry.name), suppress(FileNotFoundError):
                yield _entry(prefix + entry.name, entry)

    def names(self, folder: str) -> frozenset[str]:
        """The names in a folder and nothing more: cheap enough to ask of thousands of folders."""
        try:
            return frozenset(os.listdir(f"{self.base}/{self._inside(folder)}"))
        except OSError as error:
            if error.errno not in ABSENT:
                raise self._unavailable(folder, error) from error
        self._check_sentinel()
        return frozenset()

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
        """From its disk, not from memory (POSIX_FADV_DONTNEED: the system may decline)."""
        stream = self.open(path)
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return stream

    def read(self, path: str, most: int) -> bytes:
        """The bytes of a small file, at most so many of them; NotReady when there is none. As `open`, in a third of
        the time: for those who read tens of thousands."""
        try:
            descriptor = no_follow(f"{self.base}/{self._inside(path)}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _read_all(descriptor, most)
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno not in ABSENT:
                raise self._unavailable(path, error) from error
        self._check_sentinel()
        raise NotReady(self.where(path), "there is no such file")

    def commit_new(self, path: str, source: Readable, size: int, sha512: str) -> bool:
        target = self.real(path)
        self._check_sentinel()
        with self._outage(path):
            self._make_folder(target.parent)
            made = not os.path.lexists(target) and self._publish(target, source, size, sha512)
            _sync_folder(target.parent)  # also when a racer was first: it may not have come this far
            return made

    def server_digest(self, path: str) -> tuple[str, str] | None:
        if self.stat(path) is None:
            return None
        with self._outage(path), self.open(path) as file:
            return "sha512", fixity.sha512(file)[1]

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
                    return False  # another was first: this file system's locks do not hold
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
        dead = [entry.path for entry in self.list(folder) if temporary.is_dead(entry.name)]
        for path in dead:
            with self._outage(path), suppress(FileNotFoundError):
                os.unlink(self.real(path))
        return len(dead)

    def replace(self, path: str, data: bytes) -> None:
        """Write a report, over an older one. Reports are not evidence; nothing else may be replaced."""
        target = self.real(path)
        self._check_sentinel()
        with self._outage(path):
            self._make_folder(target.parent)
            temp = target.parent / temporary.name(target.name)
            try:
                _write(temp, io.BytesIO(data), len(data))
                os.rename(temp, target)
            finally:
                _discard(temp)

    def append(self, path: str, line: bytes) -> None:
        """Add a line to a file that only this process writes, and make it durable."""
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

    def real(self, path: str) -> Path:
        """The path on disk, or BadInput for one that would leave the root."""
        return self.base / self._inside(path)

    def _inside(self, path: str) -> str:
        if "\0" in path or (path and not _OUTSIDE.isdisjoint(path.split("/"))):
            raise BadInput(path, f"not a path inside the root '{self.root}'")
        return path

    def where(self, path: str) -> str:
        """A path as messages show it."""
        return f"{self.root}:{path}"

    def _publish(self, target: Path, source: Readable, size: int, sha512: str) -> bool:
        temp = target.parent / temporary.name(target.name)
        try:
            found = _write(temp, source, size)
            if found != (size, sha512):
                raise Mismatch(f"{target.name}, while it was copied (bytes, sha512)", (size, sha512), found)
            return _link(temp, target)
        finally:
            _discard(temp)

    def _make_folder(self, folder: Path) -> None:
        missing = []
        while not folder.is_dir():
            missing.append(folder)
            folder = folder.parent
        for one in reversed(missing):
            with suppress(FileExistsError):
                os.mkdir(one)
            _sync_folder(one.parent)

    def _check_sentinel(self) -> None:
        path = self.base / SENTINEL
        try:
            data = path.read_bytes()
        except OSError as error:
            lost = "; where the state is lost for good, 'warcmill restore --new-state'" if self.root == "state" else ""
            why = f"{SENTINEL}: {error.strerror}. Mount the disk, or, for a new folder, run 'warcmill init'{lost}"
            raise Unavailable(f"root '{self.root}' ({self.base})", why) from error
        roots.check_sentinel(self.root, data, str(path))

    @contextmanager
    def _outage(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._unavailable(path, error) from error

    def _unavailable(self, path: str, error: OSError) -> Unavailable:
        return Unavailable(self.where(path), f"{error.strerror or error} (root {self.base})")


def no_follow(path: str, flags: int, folder: int | None = None) -> int:
    """Open a plain file, of an open folder perhaps; a link, a pipe or a device raises OSError, without waiting."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    if not modes.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file")
    return descriptor


def _read_all(descriptor: int, most: int) -> bytes:
    """All bytes of a plain file, or the first `most`; read(2) may give only a part."""
    chunks = []
    left = min(os.fstat(descriptor).st_size + 1, most)
    while left and (chunk := os.read(descriptor, left)):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def _entry(path: str, entry: os.DirEntry[str]) -> Stat:
    if entry.is_dir(follow_symlinks=False):
        return Stat(path, "folder")  # known from the listing alone: a scan meets many folders
    return stat_of(path, entry.stat(follow_symlinks=False))


def stat_of(path: str, found: os.stat_result) -> Stat:
    """What the system says of an entry; a link is told as one, wherever it leads."""
    if modes.S_ISDIR(found.st_mode):
        return Stat(path, "folder")
    kind = "file" if modes.S_ISREG(found.st_mode) else "other"
    return Stat(path, kind, found.st_size, f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}")  # type: ignore[arg-type]


def _write(temp: Path, source: Readable, announced: int) -> tuple[int, str]:
    """Copy into a new file and sync it; its length and SHA-512. A failed sync is never tried again on it.

    A source that grows is not followed: what it gives beyond `announced` is read once, to tell.
    """
    descriptor = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        digest, size = hashlib.sha512(), 0
        while size <= announced and (chunk := source.read(fixity.CHUNK)):
            _write_all(descriptor, chunk)
            digest.update(chunk)
            size += len(chunk)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return size, digest.hexdigest()


def _write_all(descriptor: int, data: bytes) -> None:
    """write(2) may take only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _link(temp: Path, target: Path) -> bool:
    """Whether our file now bears the name. On NFS a link may succeed and answer an error: the inode decides."""
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
    """Keep two repairers of one host from moving each other's files; correctness does not rest on it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without flock: what was moved is read again by the caller
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
