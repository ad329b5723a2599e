"""`warcmill health`, over a real line: what it prints, writes and exits with; and what scans note as they end."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
import sample
from line import DAY, Line, line_at

SCANS = {"output.ScanForOutputs", "files.ScanForOutputFiles", "reports.ScanForReports"}


@pytest.fixture
def line(tmp_path: Path, finished: Line) -> Line:
    shutil.copytree(finished.config.parent, tmp_path / "line", symlinks=True)
    return line_at(tmp_path / "line")


def now(line: Line) -> Path:
    return line.folders["state"] / "status" / "now.json"


def looked(line: Line) -> tuple[int, dict[str, Any]]:
    result = line.warcmill("health", "--json")
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout)


def test_it_is_well_and_writes_what_it_prints(line: Line) -> None:
    code, found = looked(line)
    assert (code, found["well"]) == (0, True), found
    assert json.loads(now(line).read_text()) == found
    assert {one["kind"] for one in found["asked"]} == {"root"}
    assert {one["root"] for one in found["roots"]} >= {"state", "store", "output", "jobs"}
    assert {one["name"] for one in found["scans"]} >= SCANS
    assert found["launches"]["done"] + found["launches"]["waiting"] == 1
    assert found["files"]["verify"]["warcs"] > 0
    text = line.warcmill("health").stdout
    assert "✔ root store: " in text
    assert "backup ended never" in text


def test_a_scan_writes_it_as_it_ends(line: Line) -> None:
    now(line).unlink(missing_ok=True)
    code = line.warcmill("scan", sample.LAUNCH_ID[:4]).returncode
    found = json.loads(now(line).read_text())
    assert found["well"] is True
    (ended,) = [one for one in found["scans"] if one["name"] == "files.ScanForOutputFiles"]
    assert ended["first_day"] == f"{sample.LAUNCH_ID[:4]}-01-01"
    assert code in (0, 1)


def test_the_backup_is_noted_when_it_has_succeeded(line: Line) -> None:
    assert looked(line)[1]["backup"] == {"ended": ""}
    words = ("--module", "tasks.state", "state.BackupState", "--date", DAY)
    (line.folders["store"]).rename(f"{line.folders['store']}.away")
    assert line.luigi(*words).returncode != 0
    assert looked(line)[1]["backup"] == {"ended": ""}
    Path(f"{line.folders['store']}.away").rename(line.folders["store"])
    assert line.luigi(*words).returncode == 0
    assert looked(line)[1]["backup"]["ended"] > "2026"


def test_a_scan_that_ended_two_days_ago_is_named_and_exits_1(line: Line) -> None:
    noted = line.folders["state"] / "status" / "ended.files.ScanForOutputFiles.json"
    noted.write_text(json.dumps({**json.loads(noted.read_text()), "ended": "2016-10-31T00:00:00Z"}))
    done = line.warcmill("health")
    assert done.returncode == 1
    assert "✘ files.ScanForOutputFiles: it ended more than 2 days ago, at 2016-10-31T00:00:00Z\n" in done.stdout
    assert "-> see why the timer or cron does not run it; by hand: warcmill scan\n" in done.stdout
    assert line.warcmill("scan", DAY).returncode in (0, 1)
    assert looked(line)[1]["overdue"] == []


def test_what_is_away_is_named_with_what_to_do(line: Line) -> None:
    line.folders["store"].rename(f"{line.folders['store']}.away")
    with socket.socket() as taken:  # listens, and never answers
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with line.config.open("a") as config:
            config.write(f"\n[viruses]\nclamd=127.0.0.1:{port}\n")
        code, found = looked(line)
    assert (code, found["well"]) == (1, False)
    bad = {one["name"]: one for one in found["asked"] if not one["answered"]}
    assert set(bad) == {"store", "clamd"}
    assert all(one["why"] and one["todo"] for one in bad.values())
    result = line.warcmill("health")
    assert result.returncode == 1
    assert "✘ root store: " in result.stdout
    assert "✘ server clamd: " in result.stdout


def test_without_the_state_it_is_4_and_a_scan_is_not_failed_by_its_reports(line: Line) -> None:
    folder = now(line).parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.write_text("a file in the way")
    before = line.warcmill("reconcile", DAY).returncode
    assert line.warcmill("scan", DAY).returncode == before
    folder.unlink()
    line.folders["state"].rename(f"{line.folders['state']}.away")
    result = line.warcmill("health")
    assert result.returncode == 4
    assert "root 'state'" in result.stderr
    os.rename(f"{line.folders['state']}.away", line.folders["state"])


def test_the_figures_for_prometheus_are_replaced_whole_or_not_at_all(line: Line, tmp_path: Path) -> None:
    file = tmp_path / "warcmill.prom"
    file.write_text("of before")
    assert line.warcmill("health", "--prometheus", str(file)).returncode == 0
    first = file.read_text()
    assert '\nwarcmill_up{kind="root",name="store"} 1\n' in first
    assert '\nwarcmill_scan_end_timestamp_seconds{scan="files.ScanForOutputFiles"} ' in first
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [file.name]
    line.folders["state"].rename(f"{line.folders['state']}.away")
    assert line.warcmill("health", "--prometheus", str(file)).returncode == 4
    assert file.read_text() == first, "its times age, and an alert sees it"
    os.rename(f"{line.folders['state']}.away", line.folders["state"])
    result = line.warcmill("health", "--prometheus", str(tmp_path / "nowhere" / "warcmill.prom"))
    assert result.returncode == 4
    assert "nowhere" in result.stderr
