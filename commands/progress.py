"""How far a long command has come, on stderr: a bar on a terminal, elsewhere a line each 30 seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

EVERY = 30  # seconds

Advance = Callable[[int], None]


@contextmanager
def bytes_done(what: str, total: int) -> Iterator[Advance]:
    """A function to call with the number of bytes just done, of `total`. What is printed meanwhile stays readable."""
    if not sys.stderr.isatty():
        yield _lines(what, total)
        return
    with _bar(what) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def _bar(what: str) -> Progress:
    """A bar redraws its lines: what we print on the same terminal must go through it, elsewhere it must not."""
    from rich.console import Console  # noqa: PLC0415 takes 50 ms: only a terminal pays for it
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (TextColumn(what), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())


def _lines(what: str, total: int) -> Advance:
    done_so_far, next_line = 0, time.monotonic() + EVERY

    def advance(done: int) -> None:
        nonlocal done_so_far, next_line
        done_so_far += done
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + EVERY
            print(f"{what}: {done_so_far:,} of {total:,} bytes", file=sys.stderr, flush=True)

    return advance
