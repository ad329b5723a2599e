"""One run of a scenario in a child of its own: traced, killed at a call, or with a call that fails."""

from __future__ import annotations

import atexit
import errno
import os
import pickle
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import luigi
from crash import asked
from crash.calls import Call
from crash.line import Scenario, freeze_clock
from crash.watch import Watch, watch

LIMIT = 600  # seconds; a run takes less than one
KINDS = {
    "kill": "killed just before the call",
    "kill-half": "killed after half of the bytes were written",
    "full": "the disk is full from this call on (ENOSPC)",
    "full-half": "half of the bytes are taken, then the disk is full",
    "error": "the call fails once (EIO); a failed fsync loses what was written since the last",
    "error-done": "the call does its work, and still answers an error (EIO), as NFS may",
}
GROWS = frozenset({"create", "write", "link", "mkdir", "fsync", "rename", "sql"})
DATA = ("store/", "ingested/")  # what is long to read: a run may well be killed there


@dataclass(frozen=True)
class Fault:
    """What befalls a run, at which call (counted from 0)."""

    kind: str
    at: int


@dataclass
class Trace:
    """The calls of an undisturbed run, in order; `steps` are (number of calls before, task) as steps end.

    `answers`: what siegfried has told it.
    """

    calls: list[Call] = field(default_factory=list)
    steps: list[tuple[int, str]] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    answers: dict[bytes, dict[str, Any]] = field(default_factory=dict)

    def step_at(self, call: int) -> str:
        """The task whose end is the next after a call; '' after the last."""
        return next((task for end, task in self.steps if call < end), "")

    def chain_at(self, call: int) -> str:
        """The namespace of that task."""
        return self.step_at(call).partition(".")[0]


def is_read(call: Call) -> bool:
    """Whether a call leaves the folder as it was, whatever befalls it."""
    return not (call.changes or (call.op == "fsync" and not call.failed))


def kinds_for(call: Call) -> list[str]:
    """The ways in which a call can go wrong."""
    if is_read(call):
        return ["kill", "error"] if call.op == "read" and call.path.startswith(DATA) else ["error"]
    found = ["kill", "error"]
    if call.op in GROWS:
        found.append("full")
    if call.op == "write" and len(call.data) > 1:
        found += ["kill-half", "full-half"]
    if call.op in ("link", "rename", "unlink", "mkdir", "rmdir"):
        found.append("error-done")
    return found


class _Recorder:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __call__(self, call: Call, do: Callable[[bytes], Any]) -> Any:
        at = len(self.trace.calls)
        self.trace.calls.append(replace(call, failed=True))
        result = do(call.data)
        taken = call.data[:result] if call.op == "write" else call.data
        self.trace.calls[at] = replace(call, data=taken)
        return result


class _Breaker:
    """Counts calls, and at the one that it is given, it does what it is asked."""

    def __init__(self, fault: Fault, expected: str, reached: int) -> None:
        self.fault, self.expected, self.reached = fault, expected, reached
        self.count, self.full = 0, False
        self.synced: dict[str, int] = {}
        self.watch: Watch

    def __call__(self, call: Call, do: Callable[[bytes], Any]) -> Any:
        at, self.count = self.count, self.count + 1
        if at == self.fault.at:
            self._note(call)
            return self._break(call, do)
        if self.full and call.op in GROWS:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), call.path)
        result = do(call.data)
        if call.op == "fsync":
            self.synced[call.path] = self._size(call)
        return result

    def _note(self, call: Call) -> None:
        said = "reached" if self.expected in ("", str(call)) else f"met {call}, where {self.expected} was traced"
        self.watch.real["write"](self.reached, said.encode())

    def _break(self, call: Call, do: Callable[[bytes], Any]) -> Any:
        match self.fault.kind:
            case "kill-half" if call.op == "write":
                do(call.data[: len(call.data) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            case "kill" | "kill-half":
                os.kill(os.getpid(), signal.SIGKILL)
            case "full-half" if call.op == "write":
                self.full = True
                return do(call.data[: len(call.data) // 2])
            case "full" | "full-half":
                self.full = True
                if call.op not in GROWS:
                    return do(call.data)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), call.path)
            case "error" if call.op == "fsync":
                self._lose(call)
            case "error-done":
                do(call.data)
            case "error" if call.op == "close":
                do(call.data)
        raise OSError(errno.EIO, os.strerror(errno.EIO), call.path)

    def _lose(self, call: Call) -> None:
        """After a failed fsync the system forgets what it could not write, and reports it only once."""
        path = self.watch.folder + call.path
        if not os.path.isdir(path):
            self.watch.inside = True
            os.truncate(path, self.synced.get(call.path, 0))
            self.watch.inside = False

    def _size(self, call: Call) -> int:
        self.watch.inside = True
        try:
            return os.stat(self.watch.folder + call.path).st_size
        finally:
            self.watch.inside = False


def trace(scenario: Scenario, folder: Path, notes: Path) -> Trace:
    """Run undisturbed and record every call."""

    def body() -> bool:
        found = Trace()
        seen = watch(folder, _Recorder(found))
        seen.mind_the_gaps()
        _note_steps(found)
        fine = scenario.act(folder)
        found.unseen, found.answers = seen.unseen, asked.answers
        notes.write_bytes(pickle.dumps(found))
        return fine

    status, _ = child(body, notes.with_suffix(".log"))
    if status != 0:
        raise AssertionError(f"the undisturbed run failed ({status}):\n{notes.with_suffix('.log').read_text()}")
    found: Trace = pickle.loads(notes.read_bytes())
    asked.answers.update(found.answers)  # the runs that are forked from now on know them
    return found


def _note_steps(found: Trace) -> None:
    @luigi.Task.event_handler(luigi.Event.SUCCESS)
    def _(task: luigi.Task) -> None:
        found.steps.append((len(found.calls), task.task_family))


def disturbed(scenario: Scenario, folder: Path, fault: Fault, expected: str, log: Path) -> tuple[int, str]:
    """Run with a fault; the child's status as `child` gives it, and whether the call was met, `expected` if not ''."""
    reading, writing = os.pipe()

    def body() -> bool:
        breaker = _Breaker(fault, expected, writing)
        breaker.watch = watch(folder, breaker)
        return scenario.act(folder)

    status, _ = child(body, log)
    os.close(writing)
    with open(reading, "rb") as pipe:
        met = pipe.read().decode() or "the call was not met"
    return status, met


def undisturbed(scenario: Scenario, folder: Path, log: Path) -> int:
    """Run as it is."""
    return child(lambda: scenario.act(folder), log)[0]


def child(body: Callable[[], bool], log: Path, limit: int = LIMIT) -> tuple[int, int]:
    """Fork, do it, wait. (0 for True, 1 for False, 70 for an error, -N when ended by signal N), and the pid."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            _settle_in(log, limit)
            code = 0 if body() else 1
        except BaseException:  # noqa: BLE001 - nothing may get out of a forked child
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), pid


def _settle_in(log: Path, limit: int) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(limit)  # ends it, whatever it hangs in
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    atexit._clear()  # what the parent does when it ends is not the child's
    freeze_clock()
    asked.remember()


def copy_of(base: Path, folder: Path) -> Path:
    """A fresh copy to break. The line's own configuration names its folder, so it is written anew."""
    shutil.copytree(base, folder, symlinks=True)
    config = folder / "luigi.cfg"
    if config.exists():
        config.write_text(config.read_text().replace(f"{base}/", f"{folder}/"))
    return folder
