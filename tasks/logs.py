"""Log one line per event on stderr: `time level task job launch stage: message`.

A start has no launch yet, so its due time takes that place. A checkpoint's number takes the place of the stage.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

from tasks import attended, words
from warcmill.base import clock
from warcmill.base.printable import PrintableFormatter, escape_last_resort
from warcmill.model import Key

_context: ContextVar[str] = ContextVar("step", default="- - - -")
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
    handler = attended.Handler() if attended.is_attended() else logging.StreamHandler()
    handler.setFormatter(form)
    handler.addFilter(_of_use)
    root.addHandler(handler)
    if not attended.is_attended():
        root.addHandler(words.LastWords())
    root.setLevel(logging.INFO)
    if path := os.environ.get(attended.LOG):
        try:
            file = attended.LogFile(path)
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
