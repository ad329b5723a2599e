"""The restore drill: the state folder is lost, and everything is known again, nothing redone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import sample
from line import DAY, Line, new_line

from warcmill import layout, roots
from warcmill.model import FINAL, Launch

LAUNCH = Launch(sample.JOB, sample.LAUNCH_ID)


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return new_line(tmp_path)


def back_up(line: Line) -> int:
    return line.luigi("--module", "tasks.state", "state.BackupState", "--date", DAY).returncode


def kept(line: Line) -> list[Path]:
    return sorted((line.folders["store"] / "state" / LAUNCH.job / LAUNCH.id).glob("*"))


def lose_the_state(line: Line) -> None:
    shutil.rmtree(line.folders["state"])
    roots.adopt({"state": line.folders["state"]})


def files(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0][0] != "."]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if "status." not in path.name}


def test_a_lost_state_is_known_again_and_nothing_is_redone(line: Line) -> None:
    assert line.scan() == [0, 0]
    assert back_up(line) == 0
    before = files(line.folders["state"])
    lose_the_state(line)
    told = line.warcmill("restore")
    assert told.returncode == 0, told.stdout
    assert files(line.folders["state"]) == {path: data for path, data in before.items() if "/attempts/" not in path}
    scan = line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY)
    assert "begins" not in scan.stderr
    assert line.warcmill("reconcile", DAY).returncode == 0
    assert line.warcmill("restore").returncode == 0


def test_the_same_markers_are_kept_once_and_changed_ones_beside_them(line: Line) -> None:
    assert line.scan() == [0, 0]
    assert [back_up(line), back_up(line)] == [0, 0]
    assert len(kept(line)) == 1
    words = ["--job", LAUNCH.job, "--launch-id", LAUNCH.id, "--stage", "final"]
    assert line.luigi("--module", "tasks.files", "files.ReadBack", *words).returncode == 0
    assert back_up(line) == 0
    assert len(kept(line)) == 2
    lose_the_state(line)
    assert line.warcmill("restore").returncode == 0
    assert line.state.read(layout.key("files.ReadBack", LAUNCH, stage=FINAL))


def test_a_launch_that_is_not_closed_is_left_for_later(line: Line) -> None:
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY).returncode == 0
    assert back_up(line) == 0
    assert kept(line) == []


def test_nothing_in_the_state_is_changed_and_a_difference_is_named(line: Line) -> None:
    assert line.scan() == [0, 0]
    assert back_up(line) == 0
    marker = line.state.store.real(layout.marker_path(layout.key("output.ProcessOutputs", LAUNCH)))
    marker.write_bytes(b"another")
    told = line.warcmill("restore")
    assert told.returncode == 1
    assert marker.name in told.stdout
    assert marker.read_bytes() == b"another"


def test_a_damaged_backup_is_named_and_restores_nothing(line: Line) -> None:
    assert line.scan() == [0, 0]
    assert back_up(line) == 0
    (zipped,) = kept(line)
    data = bytearray(zipped.read_bytes())
    data[len(data) // 3] ^= 1
    zipped.chmod(0o644)
    zipped.write_bytes(data)
    lose_the_state(line)
    told = line.warcmill("restore")
    assert told.returncode == 1
    assert f"{LAUNCH}: 0 files restored" in told.stdout
