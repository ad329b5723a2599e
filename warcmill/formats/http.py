"""The body of an HTTP message as others read it: its codings undone, one after another (RFC 9112, 7; RFC 9110, 8.4).

Each step back is one more way to read the body, and has a digest. The last
coding that was applied is undone first: transfer codings, then content codings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

from warcmill.formats.codings import STEPS, Dechunk, Step, Unknown
from warcmill.formats.digest import Hash, NewHash

DECHUNKED, DECODED = "de-chunked", "decoded"
DECODED_RATIO = 128  # a body that decodes to more than this many times its block is given up: a bomb
DECODED_FREE = 1 << 20  # but never for less than this
CODINGS_LIMIT = 4  # a longer row of codings is not undone to its end

_CODED = re.compile(rb"\n(transfer|content)-encoding[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)


def payload_start(head: bytes | bytearray, search_from: int, *, response: bool) -> int:
    """Where the body begins in a block that begins with `head`; -1 when the header goes on.

    Servers end lines in CR LF or in LF. A response without a status line is
    HTTP/0.9: all of it is body.
    """
    if response and not head.startswith(b"HTTP/"[: len(head)]):
        return 0
    crlf = head.find(b"\n\r\n", search_from)
    lf = head.find(b"\n\n", search_from, crlf if crlf >= 0 else len(head))
    if lf >= 0:
        return lf + 2
    return crlf + 3 if crlf >= 0 else -1


@dataclass(slots=True)
class Reading:
    """One more way to read a body: what a step makes of it. `left` is how many bytes it may still become."""

    name: str
    step: Step
    hash: Hash
    left: int

    @property
    def gave_up(self) -> bool:
        return self.left < 0 or self.step.gave_up


class Readings:
    """The readings that an HTTP header allows beside "as transferred"; `length` is the block's.

    `feed` the body's pieces, then `close`: then each of `made` has its digest,
    and `complete` says whether any other is thinkable.
    """

    def __init__(self, header: bytes, new: NewHash, length: int) -> None:
        limit = DECODED_RATIO * length + DECODED_FREE
        self._all = [_reading(coding, new, limit) for coding in _codings(header)]

    def feed(self, piece: memoryview) -> None:
        self._push(bytes(piece), 0)

    def close(self) -> None:
        for at, reading in enumerate(self._all):
            for part in reading.step.close():
                self._take(reading, part, at)

    @property
    def complete(self) -> bool:
        return not any(reading.gave_up for reading in self._all)

    @property
    def made(self) -> list[Reading]:
        """Those that are whole: none after one that was given up, or whose bytes never were of its coding."""
        return list(takewhile(lambda reading: not reading.gave_up and not reading.step.unfit, self._all))

    def _push(self, data: bytes, at: int) -> None:
        """Send `data` through the steps from number `at` on."""
        if at == len(self._all):
            return
        reading = self._all[at]
        parts = reading.step.feed(data)
        while reading.left >= 0 and (part := next(parts, None)) is not None:
            self._take(reading, part, at)

    def _take(self, reading: Reading, part: bytes, at: int) -> None:
        reading.hash.update(part)
        reading.left -= len(part)
        self._push(part, at + 1)


def _codings(header: bytes) -> list[bytes]:
    """The codings of a message, the one to be undone first at the front."""
    applied: dict[bytes, list[bytes]] = {b"content": [], b"transfer": []}
    for kind, value in _CODED.findall(header):
        words = (word.strip() for word in value.lower().split(b","))
        applied[kind.lower()] += [word for word in words if word not in (b"", b"identity", b"none")]
    codings = [*reversed(applied[b"transfer"]), *reversed(applied[b"content"])]
    return codings[:CODINGS_LIMIT] + [b"and more"] * (len(codings) > CODINGS_LIMIT)


def _reading(coding: bytes, new: NewHash, limit: int) -> Reading:
    step = STEPS.get(coding, Unknown)()
    return Reading(DECHUNKED if isinstance(step, Dechunk) else DECODED, step, new(), limit)
