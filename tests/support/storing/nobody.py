"""Act as a user to whom permissions mean something: root may open every file, whatever its mode."""

from __future__ import annotations

import os
import pwd
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def acting() -> Iterator[None]:
    """Be that user while the block runs: as whoever runs the tests, unless that is root."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder of that user, on a way that everybody may go."""
    with tempfile.TemporaryDirectory() as made:
        if not os.geteuid():
            os.chown(made, NOBODY, -1)
        yield Path(made)


def name() -> str:
    """How messages call the user that acts."""
    return pwd.getpwuid(os.geteuid()).pw_name
