"""Digests of whole streams, in flat memory."""

from __future__ import annotations

import hashlib
from typing import Protocol

CHUNK = 1 << 20


class Readable(Protocol):
    """All that is asked of a stream that is read to its end; b"" says that it has ended."""

    def read(self, size: int, /) -> bytes: ...


def sha512(stream: Readable) -> tuple[int, str]:
    """The length of what is left in a stream, and its SHA-512 in hex."""
    digest, size = hashlib.sha512(), 0
    while chunk := stream.read(CHUNK):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def drain(stream: Readable) -> None:
    """Read a stream to its end, for those who listen in."""
    while stream.read(CHUNK):
        pass
