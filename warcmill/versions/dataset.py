"""What a data set gives to the fold: which WARCs it is made of now, and how its files are made of their extracts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import IO, Protocol

from warcmill.stores import LocalStore
from warcmill.versions.hidden import Hidden
from warcmill.versions.inputs import Input
from warcmill.versions.payloads import Published
from warcmill.versions.segments import Segment


@dataclass(frozen=True, slots=True)
class Wanted:
    """The WARCs that the markers stand for, sorted, and why some launches could not be read."""

    inputs: tuple[Input, ...]
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class New:
    """A segment that is not published yet: how many lines it has; `commit` publishes it in a folder of the index root,
    and reads it back."""

    lines: int
    commit: Callable[[LocalStore, str], Segment]


@dataclass(frozen=True)
class Built:
    """What a version will be: its WARCs with the digests of their extracts, its segments; and what went wrong.

    `kept` are segments of the version before; `new` is one that is not published yet.
    """

    inputs: tuple[Input, ...]
    kept: tuple[Segment, ...] = ()
    new: New | None = None
    troubles: list[str] = field(default_factory=list)


class DataSet(Protocol):
    """An index that is published in versions."""

    @property
    def name(self) -> str:
        """Its name in paths and commands."""
        ...

    @property
    def generation(self) -> int:
        """The generation of its extracts."""
        ...

    def seen(self) -> str:
        """A digest of all markers that `wanted` reads: while it is the same, `wanted` is. Cheap."""
        ...

    def wanted(self, before: Sequence[Input]) -> Wanted:
        """The WARCs to publish. A launch whose markers cannot be read keeps those of `before`, and is named."""
        ...

    def build(self, wanted: Sequence[Input], hidden: Hidden, before: Published | None, room: IO[bytes]) -> Built:
        """Make what is to be published of these WARCs; take over what can be of the version before.

        `room` is a nameless file for what is made.
        """
        ...
