"""Locks of scans: who holds one, and that looking at it hinders nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from warcmill.errors import Unavailable
from warcmill.markers import locks
from warcmill.markers.state import MarkerStore
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

HOLD = """
import sys
from pathlib import Path
from warcmill.markers import locks
from warcmill.markers.state import MarkerStore
from warcmill.stores.file import FileStore
print(locks.take(MarkerStore(FileStore("state", Path(sys.argv[1]))), sys.argv[2]), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def state(tmp_path: Path) -> MarkerStore:
    sentinel.adopt({"state": tmp_path})
    return MarkerStore(FileStore("state", tmp_path))


@contextmanager
def holder(state: MarkerStore, name: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds a lock, until the block ends."""
    command = [sys.executable, "-c", HOLD, str(state.store.base), name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "\n"
        yield process


def test_no_scan_is_at_work_where_none_ever_was(state: MarkerStore) -> None:
    assert locks.scans_at_work(state) == []
    assert not (state.store.base / locks.FOLDER).exists()


def test_a_scan_at_work_is_named_with_its_process_until_it_ends(state: MarkerStore) -> None:
    with holder(state, "scan") as process:
        assert locks.scans_at_work(state) == [("scan", process.pid)]
        assert locks.take(state, "scan") == str(process.pid)
        assert locks.take(state, "files.ScanForOutputFiles") == ""
        assert locks.take(state, "files.ScanForOutputFiles") == "", "it is ours already"
        assert locks.scans_at_work(state) == [("files.ScanForOutputFiles", os.getpid()), ("scan", process.pid)]
    assert locks.scans_at_work(state) == [("files.ScanForOutputFiles", os.getpid())]


def test_a_lock_on_an_engine_is_no_scan(state: MarkerStore) -> None:
    with holder(state, "pulse.daily"):
        (state.store.base / locks.FOLDER / "pulse.daily").write_bytes(b"")
        assert locks.scans_at_work(state) == []


def test_a_lock_that_somebody_looks_at_is_had_all_the_same(state: MarkerStore, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = [True, False]
    flock = locks.fcntl.flock

    def busy_once(descriptor: int, how: int) -> None:
        if looked_at.pop(0):
            raise BlockingIOError
        flock(descriptor, how)

    monkeypatch.setattr(locks.fcntl, "flock", busy_once)
    assert locks.take(state, "scan") == ""


def test_a_state_that_cannot_be_written_is_unavailable(state: MarkerStore) -> None:
    (state.store.base / locks.FOLDER).write_bytes(b"")
    with pytest.raises(Unavailable, match=r"\.locks"):
        locks.take(state, "scan")


def test_locks_that_cannot_be_read_are_named(state: MarkerStore) -> None:
    (state.store.base / locks.FOLDER / "output.ScanForOutputs").mkdir(parents=True)
    with pytest.raises(Unavailable, match=r"root 'state', .*\.locks"):
        locks.scans_at_work(state)
