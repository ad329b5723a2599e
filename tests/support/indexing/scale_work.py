"""Work for runners to do elsewhere, with the faults that real work cannot be made to have."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from pathlib import Path
from typing import Any

from warcmill.errors import BadInput, Mismatch, Unavailable, Unsettled
from warcmill.scale.work import Work, versions


def work(function: Any, order: Any = None, **wanted: str) -> Work:
    """A piece of work, for this version of Warcmill, or another one."""
    return Work(f"store:{order}", function, order, versions(()) | wanted)


class Unpicklable(Exception):
    """An error that no other process can be sent."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.socket = ctypes.pointer(ctypes.c_int(1))


ERRORS = {
    "bad": BadInput("a.warc.gz", "cut", 7),
    "changed": Mismatch("sha512", "ab", Path("found")),
    "away": Unavailable("store:", "no answer"),
    "several": Unsettled("index.CdxIndex", ["one", "two"]),
    "disk": OSError(28, "No space left on device", "/index"),
    "memory": MemoryError(),
    "fault": KeyError("x"),
    "unpicklable": Unpicklable("a handle"),
}


def fail(name: str) -> None:
    """Raise the error of this name."""
    raise ERRORS[name]


def pid(_: object = None) -> int:
    """The process that does it."""
    return os.getpid()


def die(number: int) -> None:
    """Be killed by a signal, as by the system when memory is short."""
    os.kill(os.getpid(), number)
    signal.pause()


def meet(folder: str) -> int:
    """Wait until another piece of work has come here too; the process that does it."""
    (Path(folder) / str(os.getpid())).touch()
    for _ in range(6000):
        if len(list(Path(folder).iterdir())) > 1:
            return os.getpid()
        time.sleep(0.01)
    raise Unavailable(folder, "nobody came")
