"""The log of a run: one line an event on stderr, `time level task job launch stage: message`.

A start has no launch yet, so its due time takes that place. A checkpoint's number takes the place of the stage.

Where a verb such as `warcmill scan` runs luigi, stderr has only warnings and errors, each in one line without its
traceback, and events: lines that begin with MARK, JSON that `commands.console.scanner` reads and shows. The log file
has all that is logged.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType

from warcmill.base import clock
from warcmill.base.escapes import PrintableFormatter, escape_last_resort
from warcmill.base.progress import Snapshot, Watcher
from warcmill.errors import WarcmillError
from warcmill.model import Key

_context: ContextVar[str] = ContextVar("step", default="- - - -")
LOG = "WARCMILL_LOG"  # the log file, set likewise
ATTENDED = "WARCMILL_ATTENDED"  # set in the environment by a command that runs steps
EVENTS = "WARCMILL_EVENTS"  # likewise, by one that reads their events
NOTES = "WARCMILL_NOTES"  # likewise: a file for `note`
TOO_MANY = "too many steps for one scan"
MARK = "\x1e"  # no log line has one: control characters are escaped
_LONGEST = 500  # characters of a name: a line of one write stays whole beside those of other processes
log = logging.getLogger(__name__)


escape_last_resort()  # Luigi reports a wrong parameter before any task of ours can set up logging


class _Formatter(PrintableFormatter):
    def format(self, record: logging.LogRecord) -> str:
        record.step, record.at = _context.get(), clock.text(datetime.fromtimestamp(record.created, UTC))
        return super().format(record)


def configure() -> None:
    """Set up the root logger once; leave one that is set up already."""
    root = logging.getLogger()
    if root.handlers:
        return
    form = _Formatter("%(at)s %(levelname)s %(step)s: %(message)s")
    handler = Handler() if is_attended() else logging.StreamHandler()
    handler.setFormatter(form)
    handler.addFilter(_of_use)
    root.addHandler(handler)
    if not is_attended():
        root.addHandler(LastWords())
    root.setLevel(logging.INFO)
    if path := os.environ.get(LOG):
        try:
            file = LogFile(path)
        except OSError as error:
            logging.getLogger(__name__).warning("the log file %s cannot be opened: %s", path, error)
            return
        file.setFormatter(form)
        file.addFilter(_of_use)
        root.addHandler(file)


def _of_use(record: logging.LogRecord) -> bool:
    """True if a record is to be logged. Of Luigi's: its summary, warnings and errors; our steps log begin and end."""
    ours = not record.name.startswith("luigi")
    return ours or record.levelno > logging.INFO or "Execution Summary" in record.getMessage()


@contextmanager
def of_step(key: Key) -> Iterator[None]:
    """Name this step in every line logged meanwhile."""
    params = dict(key.params)
    launch = params.get("launch_id") or params.get("due", "-")
    text = " ".join([key.task, params.get("job", "-"), launch, params.get("stage") or params.get("number", "-")])
    token = _context.set(text)
    try:
        yield
    finally:
        _context.reset(token)


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
        super().emit(in_one_line(record) if is_luigis(record) else record)


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


class LastWords(logging.Handler):
    """Keeps Luigi's errors and repeats each when the process ends: Luigi's tracebacks and summary bury them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: dict[str, None] = {}
        self._pid = os.getpid()
        atexit.register(self.repeat)

    def emit(self, record: logging.LogRecord) -> None:
        if is_luigis(record) and has_traceback(record):
            self._kept[in_one_line(record).getMessage()] = None

    def repeat(self) -> None:
        """Log the errors again, unless this is a process that a worker has forked."""
        for text in self._kept if os.getpid() == self._pid else ():
            log.error("%s", text)


def has_traceback(record: logging.LogRecord) -> bool:
    """True if the record carries a traceback, or has one in its text."""
    return bool(record.exc_info and record.exc_info[1]) or "Traceback (most recent call last)" in record.getMessage()


def is_luigis(record: logging.LogRecord) -> bool:
    """True if Luigi itself logged this."""
    return record.name.startswith("luigi")


def in_one_line(record: logging.LogRecord) -> logging.LogRecord:
    """The same record, with a traceback replaced by its last line."""
    text = _of_error(record) if record.exc_info and record.exc_info[1] else _of_text(record.getMessage())
    level = max(record.levelno, logging.ERROR) if text != record.getMessage() else record.levelno
    return logging.LogRecord(record.name, level, record.pathname, record.lineno, text, None, None)


def _of_error(record: logging.LogRecord) -> str:
    """From the record of a failed run, `logger.exception(..., task)`: the task and the error's message."""
    assert record.exc_info
    error = record.exc_info[1]
    args = record.args if isinstance(record.args, tuple) else ()
    what = str(args[-1]) if args else record.getMessage()
    text = str(error) if isinstance(error, (WarcmillError, OSError)) else f"{type(error).__name__}: {error}"
    return text if what in text else f"{what}: {text}"


def _of_text(message: str) -> str:
    """From a message with a traceback in it: its first line, and its last without the error's class."""
    first, _, rest = message.strip().partition("\n")
    if not rest:
        return first
    last = rest.rstrip().rpartition("\n")[2]
    kind, _, why = last.partition(": ")
    is_ours = kind.startswith("warcmill.") and why
    return f"{first.rstrip(':')}: {why if is_ours else last}"
