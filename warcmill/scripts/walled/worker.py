"""The process in which scripts run, one callback at a time.

    python -m warcmill.scripts.walled.worker open|walls|root CPU WALL MEMORY FILE PROCESSES      # `asking` starts it

Its input is a socket. Within walls it leaves no process and no file of a callback behind; as `root` it first becomes
nobody. It ends after a script that has left a thread, or has changed what others use.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import struct
import sys
from contextlib import suppress
from typing import Any

from warcmill.base import worker
from warcmill.base.worker import WorkerLimits
from warcmill.scripts.api.run import Scripts
from warcmill.scripts.walled.walls import NOBODY

_NEWUSER, _SET_DUMPABLE, _CAPABILITIES = 0x10000000, 4, 0x20080522  # linux/sched.h, prctl.h, capability.h
FILES = 256  # open at a time
DEEPEST = 10_000  # calls within calls: a page may be nested 2,000 deep


def main(words: list[str]) -> int:
    """Answer questions until the starter ends."""
    how, *limits = words
    if how != "open":
        with suppress(OSError):  # its processes may fill the memory: the kernel ends them before anything else
            _write("/proc/self/oom_score_adj", "1000")
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))  # of those in memory each has `SCRATCH` bytes
    if how == "root":
        _become_nobody()
    if how != "open":
        os.chdir("/tmp")  # noqa: S108 - its own
    if limits == ["try"]:
        return 0
    sys.setrecursionlimit(DEEPEST)
    scripts = Scripts()

    def answer(question: dict[str, Any], data: bytes) -> object:
        is_whole = False
        try:
            found = answered(question, data)
            is_whole = not scripts.is_spent
        finally:
            if not is_whole:  # this answer is the last: the next question finds the end, and is asked of another
                parent.shutdown(socket.SHUT_RD)
        return found

    def answered(question: dict[str, Any], data: bytes) -> object:
        texts = json.loads(data[: question["texts"]])
        about = json.loads(data[question["texts"] : question["texts"] + question["task"]])
        body = data[question["texts"] + question["task"] :]
        if about is None:
            found = scripts.about(question["script"], texts)
        else:
            fields = {**about["response"], "content": body}
            found = scripts.run(about["task"], fields, texts, debugger=question["debugger"])
        if how != "open":
            _tidy()
        return {**found, "number": question["number"]}

    with socket.socket(fileno=os.dup(0)) as parent:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        worker.serve(parent, answer, WorkerLimits(*map(int, limits)))
    return 0


def _become_nobody() -> None:
    """Become a user of few rights, in a namespace of users that can have no other within: in one a script would have
    all rights, and processes that nobody counts."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    kernel = ctypes.CDLL(None)
    if kernel.unshare(_NEWUSER):
        return  # nor can a script make one
    kernel.prctl(_SET_DUMPABLE, 1, 0, 0, 0)  # else its own files in /proc are another's
    same = f"{NOBODY} {NOBODY} 1"
    for path, text in (
        ("/proc/self/setgroups", "deny"), ("/proc/self/uid_map", same), ("/proc/self/gid_map", same),
    ):  # fmt: skip
        _write(path, text)
    with suppress(PermissionError):  # of a kernel that gives no rights in such a namespace, nor in one within
        _write("/proc/sys/user/max_user_namespaces", "0")
    if kernel.capset(struct.pack("=Ii", _CAPABILITIES, 0), bytes(24)):
        raise OSError("its capabilities cannot be dropped")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _tidy() -> None:
    """End what a callback has begun and remove what it has written: within the walls nothing else is there."""
    os.chdir("/tmp")  # noqa: S108 - a callback may have gone elsewhere
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    for name in os.listdir():
        with suppress(OSError):
            if os.path.isdir(name) and not os.path.islink(name):
                shutil.rmtree(name, ignore_errors=True)
            else:
                os.unlink(name)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    os._exit(code)  # a thread of a script would be waited for
