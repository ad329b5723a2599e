"""Call a function on several items at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

One = TypeVar("One")
Result = TypeVar("Result")


def side_by_side(function: Callable[[One], Result], items: Iterable[One], at_once: int) -> list[Result]:
    """The results, in order. The first error is raised once all the others are done, unless they are done in turn.

    Threads get this one's context, so that their log lines belong to this step.
    """
    if at_once == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(at_once) as threads:
        return [future.result() for future in [threads.submit(copy_context().run, function, item) for item in items]]
