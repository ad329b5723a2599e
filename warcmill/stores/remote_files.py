"""The parts that remote stores share: paths, sources, readers that reconnect, and a limit of the time for retries."""

from __future__ import annotations

import hashlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from warcmill.base import digests
from warcmill.base.digests import Readable
from warcmill.errors import BadInput, Conflict, Mismatch, Unavailable
from warcmill.layout import LONGEST_NAME
from warcmill.model import Root
from warcmill.stores import Promise, Stat, Store

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


CHECKED_FOR = 1.0
"""Seconds for which one check of the sentinel holds when files are written: a large file takes longer to send."""

SMALL = 1 << 20
"""Bytes. Nobody asks before it is sent if such a file exists: the rename fails if it does."""


LARGEST_SENTINEL = 1 << 16
"""Bytes to read of a sentinel at most."""


def check_path(root: Root, path: str) -> None:
    """Raise BadInput for a path that would leave the root, or that no server accepts."""
    parts = path.split("/") if path else []
    if "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise BadInput(path, f"not a path inside the root '{root}'")
    longest = max((len(part.encode("utf-8", "surrogateescape")) for part in parts), default=0)
    if longest > LONGEST_NAME:
        raise BadInput(path, f"a name in it is {longest} bytes long, {LONGEST_NAME} is the limit")


def parent(path: str) -> str:
    """Return the folder of a path; '' is the root itself."""
    return path.rpartition("/")[0]


def beside(path: str, name: str) -> str:
    """Return the path of `name` in the folder of `path`."""
    folder = parent(path)
    return f"{folder}/{name}" if folder else name


def read_digest(store: Store, path: str) -> tuple[str, str] | None:
    """Return the algorithm and the digest of a file by reading it, for servers without one; None when there is none."""
    if store.stat(path) is None:
        return None
    with store.open(path) as file:
        return "sha512", digests.sha512(file)[1]


def check_removable(store: Store, path: str, only: Stat) -> None:
    """Raise Mismatch unless `path` is still the file `only`."""
    found = store.stat(path)
    if found != only:
        raise Mismatch(f"{store.root}:{path} is no longer the file that was to be removed", only, found)


def is_movable(store: Store, path: str, to: str, only: Stat) -> bool:
    """True if `path` is still the file `only`; Conflict when something is at `to`."""
    if store.stat(path) != only:
        return False
    if store.stat(to) is not None:
        raise Conflict(f"{store.root}:{to}", f"is there already; {store.root}:{path} was left as it is")
    return True


class Broken(Unavailable):
    """The connection failed. It is unknown whether the server executed the request, unless nothing was `sent`."""

    def __init__(self, what: str, why: str, *, sent: bool = True) -> None:
        self.sent = sent
        super().__init__(what, why)


def rewound(source: Readable) -> bool:
    """Rewind `source` and return True; False when it can be read only once."""
    seek = getattr(source, "seek", None)
    if seek is None:
        return False
    seek(0)
    return True


class Body:
    """A source being sent to `name`: its bytes are counted, digested and passed to `feeds` in one pass.

    A source that grows is not followed: one read beyond the promised size is enough to notice.
    """

    def __init__(self, name: str, source: Readable, promise: Promise, *feeds: Callable[[bytes], object]) -> None:
        self.name, self.size = name, 0
        self._source, self._promise, self._feeds = source, promise, (*feeds, self._count)
        self._sha512 = hashlib.sha512()

    def __iter__(self) -> Iterator[bytes]:
        while self.size <= self._promise.size and (chunk := self._read()):
            for feed in self._feeds:
                feed(chunk)
            yield chunk

    def check(self) -> None:
        """Raise Mismatch unless the bytes are the promised ones. Call it last, when the server has all of them."""
        self._promise.check(self.name, self.size, self._sha512.hexdigest())

    def _count(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._sha512.update(chunk)

    def _read(self) -> bytes:
        try:
            return self._source.read(digests.CHUNK)
        except OSError as error:  # must not look like an error of the connection
            raise Unavailable(f"what is to become {self.name}", error.strerror or str(error)) from error


class RemoteReader(io.RawIOBase):
    """A remote file from byte `start` on, as one stream. After a broken connection it reconnects at the same byte."""

    def __init__(self, connect: Callable[[int], RemotePart], size: int, start: int, budget: Budget) -> None:
        super().__init__()
        self._connect, self._size, self._at, self._budget = connect, size, start, budget
        self._part: RemotePart | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Seek; requests sent ahead are dropped."""
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


class RemotePart(Protocol):
    """The part of a file that one connection delivers: each read gives at least a byte, or raises Broken."""

    def readinto(self, buffer: WriteableBuffer, /) -> int: ...

    def close(self) -> None: ...


_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
WINDOW = 600.0


class Budget:
    """The time to wait for one server: at most `seconds` in any ten minutes, so that a batch does not wait again for
    each of its files. Waits grow from 0.1 s to 5 s until the server answers.

    Threads share it: one that comes while others wait joins their wait, at no further cost.
    """

    def __init__(
        self,
        seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.seconds, self.clock, self.sleep = seconds, clock, sleep
        self._began = self._until = clock()
        self._spent, self._next = 0.0, _FIRST_WAIT
        self._lock = threading.Lock()

    def wait(self) -> bool:
        """Wait a little and return True: retry. Return False at once when the budget is spent: give up."""
        with self._lock:
            now = self.clock()
            if now >= self._until and not self._begin(now):
                return False
            pause = self._until - now
        self.sleep(pause)
        return True

    def _begin(self, now: float) -> bool:
        """Begin a wait that all threads share; False when there is no time left for one."""
        if now - self._began > WINDOW:
            self._began, self._spent = now, 0.0
        pause = min(self._next, self.seconds - self._spent)
        if pause <= 0:
            return False
        self._until, self._spent, self._next = now + pause, self._spent + pause, min(_LONGEST_WAIT, 2 * self._next)
        return True

    def answered(self) -> None:
        """Note that the server answered: the next wait is short again."""
        self._next = _FIRST_WAIT
