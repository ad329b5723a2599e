"""What the stores at the other end of a network have in common: paths, sources, and readers that reconnect."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from warcmill import fixity
from warcmill.errors import BadInput, Mismatch, Unavailable
from warcmill.fixity import Readable
from warcmill.layout import LONGEST_NAME
from warcmill.model import Root
from warcmill.stores.budget import Budget

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHECKED_FOR = 1.0
"""Seconds that the sentinel counts as seen for files to be written: while a large one is sent, nobody looks either."""

SMALL = 1 << 20
"""Bytes: such a file is sent rather than asked for; the rename tells that another is there."""


def check_path(root: Root, path: str) -> None:
    """BadInput for a path that would leave the root, or that no server takes."""
    parts = path.split("/") if path else []
    if "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise BadInput(path, f"not a path inside the root '{root}'")
    longest = max((len(part.encode("utf-8", "surrogateescape")) for part in parts), default=0)
    if longest > LONGEST_NAME:
        raise BadInput(path, f"a name in it is {longest} bytes long, {LONGEST_NAME} is the limit")


def parent(path: str) -> str:
    """The folder that a path lies in; '' is the root itself."""
    return path.rpartition("/")[0]


def beside(path: str, name: str) -> str:
    """The path of `name` in the folder of `path`."""
    folder = parent(path)
    return f"{folder}/{name}" if folder else name


class Broken(Unavailable):
    """The connection failed. Whether the server did what it was asked is not known, unless nothing was `sent`."""

    def __init__(self, what: str, why: str, *, sent: bool = True) -> None:
        self.sent = sent
        super().__init__(what, why)


def rewound(source: Readable) -> bool:
    """Whether `source` stands at its beginning again; False when it is one that can be read only once."""
    seek = getattr(source, "seek", None)
    if seek is None:
        return False
    seek(0)
    return True


class Body:
    """A source on its way to `name`: what goes by is counted and digested, and fed to others, in one pass.

    A source that grows is not followed: what it gives beyond `announced` is read once, to tell.
    """

    def __init__(self, name: str, source: Readable, announced: int, *feeds: Callable[[bytes], object]) -> None:
        self.name = name
        self._source, self._announced, self._feeds = source, announced, (*feeds, self._count)
        self._size, self._sha512 = 0, hashlib.sha512()

    def __iter__(self) -> Iterator[bytes]:
        while self._size <= self._announced and (chunk := self._read()):
            for feed in self._feeds:
                feed(chunk)
            yield chunk

    def compare(self, sha512: str) -> None:
        """Mismatch unless what went by is as long as announced, with that digest."""
        promised, found = (self._announced, sha512), (self._size, self._sha512.hexdigest())
        if found != promised:
            raise Mismatch(f"{self.name}, while it was copied (bytes, sha512)", promised, found)

    def _count(self, chunk: bytes) -> None:
        self._size += len(chunk)
        self._sha512.update(chunk)

    def _read(self) -> bytes:
        try:
            return self._source.read(fixity.CHUNK)
        except OSError as error:  # not the connection's, for which an OSError would be taken
            raise Unavailable(f"what is to become {self.name}", error.strerror or str(error)) from error


class Reader(io.RawIOBase):
    """A remote file from `start` on, as one stream. A connection that breaks is made again where it broke."""

    def __init__(self, connect: Callable[[int], Part], size: int, start: int, budget: Budget) -> None:
        super().__init__()
        self._connect, self._size, self._at, self._budget = connect, size, start, budget
        self._part: Part | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """As of any file; what was asked for ahead is dropped."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if base + offset != self._at:
            self._drop()
            self._at = base + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """The next bytes; Unavailable when the server can no longer be reached."""
        while self._at < self._size and memoryview(buffer).nbytes:
            try:
                if self._part is None:
                    self._part = self._connect(self._at)
                got = self._part.readinto(buffer)
            except Broken:
                self._drop()
                if not self._budget.wait():
                    raise
            else:
                self._budget.answered()
                self._at += got
                return got
        return 0

    def close(self) -> None:
        self._drop()
        super().close()

    def _drop(self) -> None:
        if self._part is not None:
            self._part.close()
            self._part = None


class Part(Protocol):
    """One connection's worth of a file: gives at least a byte, or raises Broken."""

    def readinto(self, buffer: WriteableBuffer, /) -> int: ...

    def close(self) -> None: ...
