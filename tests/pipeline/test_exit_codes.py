"""What luigi's exit code says of a scan: each row of the operator's table, by a real process."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import preloaded
import pytest
from line import DAY, SCANS, Line
from sample import JOB, LAUNCH_ID

from warcmill import layout
from warcmill.model import FINAL, Launch

LAUNCH = Launch(JOB, LAUNCH_ID)
LATER = Launch("nightly", LAUNCH_ID)
OUTPUT, FILES = SCANS
ON = ("--date-interval", DAY)


def scan(line: Line, which: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    return line.luigi("--module", *which, *ON)


def job_logs(line: Line, launch: Launch) -> list[Path]:
    """The launch's own job.log, and the job's."""
    return [line.folders["jobs"] / launch.job / "job.log", line.folders["jobs"] / launch.job / launch.id / "job.log"]


def second_launch(line: Line) -> None:
    """The sample once more, as a launch of another job."""
    folders = [line.folders["output"] / kind for kind in (*layout.KINDS, "jobs")]
    for folder in folders:
        if (folder / JOB).is_dir():
            shutil.copytree(folder / JOB, folder / LATER.job, symlinks=True)


def test_done_is_0_and_so_is_nothing_left_to_do(line: Line) -> None:
    assert line.scan() == [0, 0]
    assert line.scan() == [0, 0]


def test_a_crawl_that_runs_is_0_and_leaves_no_end(line: Line) -> None:
    for log in job_logs(line, LAUNCH):
        log.write_text("".join(one for one in log.read_text().splitlines(True) if "FINISHED" not in one))
    assert line.scan() == [0, 0]
    assert line.state.read(layout.key("output.CheckJobStopped", LAUNCH)) is None


def test_a_held_lock_is_10_and_names_its_holder(line: Line) -> None:
    lock = line.folders["state"] / ".locks" / OUTPUT[1]
    lock.parent.mkdir()
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(str(os.getpid()))
        file.flush()
        done = scan(line, OUTPUT)
    assert done.returncode == 10
    assert f"process {os.getpid()}" in done.stderr
    assert line.state.folder(LAUNCH) == {}


def test_a_failing_launch_is_30_and_holds_up_no_other(line: Line) -> None:
    second_launch(line)
    assert scan(line, OUTPUT).returncode == 0
    warc = next((line.folders["output"] / "warcs" / LATER.job / LATER.id).iterdir())
    with warc.open("ab") as file:
        file.write(b"\n")  # it has grown since its stage was assembled
    done = scan(line, FILES)
    assert done.returncode == 30
    assert warc.name in done.stderr
    assert line.state.read(layout.key("files.Verify", LAUNCH, stage=FINAL))
    assert line.state.read(layout.key("files.Checksum", LATER, stage=FINAL)) is None


def test_an_unmounted_root_is_35_and_nothing_is_taken_for_absent(line: Line) -> None:
    (line.folders["output"] / layout.SENTINEL).unlink()
    done = scan(line, OUTPUT)
    assert done.returncode == 35
    assert "Mount the disk" in done.stderr
    assert line.state.folder(LAUNCH) == {}


@pytest.mark.parametrize("launch_id", ["2026", "20261399999999", "../20261121081735"])
def test_a_bad_launch_id_is_40(line: Line, launch_id: str) -> None:
    done = line.luigi("--module", "tasks.output", "output.ProcessOutputs", "--job", JOB, "--launch-id", launch_id)
    assert done.returncode == 40
    assert "not a launch id" in done.stdout + done.stderr


def scan_in(folder: Path, config: str | None) -> subprocess.CompletedProcess[str]:
    """An output scan that is run in `folder`, with LUIGI_CONFIG_PATH or without."""
    environment = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
    environment |= {"LUIGI_CONFIG_PATH": config} if config else {}
    command = [sys.executable, "-m", "luigi", "--module", *OUTPUT, *ON]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("hardened", "softened", "code"),
    [
        ("check_complete_on_run=true", "check_complete_on_run=false", 40),
        ("task_failed=30", "task_failed=0", 40),
        ("unhandled_exception=40", "", 4),  # Luigi's own code for it
    ],
)
def test_a_configuration_that_is_not_hardened_starts_nothing(
    line: Line, hardened: str, softened: str, code: int
) -> None:
    line.config.write_text(line.config.read_text().replace(hardened, softened))
    done = scan_in(line.folders["store"], str(line.config))
    assert done.returncode == code
    assert f"Correct it in {line.config}" in done.stdout + done.stderr
    assert line.state.folder(LAUNCH) == {}


def test_a_key_that_is_mistyped_and_a_file_that_is_not_there_are_named(line: Line) -> None:
    line.config.write_text(line.config.read_text().replace("\nstore=", "\nstroe="))
    mistyped = line.warcmill("scan", DAY)
    assert mistyped.returncode == 3
    assert "the key 'store' is missing; did you mean 'stroe'?" in mistyped.stderr
    line.config.unlink()
    for verb in ("scan", "status"):
        gone = line.warcmill(verb, DAY)
        assert gone.returncode == 3
        assert f"LUIGI_CONFIG_PATH names {line.config}, and there is no such file" in gone.stderr


def test_a_folder_without_luigi_cfg_fails_loudly(tmp_path: Path) -> None:
    done = scan_in(tmp_path, None)
    assert done.returncode == 4, "Luigi's own code: there is no [retcode] to say 40"
    assert "Luigi found no hardened luigi.cfg" in done.stdout + done.stderr


def test_a_configuration_that_is_not_there_is_named_and_no_other_is_read(line: Line, tmp_path: Path) -> None:
    """As seen: a mistyped LUIGI_CONFIG_PATH gave a warning of Luigi's, and the luigi.cfg of this folder was read."""
    gone = tmp_path / "gone.cfg"
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(gone)}
    command = [sys.executable, "-m", "commands.main", "status"]
    done = subprocess.run(command, cwd=line.config.parent, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"LUIGI_CONFIG_PATH names {gone}, and there is no such file" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_drained_scan_is_25_with_the_running_step_done_and_no_other_begun(line: Line) -> None:
    warc = next(path for path in (line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())
    whole = warc.read_bytes()
    with warc.open("wb") as file:
        for _ in range((96 << 20) // len(whole)):  # as large as takes the step a while to read
            file.write(whole)
    assert scan(line, OUTPUT).returncode == 0
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    with preloaded.start("luigi", "--module", *FILES, *ON, env=environment) as process:
        assert process.stderr
        for text in process.stderr:
            if "files.Checksum" in text and "begins" in text:
                process.send_signal(signal.SIGUSR1)
                break
        told = process.stderr.read()
        assert process.wait(300) == 25, told
    assert line.state.read(layout.key("files.Checksum", LAUNCH, stage=FINAL))
    assert told.count(": begins") == told.count(": done: ") - 1, "all that it began, and Checksum too"
    assert line.state.read(layout.key("files.Verify", LAUNCH, stage=FINAL)) is None
    assert scan(line, FILES).returncode == 0
