"""The time by which URIs, queues and addresses wait. Logs and records have what the clock of the machine says."""

from __future__ import annotations

import time

_BEGAN = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def now() -> float:
    """Seconds since 1970: what the clock said when this process began, and what has passed since. A clock that is set
    meanwhile lets no host wait for hours, and hurries none."""
    return _BEGAN + time.clock_gettime(time.CLOCK_BOOTTIME)
