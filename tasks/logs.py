"""One log line an event: `time level task job launch stage: message`, on stderr.

A start has no launch yet: its due time stands there. A checkpoint's number stands for its stage.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tasks import attended, words
from warcmill.model import Key
from warcmill.printable import PrintableFormatter, escape_last_resort

_context: ContextVar[str] = ContextVar("step", default="- - - -")
escape_last_resort()  # Luigi tells of a wrong parameter before any task of ours is there to set logging up


class _Formatter(PrintableFormatter):
    converter = staticmethod(time.gmtime)

    def format(self, record: logging.LogRecord) -> str:
        record.step = _context.get()
        return super().format(record)


def configure() -> None:
    """Set the root logger up, once; one that someone else has set up is left alone."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = attended.Handler() if attended.is_attended() else logging.StreamHandler()
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(step)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ"))
    handler.addFilter(_of_use)
    root.addHandler(handler)
    if not attended.is_attended():
        root.addHandler(words.LastWords())
    root.setLevel(logging.INFO)


def _of_use(record: logging.LogRecord) -> bool:
    """Of what Luigi says: its summary, warnings and errors. Our steps tell their own beginning and end."""
    ours = not record.name.startswith("luigi")
    return ours or record.levelno > logging.INFO or "Execution Summary" in record.getMessage()


@contextmanager
def of_step(key: Key) -> Iterator[None]:
    """Name this step in every line that is logged meanwhile."""
    params = dict(key.params)
    launch = params.get("launch_id") or params.get("due", "-")
    text = " ".join([key.task, params.get("job", "-"), launch, params.get("stage") or params.get("number", "-")])
    token = _context.set(text)
    try:
        yield
    finally:
        _context.reset(token)
