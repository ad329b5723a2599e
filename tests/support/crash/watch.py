"""Every call by which a process touches a folder: seen, counted, and, where a test asks for it, made to fail.

`watch(folder, meet)` puts itself between Python and the system, for the rest
of the process: `meet(call, do)` is asked for each call on a path under
`folder`, and answers with `do(call.data)`, or does something worse.
"""

from __future__ import annotations

import builtins
import fcntl
import io
import mmap
import os
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crash.calls import DATABASES, NAMELESS, Call, Meet
from crash.databases import watched
from crash.handles import File, Scan

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
_REAL_OPEN = io.open
_CHANGING = ("chown", "lockf", "truncate", "scandir", *PATHS, *PAIRS)
_AUDITED = frozenset({"open", "mmap.__new__", "fcntl.flock", *(f"os.{name}" for name in _CHANGING)})


class Watch:
    """The functions that replace those of `os`, `io` and `fcntl`."""

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
        sqlite3.connect = watched(self)
        shutil._USE_CP_SENDFILE = False  # type: ignore[attr-defined]

    def mind_the_gaps(self) -> None:
        """Note in `unseen` what Python itself tells of, and no stand-in has seen."""
        sys.addaudithook(self._audit)

    def under(self, path: Any, dir_fd: int | None = None) -> str | None:
        """The path under the watched folder, '' for itself; None for any other."""
        if isinstance(path, int):
            try:
                text = self.real["readlink"](f"/proc/self/fd/{path}").removesuffix(" (deleted)")
                text = re.sub(r"/#\d+\Z", f"/{NAMELESS}", text)
            except FileNotFoundError:
                return None
        else:
            text = os.fsdecode(path)
            if not text.startswith("/"):
                base = self.real["readlink"](f"/proc/self/fd/{dir_fd}") if dir_fd is not None else os.getcwd()
                text = f"{base}/{text}"
        is_of_database = text.startswith(DATABASES, len(self.folder))
        return text[len(self.folder) :] if f"{text}/".startswith(self.folder) and not is_of_database else None

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
            if op == "link" and seen[1] is None:
                return self.pass_on(Call("read", seen[0] or ""), lambda _: real(source, target, *args, **kwargs))
            data = os.fsencode(source) if op == "symlink" else b""
            if op == "link" and seen[0] is None:
                data = _bytes_of(source)
            paths = ("" if op == "symlink" else seen[0] or "", seen[1] or "")
            return self.pass_on(Call(op, *paths, data=data), lambda _: real(source, target, *args, **kwargs))

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
        return Scan(self, seen, self.pass_on(Call("scandir", seen), lambda _: self.real["scandir"](path)))

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
        raw = File(self, file, mode, closefd, opener)
        if buffering == 0:
            return raw
        kind = io.BufferedRandom if "+" in mode else io.BufferedReader if "r" in mode else io.BufferedWriter
        buffered: Any = kind(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if self.inside or event not in _AUDITED or (event == "mmap.__new__" and args[2] == mmap.ACCESS_READ):
            return
        for path in args[:2]:
            if isinstance(path, str | bytes | os.PathLike | int) and not isinstance(path, bool) and self.under(path):
                self.unseen.append(f"{event} {path!r}")


def _bytes_of(path: Any) -> bytes:
    with _REAL_OPEN(path, "rb") as file:
        return file.read()


def watch(folder: Path, meet: Meet) -> Watch:
    """Stand between this process and everything it does under `folder`."""
    found = Watch(folder, meet)
    found.install()
    return found
