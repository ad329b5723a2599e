"""Trace the calls between modules of the product while a block runs: which modules, which pairs, and which calls climb.

A call counts when a function of one file is entered from another file of the product, on any thread. Where an event
loop or a thread pool is between them no caller is known, so only the module counts. A coroutine that proceeds is not a
new call; a generator that is read for the first time is one, of who reads it. Code that `dataclass` and `NamedTuple`
generate has no file, and does not count. A pair climbs when its callee is in a higher layer of setup.cfg.
"""

from __future__ import annotations

import configparser
import dis
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

Pair = tuple[str, str]
REPOSITORY = Path(__file__).parents[3]
CONTRACTS = ("library", "crawl")


@dataclass
class Trace:
    """Calls between modules: `modules` by name without `warcmill.`, `pairs` with the function that was entered."""

    modules: set[str] = field(default_factory=set)
    pairs: dict[Pair, str] = field(default_factory=dict)

    def climbs(self, rank: Callable[[str, str], bool]) -> dict[Pair, str]:
        """The pairs of which `rank` says that the second is above the first."""
        return {pair: name for pair, name in self.pairs.items() if rank(*pair)}

    def text(self, rank: Callable[[str, str], bool]) -> str:
        """Modules, pairs and climbs, a line each."""
        climbs = self.climbs(rank)
        rows = [f"{len(self.modules)} modules, {len(self.pairs)} pairs, {len(climbs)} climbs"]
        rows += [f"  {name}" for name in sorted(self.modules)]
        rows += [f"  {a} -> {b}.{self.pairs[a, b]}{'  CLIMBS' * ((a, b) in climbs)}" for a, b in sorted(self.pairs)]
        return "\n".join(rows)


def layers(config: Path = REPOSITORY / "setup.cfg") -> Mapping[str, int]:
    """The rank of each room that a layer of the contracts names; 0 is the highest of its contract."""
    parser = configparser.ConfigParser()
    parser.read(config)
    found = {}
    for name in CONTRACTS:
        contract = parser[f"importlinter:contract:{name}"]
        container = contract["containers"].strip()
        for rank, row in enumerate(contract["layers"].split("\n")):
            for room in filter(None, map(str.strip, row.split("|"))):
                found[f"{container}.{room}"] = rank
    return found


def climbing(ranks: Mapping[str, int]) -> Callable[[str, str], bool]:
    """True for a caller and a callee whose rooms, where their names part, have layers, the callee's the higher."""

    def is_climb(caller: str, callee: str) -> bool:
        a, b = caller.split("."), callee.split(".")
        for length in range(2, min(len(a), len(b)) + 1):
            one, other = ".".join(a[:length]), ".".join(b[:length])
            if one != other:
                return one in ranks and other in ranks and ranks[other] < ranks[one]
        return False

    return is_climb


class Tracer:
    """Traces into one `Trace` after the other. `begins` is the qualified name of a function that returns a list: a call
    of it that returns something begins the next trace, and is in it."""

    def __init__(self, begins: str) -> None:
        self.traces: list[Trace] = []
        self._begins, self._names = begins, dict[str, str]()
        self._pending: Trace | None = None

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Hear of a call or a return, as `sys.setprofile` reports it."""
        if event == "return":
            if frame.f_code.co_qualname == self._begins and isinstance(argument, list):
                self.traces += [self._pending] if argument and self._pending else []
                self._pending = None
            return
        if event != "call" or not (callee := self._module(frame)) or _proceeds(frame):
            return
        if frame.f_code.co_qualname == self._begins and self._pending is None:
            self._pending = Trace()
        if current := self._pending or (self.traces[-1] if self.traces else None):
            current.modules.add(callee)
            back = frame.f_back
            caller = self._module(back) if back else ""
            if caller and caller != callee:
                current.pairs.setdefault((caller, callee), frame.f_code.co_qualname)

    def _module(self, frame: FrameType) -> str:
        path = frame.f_code.co_filename
        if path not in self._names:
            inside = path.startswith(f"{REPOSITORY}/warcmill/")
            self._names[path] = str(frame.f_globals["__name__"]) if inside else ""
        return self._names[path]


@lru_cache(None)
def _entry(code: CodeType) -> int:
    """Where the code of a coroutine or generator begins: what is before it makes the object."""
    return next((step.offset for step in dis.get_instructions(code) if step.opname == "RESUME"), 0)


def _proceeds(frame: FrameType) -> bool:
    """True for a coroutine or generator that has begun, and for the body of a module."""
    return frame.f_lasti > _entry(frame.f_code) + 2 or frame.f_code.co_name == "<module>"


@contextmanager
def traced(begins: str) -> Iterator[list[Trace]]:
    """Trace all threads that begin in the block, and this one; the traces are complete when it has ended."""
    tracer, before = Tracer(begins), sys.getprofile()
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        yield tracer.traces
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]  # as its documentation allows
