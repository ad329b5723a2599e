"""backfill walks past days, each by the scans, and reports which failed; a lock or a signal ends it."""

from __future__ import annotations

import fcntl
import os
import signal

import preloaded
import pytest
from launches.bundled import LAUNCH, copy_launch, enlarge, evidence, files, signal_at_checksum, steps_left_undone
from line import DAY, Line
from sample import JOB

from warcmill.model import Launch


def test_a_backfill_walks_the_days_oldest_first_and_passes_over_a_failed_one(line: Line) -> None:
    days = [Launch(JOB, "20160103000000"), Launch(JOB, "20160101000000"), Launch(JOB, "20160102000000")]
    for launch in days:
        copy_launch(line, launch)  # earlier than the sample, so that its own job.log ends each
    (line.folders["jobs"] / JOB / days[2].id / "job.log").unlink()
    (line.folders["jobs"] / JOB / days[2].id / "job.log").mkdir()
    walked = line.warcmill("backfill", "2016")
    assert walked.returncode == 1
    told = walked.stdout.splitlines()
    assert told[0] == "first day 2016-01-01, last day 2016-12-31: 3 launches"
    assert [text.split(":")[0] for text in told[1:]] == ["2016-01-01", "2016-01-02", "2016-01-03"]
    assert ["ok" in text for text in told[1:]] == [True, False, True]
    assert "failed: 2016-01-02" in walked.stderr
    assert all(evidence(line, files("Verify", days[0]), files("Verify", days[1])))
    (line.folders["jobs"] / JOB / days[2].id / "job.log").rmdir()
    assert line.warcmill("backfill", "2016").returncode == 0
    assert line.state.read(files("Verify", days[2]))


def test_a_backfill_beside_another_scan_is_5(line: Line) -> None:
    lock = line.folders["state"] / ".locks" / "output.ScanForOutputs"
    lock.parent.mkdir()
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = line.warcmill("backfill", DAY)
    assert done.returncode == 5
    assert f"{DAY}: output.ScanForOutputs is being done by another process" in done.stderr


def test_a_backfill_without_a_hardened_configuration_is_3(line: Line) -> None:
    line.config.write_text(line.config.read_text().replace("task_failed=30", "task_failed=0"))
    assert line.warcmill("backfill", DAY).returncode == 3
    assert line.state.folder(LAUNCH) == {}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGUSR1, 1), (signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_reaches_the_scan_and_ends_the_backfill(line: Line, number: signal.Signals, code: int) -> None:
    enlarge(line)
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    with preloaded.start("commands.main", "backfill", DAY, "--verbose", env=environment) as process:
        told = signal_at_checksum(process, number)
        assert process.wait(300) == code, told
    assert "run the same command again" in told
    assert steps_left_undone(told) == (0 if number == signal.SIGUSR1 else 1), "drained: the step is finished"
    assert line.state.read(files("Verify")) is None
    assert line.scan() == [0, 0]
