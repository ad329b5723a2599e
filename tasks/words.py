"""What Luigi logs of an error, in one line: which task, and the message, without the traceback."""

from __future__ import annotations

import atexit
import logging
import os

from warcmill.errors import WarcmillError

log = logging.getLogger(__name__)


class LastWords(logging.Handler):
    """Keeps Luigi's errors, and says each once more when the process ends: its tracebacks and summary hide them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: dict[str, None] = {}
        self._pid = os.getpid()
        atexit.register(self.say)

    def emit(self, record: logging.LogRecord) -> None:
        if is_luigis(record) and has_traceback(record):
            self._kept[in_one_line(record).getMessage()] = None

    def say(self) -> None:
        """At the end of the process, not of one that a worker has forked."""
        for text in self._kept if os.getpid() == self._pid else ():
            log.error("%s", text)


def has_traceback(record: logging.LogRecord) -> bool:
    """Whether a traceback goes with it, or is in its text."""
    return bool(record.exc_info and record.exc_info[1]) or "Traceback (most recent call last)" in record.getMessage()


def is_luigis(record: logging.LogRecord) -> bool:
    """Whether Luigi itself has logged this."""
    return record.name.startswith("luigi")


def in_one_line(record: logging.LogRecord) -> logging.LogRecord:
    """The same event, with the last line of a traceback in its place."""
    text = _of_error(record) if record.exc_info and record.exc_info[1] else _of_text(record.getMessage())
    level = max(record.levelno, logging.ERROR) if text != record.getMessage() else record.levelno
    return logging.LogRecord(record.name, level, record.pathname, record.lineno, text, None, None)


def _of_error(record: logging.LogRecord) -> str:
    """Of `logger.exception(..., task)`: a failed run's record has the task as its last argument."""
    assert record.exc_info
    error = record.exc_info[1]
    args = record.args if isinstance(record.args, tuple) else ()
    what = str(args[-1]) if args else record.getMessage()
    text = str(error) if isinstance(error, (WarcmillError, OSError)) else f"{type(error).__name__}: {error}"
    return text if what in text else f"{what}: {text}"


def _of_text(message: str) -> str:
    """Of a message that holds a traceback: its first line, and its last without the error's class."""
    first, _, rest = message.strip().partition("\n")
    if not rest:
        return first
    last = rest.rstrip().rpartition("\n")[2]
    kind, _, why = last.partition(": ")
    is_ours = kind.startswith("warcmill.") and why
    return f"{first.rstrip(':')}: {why if is_ours else last}"
