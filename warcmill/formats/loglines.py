"""Lines of a log of any size, in flat memory, with what is not whole marked as such.

A log may be cut, hold NULs for a lost disk block, or one line of a gigabyte.
Whoever reads it gets every line at most `LIMIT` bytes long; a line that is not
whole begins with `CUT`, a byte no sound line begins with, so no reader can
take it for a sound one and still may look at what is left of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

LIMIT = 1 << 20
CHUNK = 1 << 16
CUT = b"\0"


def blocks(stream: BinaryIO, proof: bytes = b"\n") -> Iterator[list[bytes]]:
    """Lines without their newline, a list for each chunk read: as many as `wc -l` has, and an unended last one.

    Engines end every line: one without a newline was cut, perhaps inside a number, unless it ends in `proof` that
    nothing else is missing. An over-long line is cut at its front: WARC names stand at a line's end.
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
    # A line cut before is LIMIT + 1 long, so it is cut, and marked, again.
    return line if len(line) <= LIMIT else CUT + line[-LIMIT:]
