"""Work that several threads wait for, such as the sync of one folder: done once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Together:
    """`work`, of which a run serves all who asked for it before it began, and nobody who came later."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work, self._changed = work, threading.Condition()
        self._begun = self._done = 0  # runs, counted as they begin; the last one that was done
        self._busy = False

    def __call__(self) -> None:
        """Have a whole run from now on, one's own or another's. One that fails serves nobody: the next begins anew."""
        with self._changed:
            wanted = self._begun + 1
            self._changed.wait_for(lambda: self._done >= wanted or not self._busy)
            if self._done >= wanted:
                return
            self._busy = True
            self._begun += 1
        self._run(self._begun)

    def _run(self, number: int) -> None:
        done = False
        try:
            self._work()
            done = True
        finally:
            with self._changed:
                self._busy = False
                self._done = number if done else self._done
                self._changed.notify_all()
