"""Processes of this machine that do work, one for each core. If one dies, only its piece of work is lost.

Each is a Python of its own, which reads orders from a socket until this process ends, in whatever way. It is started
when it is first needed. A single piece of work is done by the process that asks: to start another takes longer.

    python -m warcmill.scale.processes      # such a process: `ProcessRunner` starts it; its input is a socket
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from warcmill.errors import Unavailable
from warcmill.scale import Ready
from warcmill.scale.work import Work, WorkAnswer, answer, result

_COMMAND = (sys.executable, "-P", "-m", "warcmill.scale.processes")


class ProcessRunner:
    """The processes of this machine."""

    def __init__(self, number: int | None = None) -> None:
        self.number = number or len(os.sched_getaffinity(0))
        self._idle: SimpleQueue[_Process | None] = SimpleQueue()
        self._alone = self._interrupted = False
        for _ in range(self.number):
            self._idle.put(None)

    def ready(self, number: int, probe: Work) -> Ready:
        """Do the probe here: all processes have the same Warcmill, and reach the same folders."""
        probe.function(probe.order)
        at_once = max(1, min(number, self.number))
        self._alone = at_once == 1
        return Ready(at_once, self.number // at_once)

    def do(self, work: Work) -> Any:
        """Do it in an idle process; Unavailable if that dies."""
        if self._alone:
            return work.function(work.order)
        process = self._idle.get()
        try:
            if self._interrupted:
                raise Unavailable(work.name, "it was interrupted")
            process = process or _Process()
            answered = process.ask(work)
        except (EOFError, OSError) as error:
            how, process = process.end() if process else str(error), None
            self._interrupted |= how == signal.SIGINT.name
            why = f"the process that worked on it died ({how}): perhaps of memory. Run the task again"
            raise Unavailable(work.name, why) from error
        finally:
            self._idle.put(process)
        return result(answered)

    def close(self) -> None:
        """End the processes. None of them may be at work."""
        for _ in range(self.number):
            if process := self._idle.get():
                process.end()
            self._idle.put(None)


class _Process:
    """One process. It is ended by Ctrl-C too, so that nobody waits for it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._popen = subprocess.Popen(  # noqa: S603 - our own module
                _COMMAND, stdin=theirs.fileno(), stdout=subprocess.DEVNULL
            )
        self._connection = Connection(ours.detach())

    def ask(self, work: Work) -> WorkAnswer:
        """Have it done. EOFError or OSError if the process dies."""
        self._connection.send(work)
        answered: WorkAnswer = self._connection.recv()
        return answered

    def end(self) -> str:
        """End it; return how it ended, if it had."""
        self._connection.close()
        try:
            code = self._popen.wait(10)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            code = self._popen.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def serve(starter: Connection) -> None:
    """Answer until the starter has ended."""
    while True:
        try:
            starter.send(answer(starter.recv()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    serve(Connection(0))
