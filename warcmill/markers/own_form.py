"""Read a marker fast where it has the very form that `claim.encode` gives it; leave any other to the strict reader.

The proof is made for each marker: what was read is written again, and must be the same bytes. So nothing was passed
over: no second member of a name, no float, no number or text in another spelling, no member that is not known here.
A backslash is left to the strict reader too: so there is one spelling of a text, its own characters.
"""

from __future__ import annotations

from hashlib import sha512
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from warcmill.model import Json as Value
    from warcmill.model import Root
else:
    # An integer, but no float; and no deeper than markers are, so that no reader's limit of depth matters.
    _Scalar = str | int | bool | None
    _Flat = _Scalar | list[_Scalar] | dict[str, _Scalar]
    _Deep = _Scalar | list[_Flat] | dict[str, _Flat]
    Value = _Scalar | list[_Deep] | dict[str, _Deep]
    Root = str


class _Form(Struct, frozen=True, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """An object with these members alone; one that has its default is left out."""


class File(_Form, frozen=True):
    """A file."""

    root: Root
    path: str
    size: int
    sha512: str | None = None


class Item(_Form, frozen=True):
    """An item."""

    file: File
    outcome: Literal["ok", "refused", "failed"]
    made: File | None = None
    why: str = ""
    offset: int | None = None
    facts: dict[str, Value] = {}  # msgspec gives each its own


class Input(_Form, frozen=True):
    """A marker that a claim rests on."""

    marker: str
    claim: str


class Claim(_Form, frozen=True):
    """A claim."""

    task: str
    params: dict[str, str]
    inputs: tuple[Input, ...]
    outputs: tuple[File, ...]
    items: tuple[Item, ...]
    counts: dict[str, Value]
    facts: dict[str, Value]

    def digest(self) -> str:
        """The SHA-512, in hex, of the canonical JSON."""
        return sha512(_ENCODER.encode(self)).hexdigest()


class Run(_Form, frozen=True):
    """A run."""

    host: str
    started: str
    finished: str
    tools: dict[str, str]


class Marker(_Form, frozen=True):
    """A marker without its last line."""

    schema: int
    claim: Claim
    run: Run


_DECODER = msgspec.json.Decoder(Marker)
_ENCODER = msgspec.json.Encoder(order="sorted")


def read(data: bytes, end: int, schema: int) -> Marker | None:
    """Return the marker of this schema in `data[:end]`, in the form that `claim.encode` gives it; None for any other.

    The bytes are not copied: of a large marker that takes as long as reading it.
    """
    if b"\\" in data:
        return None
    try:
        found = _DECODER.decode(memoryview(data)[:end])
        again = msgspec.json.format(_ENCODER.encode(found), indent=1)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    is_same = data.startswith(again) and data[len(again) : end] == b"\n"
    return found if is_same and found.schema == schema else None
