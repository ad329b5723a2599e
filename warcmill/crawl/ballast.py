"""Some room that a crawl keeps on the disk of its job, `state/ballast`: without it, a full disk could not be named.

It is written before anything of a launch, so no launch begins on a full disk; and given up when a crawl breaks off, so
that job.log takes the line that gives the reason.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from warcmill.crawl import durable

NAME, SIZE = "ballast", 1 << 18


def make(state: Path) -> None:
    """Take the room. Unavailable when the disk has none."""
    try:
        durable.replace(state / NAME, os.urandom(SIZE))  # a disk that compresses would keep no room for zeros
    except BaseException:
        drop(state)
        raise


def drop(state: Path) -> None:
    """Give it up."""
    for name in (NAME, f".{NAME}.tmp"):
        with suppress(OSError):  # it is gone already, as its folder may be, which another error names
            (state / name).unlink(missing_ok=True)
