"""The digests of whole streams, in constant memory. Reads only."""

from __future__ import annotations

import hashlib
from typing import Protocol

CHUNK = 1 << 20


class Readable(Protocol):
    """A stream that can be read once, from begin to end; `read` returns b"" at the end."""

    def read(self, size: int, /) -> bytes: ...


def sha512(stream: Readable) -> tuple[int, str]:
    """Read the rest of a stream; return its length in bytes and its SHA-512 in hex."""
    digest, size = hashlib.sha512(), 0
    while chunk := stream.read(CHUNK):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def drain(stream: Readable) -> None:
    """Read a stream to its end, as its `read` also hashes, counts or checks."""
    while stream.read(CHUNK):
        pass
