"""Print texts for every verb, one line each: control characters are escaped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TextIO

from warcmill.base.printable import printable


def out(*texts: str) -> None:
    """Print results on stdout, one line per text."""
    for text in texts:
        print(printable(text), flush=True)


def err(*texts: str) -> None:
    """Print messages that are not results on stderr, one line per text."""
    for text in texts:
        print(printable(text), file=sys.stderr, flush=True)


def in_words(names: Iterable[str], last_by: str = "and") -> str:
    """Names as a phrase: `copy, verify and retire`."""
    *most, last = names
    return f"{', '.join(most)} {last_by} {last}" if most else last


def silence(stream: TextIO) -> None:
    """Its reader has gone: send what is still buffered nowhere, so that Python ends without a complaint."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
