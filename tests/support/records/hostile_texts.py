"""Texts that make a regular expression work as long as it can: each part of it, repeated, and then not matched.

They are made from the pattern itself, so that one which is added tomorrow is tried, too.
"""

from __future__ import annotations

import collections
import importlib
import itertools
import pkgutil
import re
import signal
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import FrameType, ModuleType
from typing import Any, NamedTuple

SMALL, LARGE = 1 << 11, 1 << 15  # characters: four doublings
MOST = 64.0  # times the work for 16 times the text: linear is 16, the square of it 256
KEPT = 24  # bytes of memory for a letter of a text
FREE = 0.0003  # seconds of CPU that even the small text may take
SECONDS = 0.5  # of CPU for one text; an exponential pattern would never return
_SAMPLES = {ops.CATEGORY_SPACE: " ", ops.CATEGORY_DIGIT: "0", ops.CATEGORY_WORD: "a", ops.CATEGORY_NOT_SPACE: "x"}
_SAMPLES |= {ops.CATEGORY_NOT_DIGIT: "x", ops.CATEGORY_NOT_WORD: "-"}
_FEW = 8  # samples of one node


class TooMuch(Exception):
    """A pattern did not come to its end."""


def modules(*rooms: str) -> list[ModuleType]:
    """The modules of these names, and all inside them."""
    found = [importlib.import_module(room) for room in rooms]
    for room in list(found):
        path = getattr(room, "__path__", None)
        inside = pkgutil.walk_packages(path, f"{room.__name__}.") if path else ()
        found.extend(importlib.import_module(one.name) for one in inside)
    return found


class Use(NamedTuple):
    """A pattern, and the method that its module calls: all of them, where it keeps the pattern itself."""

    pattern: re.Pattern[Any]
    method: str = ""


def patterns(module: ModuleType) -> dict[str, Use]:
    """Every compiled pattern that a module has, also in its tables and as a method that was taken off one."""
    return {
        f"{module.__name__.removeprefix('warcmill.')}.{name}": pattern
        for top, value in vars(module).items()
        for name, pattern in _inside(top, value, 3)
    }


def _inside(name: str, value: object, depth: int) -> Iterator[tuple[str, Use]]:
    if isinstance(value, re.Pattern):
        yield name, Use(value)
    elif isinstance(owner := getattr(value, "__self__", None), re.Pattern):
        yield name, Use(owner, getattr(value, "__name__", ""))
    elif depth and isinstance(value, dict):
        for key, one in value.items():
            yield from _inside(f"{name}[{key!r}]", one, depth - 1)
    elif depth and isinstance(value, (list, tuple, set, frozenset)):
        for number, one in enumerate(value):
            yield from _inside(f"{name}[{number}]", one, depth - 1)


def texts(pattern: re.Pattern[Any], length: int) -> Iterator[str]:
    """Texts of about this length."""
    parts = list(_units(list(parser.parse(pattern.pattern, pattern.flags)), ""))
    units = dict.fromkeys(unit for before, unit in parts for unit in (unit, before + unit, before) if unit)
    befores = dict.fromkeys(before for before, _ in parts)
    for before, unit in itertools.product(list(befores)[:_FEW], units):
        yield before + unit * (length // len(unit)) + "\0"


def _units(nodes: list[Any], before: str) -> Iterator[tuple[str, str]]:
    """What is repeated in a pattern, with a sample of what stands before it; and samples of the whole."""
    for place, (op, argument) in enumerate(nodes):
        if op in _REPEATS:
            inner = list(argument[2])
            for sample in _samples(inner):
                yield before, sample
            yield from _units(inner, before)
        else:
            for inner in _branches(op, argument):
                yield from _units(inner, before)
        before += _samples([nodes[place]])[0]
    yield "", before


_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)


def _branches(op: Any, argument: Any) -> list[list[Any]]:
    if op is ops.SUBPATTERN:
        return [list(argument[3])]
    if op is ops.BRANCH:
        return [list(one) for one in argument[1]]
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return [list(argument[1])]
    return [list(argument)] if op is ops.ATOMIC_GROUP else []


def _samples(nodes: list[Any]) -> list[str]:
    """A few texts that a sequence of nodes matches; more or less, as a hostile text need not match."""
    found = [""]
    for op, argument in nodes:
        found = [before + one for before, one in itertools.product(found, _of_node(op, argument))][:_FEW]
    return found


def _of_node(op: Any, argument: Any) -> list[str]:
    if op is ops.LITERAL:
        return [chr(argument)]
    if op is ops.IN:
        return _of_set(argument)
    if op in _REPEATS:
        least, most, inner = argument
        most = min(int(most), 8)
        return [
            one * times
            for times in dict.fromkeys((min(max(least, 1), 64), max(least, most), least))
            for one in _samples(list(inner))
        ][:_FEW]
    if op in (ops.NOT_LITERAL, ops.ANY):
        return ["x", "<"]
    branches = _branches(op, argument) if op not in (ops.ASSERT, ops.ASSERT_NOT) else []
    return [sample for inner in branches for sample in _samples(inner)][:_FEW] or [""]


def _of_set(items: list[Any]) -> list[str]:
    if items[0][0] is ops.NEGATE:
        return ["x", "<"]
    found = []
    for op, argument in items:
        if op is ops.LITERAL:
            found.append(chr(argument))
        elif op is ops.RANGE:
            found.append(chr(argument[0]))
        elif op is ops.CATEGORY:
            found.append(_SAMPLES.get(argument, "x"))
    return found[:4]


def work(use: Use, text: str) -> float:
    """Seconds of CPU that a pattern takes for a text; TooMuch if it would not end."""
    pattern, method = use
    subject: Any = text.encode("utf-8") if isinstance(pattern.pattern, bytes) else text
    with _limited():
        begin = time.process_time()
        if method in ("match", "fullmatch"):
            getattr(pattern, method)(subject)
        else:
            collections.deque(pattern.finditer(subject), 0)
            pattern.fullmatch(subject)
        return time.process_time() - begin


@contextmanager
def _limited() -> Iterator[None]:
    def end(_signal: int, _frame: FrameType | None) -> None:
        raise TooMuch

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def too_slow(use: Use) -> str:
    """A text for which the work of a pattern grows faster than the text; '' if none is found."""
    for large, small in zip(texts(use.pattern, LARGE), texts(use.pattern, SMALL), strict=True):
        try:
            took = work(use, large)
            if took > FREE * MOST and took > MOST * min(work(use, small) for _ in range(3)):
                return repr(large[:40])
        except TooMuch:
            return repr(large[:40])
    return ""


def too_large(use: Use) -> str:
    """A text for each letter of which a pattern keeps a place to return to; '' if none is found."""
    tracemalloc.start()
    try:
        for text in texts(use.pattern, SMALL):
            subject: Any = text.encode("utf-8") if isinstance(use.pattern.pattern, bytes) else text
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            with _limited(), suppress(TooMuch):
                getattr(use.pattern, use.method or "search")(subject)
            if tracemalloc.get_traced_memory()[1] - before > KEPT * SMALL:
                return repr(text[:40])
    finally:
        tracemalloc.stop()
    return ""
