"""Which scans are at work: the locks in `{state}/.locks`, each a file that holds the pid of who has it.

They only save work: two scans at once are harmless, and nothing rests on a lock's being held or free.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from warcmill.errors import Unavailable
from warcmill.state import State

FOLDER = ".locks"
TRIES, PAUSE = 5, 0.02  # seconds; whoever looks at a lock holds it for a moment
_held: dict[tuple[Path, str], int] = {}  # descriptors: a lock is held until the process ends


def take(state: State, name: str) -> str:
    """Hold a lock until this process ends; '' when it is ours, else the pid of who has it."""
    path = state.store.base / FOLDER / name
    if (path.parent, name) in _held:
        return ""
    try:
        path.parent.mkdir(exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise Unavailable(f"root 'state', {path}", str(error.strerror)) from error
    if not _lock(descriptor):
        os.close(descriptor)
        return _holder(path) or "unknown"
    os.ftruncate(descriptor, 0)
    os.write(descriptor, str(os.getpid()).encode())
    _held[path.parent, name] = descriptor
    return ""


def scans_at_work(state: State) -> list[tuple[str, int]]:
    """The scans that are running now on this state, by name, each with its process. Changes nothing."""
    folder = state.store.base / FOLDER
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    found = [(path.name, _holder(path)) for path in paths if _is_held(path)]
    return [(name, int(pid)) for name, pid in found if pid]  # a lock on an engine names nobody


def _lock(descriptor: int) -> bool:
    for number in range(TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if number < TRIES - 1:
            time.sleep(PAUSE)
    return False


def _is_held(path: Path) -> bool:
    """Whether another has it: asked for a moment and for reading, and `take` waits longer than that."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _holder(path: Path) -> str:
    text = path.read_bytes()[:20].decode("ascii", "replace").strip()
    return text if text.isdigit() else ""
