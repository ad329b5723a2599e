"""Digests of whole streams, in flat memory."""

from __future__ import annotations

import hashlib
from typing import BinaryIO

CHUNK = 1 << 20


def sha512(stream: BinaryIO) -> tuple[int, str]:
    """The length of what is left in a stream, and its SHA-512 in hex."""
    digest, size = hashlib.sha512(), 0
    while chunk := stream.read(CHUNK):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()
