"""How far long work has come: one line in the log each half minute, nothing for work that is over by then."""

from __future__ import annotations

import logging
import time

log = logging.getLogger(__name__)
EVERY = 30.0  # seconds between two lines
_MB, _GB = 10**6, 10**9


class Progress:
    """Counts the bytes of one piece of work: `name: 3.1 of 10.4 GB, 120 MB/s`."""

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total = name, total
        self._done = 0
        self._started = self._told = time.monotonic()

    def add(self, size: int) -> None:
        """So many bytes more are done."""
        self._done += size
        now = time.monotonic()
        if now - self._told >= EVERY:
            self._told = now
            log.info("%s: %s", self._name, told(self._done, self._total, now - self._started))


def told(done: int, total: int, seconds: float) -> str:
    """How far, out of how much, how fast: `3.1 of 10.4 GB, 120 MB/s`."""
    size, unit = (_GB, "GB") if total >= _GB else (_MB, "MB")
    return f"{done / size:.1f} of {total / size:.1f} {unit}, {done / _MB / seconds:.0f} MB/s"
