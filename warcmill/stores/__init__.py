"""Where files lie: one protocol, one module a kind of place.

A store answers, or it raises `Unavailable`. It never lets an outage look like
an absence: before it says that something is not there it looks whether its
root is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, Protocol

from warcmill.fixity import Readable
from warcmill.model import Root


@dataclass(frozen=True, slots=True)
class Stat:
    """One entry of a store. `version` changes when the file is another or has changed; it says nothing of order.

    `why`: of a symbolic link where a folder of launches may be, why it is not followed. One that is, is a folder.
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
    """What every store can do. Paths are relative to the root, with '/'; all methods may raise Unavailable."""

    root: Root
    at_once: int
    """How many files are best sent at a time: a server far away lets one wait long."""

    def stat(self, path: str) -> Stat | None:
        """What is at this path; None when the store says that nothing is."""
        ...

    def list(self, folder: str) -> Iterator[Stat]:
        """The entries of a folder by name; none when there is no such folder."""
        ...

    def open(self, path: str, start: int = 0) -> BinaryIO:
        """A reader from `start` on; NotReady when nothing is there. Symbolic links are not followed."""
        ...

    def read_back(self, path: str) -> BinaryIO:
        """A reader of what the store really holds: not from this host's memory, nor, in HDFS, by the code that wrote
        it. Otherwise as `open`."""
        ...

    def commit_new(self, path: str, source: Readable, size: int, sha512: str) -> bool:
        """Publish `source` whole, durable and compared, or not at all.

        False: something is there already, untouched. Mismatch: the source did
        not give the bytes that `size` and `sha512` promise.
        """
        ...

    def server_digest(self, path: str) -> tuple[str, str] | None:
        """The store's own digest of what it holds: algorithm and hex. None when nothing is there."""
        ...

    def move_aside(self, path: str, to: str, only: Stat) -> bool:
        """Rename `path` to `to` if it is still the file `only`; False when it no longer is."""
        ...

    def remove(self, path: str, only: Stat) -> None:
        """Delete `path` if it is still the file `only`, else Mismatch."""
        ...

    def sweep(self, folder: str) -> int:
        """Remove what this host's dead processes left half-written in a folder; how many."""
        ...
