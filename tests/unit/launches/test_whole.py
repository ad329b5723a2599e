"""A launch is known to be whole only as long as nothing of it has changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from warcmill import layout
from warcmill.launches import discovery
from warcmill.launches.discovery import Whole
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

LAUNCH = Launch("daily", "20161019234428")
TASK = "index.VerifyCdx"
MARKER = layout.marker_path(layout.step("verify-cdx", LAUNCH, FINAL))
ASSEMBLED = layout.marker_path(layout.step("assemble", LAUNCH, FINAL))
LOOKED = "looked/index.ScanForIndexing"


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state with a launch of two markers, which nothing has changed for long; and an index root."""
    monkeypatch.setattr(discovery, "SETTLED", -3600)
    sentinel.adopt({"state": tmp_path / "state", "index": tmp_path / "index"})
    for path in (ASSEMBLED, MARKER):
        file = tmp_path / "state" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"marker")
    return tmp_path


def launches(line: Path) -> Whole:
    """What a scan knows as it begins."""
    return Whole(MarkerStore(FileStore("state", line / "state")), FileStore("index", line / "index"), LOOKED[7:])


def looked(line: Path) -> None:
    """Have a scan find the launch whole."""
    scan = launches(line)
    scan.add(LAUNCH, TASK)
    scan.keep()


def test_what_has_not_changed_is_known(line: Path) -> None:
    assert not launches(line).has(LAUNCH, TASK)
    looked(line)
    assert launches(line).has(LAUNCH, TASK)
    assert not launches(line).has(LAUNCH, f"{TASK} index.VerifySolr"), "a switch is on that was off"


def _redone(line: Path) -> None:
    (line / "state" / MARKER).rename(line / "state" / f"{MARKER}.aside")


def _added(line: Path) -> None:
    (line / "state" / MARKER).with_name("another").write_bytes(b"")


def _damaged(line: Path) -> None:
    file = line / "state" / MARKER
    before = file.stat()
    with file.open("r+b") as stream:
        stream.write(b"M")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def _restored(line: Path) -> None:
    state = line / "state"
    shutil.copytree(state, line / "copy")
    shutil.rmtree(state)
    (line / "copy").rename(state)


@pytest.mark.parametrize("change", [_redone, _added, _damaged, _restored])
def test_what_has_changed_is_looked_at(change: Callable[[Path], None], line: Path) -> None:
    looked(line)
    change(line)
    assert not launches(line).has(LAUNCH, TASK)


@pytest.mark.parametrize("kept", [b"", b"[]", b'{"daily/20161019234428": ["index.VerifyCdx"]}', b"\xff"])
def test_what_was_kept_may_be_lost_or_damaged(kept: bytes, line: Path) -> None:
    looked(line)
    (line / "index" / LOOKED).write_bytes(kept)
    assert not launches(line).has(LAUNCH, TASK)
    (line / "index" / LOOKED).unlink()
    assert not launches(line).has(LAUNCH, TASK)


def test_what_has_changed_just_now_is_not_kept(line: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "SETTLED", 3600)
    looked(line)
    assert not launches(line).has(LAUNCH, TASK)


def test_a_scan_of_other_days_keeps_what_is_known(line: Path) -> None:
    looked(line)
    scan = launches(line)
    scan.add(Launch("weekly", "20161020000000"), TASK)  # it has no folder
    scan.keep()
    assert launches(line).has(LAUNCH, TASK)
