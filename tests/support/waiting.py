"""A poll with a deadline, for tests of what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120.0


def wait_for(true: Callable[[], object], shown: Callable[[], object] = lambda: "") -> None:
    """Return once it is true; an AssertionError with what is `shown` after two minutes."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, shown()
        time.sleep(0.02)
