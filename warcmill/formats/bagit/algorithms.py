"""The digests that a manifest may name: all that hashlib has, in any spelling (RFC 8493, 2.4)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache

from warcmill.base.digests import CHUNK, Readable

_ANY_LENGTH = 64  # bytes of a digest that has no length of its own (SHAKE): a shorter one is its begin
_MANIFEST = re.compile(r"(?P<tag>tag)?manifest-(?P<algorithm>[^/]+)\.txt")


@cache
def _spellings() -> Mapping[str, str]:
    """hashlib's names by what a manifest calls them: lower case, letters and digits alone."""
    return {_bare(name): name for name in sorted(hashlib.algorithms_available, reverse=True)}


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def manifest_of(path: str) -> tuple[bool, str] | None:
    """Is this a tag manifest, and its algorithm; None if the path is no manifest's."""
    match = _MANIFEST.fullmatch(path)
    return (bool(match["tag"]), match["algorithm"]) if match else None


@cache
def known(written: str) -> str:
    """hashlib's name for an algorithm that a manifest is named for; '' if it cannot be computed here."""
    name = _spellings().get(_bare(written), "")
    try:
        hashlib.new(name, usedforsecurity=False)
    except ValueError:
        return ""
    return name


def fits(algorithm: str, digest: bytes) -> bool:
    """True if a digest has a length that its algorithm gives."""
    size = hashlib.new(algorithm, usedforsecurity=False).digest_size
    return len(digest) == size if size else 16 <= len(digest) <= _ANY_LENGTH


class Summed:
    """A stream that computes the digests of what is read of it, and counts it."""

    def __init__(self, stream: Readable, algorithms: tuple[str, ...]) -> None:
        self._read = stream.read
        self._digests = [hashlib.new(name, usedforsecurity=False) for name in algorithms]
        self.size = 0

    def read(self, size: int = CHUNK, /) -> bytes:
        data = self._read(size)
        self.size += len(data)
        for digest in self._digests:
            digest.update(data)
        return data

    def digests(self) -> tuple[bytes, ...]:
        """The digests, in the order of the algorithms."""
        return tuple(_value(digest) for digest in self._digests)


def _value(digest: hashlib._Hash) -> bytes:
    if digest.digest_size:
        return digest.digest()
    return digest.digest(_ANY_LENGTH)  # type: ignore[call-arg]  # SHAKE


def agrees(computed: bytes, listed: bytes) -> bool:
    """True if a computed digest is the listed one: SHAKE's is computed longer than most list it."""
    return computed[: len(listed)] == listed
