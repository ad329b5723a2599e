"""What luigi shows when `warcmill scan` runs it: no summary and no traceback of Luigi's; on a terminal, a bar.

The bar shows the step, the file, the rate and the time left. Without a terminal, and in the processes of several
workers, `warcmill.base.progress` logs a line every 30 seconds.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from tasks import words
from warcmill.base.printable import printable
from warcmill.base.progress import Snapshot, watched

if TYPE_CHECKING:
    from rich.progress import Progress

LOG = "WARCMILL_LOG"  # the log file, set likewise
ATTENDED = "WARCMILL_ATTENDED"  # set in the environment by `warcmill scan`
NOTES = "WARCMILL_NOTES"  # likewise: a file for `note`
TOO_MANY = "too many steps for one scan"
_bars: list[Progress] = []  # the bar on the terminal now; at most one
_drawer = os.getpid()


def is_attended() -> bool:
    """Whether `warcmill scan` runs this process."""
    return ATTENDED in os.environ


def note(line: str) -> None:
    """Add a line for the end of `warcmill scan`, from any process of it: what no marker and no attempt shows."""
    if path := os.environ.get(NOTES):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")


class Handler(logging.StreamHandler):  # type: ignore[type-arg]  # the stream is stderr
    """Writes each line above the bar. Of Luigi's lines it writes only errors, without tracebacks."""

    def __init__(self) -> None:
        super().__init__()
        sys.excepthook = _silently_interrupted
        self.setLevel(logging.WARNING if sys.stderr.isatty() else logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        if not words.is_luigis(record):
            self._write(record)
        elif record.levelno > logging.INFO:
            self._write(words.in_one_line(record))

    def _write(self, record: logging.LogRecord) -> None:
        if not _bars:
            super().emit(record)
            return
        from rich.text import Text  # noqa: PLC0415 already loaded: there is a bar

        _bars[0].console.print(Text(self.format(record)), soft_wrap=True)


def done(step: str) -> None:
    """On a terminal, print the line of a step that is done, above the bar."""
    if is_attended() and sys.stderr.isatty():
        text = f"{printable(step)}: done"
        if _bars:
            _bars[0].console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()


class LogFile(logging.FileHandler):
    """Appends every line to the log file of scans. One that cannot be written ends no scan: it is given up, once."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - the base class calls it so
        """Give the file up, with a warning."""
        logging.getLogger().removeHandler(self)
        logging.getLogger(__name__).warning(
            "the log file %s cannot be written: %s", self.baseFilename, sys.exc_info()[1]
        )


def _silently_interrupted(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print nothing for a SIGINT: `warcmill scan` passed it on, and reports it itself."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


@contextmanager
def bar_of(step: str) -> Iterator[None]:
    """Show a bar while a step runs, as soon as there is progress to draw."""
    if not is_attended() or not sys.stderr.isatty() or os.getpid() != _drawer:
        yield
        return
    with watched(lambda sight: _draw(step, sight)):
        try:
            yield
        finally:
            while _bars:
                _bars.pop().stop()


def _draw(step: str, sight: Snapshot) -> None:
    if not _bars:
        _bars.append(_started(step, sight))
    bar = _bars[0]
    bar.update(bar.task_ids[0], completed=sight.done, total=sight.total, file=printable(sight.file))


def _started(step: str, sight: Snapshot) -> Progress:
    from rich.console import Console  # noqa: PLC0415 takes 50 ms: import it only for a terminal
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.table import Column  # noqa: PLC0415

    whole, rest = Column(no_wrap=True), Column(no_wrap=True, overflow="ellipsis", ratio=1)
    bar = Progress(  # one line, so that what `warcmill scan` prints meanwhile stays readable
        TextColumn("{task.description}", markup=False, table_column=whole),
        BarColumn(bar_width=10),
        DownloadColumn(table_column=whole),
        TransferSpeedColumn(table_column=whole),
        TimeRemainingColumn(table_column=whole),
        TextColumn("{task.fields[file]}", markup=False, table_column=rest),
        console=Console(stderr=True, markup=False, highlight=False),
        expand=True,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task(step, total=sight.total, file=printable(sight.file))
    bar.start()
    return bar
