"""Show the progress of a long command on stderr: a bar on a terminal, else a line every 30 seconds.

MERGED commands/console/progress.py: Show how a crawl gets on: a line that is written over on a terminal, else a
line every 30 seconds.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from warcmill.base.printable import printable
from warcmill.base.progress import EVERY, Advance, describe
from warcmill.model import Json

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
    from rich.console import Console  # noqa: PLC0415 takes 50 ms: import it only for a terminal
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


class Shown:
    """The progress of one crawl, on stderr."""

    def __init__(self, name: str) -> None:
        self._name, self._last, self._is_terminal = name, time.monotonic(), sys.stderr.isatty()
        self._failed = ""

    def show(self, state: Mapping[str, Json]) -> None:
        """Show what a crawl says of itself."""
        if not state:
            return
        self._show_failure(cast(str, state["failed_first"]))
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{line(self._name, state)}")
        elif time.monotonic() - self._last >= EVERY:
            self._last = time.monotonic()
            sys.stderr.write(f"{line(self._name, state)}\n")
        sys.stderr.flush()

    def _show_failure(self, failed: str) -> None:
        """Show the first fetch that got no answer, once: it is tried again, which may take minutes."""
        if failed and not self._failed:
            self._failed = failed
            self.close()
            sys.stderr.write(f"{self._name}: no answer yet, it is tried again: {printable(failed)}\n")

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._is_terminal:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def line(name: str, state: Mapping[str, Json]) -> str:
    """How far a crawl is: documents, queued, rate, by status. What a fetch needs first, as a robots.txt, is none."""
    done, seconds = cast(int, state["documents"]), max(1, cast(int, state["seconds"]))
    statuses = cast("Mapping[str, int]", state["statuses"])
    by_status = ", ".join(f"{status}: {number}" for status, number in sorted(statuses.items()))
    kib = cast(int, state["bytes"]) >> 10
    figures = f"{done} documents, {state['queued']} queued, {done / seconds:.1f}/s, {kib} KiB"
    failed = f", {state['failed']} failed" if state["failed"] else ""
    return f"{name}: {str(state['state']).lower()}, {figures}{failed}" + (f" ({by_status})" if by_status else "")
