"""The time for which the event loop has run. While it stood, or was stopped, no server counts as slow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

BEAT = 0.05  # seconds
LATE = 0.05  # seconds after which a beat comes late: the loop stood


class Heartbeat:
    """Beats as long as its loop runs."""

    def __init__(self) -> None:
        self._due, self._stood = time.monotonic(), 0.0
        self._beat()

    def now(self) -> float:
        """Seconds for which the loop has run, from some time on."""
        return min(time.monotonic(), self._due + LATE) - self._stood

    def _beat(self) -> None:
        now = time.monotonic()
        if (late := now - self._due) > LATE:
            self._stood += late + LATE  # a moment more, in which what came meanwhile is read
        self._due = now + BEAT
        asyncio.get_running_loop().call_later(BEAT, self._beat)


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Heartbeat] = WeakKeyDictionary()


def current() -> Heartbeat:
    """The heartbeat of the loop that runs."""
    loop = asyncio.get_running_loop()
    found = _of_loops.get(loop)
    if found is None:
        found = _of_loops[loop] = Heartbeat()
    return found


@asynccontextmanager
async def timeout(seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError once the loop has run for so long in the block."""
    loop, heartbeat = asyncio.get_running_loop(), current()
    end = heartbeat.now() + seconds
    async with asyncio.timeout(None) as limit:
        timer: asyncio.TimerHandle

        def look() -> None:
            nonlocal timer
            left = end - heartbeat.now()
            if left > 0:
                timer = loop.call_later(max(left, 0.001), look)
            else:
                limit.reschedule(loop.time())

        timer = loop.call_later(seconds, look)
        try:
            yield
        finally:
            timer.cancel()
