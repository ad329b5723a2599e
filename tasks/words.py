"""Shorten an error that Luigi logs to one line: which task, and the message, without the traceback."""

from __future__ import annotations

import atexit
import logging
import os

from warcmill.errors import WarcmillError

log = logging.getLogger(__name__)


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
