"""Threads that call a function on several items at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event
from typing import Any, TypeVar

One = TypeVar("One")
Result = TypeVar("Result")
log = logging.getLogger(__name__)
_GIVEN_UP: ContextVar[Event | None] = ContextVar("given_up", default=None)


def side_by_side(function: Callable[[One], Result], items: Iterable[One], at_once: int) -> list[Result]:
    """The results, in order. The first error is raised once all the others are done, unless they are done in turn."""
    if at_once == 1:
        return [function(item) for item in items]
    with threads(at_once) as submit:
        return [future.result() for future in [submit(function, item) for item in items]]


@contextmanager
def threads(at_once: int) -> Iterator[Callable[..., Future[Any]]]:
    """Threads that do what is submitted. They get this one's context, so that their log lines belong to this step.

    Ctrl-C in the block: no thread takes up more work, and `is_given_up` is true for the work in progress.
    """
    given_up = Event()
    with ThreadPoolExecutor(at_once) as pool:

        def submit(function: Callable[..., Result], *arguments: object) -> Future[Result]:
            context = copy_context()
            context.run(_GIVEN_UP.set, given_up)
            return pool.submit(context.run, function, *arguments)

        try:
            yield submit
        except Exception:
            raise
        except BaseException:
            given_up.set()
            pool.shutdown(wait=False, cancel_futures=True)
            log.warning("interrupted: what was waiting is not begun")
            raise


def is_given_up() -> bool:
    """True if nobody waits any more for what this thread does."""
    given_up = _GIVEN_UP.get()
    return given_up is not None and given_up.is_set()
