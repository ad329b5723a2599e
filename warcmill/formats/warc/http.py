"""The body of an HTTP message, its codings undone one after another (RFC 9112, 7; RFC 9110, 8.4). Pure.

Each step is one more reading of the body, with its own digest. The coding that was applied last is undone first:
transfer codings, then content codings.

A WARC header declares such a digest with a label, `sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ`. The standard leaves its
algorithm and encoding open (ISO 28500, 5.8 and 5.9): in use are base32 (Heritrix, wget), hexadecimal, and base64
(JWAT). md5 and sha1 serve here to find damage, not to prove who wrote the bytes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from functools import partial
from itertools import takewhile
from typing import Protocol

from msgspec import Struct

from warcmill.formats.warc.codings import STEPS, Dechunk, Decoder, UnknownCoding


class Hash(Protocol):
    """A digest being computed."""

    @property
    def digest_size(self) -> int: ...
    def update(self, data: bytes | memoryview, /) -> None: ...
    def digest(self) -> bytes: ...


NewHash = Callable[[], Hash]

_ALGORITHMS: dict[bytes, NewHash] = {
    b"md5": partial(hashlib.md5, usedforsecurity=False),
    b"sha1": partial(hashlib.sha1, usedforsecurity=False),
    b"sha256": hashlib.sha256,
    b"sha384": hashlib.sha384,
    b"sha512": hashlib.sha512,
}
_SIZES = {label: new().digest_size for label, new in _ALGORITHMS.items()}

_USUAL = re.compile(rb"sha1:[A-Z2-7]{32}")

# Maps RFC 4648's base32 alphabet to the digits that int(text, 32) reads, and all else to "!", which is refused.
_BASE32 = bytearray(b"!" * 256)
for _digit, _letter in zip(b"0123456789abcdefghijklmnopqrstuv", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", strict=True):
    _BASE32[_letter] = _BASE32[bytes([_letter]).lower()[0]] = _digit


class Digest(Struct, frozen=True):
    """A declared digest: `new` makes its hash, `value` is what the hash must give, `text` as the header has it."""

    new: NewHash
    value: bytes
    text: bytes


def parse(text: bytes) -> Digest | None:
    """Parse a declared digest; None if its algorithm is unknown here, ValueError if it is not a digest."""
    label, colon, encoded = text.partition(b":")
    if not colon:
        raise ValueError("it is not written algorithm:value")
    label = label.lower().replace(b"-", b"")
    if label not in _ALGORITHMS:
        return None
    return Digest(_ALGORITHMS[label], _decode(encoded, _SIZES[label]), text)


def comparable(text: bytes) -> bytes:
    """A declared digest in the form that Heritrix writes, so that two tools' texts for the same digest are equal.

    A text that is not a digest, or of an algorithm that is unknown here, stays as it is.
    """
    if _USUAL.fullmatch(text):
        return text
    try:
        digest = parse(text)
    except ValueError:
        return text
    if digest is None:
        return text
    label = text.partition(b":")[0].lower().replace(b"-", b"")
    return label + b":" + base64.b32encode(digest.value).rstrip(b"=")


def _decode(text: bytes, size: int) -> bytes:
    """Decode `size` bytes from base32, hexadecimal or base64; the length of `text` decides which."""
    text = text.rstrip(b"=")
    if len(text) == (size * 4 + 2) // 3:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    if len(text) == size * 2 and text.isalnum():
        return bytes.fromhex(text.decode("ascii"))
    if len(text) != (size * 8 + 4) // 5:
        raise ValueError(f"{len(text)} characters are not base32, base64 or hexadecimal of {size} bytes")
    digits = text.translate(_BASE32)
    if b"!" in digits:
        raise ValueError("it has a character that base32 lacks")
    spare_bits = len(text) * 5 - size * 8
    return (int(digits, 32) >> spare_bits).to_bytes(size, "big")


DECHUNKED, DECODED = "de-chunked", "decoded"
DECODED_RATIO = 128  # give up a body that decodes to more than this many times its block: a bomb
DECODED_FREE = 1 << 20  # but never below this many bytes
CODINGS_LIMIT = 4  # codings that are undone; more are given up
HEADER_LIMIT = 1 << 20  # bytes of a message's header
ICY = b"ICY "
_PORTION = 1 << 13  # bytes of a block searched at a time for the end of the header

_CODED = re.compile(rb"\n(transfer|content)-encoding[ \t]*:[ \t]*([^\r\n]*)", re.IGNORECASE)


def payload_start(head: bytes | bytearray, search_from: int, *, response: bool) -> int:
    """Return where the body begins in a block that begins with `head`; -1 if the header is longer than `head`.

    Servers end lines with CR LF or with LF. A response without a status line
    is HTTP/0.9: all of it is body. Streams of music begin with `ICY 200 OK`.
    """
    if response and not head.startswith((b"HTTP/"[: len(head)], ICY[: len(head)])):
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


class BodyReading(Struct):
    """One reading of a body: the output of `step`, hashed. `left` is how many more bytes it may have."""

    name: str
    step: Decoder
    hash: Hash
    left: int

    @property
    def gave_up(self) -> bool:
        return self.left < 0 or self.step.gave_up


class BodyReadings:
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
    def made(self) -> list[BodyReading]:
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

    def _take(self, reading: BodyReading, part: bytes, at: int) -> None:
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


def _reading(coding: bytes, new: NewHash, limit: int) -> BodyReading:
    step = STEPS.get(coding, UnknownCoding)()
    return BodyReading(DECHUNKED if isinstance(step, Dechunk) else DECODED, step, new(), limit)
