"""The progress of long work: a line of the log every half minute, and snapshots for watchers more often."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec import Struct

from warcmill.base.digests import Readable

log = logging.getLogger(__name__)
EVERY = 30.0  # seconds between two log lines
OFTEN = 0.2  # seconds between two snapshots for the watchers
_MB, _GB = 10**6, 10**9


class Snapshot(Struct, frozen=True):
    """The progress of one piece of work: `done` of `total` bytes in `seconds`, now at `file` ('': not known)."""

    name: str
    file: str
    done: int
    total: int
    seconds: float

    def __str__(self) -> str:
        at = f", at {self.file}" if self.file else ""
        return f"{self.name}: {describe(self.done, self.total, self.seconds)}{at}"


Advance = Callable[[int], None]
Watcher = Callable[[Snapshot], None]
_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())


@contextmanager
def watched(*watchers: Watcher) -> Iterator[None]:
    """Send these watchers, too, the snapshots of all work that begins inside the block."""
    token = _watchers.set((*_watchers.get(), *watchers))
    try:
        yield
    finally:
        _watchers.reset(token)


class Progress:
    """Count the bytes of one piece of work; several threads may add."""

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total = name, total
        self._watchers = _watchers.get()
        self._lock = threading.Lock()
        self._done = 0
        self._started = self._shown = self._logged = time.monotonic()

    def add(self, size: int, file: str = "") -> None:
        """Count `size` more bytes of `file` as done; log a line and show a snapshot if one is due."""
        now = time.monotonic()
        with self._lock:
            self._done += size
            if now - self._shown < OFTEN:
                return
            self._shown = now
            is_line_due = now - self._logged >= EVERY
            self._logged = now if is_line_due else self._logged
            snapshot = Snapshot(self._name, file, self._done, self._total, now - self._started)
        if is_line_due:
            log.info("%s", snapshot)
        for watch in self._watchers:
            watch(snapshot)


def describe(done: int, total: int, seconds: float) -> str:
    """Bytes done of all, rate, and estimated time left: `3.1 of 10.4 GB, 120 MB/s, 1 min left`."""
    size, unit = (_GB, "GB") if total >= _GB else (_MB, "MB")
    left = f", {_time(seconds * (total - done) / done)} left" if 0 < done <= total else ""
    return f"{done / size:.1f} of {total / size:.1f} {unit}, {done / _MB / seconds:.0f} MB/s{left}"


def _time(seconds: float) -> str:
    """An estimated time: `40 s`, `12 min`, `5 h`."""
    for limit, part, unit in ((100, 1, "s"), (6_000, 60, "min")):
        if seconds < limit:
            return f"{seconds / part:.0f} {unit}"
    return f"{seconds / 3600:.0f} h"


class Counted(Struct, frozen=True):
    """A stream that reports how many bytes were read."""

    stream: Readable
    advance: Advance

    def read(self, size: int, /) -> bytes:
        """Read on, and report it."""
        data = self.stream.read(size)
        self.advance(len(data))
        return data
