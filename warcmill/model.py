"""The nouns of the line: frozen values, parsed once where they come in.

All other code may trust them: the job name and the launch id of a `Launch` are
well-formed, so neither can be a path or a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Literal, NamedTuple, NewType

from msgspec import Struct

from warcmill.errors import BadInput

WriterRoot = NewType("WriterRoot", str)  # "writer.NAME": where another program writes WARCs of the same launches
Root = Literal["output", "jobs", "state", "store", "index", "destination", "verified_at"] | WriterRoot
Scalar = str | int | bool | None
Json = Scalar | list["Json"] | dict[str, "Json"]
JsonObject = dict[str, Json]

_JOB = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_LAUNCH_ID = re.compile(r"[0-9]{14}")
_CHECKPOINT = re.compile(r"cp([0-9]{5})-([0-9]{14})")
_WINDOW = re.compile(r"(0|[1-9][0-9]{0,17})-(0|[1-9][0-9]{0,17})")
_WRITER = "writer."
LONGEST_REASON = 1_000  # characters; markers and tables hold it


class Outcome(StrEnum):
    """The result for one item; `failed` never reaches a marker."""

    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"


def parse_job(text: str) -> str:
    """Parse a job's name, or raise BadInput."""
    if not _JOB.fullmatch(text):
        raise BadInput(text, "not a job name: a letter or digit, then at most 62 letters, digits, '_' or '-'")
    return text


def parse_reason(text: str) -> str:
    """Parse the reason of a person: one printable line, short enough for a marker; or raise BadInput."""
    line = text.strip()
    if not line or len(line) > LONGEST_REASON or not line.isprintable():
        raise BadInput("reason", f"a reason is one line of 1 to {LONGEST_REASON} characters")
    return line


def writer_root(name: str) -> WriterRoot:
    """Return the root of the writer `name`, or BadInput for a name that could not be a job's."""
    return WriterRoot(_WRITER + parse_job(name))


def is_writer(root: Root) -> bool:
    """True if a root is a writer's."""
    return root.startswith(_WRITER)


def parse_stamp(text: str) -> str:
    """Parse the 14 digits of a launch id or checkpoint stamp, or BadInput when they are not a real UTC time."""
    if _LAUNCH_ID.fullmatch(text):
        try:
            stamp_time(text)
        except ValueError:
            pass
        else:
            return text
    raise BadInput(text, "not a launch id: 14 digits that are a UTC time, such as 20161019234428")


def parse_number(text: str) -> int:
    """Parse a checkpoint's number, 1 to 99999, or raise BadInput."""
    if not re.fullmatch(r"[0-9]{1,5}", text) or not int(text):
        raise BadInput(text, "not a checkpoint's number: 1 to 99999")
    return int(text)


def stamp_time(stamp: str) -> datetime:
    """Return the UTC time that 14 digits name."""
    day = (int(stamp[:4]), int(stamp[4:6]), int(stamp[6:8]))
    return datetime(*day, int(stamp[8:10]), int(stamp[10:12]), int(stamp[12:]), tzinfo=UTC)


class Launch(Struct, frozen=True, order=True):
    """One run of a job. It belongs to the UTC day of its id."""

    job: str
    id: str

    @classmethod
    def parse(cls, job: str, launch_id: str) -> Launch:
        return cls(parse_job(job), parse_stamp(launch_id))

    @property
    def day(self) -> date:
        return stamp_time(self.id).date()

    def __str__(self) -> str:
        return f"{self.job}/{self.id}"


class Stage(Struct, frozen=True):
    """A slice of a launch: a checkpoint (number and stamp), or `final`, which sorts last."""

    number: int | None
    stamp: str = ""

    @classmethod
    def parse(cls, text: str) -> Stage:
        if text == "final":
            return FINAL
        checkpoint = _CHECKPOINT.fullmatch(text)
        if not checkpoint:
            raise BadInput(text, "not a stage: 'final', or a checkpoint such as cp00002-20161020204551")
        return cls(int(checkpoint[1]), parse_stamp(checkpoint[2]))

    @property
    def is_final(self) -> bool:
        return self.number is None

    def __str__(self) -> str:
        return "final" if self.number is None else f"cp{self.number:05d}-{self.stamp}"

    # For > and >= Python asks these two of the other side; functools.total_ordering adds nothing to a Struct.
    def __lt__(self, other: Stage) -> bool:
        return self._order() < other._order()

    def __le__(self, other: Stage) -> bool:
        return self._order() <= other._order()

    def _order(self) -> tuple[float, str]:
        return (float("inf"), "") if self.number is None else (self.number, self.stamp)


FINAL = Stage(None)


def parse_checkpoint(text: str) -> str:
    """Return `text` when it is a checkpoint's name, such as cp00002-20161020204551; else raise BadInput."""
    if Stage.parse(text).is_final:
        raise BadInput(text, "not a checkpoint, such as cp00002-20161020204551")
    return text


class Window(Struct, frozen=True, order=True):
    """The serials of a package index that a launch is about: those after `after`, up to and with `up_to`."""

    after: int
    up_to: int

    @classmethod
    def parse(cls, text: str) -> Window:
        parts = _WINDOW.fullmatch(text)
        window = cls(int(parts[1]), int(parts[2])) if parts else None
        if window is None or window.after > window.up_to:
            raise BadInput(text, "not a window of serials: FROM-TO, such as 0-31415926, and FROM is not above TO")
        return window

    def __str__(self) -> str:
        return f"{self.after}-{self.up_to}"


class FileRef(NamedTuple):  # cheap to make: the markers of a large launch have a million
    """A file as a claim names it: `path` is relative to its root, with '/', as on disk; `size` in bytes.

    Without a digest the file was listed, but not read.
    """

    root: Root
    path: str
    size: int
    sha512: str | None = None

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def label(self) -> str:
        """The path. A writer's file has its root before it: the same path may exist in two roots."""
        return f"{self.root}:{self.path}" if self.root.startswith(_WRITER) else self.path

    @property
    def is_engines(self) -> bool:
        """True if an engine, or another writer of its launches, wrote the file."""
        return self.root == "output" or is_writer(self.root)


class Key(Struct, frozen=True, order=True):
    """A task and its parameters: what a marker's path is built from."""

    task: str
    params: tuple[tuple[str, str], ...]

    def __getitem__(self, name: str) -> str:
        return dict(self.params)[name]

    def __str__(self) -> str:
        return f"{self.task}({', '.join(f'{name}={value}' for name, value in self.params)})"


class Item(NamedTuple):  # cheap to make, like FileRef
    """One piece of work inside a task: the file, its outcome, and the file made from it.

    `offset` is the byte in the file at which the fault is; `facts` is what the step
    learned about this file and a later step needs.
    """

    file: FileRef
    outcome: Outcome
    made: FileRef | None = None
    why: str = ""
    offset: int | None = None
    facts: Mapping[str, Json] = MappingProxyType({})
