"""Read the lines of a log of any size in constant memory, and mark the incomplete ones.

A log may be cut, hold NULs for a lost disk block, or one line of a gigabyte.
Each line is returned with at most `LIMIT` bytes. An incomplete line begins with
`CUT`, a byte that begins no sound line: no parser takes it for a sound one, and
what is left can still be searched.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, cast

from warcmill.base import digests

LIMIT = 1 << 20
CHUNK = 1 << 16
CUT = b"\0"


def blocks(stream: BinaryIO, proof: bytes = b"\n") -> Iterator[list[bytes]]:
    """Yield a list of lines, without their newline, for each chunk read; a last line without a newline is included.

    Engines end every line: one without a newline was cut, perhaps inside a number, unless it ends in `proof`.
    A line over LIMIT is cut at its front: WARC names are at a line's end.
    """
    rest = b""
    while chunk := stream.read(CHUNK):
        text = rest + chunk
        lines = text.split(b"\n")
        if len(text) > LIMIT:
            lines = [_bounded(line) for line in lines]
        rest = lines.pop()
        yield lines
    if rest:
        yield [rest if rest.endswith(proof) else CUT + rest]


def _bounded(line: bytes) -> bytes:
    # A line that was cut before has LIMIT + 1 bytes, so it is cut and marked again.
    return line if len(line) <= LIMIT else CUT + line[-LIMIT:]


def read(stream: BinaryIO, take: Callable[[BinaryIO], None], *, is_gzip: bool) -> bool:
    """Give a log out of a zip to `take`, inflated; return whether it could be read to its end."""
    if not is_gzip:
        take(stream)
        return True
    try:
        with gzip.GzipFile(fileobj=stream) as inflated:
            take(cast(BinaryIO, inflated))
    except (gzip.BadGzipFile, EOFError, zlib.error):
        digests.drain(stream)  # checks the zip's CRC: if it is right, the log itself is damaged
        return False
    return True
