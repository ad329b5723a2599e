"""What every verb prints with: a line a text, on which it stays whatever it holds."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from warcmill.printable import printable


def out(*texts: str) -> None:
    """Print results on stdout, a line each."""
    for text in texts:
        print(printable(text), flush=True)


def err(*texts: str) -> None:
    """Print what is no result on stderr, a line each."""
    for text in texts:
        print(printable(text), file=sys.stderr, flush=True)


def in_words(names: Iterable[str], last_by: str = "and") -> str:
    """Some names in a sentence: `copy, verify and retire`."""
    *most, last = names
    return f"{', '.join(most)} {last_by} {last}" if most else last
