"""What a scan says, and what it refuses to set off."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import preloaded
from line import Line, line_at


def ended_launches(line: Line, count: int) -> None:
    """Launches of which nothing is left but a job.log that says FINISHED."""
    for number in range(count):
        launch_id = (datetime(2016, 10, 1, tzinfo=UTC) + timedelta(minutes=number)).strftime("%Y%m%d%H%M%S")
        folder = line.folders["jobs"] / "daily" / launch_id
        folder.mkdir(parents=True)
        (folder / "job.log").write_text(f"2016-10-02T00:00:00.000Z INFO FINISHED {launch_id}\n")


def test_above_a_thousand_tasks_a_scan_stops_and_names_backfill(tmp_path: Path) -> None:
    line = line_at(tmp_path)
    ended_launches(line, 260)  # four tasks each
    scan = line.warcmill("scan", "2016-10")
    assert scan.returncode == 1
    assert "more than 1000 tasks to run, too many for one scan: run 'warcmill backfill 2016-10'" in scan.stderr
    assert scan.stdout.endswith("; next: warcmill backfill 2016-10, for there are too many steps for one scan\n")
    assert list((tmp_path / "state").glob("2016-10/daily/*")) == []


def test_a_scan_prints_its_days_and_reports_which_is_not_in_it(tmp_path: Path) -> None:
    line = line_at(tmp_path)
    ended_launches(line, 2)
    words = ("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", "2016-10-01-2016-10-31")
    scan = line.luigi(*words)
    assert scan.returncode == 0
    assert "first day 2016-10-01, last day 2016-10-30 (2016-10-31 is not in it), 2 launches" in scan.stderr
    assert len(list((tmp_path / "state").glob("2016-10/daily/*/04.*"))) == 2


def test_a_scan_can_be_asked_for_some_launches_only(tmp_path: Path) -> None:
    line = line_at(tmp_path)
    ended_launches(line, 4)
    only = ("--only", "daily/20161001000100,daily/20161001000300")
    scan = line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", "2016-10-01", *only)
    assert scan.returncode == 0
    assert "2 launches" in scan.stderr
    done = [path.parent.name for path in (tmp_path / "state").glob("2016-10/daily/*/04.*")]
    assert sorted(done) == ["20161001000100", "20161001000300"]


def test_a_day_that_holds_too_much_is_backfilled_by_some_of_its_launches_at_a_time(tmp_path: Path) -> None:
    line = line_at(tmp_path)
    ended_launches(line, 7)
    (line.folders["jobs"] / "daily" / "20161001000300" / "job.log").unlink()
    program = (  # as if a scan took no more than ten steps: two launches of four
        "import sys; from tasks import plan; from commands import main; plan.MOST_TASKS = 10;"
        "sys.exit(main.main(['backfill', '2016-10-01', '--verbose']))"
    )
    environment = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config)}
    done = preloaded.run("-c", program, env=environment)
    assert done.returncode == 0, done.stderr
    assert "2016-10-01: ok (7 launches; day 1 of 1)" in done.stdout
    scans = re.findall(r"(\w+): first day 2016-10-01, last day 2016-10-01, (\d) launches", done.stderr)
    assert scans[:5] == [("ScanForOutputs", "2")] * 3 + [("ScanForOutputFiles", number) for number in "33"]
    assert scans[5:] == [("ScanForReports", number) for number in "51"]
    ended = [path.parent.name for path in (tmp_path / "state").glob("2016-10/daily/*/files.verified.*")]
    assert len(ended) == 6, "all but the one that runs"
