"""Read the head of an HTTP answer as leniently as browsers do (RFC 9112, 2.2, 4 and 5), and how long its body is (6.3).

Lines end in CR LF or LF alone. Folded lines are joined, lines without a colon
are passed over. An answer without a status line is HTTP/0.9: all of it is body.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import NamedTuple

_STATUS = re.compile(r"HTTP/(\d+(?:\.\d+)?)?[ \t]*(?:([1-9]\d\d)(?!\d))?", re.ASCII)
_FOLD = re.compile(r"\r?\n[ \t]+")
_DIGITS = re.compile(r"[0-9]{1,18}")
ASSUMED = 200  # without a status that can be read, as browsers do


class Ends(Enum):
    """How the end of a body is known."""

    AT_ONCE = auto()
    LENGTH = auto()
    CHUNKS = auto()
    CLOSE = auto()


class Fields:
    """Header fields in order; names are lower case, and text is as ISO 8859-1 reads the bytes."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def has(self, name: str) -> bool:
        """True if there is a field."""
        return name in self._values

    def first(self, name: str) -> str:
        """The first value of a field; '' when there is none."""
        return self._values[name][0] if name in self._values else ""

    def all(self, name: str) -> list[str]:
        """All values of a field."""
        return self._values.get(name, [])

    def words(self, name: str) -> list[str]:
        """The values of a field that is a list, in lower case."""
        if name not in self._values:
            return []
        values = ",".join(self._values[name]).lower().split(",")
        return [word for value in values if (word := value.strip())]


class Head(NamedTuple):
    """The head of an answer; `version` is 0.9 without one. `assumed`: the status is not the server's."""

    version: str
    status: int
    fields: Fields
    assumed: bool = False

    @property
    def interim(self) -> bool:
        """True if another answer follows (RFC 9110, 15.2). After 101 comes another protocol, which nobody asked for."""
        return 100 <= self.status < 200 and self.status != 101

    @property
    def keeps(self) -> bool:
        """True if the server keeps the connection (RFC 9112, 9.3)."""
        words = self.fields.words("connection")
        return "close" not in words and (self.version > "1.0" or "keep-alive" in words)


NONE = Head("0.9", ASSUMED, Fields([]), assumed=True)


def parse(raw: bytes | bytearray) -> Head:
    """Parse a head with its closing empty line; without one, as far as it goes."""
    text = raw.decode("latin-1")
    first, *lines = (_FOLD.sub(" ", text) if "\n " in text or "\n\t" in text else text).split("\n")
    status = _STATUS.match(first)
    if not status:
        return NONE
    pairs = []
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            pairs.append((name.strip().lower(), value.strip()))
    return Head(status[1] or "1.0", int(status[2] or ASSUMED), Fields(pairs), assumed=not status[2])


def body_end(head: Head, method: str) -> tuple[Ends, int]:
    """How the end of the body is known, and its length where that is known.

    Chunks win over a length. Lengths that differ, or are none, tell nothing: then the body ends with the connection.
    """
    if method == "HEAD" or head.status in (204, 304) or head.interim:
        return Ends.AT_ONCE, 0
    if transfer := head.fields.words("transfer-encoding"):
        return (Ends.CHUNKS if transfer[-1] == "chunked" else Ends.CLOSE), 0
    lengths = set(head.fields.words("content-length"))
    text = lengths.pop() if len(lengths) == 1 else ""
    if not _DIGITS.fullmatch(text):
        return Ends.CLOSE, 0
    return (Ends.LENGTH, int(text)) if int(text) else (Ends.AT_ONCE, 0)
