"""Show the progress of a long command on stderr: a bar on a terminal, else a line every 30 seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from warcmill.base.progress import EVERY, Advance, describe

if TYPE_CHECKING:
    from rich.progress import Progress


@contextmanager
def bytes_done(what: str, total: int) -> Iterator[Advance]:
    """Yield a function to call with the number of bytes just done, of `total`. Other output stays readable."""
    if not sys.stderr.isatty():
        yield _lines(what, total)
        return
    with _bar(what) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


def _bar(what: str) -> Progress:
    """A bar redraws its lines, so what is printed on the same terminal must go through it; elsewhere it must not."""
    from rich.console import Console  # takes 50 ms: import it only for a terminal
    from rich.progress import (
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
    done_so_far, started = 0, time.monotonic()
    last_printed = started

    def advance(done: int) -> None:
        nonlocal done_so_far, last_printed
        done_so_far += done
        now = time.monotonic()
        if now - last_printed >= EVERY:
            last_printed = now
            print(f"{what}: {describe(done_so_far, total, now - started)}", file=sys.stderr, flush=True)

    return advance
