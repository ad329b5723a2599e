"""Parse labelled digests of WARC headers: `sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ`.

The standard leaves algorithm and encoding open (ISO 28500, 5.8 and 5.9); in
use are base32 (Heritrix, wget), hexadecimal, and base64 (JWAT). md5 and sha1
serve here to find damage, not to prove who wrote the bytes.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol


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


@dataclass(frozen=True, slots=True)
class Digest:
    """A declared digest: `new` makes its hash, `value` is what the hash must give, `text` what the header says."""

    new: NewHash
    value: bytes
    text: bytes


def parse(text: bytes) -> Digest | None:
    """Parse a declared digest; None if its algorithm is unknown here, ValueError if it is no digest."""
    label, colon, encoded = text.partition(b":")
    if not colon:
        raise ValueError("it is not written algorithm:value")
    label = label.lower().replace(b"-", b"")
    if label not in _ALGORITHMS:
        return None
    return Digest(_ALGORITHMS[label], _decode(encoded, _SIZES[label]), text)


def comparable(text: bytes) -> bytes:
    """A declared digest in the form that Heritrix writes, so that two tools' texts for the same digest are equal.

    What is no digest, or of an algorithm that is unknown here, stays as it is.
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
