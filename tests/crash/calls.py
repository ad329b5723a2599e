"""Every call by which a process touches a folder: seen, counted, and, where a test asks for it, made to fail.

`watch(folder, meet)` puts itself between Python and the system, for the rest
of the process: `meet(call, do)` is asked for each call on a path under
`folder`, and answers with `do(call.data)`, or does something worse.
"""

from __future__ import annotations

import builtins
import fcntl
import io
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHANGES = frozenset({"create", "truncate", "write", "link", "rename", "unlink", "mkdir", "rmdir", "symlink", "chmod"})
PATHS = ("stat", "lstat", "mkdir", "rmdir", "unlink", "remove", "listdir", "chmod", "utime", "readlink", "statvfs")
PAIRS = ("link", "rename", "replace", "symlink")
DESCRIPTORS = ("read", "pread", "fsync", "fdatasync", "close", "fstat", "fchmod", "posix_fadvise")
UNUSED = (
    "pwrite",
    "writev",
    "pwritev",
    "readv",
    "sendfile",
    "copy_file_range",
    "splice",
    "mkfifo",
    "mknod",
    "setxattr",
)
ALIASES = {"remove": "unlink", "replace": "rename", "fdatasync": "fsync", "pread": "read", "fchmod": "chmod"}
_OWN = re.compile(r"\.\d+\.[0-9a-f]{8}\.tmp$|\.\d+\.jsonl$|\.[0-9a-f]{8}$")


@dataclass(frozen=True, slots=True)
class Call:
    """One call: what, on which path under the watched folder, and, for a write, with what bytes.

    `failed`: the system itself answered an error, such as that a file is not there.
    """

    op: str
    path: str
    to: str = ""
    data: bytes = b""
    failed: bool = False

    @property
    def changes(self) -> bool:
        """Whether the folder is another one afterwards. `fsync` changes only what a power cut would leave."""
        return self.op in CHANGES and not self.failed

    def __str__(self) -> str:
        """The call, without what differs from run to run in temporary names: process and random digits."""
        text = f"{self.op} {_plain(self.path)}"
        return f"{text} -> {_plain(self.to)}" if self.to else text


Meet = Callable[[Call, Callable[[bytes], Any]], Any]


def _plain(path: str) -> str:
    return "/".join(_OWN.sub("", part) for part in path.split("/"))


