"""What cron and systemd run, in cron's environment: the lines of config/crontab, and scripts/scan."""

from __future__ import annotations

import fcntl
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import crontab
import pytest
from bundled import DEAD, LAUNCH, copy_launch, enlarge, files, signal_at_checksum, steps_left_undone
from line import DAY, Line
from sample import LAUNCH_ID

from warcmill import layout
from warcmill.model import Launch

ROOT = Path(__file__).parent.parent.parent


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
    assert log.read_text().count("Execution Summary") == 28  # two lines of it for each of the fourteen days
    assert "days ago failed" not in log.read_text()


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
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    return Path(shutil.copy(ROOT / "scripts" / "scan", folder / "scripts"))


def environment(line: Line, **more: str) -> dict[str, str]:
    """What cron gives: next to nothing."""
    cron = {"HOME": str(line.config.parent), "LOGNAME": "warcmill", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}
    return {**cron, "LUIGI_CONFIG_PATH": str(line.config), **more}


def test_the_crontabs_command_runs_under_crons_environment(line: Line, tmp_path: Path) -> None:
    log = tmp_path / "scan.log"
    more = {"SCAN": str(script(tmp_path / "a project")), "LOG": str(log)}
    command, before = crontab_command("scan"), time.time()
    done = subprocess.run(["/bin/sh", "-c", command], env=environment(line, **more), cwd="/", check=False)
    told = log.read_text()
    assert done.returncode == 0, told
    for what in ("output.ScanForOutputs", "files.ScanForOutputFiles"):
        assert any(f"{what}: first day {day(now, 60)}, last day " in told for now in (before, time.time()))
    assert "no gap" in told


def scan(line: Line, tmp_path: Path, interval: str = DAY) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "project" / "scripts" / "scan"
    command = [str(path if path.exists() else script(tmp_path / "project")), interval]
    return subprocess.run(command, env=environment(line), capture_output=True, text=True, check=False)


def test_the_script_runs_all_three_and_says_the_worst(line: Line, tmp_path: Path) -> None:
    assert scan(line, tmp_path).returncode == 0
    copy_launch(line, DEAD)
    (line.folders["output"] / "warcs" / DEAD.job / DEAD.id / "stray.warc.gz").write_bytes(b"")
    assert scan(line, tmp_path).returncode == 1, "reconcile: a gap"
    copy_launch(line, other := Launch("other", LAUNCH_ID))
    state = line.folders["state"] / layout.state_folder(other)
    state.mkdir(parents=True)
    shutil.copy(
        line.folders["state"] / layout.marker_path(layout.key("output.CheckJobStopped", LAUNCH)),
        state / layout.marker_name(layout.key("output.CheckJobStopped", other)),
    )
    failed = scan(line, tmp_path)
    assert failed.returncode == 30, "a marker of another launch stops its own"
    assert "files.ScanForOutputFiles: first day" in failed.stderr
    assert "3 launches" in failed.stdout, "reconcile ran"


def test_the_script_wants_an_interval_a_configuration_and_a_set_up_project(line: Line, tmp_path: Path) -> None:
    path = script(tmp_path / "project")
    for words, env in (([], environment(line)), ([DAY], {"PATH": "/usr/bin:/bin"})):
        done = subprocess.run([str(path), *words], env=env, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (2, "")
        assert "usage:" in done.stderr
    (tmp_path / "project" / ".venv" / "bin").unlink()
    done = subprocess.run([str(path), DAY], env=environment(line), capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "scripts/setup" in done.stderr


def test_the_script_drains(line: Line, tmp_path: Path) -> None:
    enlarge(line)
    command = [str(script(tmp_path / "project")), DAY]
    with subprocess.Popen(command, env=environment(line), stderr=subprocess.PIPE, text=True) as process:
        told = signal_at_checksum(process, signal.SIGUSR1)
        assert process.wait(60) == 25, told
    assert steps_left_undone(told) == 0
    assert line.state.read(files("Checksum"))
    assert line.state.read(files("Verify")) is None


def test_the_script_hands_a_held_lock_on(done: Line, tmp_path: Path) -> None:
    with (done.folders["state"] / ".locks" / "output.ScanForOutputs").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert scan(done, tmp_path).returncode == 10
