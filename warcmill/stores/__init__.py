"""Stores of files: one protocol, and one module for each kind of place.

A store answers, or it raises `Unavailable`. An outage never looks like an
absence: before a store reports that something is missing, it checks that its
root is there.

`Promise` is a caller's word about bytes to be stored: their length, and their SHA-512 or a function that judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, Protocol

from warcmill.base.digests import Readable
from warcmill.errors import Mismatch
from warcmill.model import Root


class Stat(NamedTuple):  # cheap to make: a folder may have 100,000 entries
    """One entry of a store; `size` in bytes. `version` differs for another file and for a changed one; it has no order.

    `why`: the reason why a symbolic link is not followed, where a link may be. A link that is followed is a folder.
    """

    path: str
    kind: Literal["file", "folder", "other"]
    size: int = 0
    version: str = ""
    why: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Store(Protocol):
    """The operations of every store. Paths are relative to the root, with '/'. All methods may raise Unavailable."""

    root: Root
    at_once: int
    """The number of files to send at a time: a remote server answers each one late."""

    def stat(self, path: str) -> Stat | None:
        """Return the entry at this path; None when there is none."""
        ...

    def list(self, folder: str) -> Iterator[Stat]:
        """Yield the entries of a folder, sorted by name; none when there is no such folder."""
        ...

    def open(self, path: str, start: int = 0) -> BinaryIO:
        """Return a reader from byte `start` on; NotReady when there is no file. Symbolic links are not followed."""
        ...

    def read_back(self, path: str) -> BinaryIO:
        """Return a reader of the stored bytes themselves: not from this host's memory, and in HDFS not by the code
        that wrote them. Otherwise as `open`."""
        ...

    def commit_new(self, path: str, source: Readable, size: int, sha512: Sha512) -> bool:
        """Publish `source` whole, durable and compared, or not at all.

        Returns False when something is there already; it stays untouched.
        Mismatch when the source did not give the bytes that `size` and `sha512`
        promise.

        `sha512` may be a function. It is called once with the hex digest of the
        bytes, after they are durable and before they get their name; if it
        returns False, that is a Mismatch too. The store checks first whether
        something is there already, so before a result of False the function is
        called only when another writer took the name meanwhile.
        """
        ...

    def server_digest(self, path: str) -> tuple[str, str] | None:
        """Return the store's own digest of a file: algorithm and hex. None when there is no file."""
        ...

    def move_aside(self, path: str, to: str, only: Stat) -> bool:
        """Rename `path` to `to` if it is still the file `only`; False when it no longer is."""
        ...

    def remove(self, path: str, only: Stat) -> None:
        """Delete `path` if it is still the file `only`, else raise Mismatch."""
        ...

    def sweep(self, folder: str) -> int:
        """Remove half-written files of this host's dead processes from a folder; return how many."""
        ...


class LocalStore(Store, Protocol):
    """A store that is a folder of this host, as the state must be: its markers, attempts, locks and reports need more
    than a remote store can give."""

    base: Path

    def real(self, path: str) -> Path:
        """Return the path on disk, or BadInput for a path that would leave the root."""
        ...

    def names(self, folder: str) -> frozenset[str]:
        """Return the names in a folder; none when there is no such folder. Cheap enough for thousands of folders."""
        ...

    def changed(self, folder: str) -> tuple[int, int]:
        """Return which folder is at this path, and when a name in it last changed, in ns of the disk's clock; zeros
        when there is none."""
        ...

    def read(self, path: str, most: int) -> bytes:
        """Return the bytes of a small file, at most `most`; NotReady when there is none."""
        ...

    def read_end(self, path: str, most: int) -> tuple[bytes, int]:
        """Return the last bytes of a file, at most `most`, and its length; NotReady when there is none."""
        ...

    def replace(self, path: str, data: bytes) -> None:
        """Write a report, and replace an older one. Only reports may be replaced: they are not evidence."""
        ...

    def append(self, path: str, line: bytes) -> None:
        """Append a line to a file that only this process writes, and sync it."""
        ...

    def link(self, path: str, to: str) -> None:
        """Give the file at `path` a second name; if `to` is there already, it stays."""
        ...

    def point(self, path: str, to: str) -> None:
        """Make `path` a symbolic link to the name `to` beside it. An older link is replaced by rename: at any moment
        there is one or the other."""
        ...

    def pointed(self, path: str) -> str | None:
        """Return the name that a symbolic link leads to; None when there is no link."""
        ...

    def remove_folder(self, path: str) -> None:
        """Delete an empty folder; nothing happens when it is gone, or not empty."""
        ...


Sha512 = str | Callable[[str], bool]
"""The digest in hex; or, for a stream that is made while it is sent, a function that judges its digest."""


class Promise:
    """`size` in bytes and `sha512` as passed to `commit_new`. A function is called once, even if bytes are resent."""

    def __init__(self, size: int, sha512: Sha512) -> None:
        self.size, self._sha512 = size, sha512
        self._accepted: str | None = None

    @property
    def is_judged(self) -> bool:
        """True if the digest is judged by a function."""
        return not isinstance(self._sha512, str)

    def check(self, name: str, size: int, sha512: str) -> None:
        """Raise Mismatch unless the bytes, which are durable by now, are the promised ones."""
        what = f"{name}, while it was copied"
        if isinstance(self._sha512, str):
            promised, actual = (self.size, self._sha512), (size, sha512)
            if actual != promised:
                raise Mismatch(f"{what} (bytes, sha512)", promised, actual)
        elif size != self.size:
            raise Mismatch(f"{what} (bytes)", self.size, size)
        elif self._accepted is None:
            if not self._sha512(sha512):
                raise Mismatch(f"{what} (sha512)", "one that the caller accepts", f"{sha512}, which it refused")
            self._accepted = sha512
        elif sha512 != self._accepted:
            raise Mismatch(f"{what} a second time (sha512)", self._accepted, sha512)
