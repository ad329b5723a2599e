"""How long a server that does not answer is asked again."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
WINDOW = 600.0


@dataclass
class Budget:
    """Time to spend on waiting for one server: at most `seconds` in any ten minutes, so that a batch of files
    does not wait for each of them. Waits grow from 0.1 s to 5 s until the server answers; threads share it."""

    seconds: float = 60.0
    _began: float = field(default_factory=time.monotonic, repr=False)
    _spent: float = field(default=0.0, repr=False)
    _next: float = field(default=_FIRST_WAIT, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def wait(self) -> bool:
        """Wait a little, then True: ask once more. False, at once: it is spent, give up."""
        with self._lock:
            now = time.monotonic()
            if now - self._began > WINDOW:
                self._began, self._spent = now, 0.0
            pause = min(self._next, self.seconds - self._spent)
            if pause <= 0:
                return False
            self._spent += pause
            self._next = min(_LONGEST_WAIT, 2 * self._next)
        time.sleep(pause)
        return True

    def answered(self) -> None:
        """The server said something: the next wait is a short one again."""
        self._next = _FIRST_WAIT
