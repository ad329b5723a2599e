"""scripts/every: the pause, the drain, and the result that --check reports."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

EVERY = Path(__file__).parent.parent.parent / "scripts" / "every"
SECONDS = 60
LASTING = 'trap "echo heard >>log" USR1; echo begun >>log; until [ -e end ]; do sleep 0.05; done'
DRAINED = 'trap "echo drained >>log; exit 25" USR1; echo begun >>log; while :; do sleep 0.05; done'


def start(folder: Path, pause: str, text: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "TMPDIR": str(folder)}
    return subprocess.Popen([EVERY, pause, "sh", "-c", text], cwd=folder, env=environment)


def check(folder: Path) -> int:
    return subprocess.run([EVERY, "--check"], env={**os.environ, "TMPDIR": str(folder)}, check=False).returncode


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def lines(folder: Path) -> list[str]:
    log = folder / "log"
    return log.read_text().split() if log.exists() else []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_the_command_and_none_follows(tmp_path: Path, number: signal.Signals) -> None:
    process = start(tmp_path, "0", DRAINED)
    wait_for(lambda: lines(tmp_path) == ["begun"])
    process.send_signal(number)
    assert process.wait(SECONDS) == 0
    assert lines(tmp_path) == ["begun", "drained"]
    assert not (tmp_path / "every.code").exists(), "it was not a whole run"


def test_a_command_that_goes_on_is_waited_for(tmp_path: Path) -> None:
    """As a scan does, whose step takes an hour: a second SIGTERM changes nothing."""
    process = start(tmp_path, "0", LASTING)
    wait_for(lambda: lines(tmp_path) == ["begun"])
    for number in (1, 2):
        process.send_signal(signal.SIGTERM)
        wait_for(lambda number=number: lines(tmp_path) == ["begun", *["heard"] * number])  # type: ignore[misc]
    assert process.poll() is None
    (tmp_path / "end").touch()
    assert process.wait(SECONDS) == 0


def test_it_runs_again_and_a_pause_ends_with_a_signal(tmp_path: Path) -> None:
    process = start(tmp_path, "0", "echo x >>log")
    wait_for(lambda: len(lines(tmp_path)) > 2)
    process.terminate()
    assert process.wait(SECONDS) == 0
    process = start(tmp_path, "3600", "echo once >>log")
    wait_for(lambda: lines(tmp_path)[-1:] == ["once"])
    process.terminate()
    assert process.wait(SECONDS) == 0
    assert lines(tmp_path).count("once") == 1


@pytest.mark.parametrize("code", [0, 1, 5, 10, 25, 3, 4, 30, 70])
def test_a_run_that_failed_is_unhealthy(tmp_path: Path, code: int) -> None:
    assert check(tmp_path) == 0, "nothing has ended yet"
    process = start(tmp_path, "3600", f"exit {code}")
    wait_for((tmp_path / "every.code").exists)
    process.terminate()
    assert process.wait(SECONDS) == 0
    assert check(tmp_path) == int(code in (3, 4, 30, 70))


def test_a_command_that_is_not_there_is_unhealthy(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([EVERY, "3600", "no-such-program"], env=environment, stderr=subprocess.DEVNULL)
    wait_for(lambda: (tmp_path / "every.code").exists() and (tmp_path / "every.code").read_text() == "127\n")
    process.terminate()
    assert process.wait(SECONDS) == 0
    assert check(tmp_path) == 1
