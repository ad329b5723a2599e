"""Worker processes, as their starter sees them: each is asked one thing at a time.

A worker that dies or hangs costs one answer. An answer follows from its question alone: one whose worker died is asked
again of a new worker, since those before it may have filled the memory. Threads that ask block meanwhile; they must
live as long as the workers that they start, as these end with them.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, LifoQueue
from typing import NamedTuple, Protocol, TypeVar

from warcmill.base.worker import OUT_OF_MEMORY, WorkerLimits, receive, receive_text, send

_PASSED_ON = ("PYTHONPATH", "LD_LIBRARY_PATH", "PYTHONHASHSEED")  # of the environment, which may hold passwords
NOT_BEGUN = "it did not begin"
_START = 600  # seconds that a worker may take to begin
_READY = 1 << 10
_SIGNALLED = 128
_ASKED_TO_END = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


class WorkerAnswer(Protocol):
    """An answer, or `why` there is none."""

    @property
    def why(self) -> str: ...


T = TypeVar("T", bound=WorkerAnswer)


class Outside(NamedTuple):
    """The reason why a worker gave no answer, which is not a fault of the question."""

    why: str


class Workers:
    """Up to `number` worker processes, started when they are needed; `close` them. Reasons name them as `what`."""

    def __init__(self, command: Sequence[str], limits: WorkerLimits, number: int, what: str = "parser") -> None:
        self.number, self._command, self._limits, self._what = number, command, limits, what
        self._idle: LifoQueue[_Worker | None] = LifoQueue()  # one that runs is asked before another is started
        self.all: set[_Worker] = set()
        self.is_closed = False
        for _ in range(number):
            self._idle.put(None)

    def kill(self) -> None:
        """End them, whatever they do; who waits for an answer learns it."""
        self.is_closed = True
        for worker in list(self.all):
            worker.kill()

    def close(self) -> None:
        """Free what they had, once nobody asks any more."""
        for worker in self.all:
            worker.end()

    def renew(self) -> None:
        """Begin each anew before its next question: what they have in memory is of no use any more."""
        for busy in list(self.all):
            busy.is_over = True
        idle = list[_Worker | None]()
        with suppress(Empty):  # those that are busy end with their answers
            while True:
                idle.append(self._idle.get_nowait())
        for worker in idle:
            if worker:
                self._drop(worker)
            self._idle.put(None)

    def leave(self) -> None:
        """Let go of them in a process that has them from the one it was forked from: they are that one's."""
        for worker in self.all:
            worker.leave()

    def ask(
        self, question: dict[str, object], data: bytes, read: Callable[[bytes], T], failed: Callable[[str], T],
        most: int,
    ) -> T | Outside:  # fmt: skip
        """Ask the first that is idle. `read` makes an answer of the JSON of its message, of at most `most` bytes, and
        raises ValueError or TypeError for an invalid one; `failed` makes an answer of the reason for a failure."""
        worker = self._idle.get()
        try:
            if worker and worker.has_ended():  # while it was idle
                self._drop(worker)
                worker = None
            for is_new in (worker is None, True):
                worker = worker or self._start()
                if worker is None:
                    return Outside(NOT_BEGUN)
                found = worker.ask(question, data, read, failed, most)
                if is_new or not worker.is_spoilt:
                    break
                self._drop(worker)
                worker = None
            return found
        finally:
            if worker and not worker.is_alive:
                self.all.discard(worker)
                worker = None
            elif worker and worker.is_over:
                self._drop(worker)
                worker = None
            self._idle.put(worker)

    def _drop(self, worker: _Worker) -> None:
        worker.end()
        self.all.discard(worker)

    def _start(self) -> _Worker | None:
        worker = _Worker(self._command, self._limits, self._what)
        self.all.add(worker)
        if self.is_closed:
            worker.kill()
        if worker.is_ready():
            return worker
        self.all.discard(worker)
        return None


class _Worker:
    """One worker process.

    `is_spoilt`: it, rather than its last question, may be why there is no answer. `is_over`: it gets no other question.
    """

    def __init__(self, command: Sequence[str], limits: WorkerLimits, what: str) -> None:
        self._limits, self._what = limits, what
        self.is_alive, self.is_spoilt, self.is_over = True, False, False
        self._socket, theirs = socket.socketpair()
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                [*command, *limits.words],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                process_group=0,  # Ctrl-C is for the starter, which ends its workers
            )

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def is_ready(self) -> bool:
        """True if it begins; it is waited for."""
        self._socket.settimeout(_START)
        try:
            receive(self._socket, _READY)
        except (OSError, EOFError, ValueError):
            self.end()
            return False
        return True

    def ask(
        self, question: dict[str, object], data: bytes, read: Callable[[bytes], T], failed: Callable[[str], T],
        most: int,
    ) -> T | Outside:  # fmt: skip
        """Its answer, or why there is none."""
        self._socket.settimeout(self._limits.wall)
        try:
            send(self._socket, {**question, "size": len(data)}, data)
            text = receive_text(self._socket, most)
        except TimeoutError:
            self.end()
            return failed(f"timeout: over {self._limits.wall} s")
        except (OSError, EOFError):
            died = self._died()
            return died if isinstance(died, Outside) else failed(died)
        except ValueError:
            self.end()
            return failed("its text is over the limit")
        try:
            found = read(text)
        except (ValueError, TypeError):
            self.end()
            return failed(f"its {self._what} answered garbage")
        if found.why == OUT_OF_MEMORY:
            self.end()
            self.is_spoilt = True
        return found

    def _died(self) -> str | Outside:
        """Why it died, as far as the question is to blame."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        code = self._process.poll()
        if code is not None and _SIGNALLED < code < _SIGNALLED + signal.NSIG:  # so a program that began it says it
            code = _SIGNALLED - code
        self.end()
        if code is not None and -code == signal.SIGXCPU:
            return f"timeout: over {self._limits.cpu} s of CPU time"
        if code is None or -code in _ASKED_TO_END:
            return Outside("it was ended from outside")
        self.is_spoilt = True
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"its {self._what} died: {how}"

    def has_ended(self) -> bool:
        """True if the process has ended."""
        return self._process.poll() is not None

    def leave(self) -> None:
        """Close this end of its socket; it ends once no process has it open."""
        self._socket.close()

    def kill(self) -> None:
        """End it, whatever it does; its thread notices."""
        self._process.kill()

    def end(self) -> None:
        """End it, and free what it had."""
        self.is_alive = False
        self._process.kill()
        self._process.wait()
        self._socket.close()
