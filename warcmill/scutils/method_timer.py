"""A limit of the time that a function takes. Uses SIGALRM: only in the main thread of a process."""

from __future__ import annotations

import functools
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_AT_ONCE = 1e-6  # seconds; zero would switch the alarm off


class MethodTimer:
    """Holds the decorator."""

    class DecoratorTimeout(Exception):
        """The time is over; raised inside the function, which may clean up."""

    @staticmethod
    def timeout(timeout_time: float, default: T) -> Callable[[Callable[..., T]], Callable[..., T]]:
        """Decorate a function: after so many seconds it is left, and `default` returned.

        An alarm that was set before, as by a timed function around it, is set again with the time left.
        """

        def timed(function: Callable[..., T]) -> Callable[..., T]:
            @functools.wraps(function)
            def within(*args: Any, **words: Any) -> T:
                return _within(timeout_time, default, lambda: function(*args, **words))

            return within

        return timed


def _within(seconds: float, default: T, call: Callable[[], T]) -> T:
    running = True

    def over(_: int, __: FrameType | None) -> None:
        if running:
            raise MethodTimer.DecoratorTimeout

    handler = signal.signal(signal.SIGALRM, over)
    began = time.monotonic()
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        result = call()
        running = False
    except MethodTimer.DecoratorTimeout:
        return default
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(_AT_ONCE, left - (time.monotonic() - began)))
    return result
