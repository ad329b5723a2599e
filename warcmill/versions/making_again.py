"""Make extracts again that a fold lacks. One that cannot be had now fails the fold once the others are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from warcmill import errors
from warcmill.base.side_by_side import side_by_side
from warcmill.errors import Unavailable, Unsettled
from warcmill.versions.inputs import Input

Result = TypeVar("Result")


def each(make: Callable[[Input], Result | None], wanted: Sequence[Input], at_once: int, name: str) -> list[Result]:
    """What is made of each WARC; `make` returns None for one that gives nothing.

    Unsettled if one is out of reach now, or its worker dies: it names all such WARCs. No version is published without
    them, as the archive has them whole, and readers would lose their captures.
    """
    failures: list[str] = []

    def tried(one: Input) -> Result | None:
        try:
            return make(one)
        except (Unavailable, OSError) as error:
            failures.append(f"{one.name}: {errors.describe(error)}")
            return None

    made = side_by_side(tried, wanted, at_once)
    if failures:
        raise Unsettled(f"the fold of {name}, which publishes nothing without them", sorted(failures))
    return [one for one in made if one is not None]
