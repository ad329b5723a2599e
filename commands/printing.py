"""What every verb prints with: a line a text, on which it stays whatever it holds."""

from __future__ import annotations

import sys

from warcmill.printable import printable


def out(*texts: str) -> None:
    """Print results on stdout, a line each."""
    for text in texts:
        print(printable(text), flush=True)


def err(*texts: str) -> None:
    """Print what is no result on stderr, a line each."""
    for text in texts:
        print(printable(text), file=sys.stderr, flush=True)
