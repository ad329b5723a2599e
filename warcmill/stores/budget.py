"""Limit the time spent on retries with a server that does not answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
WINDOW = 600.0


@dataclass
class Budget:
    """The time to wait for one server: at most `seconds` in any ten minutes, so that a batch does not wait again for
    each of its files. Waits grow from 0.1 s to 5 s until the server answers.

    Threads share it: one that comes while others wait joins their wait, at no further cost.
    """

    seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    _began: float = field(init=False, repr=False)
    _until: float = field(init=False, repr=False)
    _spent: float = field(default=0.0, init=False, repr=False)
    _next: float = field(default=_FIRST_WAIT, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self._began = self._until = self.clock()

    def wait(self) -> bool:
        """Wait a little and return True: retry. Return False at once when the budget is spent: give up."""
        with self._lock:
            now = self.clock()
            if now >= self._until and not self._begin(now):
                return False
            pause = self._until - now
        self.sleep(pause)
        return True

    def _begin(self, now: float) -> bool:
        """Begin a wait that all threads share; False when there is no time left for one."""
        if now - self._began > WINDOW:
            self._began, self._spent = now, 0.0
        pause = min(self._next, self.seconds - self._spent)
        if pause <= 0:
            return False
        self._until, self._spent, self._next = now + pause, self._spent + pause, min(_LONGEST_WAIT, 2 * self._next)
        return True

    def answered(self) -> None:
        """Note that the server answered: the next wait is short again."""
        self._next = _FIRST_WAIT
