"""What cron and systemd run, in cron's environment: the lines of config/crontab, and scripts/scan."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from line import DAY, Line
from operating import crontab

ROOT = Path(__file__).parent.parent.parent
BIN = Path(sys.executable).parent


def crontab_command(name: str) -> str:
    """The command of the one entry, or example, of config/crontab that runs this."""
    (command,) = (entry.command for entry in crontab.entries() if entry.name == name)
    return command


def test_the_crontabs_launches_run_under_crons_environment(line: Line, tmp_path: Path) -> None:
    log = tmp_path / "pulse.log"
    more = {"BIN": str(Path(sys.executable).parent), "LOG": str(log)}
    command = crontab_command("pulse.ScanForLaunches")
    before = time.time()
    done = subprocess.run(["/bin/sh", "-c", command], env=environment(line, **more), cwd="/", check=False)
    assert done.returncode == 0, log.read_text()
    told = log.read_text()
    days = (before, time.time())  # midnight may come at any point between them
    assert any(f"pulse.ScanForLaunches: first day {day(now, 1)}, last day " in told for now in days)
    assert any(f", last day {day(now)} (" in told for now in days)


def day(now: float, back: int = 0) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(now - back * 86_400))


def test_the_crontabs_backup_runs_under_crons_environment(line: Line, tmp_path: Path) -> None:
    log = tmp_path / "backup.log"
    more = {"BIN": str(Path(sys.executable).parent), "LOG": str(log)}
    command = crontab_command("state.BackupState")
    subprocess.run(["/bin/sh", "-c", command], env=environment(line, **more), cwd="/", check=True)
    assert "state.BackupState: first day " in log.read_text()


@pytest.mark.parametrize("action", ["start", "checkpoint", "stop"])
def test_the_crontabs_lines_for_one_job_name_its_engine_s_section_where_there_is_none(
    line: Line, tmp_path: Path, action: str
) -> None:
    log = tmp_path / "pulse.log"
    more = {"BIN": str(Path(sys.executable).parent), "LOG": str(log)}
    command = crontab_command(f"pulse {action}")
    done = subprocess.run(["/bin/sh", "-c", command], env=environment(line, **more), cwd="/", check=False)
    assert done.returncode == 3, log.read_text()
    assert ("[job.daily]" if action == "start" else "[engine.NAME] jobs") in log.read_text()


def script(folder: Path) -> Path:
    """scripts/scan, in a project whose .venv is the Python that runs this test."""
    (folder / "scripts").mkdir(parents=True)
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(BIN)
    return Path(shutil.copy(ROOT / "scripts" / "scan", folder / "scripts"))


def environment(line: Line, **more: str) -> dict[str, str]:
    """What cron gives: next to nothing."""
    cron = {"HOME": str(line.config.parent), "LOGNAME": "warcmill", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
    return {**cron, "LUIGI_CONFIG_PATH": str(line.config), **more}


def test_the_crontabs_command_runs_under_crons_environment(line: Line, tmp_path: Path) -> None:
    log = tmp_path / "scan.log"
    command, before = crontab_command("scan"), time.time()
    done = in_crons_shell(line, command, log)
    told = log.read_text()
    assert done == 0, told
    logged = (line.folders["state"] / "log/scan.log").read_text()
    for what in ("output.ScanForOutputs", "files.ScanForOutputFiles"):
        assert any(f"{what}: first day {day(now, 60)}, last day " in logged for now in (before, time.time()))
    assert "no gap" in told.splitlines()[-1]


def in_crons_shell(line: Line, command: str, log: Path, bin_folder: Path = BIN) -> int:
    more = {"BIN": str(bin_folder), "LOG": str(log)}
    return subprocess.run(["/bin/sh", "-c", command], env=environment(line, **more), cwd="/", check=False).returncode


@pytest.mark.parametrize(("code", "crons"), [(0, 0), (5, 0), (25, 0), (1, 1), (4, 4), (70, 70)])
def test_the_crontab_takes_another_scan_and_a_drain_as_success(
    line: Line, tmp_path: Path, code: int, crons: int
) -> None:
    (tmp_path / "warcmill").write_text(f"#!/bin/sh\nexit {code}\n")
    (tmp_path / "warcmill").chmod(0o755)
    assert in_crons_shell(line, crontab_command("scan"), tmp_path / "scan.log", tmp_path) == crons


def test_the_script_is_the_command(line: Line, tmp_path: Path) -> None:
    path = script(tmp_path / "a project")
    done = subprocess.run([str(path), DAY], env=environment(line), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"scan {DAY}: 1 launch, 2 WARCs")
    wrong = subprocess.run([str(path), "soon"], env=environment(line), capture_output=True, text=True, check=False)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    (path.parent.parent / ".venv" / "bin").unlink()
    done = subprocess.run([str(path), DAY], env=environment(line), capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "scripts/setup" in done.stderr
