"""The lock of a job, `state/lock`: held by the process that crawls it, whose pid alone would prove nothing."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from warcmill.crawl.durable import failed, make_folder
from warcmill.errors import Busy
from warcmill.model import Launch

NAME = "lock"
PATIENCE, POLL = 2.0, 0.05  # seconds: who only looks holds it for a moment


class Holder(NamedTuple):
    """Who crawls a job; '' and 0 before it has a launch."""

    launch: str
    pid: int


class Lock:
    """A lock that is held."""

    def __init__(self, file: int, path: Path) -> None:
        self._file, self._path = file, path

    def name(self, launch: Launch) -> None:
        """Write which launch is crawled."""
        text = json.dumps({"launch": launch.id, "pid": os.getpid()}).encode()
        try:
            os.pwrite(self._file, text + b"\n", 0)
            os.ftruncate(self._file, len(text) + 1)
        except OSError as error:
            raise failed(self._path, error) from error


@contextmanager
def held(state: Path) -> Iterator[Lock]:
    """Hold a job's lock. Busy, naming the launch, when another process crawls it."""
    make_folder(state)
    path, deadline = state / NAME, time.monotonic() + PATIENCE
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise failed(path, error) from error
    try:
        while not _locked(file, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                found = _read(path)
                raise Busy(f"the crawl of {state.parent.name}, launch {found.launch or 'not begun'}, pid {found.pid},")
            time.sleep(POLL)
        os.ftruncate(file, 0)
        yield Lock(file, path)
    finally:
        os.close(file)


def holder(state: Path) -> Holder | None:
    """Who crawls a job; None when nobody does."""
    try:
        file = os.open(state / NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failed(state / NAME, error) from error
    try:
        return None if _locked(file, fcntl.LOCK_SH) else _read(state / NAME)
    finally:
        os.close(file)


def _locked(file: int, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(path: Path) -> Holder:
    try:
        found = json.loads(path.read_bytes() or b"{}")
        return Holder(str(found.get("launch", "")), int(found.get("pid", 0)))
    except (OSError, ValueError, TypeError, AttributeError):  # it is being written
        return Holder("", 0)
