"""warcmill scan: both scans and reconcile, what it shows, and how it ends."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import preloaded
import pytest
from launches.bundled import (
    DEAD,
    LAUNCH,
    NAMES,
    REASON,
    copy_launch,
    enlarge,
    files,
    job_logs,
    signal_at_checksum,
    steps_left_undone,
)
from line import DAY, Line
from sample import JOB, LAUNCH_ID
from sites.receivers import web_server

from warcmill import layout
from warcmill.layout import SENTINEL

WHY = f"next: warcmill why {' '.join(NAMES)}"
LUIGIS = ("Execution Summary", "Traceback")


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.splitlines()[-1]


def warc_of(line: Line) -> Path:
    return next((line.folders["output"] / "warcs" / JOB / LAUNCH_ID).iterdir())


def scanning(line: Line, *words: str, **files: int) -> preloaded.Process:
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    return preloaded.start("commands.main", "scan", DAY, *words, env=environment, **files)


def test_a_launch_goes_all_the_way_and_luigi_is_out_of_sight(line: Line) -> None:
    done = line.warcmill("scan", DAY)
    assert (done.returncode, last_line(done)) == (
        0,
        f"scan {DAY}: 1 launch, 2 WARCs, 0 refused, 0 failed; no gap",
    ), done.stderr
    assert not any(word in done.stdout + done.stderr for word in LUIGIS)
    assert "no gap" in done.stdout.splitlines()[-2]
    assert line.state.read(files("Verify"))
    assert line.warcmill("scan", DAY).returncode == 0


def test_a_failed_step_is_one_line_without_a_traceback_and_verbose_shows_it(line: Line) -> None:
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY).returncode == 0
    warc = warc_of(line)
    warc.write_bytes(warc.read_bytes() + b"\n")
    done = line.warcmill("scan", DAY)
    assert (done.returncode, last_line(done)) == (
        1,
        f"scan {DAY}: 1 launch, 2 WARCs, 0 refused, 1 failed, 2 gaps; {WHY}",
    )
    assert not any(word in done.stderr for word in LUIGIS)
    told = [text for text in done.stderr.splitlines() if "1 item(s) failed" in text]
    assert len(told) == 1
    assert " ERROR " in told[0]
    verbose = line.warcmill("scan", DAY, "--verbose")
    assert verbose.returncode == 1
    assert all(word in verbose.stderr for word in LUIGIS)


def test_luigi_s_own_messages_come_last(line: Line) -> None:
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY).returncode == 0
    warc = warc_of(line)
    warc.write_bytes(warc.read_bytes() + b"\n")
    done = line.luigi("--module", "tasks.files", "files.ScanForOutputFiles", "--date-interval", DAY)
    assert done.returncode == 30
    assert re.search(r" ERROR .*files\.Checksum.*: 1 item\(s\) failed: length of .*\n$", done.stderr)
    (line.folders["output"] / SENTINEL).unlink()
    done = line.luigi("--module", "tasks.files", "files.ScanForOutputFiles", "--date-interval", DAY)
    assert done.returncode == 35
    assert "root 'output'" in done.stderr.splitlines()[-1]
    assert "errors.Unavailable" not in done.stderr.splitlines()[-1]


def test_a_refused_warc_is_1_until_it_is_accepted_and_its_notice_comes_before_the_last_line(line: Line) -> None:
    warc = warc_of(line)
    warc.write_bytes(warc.read_bytes()[:-1])
    with web_server() as posts:
        with line.config.open("a") as config:
            config.write(f"[notice]\nwebhook=http://127.0.0.1:{posts.port}/hook?token=s3cret\n")
        with scanning(line, err=subprocess.STDOUT) as process:
            told = (process.communicate()[0] or "").splitlines()
        assert process.returncode == 1
        assert told[-1] == f"scan {DAY}: 1 launch, 2 WARCs, 1 refused, 0 failed, 1 gap; {WHY}"
        assert "a notice was sent" in log_of(line)
        assert len(posts.posts) == 1
    assert line.warcmill("accept", warc.name, *REASON).returncode == 0
    done = line.warcmill("scan", DAY)
    assert (done.returncode, last_line(done)) == (0, f"scan {DAY}: 1 launch, 2 WARCs, 0 refused, 0 failed; no gap")


@pytest.mark.parametrize("name", ["scan", "files.ScanForOutputFiles"])
def test_beside_another_scan_it_is_5(line: Line, name: str) -> None:
    lock = line.folders["state"] / ".locks" / name
    lock.parent.mkdir()
    lock.write_text("4711")
    with lock.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = line.warcmill("scan", DAY)
    assert done.returncode == 5, done.stderr
    assert "process 4711" in done.stderr


def test_a_drain_is_acknowledged_when_it_comes_and_ends_with_25(line: Line) -> None:
    enlarge(line)
    with scanning(line, "--verbose") as process:
        told = signal_at_checksum(process, signal.SIGUSR1)
        assert process.wait(300) == 25, told
        assert process.stdout
        assert process.stdout.read() == f"scan {DAY}: drained; next: warcmill scan {DAY}\n"
    assert told.index("SIGUSR1: draining") < told.index(f"done: {layout.marker_path(files('Checksum'))}")
    assert steps_left_undone(told) == 0
    assert line.state.read(files("Checksum"))
    assert line.state.read(files("Verify")) is None


SIGNALS = pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])


@SIGNALS
def test_a_signal_stops_the_running_step(line: Line, number: signal.Signals, code: int) -> None:
    enlarge(line)
    with scanning(line, "--verbose") as process:
        told = signal_at_checksum(process, number)
        assert process.wait(300) == code, told
        assert process.stdout
        assert f"stopped by {number.name}; next: warcmill scan {DAY}" in process.stdout.read()
    assert line.state.read(files("Checksum")) is None


@SIGNALS
def test_a_signal_leaves_a_terminal_as_it_was(line: Line, number: signal.Signals, code: int) -> None:
    enlarge(line)
    leader, follower = terminal()
    with scanning(line, err=follower) as process:
        os.close(follower)
        told = ""
        while "Checksum" not in told:
            told += os.read(leader, 65_536).decode()
        process.send_signal(number)
        told += shown(leader)
        assert process.wait(300) == code, told
        assert process.stdout
        assert f"stopped by {number.name}; next: warcmill scan {DAY}" in process.stdout.read()
    assert "Traceback" not in told
    assert told.rindex("\x1b[?25h") > told.rindex("\x1b[?25l"), "the cursor is shown again"


def test_without_a_hardened_configuration_it_is_3_and_with_a_root_away_4(line: Line) -> None:
    for root in ("state", "store", "output"):
        (line.folders[root] / SENTINEL).rename(line.folders[root] / "away")  # type: ignore[index]
        done = line.warcmill("scan", DAY)
        assert done.returncode == 4, (root, done.stderr)
        assert f"root '{root}'" in done.stderr
        if root == "store":  # the first scan needs none
            assert (
                last_line(done) == f"scan {DAY}: 1 launch, 2 WARCs, 0 refused, 1 failed, 2 gaps; next: warcmill doctor"
            )
        (line.folders[root] / "away").rename(line.folders[root] / SENTINEL)  # type: ignore[index]
    line.config.write_text(line.config.read_text().replace("task_failed=30", "task_failed=0"))
    assert line.warcmill("scan", DAY).returncode == 3


def test_a_luigid_that_does_not_answer_is_4_at_once(line: Line, closed_port: int) -> None:
    remote = f"scheduler_host=127.0.0.1\nscheduler_port={closed_port}"
    line.config.write_text(line.config.read_text().replace("local_scheduler=true", remote))
    done = line.warcmill("scan", DAY)
    assert done.returncode == 4
    assert f"no luigid at 127.0.0.1:{closed_port}" in done.stderr
    assert line.state.read(files("Verify")) is None


def appears(line: Line) -> Callable[[], None]:
    """A launch that is not there yet, and has ended when it is."""
    return lambda: copy_launch(line, DEAD)


def ends(line: Line) -> Callable[[], None]:
    """A launch that runs, and ends."""
    copy_launch(line, DEAD)
    logs = {path: path.read_text() for path in job_logs(line, DEAD) if path.exists()}
    for path, text in logs.items():
        path.write_text("".join(one for one in text.splitlines(True) if "FINISHED" not in one))
    return lambda: [path.write_text(text) for path, text in logs.items()] and None


@pytest.mark.parametrize("meanwhile", [appears, ends])
def test_a_launch_that_ends_meanwhile_is_not_yet_scanned(
    line: Line, meanwhile: Callable[[Line], Callable[[], None]]
) -> None:
    happen = meanwhile(line)
    enlarge(line)
    with scanning(line, "--verbose") as process:
        assert process.stderr
        for text in process.stderr:
            if "files.Checksum" in text and "begins" in text:
                happen()
                break
        process.stderr.read()
        assert process.stdout
        told = process.stdout.read()
        assert process.wait(300) == 0, told
    assert f"1 not yet scanned: new since the scans began, for the next one\n  {DEAD}" in told
    assert told.splitlines()[-1].endswith("2 launches, 4 WARCs, 0 refused, 0 failed, 1 not yet scanned; no gap")
    assert line.warcmill("reconcile", DAY).returncode == 1
    assert line.warcmill("scan", DAY).returncode == 0


def test_on_a_terminal_it_draws_a_bar_and_prints_no_line_for_a_step(line: Line) -> None:
    enlarge(line)
    leader, follower = terminal()
    with scanning(line, out=follower, err=follower) as process:
        os.close(follower)
        told = shown(leader)
    assert process.returncode == 0, told
    assert re.search(rf"Checksum {LAUNCH} final .*MB.* MB/s.*BL-2026", told)
    assert "begins" not in told
    assert " done" not in told
    assert not any(word in told for word in LUIGIS)
    assert re.search(r"INFO files\.Checksum .* final: begins\n", log_of(line))


def test_elsewhere_it_prints_a_line_for_each_luigi_that_ran_steps_and_nothing_the_next_time(line: Line) -> None:
    done = line.warcmill("scan", DAY)
    assert done.stderr.splitlines()[:2] == [
        "output.ScanForOutputs: 4 done (CheckJobStopped 1, PackageLogs 1, AssembleOutput 1, ProcessOutputs 1)",
        "files.ScanForOutputFiles: 3 done (Checksum 1, Copy 1, Verify 1)",
    ]
    assert log_of(line).count(": done: ") == len(steps := re.findall(r"[A-Z]\w+ 1\b", done.stderr)), steps
    assert line.warcmill("scan", DAY).stderr == ""


def test_a_failure_is_on_stderr_with_its_reason_and_counted(line: Line) -> None:
    (line.folders["store"] / SENTINEL).rename(line.folders["store"] / "away")
    done = line.warcmill("scan", DAY)
    assert done.returncode == 4
    assert re.search(r" ERROR .*files\.Copy.*root 'store' .* is unavailable", done.stderr)
    assert "files.ScanForOutputFiles: 1 done (Checksum 1); 1 failed (Copy 1)\n" in done.stderr


def test_a_reader_of_stderr_that_has_gone_ends_no_scan(line: Line) -> None:
    reading, writing = os.pipe()
    with scanning(line, err=writing) as process:
        os.close(writing)
        os.close(reading)
        assert process.stdout
        assert "no gap" in process.stdout.read()
    assert process.returncode == 0
    assert line.state.read(files("Verify"))


def log_of(line: Line) -> str:
    return (line.folders["state"] / "log/scan.log").read_text()


def terminal() -> tuple[int, int]:
    """Both ends of a terminal of 40 rows and 130 columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, 0x5414, b"\x28\x00\x82\x00\x00\x00\x00\x00")  # TIOCSWINSZ
    return leader, follower


def test_a_log_file_that_cannot_be_written_ends_no_scan(line: Line) -> None:
    (line.folders["state"] / "log").write_text("no folder")
    done = line.warcmill("scan", DAY)
    assert (done.returncode, "scan.log cannot be" in done.stderr) == (0, True), done.stderr


def shown(leader: int) -> str:
    data = b""
    while True:
        try:
            more = os.read(leader, 65_536)
        except OSError:  # EIO: nobody has the other end any more
            os.close(leader)
            return data.decode("utf-8", "replace")
        data += more


def test_a_reader_of_stdout_that_has_gone_is_141(line: Line) -> None:
    reading, writing = os.pipe()
    with scanning(line, out=writing) as process:
        os.close(writing)
        os.close(reading)
        assert process.stderr
        assert "BrokenPipe" not in process.stderr.read()
    assert process.returncode == 141
    assert line.state.read(files("Verify"))