class Watch:
    """The functions that stand in for those of `os`, `io` and `fcntl`."""

    def __init__(self, folder: Path, meet: Meet) -> None:
        self.folder, self.meet = f"{folder.resolve()}/", meet
        self.inside = False
        self.unseen: list[str] = []
        self.real = {name: getattr(os, name) for name in (*PATHS, *PAIRS, *DESCRIPTORS, "open", "write", "scandir")}
        self.flock = fcntl.flock

    def install(self) -> None:
        for name in PATHS:
            setattr(os, name, self._on_path(name))
        for name in PAIRS:
            setattr(os, name, self._on_pair(name))
        for name in DESCRIPTORS:
            setattr(os, name, self._on_descriptor(name))
        for name in ("truncate", "ftruncate"):
            setattr(os, name, self._truncate(getattr(os, name)))
        for name in UNUSED:
            setattr(os, name, self._refuse(name))
        os.open, os.write, os.scandir = self._open, self._write, self._scandir  # type: ignore[assignment]
        io.open = builtins.open = self._io_open  # type: ignore[assignment]
        fcntl.flock = self._flock

    def mind_the_gaps(self) -> None:
        """Note in `unseen` what Python itself tells of, and no stand-in has seen."""
        sys.addaudithook(self._audit)

    def under(self, path: Any, dir_fd: int | None = None) -> str | None:
        """The path under the watched folder, '' for itself; None for any other."""
        if isinstance(path, int):
            try:
                text = self.real["readlink"](f"/proc/self/fd/{path}").removesuffix(" (deleted)")
            except FileNotFoundError:
                return None
        else:
            text = os.fsdecode(path)
            if not text.startswith("/"):
                base = self.real["readlink"](f"/proc/self/fd/{dir_fd}") if dir_fd is not None else os.getcwd()
                text = f"{base}/{text}"
        return text[len(self.folder) :] if f"{text}/".startswith(self.folder) else None

    def pass_on(self, call: Call, do: Callable[[bytes], Any]) -> Any:
        """Ask for a call, and let the system's own function do it."""
        if self.inside:
            return do(call.data)

        def really(data: bytes) -> Any:
            self.inside = True
            try:
                return do(data)
            finally:
                self.inside = False

        return self.meet(call, really)

    def _on_path(self, name: str) -> Callable[..., Any]:
        real, op = self.real[name], ALIASES.get(name, name)

        def call(path: Any = ".", *args: Any, dir_fd: int | None = None, **kwargs: Any) -> Any:
            known = {"dir_fd": dir_fd} if dir_fd is not None else {}
            seen = self.under(path, dir_fd)
            if seen is None:
                return real(path, *args, **known, **kwargs)
            return self.pass_on(Call(op, seen), lambda _: real(path, *args, **known, **kwargs))

        return call

    def _on_pair(self, name: str) -> Callable[..., Any]:
        real, op = self.real[name], ALIASES.get(name, name)

        def call(source: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            seen = self.under(source), self.under(target)
            if seen == (None, None):
                return real(source, target, *args, **kwargs)
            return self.pass_on(
                Call(op, *(path or "" for path in seen)), lambda _: real(source, target, *args, **kwargs)
            )

        return call

    def _on_descriptor(self, name: str) -> Callable[..., Any]:
        real, op = self.real[name], ALIASES.get(name, name)

        def call(descriptor: int, *args: Any) -> Any:
            seen = self.under(descriptor)
            if seen is None:
                return real(descriptor, *args)
            return self.pass_on(Call(op, seen), lambda _: real(descriptor, *args))

        return call

    def _truncate(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(file: Any, length: int) -> Any:
            seen = self.under(file)
            if seen is None:
                return real(file, length)
            return self.pass_on(Call("truncate", seen, data=bytes(length)), lambda _: real(file, length))

        return call

    def _refuse(self, name: str) -> Callable[..., Any]:
        def call(*_args: Any, **_kwargs: Any) -> Any:
            raise NotImplementedError(f"os.{name} is not watched yet: add it here")

        return call

    def _write(self, descriptor: int, data: Any) -> int:
        seen = self.under(descriptor)
        if seen is None:
            return self.real["write"](descriptor, data)
        return self.pass_on(Call("write", seen, data=bytes(data)), lambda some: self.real["write"](descriptor, some))

    def _flock(self, file: Any, operation: int) -> None:
        descriptor = file if isinstance(file, int) else file.fileno()
        seen = self.under(descriptor)
        if seen is None:
            return self.flock(descriptor, operation)
        return self.pass_on(Call("flock", seen), lambda _: self.flock(descriptor, operation))

    def _open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        seen = self.under(path, dir_fd)
        if seen is None:
            return self.real["open"](path, flags, mode, dir_fd=dir_fd)
        op = "open"
        if flags & os.O_CREAT and not os.path.lexists(path):
            op = "create"
        elif flags & os.O_TRUNC:
            op = "truncate"
        return self.pass_on(Call(op, seen), lambda _: self.real["open"](path, flags, mode, dir_fd=dir_fd))

    def _scandir(self, path: Any = ".") -> Any:
        seen = self.under(path)
        if seen is None:
            return self.real["scandir"](path)
        return _Scan(self, seen, self.pass_on(Call("scandir", seen), lambda _: self.real["scandir"](path)))

    def _io_open(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Callable[[str, int], int] | None = None,
    ) -> Any:
        seen = self.under(file)
        if seen is None:
            return (
                io.TextIOWrapper.__call__
                if False
                else _REAL_OPEN(file, mode, buffering, encoding, errors, newline, closefd, opener)
            )
        raw = _File(self, file, mode, closefd, opener)
        if buffering == 0:
            return raw
        buffered: Any = io.BufferedReader(raw) if "r" in mode and "+" not in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if self.inside or event not in _AUDITED:
            return
        for path in args[:2]:
            if isinstance(path, str | bytes | os.PathLike | int) and not isinstance(path, bool) and self.under(path):
                self.unseen.append(f"{event} {path!r}")


_REAL_OPEN = io.open
_CHANGING = ("chown", "lockf", "truncate", "scandir", *PATHS, *PAIRS)
_AUDITED = frozenset({"open", "mmap.__new__", "fcntl.flock", *(f"os.{name}" for name in _CHANGING)})


class _File(io.FileIO):
    """A file whose every read and write is a call that is met."""

    def __init__(
        self, watch: Watch, file: Any, mode: str, closefd: bool, opener: Callable[[str, int], int] | None
    ) -> None:
        self._watch = watch
        flags = mode.replace("b", "").replace("t", "")
        before, watch.inside = watch.inside, True  # Python tells of the name before it asks the opener
        try:
            super().__init__(file, flags, closefd, self._opened_by(opener))
        finally:
            watch.inside = before

    def _opened_by(self, opener: Callable[[str, int], int] | None) -> Callable[[str, int], int]:
        def call(path: str, flags: int) -> int:
            self._watch.inside = False
            return opener(path, flags) if opener else os.open(path, flags, 0o666)

        return call

    def readinto(self, buffer: Any) -> int:
        return self._meet("read", b"", lambda _: super(_File, self).readinto(buffer))

    def read(self, size: int | None = -1) -> Any:
        return self._meet("read", b"", lambda _: super(_File, self).read(-1 if size is None else size))

    def readall(self) -> bytes:
        return self._meet("read", b"", lambda _: super(_File, self).readall())

    def write(self, data: Any) -> Any:
        return self._meet("write", bytes(data), lambda some: super(_File, self).write(some))

    def truncate(self, size: int | None = None) -> Any:
        return self._meet("truncate", bytes(size or 0), lambda _: super(_File, self).truncate(size))

    def close(self) -> None:
        if not self.closed:
            self._meet("close", b"", lambda _: super(_File, self).close())

    def _meet(self, op: str, data: bytes, do: Callable[[bytes], Any]) -> Any:
        seen = self._watch.under(self.fileno())
        return do(data) if seen is None else self._watch.pass_on(Call(op, seen, data=data), do)


class _Scan:
    """What os.scandir answers, with entries whose stat() is a call that is met."""

    def __init__(self, watch: Watch, folder: str, real: Any) -> None:
        self._watch, self._folder, self._real = watch, folder, real

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *_: object) -> None:
        self._real.close()

    def close(self) -> None:
        self._real.close()

    def __iter__(self) -> Iterator[Any]:
        return (_Entry(self._watch, self._folder, entry) for entry in self._real)

    def __next__(self) -> Any:
        return _Entry(self._watch, self._folder, next(self._real))


class _Entry:
    def __init__(self, watch: Watch, folder: str, real: os.DirEntry[Any]) -> None:
        self._watch, self._call, self._real = watch, Call("lstat", f"{folder}/{real.name}".lstrip("/")), real
        self.name, self.path = real.name, real.path
        self.is_dir, self.is_file, self.is_symlink, self.inode = real.is_dir, real.is_file, real.is_symlink, real.inode

    def __fspath__(self) -> Any:
        return self.path

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return self._watch.pass_on(self._call, lambda _: self._real.stat(follow_symlinks=follow_symlinks))


def watch(folder: Path, meet: Meet) -> Watch:
    """Stand between this process and everything it does under `folder`."""
    found = Watch(folder, meet)
    found.install()
    return found
