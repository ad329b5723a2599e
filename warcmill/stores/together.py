"""Do work that several threads wait for once for all of them, such as the sync of a folder."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Together:
    """`work` that serves, by one run, all callers that called before the run began."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._work, self._changed = work, threading.Condition()
        self._begun = self._done = 0  # the number of runs begun; the number of the last one that succeeded
        self._busy = False

    def __call__(self) -> None:
        """Return after a run that began after this call, in this thread or another. A failed run serves nobody: its
        thread gets the error, and another caller runs the work again."""
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
