"""A data set as the fold sees it: the WARCs that it is made of now, and the making of its files from extracts.

`each` rebuilds the extracts that a fold lacks. One that is out of reach now fails the fold once the others are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, Protocol, TypeVar

from msgspec import Struct, field

from warcmill import errors
from warcmill.base.threads import side_by_side
from warcmill.errors import Unavailable, Unsettled
from warcmill.stores import LocalStore
from warcmill.versions.hidden_list import Hidden
from warcmill.versions.inputs import ListedWarc
from warcmill.versions.publication import Published
from warcmill.versions.segments import Segment


class Wanted(Struct, frozen=True):
    """The WARCs that the markers stand for, sorted, and why some launches could not be read."""

    inputs: tuple[ListedWarc, ...]
    troubles: tuple[str, ...] = ()


class New(Struct, frozen=True):
    """A segment that is not published yet: how many lines it has; `commit` publishes it in a folder of the index root,
    and reads it back. `without_lines`: one without lines is published, too, as it shows what need not be read again."""

    lines: int
    commit: Callable[[LocalStore, str], Segment]
    without_lines: bool = False


class Built(Struct, frozen=True):
    """The content of a version to come: its WARCs with the digests of their extracts, its segments; and the troubles.

    `kept` are segments of the version before; `new` is one that is not published yet.
    """

    inputs: tuple[ListedWarc, ...]
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

    def wanted(self, before: Sequence[ListedWarc]) -> Wanted:
        """The WARCs to publish. A launch whose markers cannot be read keeps those of `before`, and is named."""
        ...

    def build(self, wanted: Sequence[ListedWarc], hidden: Hidden, before: Published | None, room: IO[bytes]) -> Built:
        """Make what is to be published of these WARCs; take over what can be of the version before.

        `room` is a nameless file for what is made.
        """
        ...


Result = TypeVar("Result")


def each(
    make: Callable[[ListedWarc], Result | None], wanted: Sequence[ListedWarc], at_once: int, name: str
) -> list[Result]:
    """The results of `make` for each WARC; it returns None for one that gives nothing.

    Unsettled if one is out of reach now, or its worker dies: it names all such WARCs. No version is published without
    them, as the archive has them whole, and readers would lose their captures.
    """
    failures: list[str] = []

    def tried(one: ListedWarc) -> Result | None:
        try:
            return make(one)
        except (Unavailable, OSError) as error:
            failures.append(f"{one.name}: {errors.describe(error)}")
            return None

    made = side_by_side(tried, wanted, at_once)
    if failures:
        raise Unsettled(f"the fold of {name}, which publishes nothing without them", sorted(failures))
    return [one for one in made if one is not None]
