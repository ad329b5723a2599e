"""Read typed values out of a claim; BadInput names the marker, the fact, and the fault.

A kind is a function that returns a JSON value as its type. It raises ValueError or BadInput for any other value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import NoneType
from typing import NamedTuple, TypeVar

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.markers.claim import Claim
from warcmill.model import FileRef, Item, Json, Key, Stage, parse_stamp

T = TypeVar("T")
Kind = Callable[[Json], T]
LONGEST = 60  # characters shown of a value that does not fit


def text(value: Json) -> str:
    """A text."""
    if isinstance(value, str):
        return value
    raise ValueError("not a text")


def number(value: Json) -> int:
    """A whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError("not a whole number")


def true(value: Json) -> bool:
    """Nothing but true."""
    if value is True:
        return True
    raise ValueError("not true")


def truth(value: Json) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise ValueError("not true or false")


def texts(value: Json) -> tuple[str, ...]:
    """A list of texts."""
    if isinstance(value, list):
        return tuple(map(text, value))
    raise ValueError("not a list of texts")


def numbers(value: Json) -> tuple[int, ...]:
    """A list of whole numbers."""
    if isinstance(value, list):
        return tuple(map(number, value))
    raise ValueError("not a list of whole numbers")


def object_of(kind: Kind[T]) -> Kind[Mapping[str, T]]:
    """An object whose values are all of one kind."""

    def read(value: Json) -> Mapping[str, T]:
        if isinstance(value, dict):
            return {name: kind(member) for name, member in value.items()}
        raise ValueError("not an object")

    return read


def or_null(kind: Kind[T]) -> Kind[T | None]:
    """A value of a kind, or null."""
    return lambda value: None if value is None else kind(value)


def stamp(value: Json) -> str:
    """Fourteen digits that are a UTC time."""
    return parse_stamp(text(value))


def stage(value: Json) -> Stage:
    """A stage's name."""
    return Stage.parse(text(value))


def stages(value: Json) -> tuple[Stage, ...]:
    """A list of stages' names."""
    return tuple(map(Stage.parse, texts(value)))


class ClaimFields(NamedTuple):  # cheap to make: a month of launches has many thousands
    """One object of a claim: its facts, its counts, or the facts of one of its items."""

    key: Key
    values: Mapping[str, Json]
    what: str = "fact"  # or `count`: the word for a value in messages
    item: Item | None = None

    @classmethod
    def facts(cls, claim: Claim) -> ClaimFields:
        """The facts of a claim."""
        return cls(claim.key, claim.facts)

    @classmethod
    def counts(cls, claim: Claim) -> ClaimFields:
        """The counts of a claim."""
        return cls(claim.key, claim.counts, "count")

    @classmethod
    def items(cls, claim: Claim) -> Iterator[tuple[Item, ClaimFields]]:
        """Every item of a claim, and its facts."""
        return ((item, cls(claim.key, item.facts, "fact", item)) for item in claim.items)

    def require(self, name: str, kind: Kind[T]) -> T:
        """Return a value; BadInput when it is missing or of another kind."""
        try:
            return kind(self.values[name])
        except KeyError as error:
            raise self.bad(name, "is missing") from error
        except (ValueError, BadInput) as error:
            why = error.why if isinstance(error, BadInput) else error
            raise self.bad(name, f"is {_shown(self.values[name])}, {why}") from error

    def maybe(self, name: str, kind: Kind[T]) -> T | None:
        """Return a value, or None when it is missing; BadInput when it is of another kind."""
        return self.require(name, kind) if name in self.values else None

    def bad(self, name: str, why: str) -> BadInput:
        """Return the error for a faulty value, with what to do next."""
        where = f" of {self.item.file.label!a}" if self.item else ""
        text = f"soundly digested, but its {self.what} '{name}'{where} {why}; {_todo(self.key)}"
        return BadInput(layout.marker_path(self.key), text)


def refuse_misshapen(claim: Claim) -> None:
    """Raise BadInput when a file, item or input of a claim has a member of another type than docs/markers.md gives."""
    items, inputs = claim.items, claim.inputs
    files = [*claim.outputs, *(item.file for item in items), *(item.made for item in items if item.made)]
    texts = (
        {type(file.path) for file in files} | {type(file.root) for file in files} | {type(item.why) for item in items}
    )
    texts |= {type(marker.marker) for marker in inputs} | {type(marker.claim) for marker in inputs}
    objects = {type(claim.facts), type(claim.counts), *(type(item.facts) for item in items)}
    digests, offsets = {type(file.sha512) for file in files}, {type(item.offset) for item in items}
    if not (texts <= {str} and objects == {dict} and digests <= {str, NoneType} and offsets <= {int, NoneType}):
        why = "soundly digested, but a member of its claim is of another type than markers have"
        raise BadInput(layout.marker_path(claim.key), f"{why}; {_todo(claim.key)}")


def _todo(key: Key) -> str:
    return "'warcmill redo' the step" if "launch_id" in dict(key.params) else _BY_HAND


_BY_HAND = "look at it, and move it away by hand: its task then runs again"


def members(claim: Claim) -> Mapping[FileRef, str]:
    """Return the name of each item's file in a zip."""
    return {item.file: facts.require("member", text) for item, facts in ClaimFields.items(claim)}


def _shown(value: Json) -> str:
    shown = ascii(value)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}..."
