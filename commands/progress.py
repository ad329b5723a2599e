"""How far a long command has come, on stderr: a bar on a terminal, elsewhere a line each 30 seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

EVERY = 30  # seconds

Advance = Callable[[int], None]


@contextmanager
def bytes_done(what: str, total: int) -> Iterator[Advance]:
    """A function to call with the number of bytes just done, of `total`. What is printed meanwhile stays readable."""
    if not sys.stderr.isatty():
        yield _lines(what, total)
        return
    columns = (TextColumn(what), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    # A bar redraws its lines: on the same terminal our results must go through it, elsewhere they must not.
    bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def _lines(what: str, total: int) -> Advance:
    done_so_far, next_line = 0, time.monotonic() + EVERY

    def advance(done: int) -> None:
        nonlocal done_so_far, next_line
        done_so_far += done
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + EVERY
            print(f"{what}: {done_so_far:,} of {total:,} bytes", file=sys.stderr, flush=True)

    return advance
