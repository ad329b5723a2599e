"""Open files and folders whose every use is a call that is met."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from crash.calls import Call, Do


class Net(Protocol):
    """What is between this process and the system."""

    inside: bool

    def under(self, path: Any, dir_fd: int | None = None) -> str | None: ...
    def pass_on(self, call: Call, do: Do) -> Any: ...


class File(io.FileIO):
    """A file whose every read and write is a call that is met."""

    def __init__(
        self, watch: Net, file: Any, mode: str, closefd: bool, opener: Callable[[str, int], int] | None
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
        return self._meet("read", b"", lambda _: super(File, self).readinto(buffer))

    def read(self, size: int | None = -1) -> Any:
        return self._meet("read", b"", lambda _: super(File, self).read(-1 if size is None else size))

    def readall(self) -> bytes:
        return self._meet("read", b"", lambda _: super(File, self).readall())

    def write(self, data: Any) -> Any:
        return self._meet("write", bytes(data), lambda some: super(File, self).write(some))

    def truncate(self, size: int | None = None) -> Any:
        return self._meet("truncate", bytes(size or 0), lambda _: super(File, self).truncate(size))

    def close(self) -> None:
        if not self.closed:
            self._meet("close", b"", lambda _: super(File, self).close())

    def _meet(self, op: str, data: bytes, do: Callable[[bytes], Any]) -> Any:
        seen = self._watch.under(self.fileno())
        return do(data) if seen is None else self._watch.pass_on(Call(op, seen, data=data), do)


class Scan:
    """What os.scandir answers, with entries whose stat() is a call that is met."""

    def __init__(self, watch: Net, folder: str, real: Any) -> None:
        self._watch, self._folder, self._real = watch, folder, real

    def __enter__(self) -> Scan:
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
    def __init__(self, watch: Net, folder: str, real: os.DirEntry[Any]) -> None:
        self._watch, self._call, self._real = watch, Call("lstat", f"{folder}/{real.name}".lstrip("/")), real
        self.name, self.path = real.name, real.path
        self.is_dir, self.is_file, self.is_symlink, self.inode = real.is_dir, real.is_file, real.is_symlink, real.inode

    def __fspath__(self) -> Any:
        return self.path

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return self._watch.pass_on(self._call, lambda _: self._real.stat(follow_symlinks=follow_symlinks))
