"""Read the body of an HTTP message in every way: undo its codings one after another (RFC 9112, 7; RFC 9110, 8.4).

Each step is one more reading of the body, with its own digest. The coding that
was applied last is undone first: transfer codings, then content codings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

from warcmill.formats.warc.codings import STEPS, Dechunk, Decoder, UnknownCoding
from warcmill.formats.warc.digest import Hash, NewHash

DECHUNKED, DECODED = "de-chunked", "decoded"
DECODED_RATIO = 128  # give up a body that decodes to more than this many times its block: a bomb
DECODED_FREE = 1 << 20  # but never below this many bytes
CODINGS_LIMIT = 4  # codings that are undone; more are given up
HEADER_LIMIT = 1 << 20  # bytes of a message's header
_PORTION = 1 << 13  # bytes of a block searched at a time for the end of the header

_CODED = re.compile(rb"\n(transfer|content)-encoding[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)


def payload_start(head: bytes | bytearray, search_from: int, *, response: bool) -> int:
    """Return where the body begins in a block that begins with `head`; -1 if the header is longer than `head`.

    Servers end lines with CR LF or with LF. A response without a status line
    is HTTP/0.9: all of it is body.
    """
    if response and not head.startswith(b"HTTP/"[: len(head)]):
        return 0
    crlf = head.find(b"\n\r\n", search_from)
    lf = head.find(b"\n\n", search_from, crlf if crlf >= 0 else len(head))
    if lf >= 0:
        return lf + 2
    return crlf + 3 if crlf >= 0 else -1


class MessageHead:
    """The header of an HTTP message, up to its body: `feed` the message until `ended`."""

    def __init__(self, *, response: bool) -> None:
        self.header, self.ended = bytearray(), False
        self._response = response

    @property
    def too_long(self) -> bool:
        """True if it is over the limit: then it never ends."""
        return len(self.header) > HEADER_LIMIT

    def feed(self, piece: memoryview) -> memoryview:
        """Take the header's part of a piece; return the rest, the begin of the body. Empty while it has not ended."""
        for at in range(0, len(piece), _PORTION):
            before = len(self.header)
            if self.too_long:
                break
            self.header += piece[at : at + _PORTION]
            start = payload_start(self.header, max(0, before - 3), response=self._response)
            if start >= 0:
                del self.header[start:]
                self.ended = True
                return piece[at + start - before :]
        return piece[:0]


@dataclass(slots=True)
class Reading:
    """One reading of a body: the output of `step`, hashed. `left` is how many more bytes it may have."""

    name: str
    step: Decoder
    hash: Hash
    left: int

    @property
    def gave_up(self) -> bool:
        return self.left < 0 or self.step.gave_up


class Readings:
    """The readings that an HTTP header allows beside "as transferred"; `length` is the block's, in bytes.

    `feed` the body's pieces, then `close`: then each of `made` has its digest.
    `complete`: no reading was given up, so there are no others.
    """

    def __init__(self, header: bytes, new: NewHash, length: int) -> None:
        limit = DECODED_RATIO * length + DECODED_FREE
        self._all = [_reading(coding, new, limit) for coding in codings_of(header)]

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
    def has_unknown(self) -> bool:
        """True if a coding is not known here, or there are too many."""
        return any(isinstance(reading.step, UnknownCoding) for reading in self._all)

    @property
    def made(self) -> list[Reading]:
        """The whole readings, up to the first that was given up, or whose bytes were never of its coding."""
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


def codings_of(header: bytes) -> list[bytes]:
    """The codings of a message, in the order in which they are undone."""
    applied: dict[bytes, list[bytes]] = {b"content": [], b"transfer": []}
    for kind, value in _CODED.findall(header):
        words = (word.strip() for word in value.lower().split(b","))
        applied[kind.lower()] += [word for word in words if word not in (b"", b"identity", b"none")]
    codings = [*reversed(applied[b"transfer"]), *reversed(applied[b"content"])]
    return codings[:CODINGS_LIMIT] + [b"and more"] * (len(codings) > CODINGS_LIMIT)


def _reading(coding: bytes, new: NewHash, limit: int) -> Reading:
    step = STEPS.get(coding, UnknownCoding)()
    return Reading(DECHUNKED if isinstance(step, Dechunk) else DECODED, step, new(), limit)
