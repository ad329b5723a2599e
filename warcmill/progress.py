"""How far long work has come: one line in the log each half minute, and whoever watches sees it more often."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

log = logging.getLogger(__name__)
EVERY = 30.0  # seconds between two lines
OFTEN = 0.2  # seconds between two looks of those who watch
_MB, _GB = 10**6, 10**9


@dataclass(frozen=True, slots=True)
class Sight:
    """How far a piece of work has come: so many bytes of all, in so many seconds, and which file it is at."""

    name: str
    file: str
    done: int
    total: int
    seconds: float

    def __str__(self) -> str:
        at = f", at {self.file}" if self.file else ""
        return f"{self.name}: {told(self.done, self.total, self.seconds)}{at}"


Watcher = Callable[[Sight], None]
_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())


@contextmanager
def watched(*watchers: Watcher) -> Iterator[None]:
    """Show these, too, how far all work has come that begins meanwhile."""
    token = _watchers.set((*_watchers.get(), *watchers))
    try:
        yield
    finally:
        _watchers.reset(token)


class Progress:
    """Counts the bytes of one piece of work; several threads may do it."""

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total = name, total
        self._watchers = _watchers.get()
        self._lock = threading.Lock()
        self._done = 0
        self._started = self._seen = self._told = time.monotonic()

    def add(self, size: int, file: str = "") -> None:
        """So many bytes more are done, of this file."""
        now = time.monotonic()
        with self._lock:
            self._done += size
            if now - self._seen < OFTEN:
                return
            self._seen = now
            is_line_due = now - self._told >= EVERY
            self._told = now if is_line_due else self._told
            sight = Sight(self._name, file, self._done, self._total, now - self._started)
        if is_line_due:
            log.info("%s", sight)
        for watch in self._watchers:
            watch(sight)


def told(done: int, total: int, seconds: float) -> str:
    """How far, out of how much, how fast, how long yet: `3.1 of 10.4 GB, 120 MB/s, 1 min left`."""
    size, unit = (_GB, "GB") if total >= _GB else (_MB, "MB")
    left = f", {_time(seconds * (total - done) / done)} left" if 0 < done <= total else ""
    return f"{done / size:.1f} of {total / size:.1f} {unit}, {done / _MB / seconds:.0f} MB/s{left}"


def _time(seconds: float) -> str:
    """A time that is guessed: `40 s`, `12 min`, `5 h`."""
    for limit, part, unit in ((100, 1, "s"), (6_000, 60, "min")):
        if seconds < limit:
            return f"{seconds / part:.0f} {unit}"
    return f"{seconds / 3600:.0f} h"
