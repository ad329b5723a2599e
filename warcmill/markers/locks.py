"""Locks of the scans, in `{state}/.locks`: each is a file with the process id of its holder.

Locks only save work: two scans at once are harmless, and correctness never depends on a lock.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from warcmill.base import disk
from warcmill.errors import Busy, Unavailable
from warcmill.markers.state import MarkerStore

FOLDER = ".locks"
TRIES, PAUSE = 5, 0.02  # seconds; looking at a lock holds it for a moment
_held: dict[tuple[Path, str], int] = {}  # descriptors: they keep the locks until the process ends


def take(state: MarkerStore, name: str) -> str:
    """Take a lock until this process ends. Return '' when it is ours, else the holder's process id, or `unknown`."""
    path = state.store.base / FOLDER / name
    if (path.parent, name) in _held:
        return ""
    try:
        path.parent.mkdir(exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise Unavailable(f"root 'state', {path}", disk.reason(error, path)) from error
    try:
        if not _lock(descriptor):
            os.close(descriptor)
            return _holder(path) or "unknown"
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
    except OSError as error:
        os.close(descriptor)
        raise Unavailable(f"root 'state', {path}", disk.reason(error, path)) from error
    _held[path.parent, name] = descriptor
    return ""


@contextmanager
def alone(state: MarkerStore, name: str, busy: str = "") -> Iterator[None]:
    """Hold a lock; wait while another process of this host has it, or raise Busy by the name `busy`. Two starts at once
    could each tear down what the other has just built."""
    path = state.store.base / FOLDER / name
    try:
        path.parent.mkdir(exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise Unavailable(f"root 'state', {path}", disk.reason(error, path)) from error
    with file:
        if busy and not _lock(file.fileno()):
            raise Busy(busy)
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def scans_at_work(state: MarkerStore) -> list[tuple[str, int]]:
    """List the scans that are running on this state, by name, each with its process id. Changes nothing."""
    folder = state.store.base / FOLDER
    try:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
        held = [(path.name, _holder(path)) for path in paths if _is_held(path)]
    except OSError as error:
        raise Unavailable(f"root 'state', {folder}", disk.reason(error, folder)) from error
    return [(name, int(pid)) for name, pid in held if pid]  # the lock of an engine holds no process id


def _lock(descriptor: int) -> bool:
    for number in range(TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if number < TRIES - 1:
            time.sleep(PAUSE)
    return False


def _is_held(path: Path) -> bool:
    """True if another process has it. This takes a shared lock for a moment; `take` retries for longer than that."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _holder(path: Path) -> str:
    text = path.read_bytes()[:20].decode("ascii", "replace").strip()
    return text if text.isdigit() else ""
