"""Asks the processes in which scripts run, from the loop of a crawl: one question at a time of each.

A script never holds all of them, nor do all those together that were slow the last time: one that loops costs its own
callbacks. One that dies or hangs costs its own callback.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import count
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field

from warcmill.base import clock
from warcmill.base.worker import WorkerLimits
from warcmill.base.workers import NOT_BEGUN, Outside, Workers
from warcmill.errors import Unavailable
from warcmill.scripts.walled import walls

MOST_ANSWER = 64 << 20  # bytes
FEWEST = 2
SLOW = 5.0  # seconds that a callback may take before its script counts as slow
_TRIES = 2  # a script can end its process as anybody else can


class CallbackOutcome(Struct, frozen=True):
    """All that came of a callback; `why` it failed, '' if it did not, and the traceback of that. `quiet`: its task gets
    no status. `called`: False if the status of its response kept it from being called. `ms` it took."""

    why: str = ""
    trace: str = ""
    results: list[Any] = field(default_factory=list)
    follows: list[dict[str, Any]] = field(default_factory=list)
    messages: list[tuple[str, Any, str]] = field(default_factory=list)
    save: Any = None
    quiet: bool = False
    called: bool = True
    log: str = ""
    ms: int = 0
    lacks: str = ""
    number: int = -1


class ScriptAbout(Struct, frozen=True):
    """The ticks (spans of `every`, in seconds), retries and common arguments of a script; `why` it cannot be loaded.
    `undefined`: the names that it uses and nothing defines."""

    why: str = ""
    trace: str = ""
    log: str = ""
    ticks: list[int] = field(default_factory=list)
    retry_delay: dict[str, float] = field(default_factory=dict)
    crawl_config: dict[str, Any] = field(default_factory=dict)
    starts: bool = False
    finishes: bool = False
    callbacks: list[str] = field(default_factory=list)
    undefined: list[str] = field(default_factory=list)
    lacks: str = ""
    number: int = -1


T = TypeVar("T", ScriptAbout, CallbackOutcome)


class ScriptText(Struct, frozen=True):
    """A script that is to run: its name, and the texts of all scripts of its job, by name."""

    name: str
    all: Mapping[str, str]


class ScriptAsker:
    """The processes of scripts; `close` them. `script_walls`: False if they run without. `limits` of one answer,
    if they are not those of all scripts."""

    def __init__(self, *, script_walls: bool, limits: WorkerLimits | None = None) -> None:
        self.number = max(FEWEST, len(os.sched_getaffinity(0))) + 1
        self._threads = ThreadPoolExecutor(self.number, "script")
        self._workers = Workers(walls.command(walls=script_walls), limits or walls.LIMITS, self.number, "process")
        self._rooms: dict[str, asyncio.Semaphore] = {}
        self._free, self._for_slow = asyncio.Semaphore(self.number), asyncio.Semaphore(self.number - 1)
        self._slow = set[str]()
        self._asked_at: dict[str, dict[int, float]] = {}  # by script: when its questions were put that are open
        self._numbers = count(1)
        self._needs: dict[str, tuple[str, ...]] = {}  # by script: those that it imports

    async def about(self, script: ScriptText) -> ScriptAbout:
        """Ask for the ticks, retries and arguments of a script."""
        return await self._ask(script, None, b"", ScriptAbout)

    async def run(
        self, script: ScriptText, task: Mapping[str, Any], response: Mapping[str, Any], body: bytes = b"", *,
        debugger: bool = False,
    ) -> CallbackOutcome:  # fmt: skip
        """Run the callback of a task with a response."""
        return await self._ask(script, {"task": task, "response": response}, body, CallbackOutcome, debugger=debugger)

    def uses(self, name: str) -> tuple[str, ...]:
        """A script and those that it imports, as far as it is known."""
        return (name, *self._needs.get(name, ()))

    def is_stuck(self, name: str) -> bool:
        """True if a script has a question open that should have had its answer: it needs no others."""
        opened = min(self._asked_at.get(name, {}).values(), default=None)
        return opened is not None and clock.steady() > opened + SLOW

    def free(self) -> None:
        """Free the memory that scripts hold in the processes, which begin anew."""
        self._workers.renew()

    def close(self) -> None:
        """End them, whatever they do."""
        self._workers.kill()
        self._threads.shutdown(cancel_futures=True)
        self._workers.close()

    async def _ask(self, script: ScriptText, about: object, body: bytes, kind: type[T], *, debugger: bool = False) -> T:
        asked_at, number = self._asked_at.setdefault(script.name, {}), next(self._numbers)
        asked_at[number] = clock.steady()
        try:
            async with self._turn(script.name):
                while True:
                    names: tuple[str, ...] = self.uses(script.name)
                    begun = clock.steady()
                    found = await self._asked(script, names, about, body, kind, debugger=debugger)
                    (self._slow.add if clock.steady() > begun + SLOW else self._slow.discard)(script.name)
                    if not found.lacks:
                        return found
                    if found.lacks in names:
                        return kind(why=f"ModuleNotFoundError: its process has not taken script {found.lacks!r}")
                    self._needs[script.name] = (*names[1:], found.lacks)
        finally:
            del asked_at[number]

    @asynccontextmanager
    async def _turn(self, name: str) -> AsyncIterator[None]:
        """Wait until a process is free for a script, and keep it free for it."""
        async with self._rooms.setdefault(name, asyncio.Semaphore(self.number - 1)):
            if name not in self._slow:
                async with self._free:
                    if name not in self._slow:  # as it was when it began to wait
                        yield
                        return
            async with self._for_slow, self._free:
                yield

    async def _asked(
        self, script: ScriptText, names: tuple[str, ...], about: object, body: bytes, kind: type[T], *, debugger: bool
    ) -> T:
        texts = json.dumps({name: script.all.get(name) for name in names}).encode()
        task, number = json.dumps(about).encode(), next(self._numbers)
        question: dict[str, object] = {
            "script": script.name, "texts": len(texts), "task": len(task), "number": number, "debugger": debugger,
        }  # fmt: skip

        def read(text: bytes) -> T:
            answer = msgspec.json.decode(text, type=kind)
            if answer.number != number and not answer.why:
                raise ValueError("an answer to another question")
            return answer

        def ask() -> T | Outside:
            return self._workers.ask(question, texts + task + body, read, lambda why: kind(why=why), MOST_ANSWER)

        for _ in range(_TRIES):
            found = await asyncio.get_running_loop().run_in_executor(self._threads, ask)
            if not isinstance(found, Outside):
                return found
            if found.why == NOT_BEGUN or self._workers.is_closed:
                raise Unavailable("a process for scripts", found.why)
        return kind(why="its process has closed its socket, or was ended by a signal, two times")
