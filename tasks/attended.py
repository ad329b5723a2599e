"""The output of luigi when `warcmill scan` or `backfill` runs it: warnings and errors in one line each, and events.

An event is a line that begins with MARK: JSON that `commands.scan_progress` reads and shows. Whatever is logged is in
the log file.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import suppress
from types import TracebackType

from tasks import words
from warcmill.base.progress import Snapshot, Watcher

LOG = "WARCMILL_LOG"  # the log file, set likewise
ATTENDED = "WARCMILL_ATTENDED"  # set in the environment by a command that runs steps
EVENTS = "WARCMILL_EVENTS"  # likewise, by one that reads their events
NOTES = "WARCMILL_NOTES"  # likewise: a file for `note`
TOO_MANY = "too many steps for one scan"
MARK = "\x1e"  # no log line has one: control characters are escaped
_LONGEST = 500  # characters of a name: a line of one write stays whole beside those of other processes


def is_attended() -> bool:
    """True if a command of ours runs this process, without --verbose."""
    return ATTENDED in os.environ


def note(line: str) -> None:
    """Add a line for the end of `warcmill scan`, from any process of it: what no marker and no attempt shows."""
    if path := os.environ.get(NOTES):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def event(kind: str, step: str = "", **more: int | float | str) -> None:
    """Report to the command that shows it that a step `begins`, is `done`, has `failed`, or is `at` a file."""
    if EVENTS in os.environ:
        line = f"{MARK}{json.dumps({'kind': kind, 'step': step[:_LONGEST], **more})}\n"
        with suppress(OSError):  # nobody shows it any more; the step is not ended for that
            os.write(2, line.encode())


def watcher(step: str) -> Watcher:
    """Report the progress of a step."""

    def show(sight: Snapshot) -> None:
        figures = {"done": sight.done, "total": sight.total, "seconds": sight.seconds}
        event("at", step, file=sight.file[:_LONGEST], **figures)

    return show


class Handler(logging.StreamHandler):  # type: ignore[type-arg]  # the stream is stderr
    """Writes warnings and errors; Luigi's without tracebacks."""

    def __init__(self) -> None:
        super().__init__()
        sys.excepthook = _silently_interrupted
        self.setLevel(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        super().emit(words.in_one_line(record) if words.is_luigis(record) else record)


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
