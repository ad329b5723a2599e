"""Bad days, by real commands: each ends as documented, loses nothing, and the other launch is done."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import sample
from line import DAY, Line, line_at, new_line, without_dead_seed
from records.warcs import END, record

from warcmill import layout
from warcmill.model import FINAL, Launch, Outcome

GOOD = Launch(sample.JOB, sample.LAUNCH_ID)
BAD = Launch("other", "20261121090000")
KINDS = ("jobs", "logs", "reports", "warcs", "viral")


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """Two launches of one day: the bundled one, and a copy of it under another name, for the worse."""
    without_dead_seed(sample.lay_out(tmp_path / "output"))
    for kind in KINDS:
        source = tmp_path / "output" / kind / GOOD.job / GOOD.id
        shutil.copytree(source, tmp_path / "output" / kind / BAD.job / BAD.id)
    job_log = tmp_path / "output" / "jobs" / BAD.job / BAD.id / "job.log"
    job_log.write_text(job_log.read_text().replace(GOOD.id, BAD.id))
    return line_at(tmp_path)


def bad(line: Line, kind: str) -> Path:
    return line.folders["output"] / kind / BAD.job / BAD.id


def warc(line: Line) -> Path:
    return next(bad(line, "warcs").glob("*.warc.gz"))


def verified(line: Line, launch: Launch) -> bool:
    return line.state.read(layout.key("files.Verify", launch, stage=FINAL)) is not None


def refused(line: Line) -> dict[str, int | None]:
    items = line.state.require(layout.key("files.Checksum", BAD, stage=FINAL)).claim.items
    return {item.why: item.offset for item in items if item.outcome is Outcome.REFUSED}


def cut(line: Line) -> None:
    os.truncate(warc(line), warc(line).stat().st_size - 1)


def flip(line: Line) -> None:
    data = bytearray(warc(line).read_bytes())
    data[len(data) // 2] ^= 1
    warc(line).write_bytes(data)


def empty(line: Line) -> None:
    warc(line).write_bytes(b"")


def cut_between_records(line: Line) -> None:
    data = warc(line).read_bytes()
    os.truncate(warc(line), data.rindex(b"\x1f\x8b\x08\x00", 0, len(data) // 2))


def bomb(line: Line) -> None:
    head = record("resource", length=10).removesuffix(END)
    with gzip.open(warc(line), "wb") as file:
        file.write(head)
        for _ in range(64):
            file.write(bytes(1 << 20))


@pytest.mark.parametrize("fault", [cut, flip, empty, cut_between_records, bomb])
def test_a_bad_warc_is_refused_by_offset_stored_whole_and_reported(line: Line, fault: Callable[[Line], None]) -> None:
    fault(line)
    assert line.scan() == [0, 0]
    assert len(refused(line)) == 1
    assert verified(line, GOOD)
    assert verified(line, BAD)
    stored = line.folders["store"] / "warcs" / BAD.job / BAD.id / warc(line).name
    assert stored.read_bytes() == warc(line).read_bytes()
    told = line.warcmill("reconcile", DAY)
    assert told.returncode == 1
    assert warc(line).name in told.stdout.replace("\n", "")


def test_a_missing_warc_and_a_missing_log_are_named_never_invented(line: Line) -> None:
    name = warc(line).name
    warc(line).unlink()
    (bad(line, "logs") / "alerts.log").unlink()
    assert line.scan() == [0, 0]
    assembled = line.state.require(layout.key("output.AssembleOutput", BAD, stage=FINAL)).claim
    assert assembled.facts["absent"] == [name]
    assert line.state.require(layout.key("output.PackageLogs", BAD, stage=FINAL)).claim.facts["absent"] == [
        "alerts.log"
    ]
    assert line.warcmill("reconcile", DAY).returncode == 1


def test_a_log_cut_in_the_middle_of_a_line_is_counted_to_there(line: Line) -> None:
    log = bad(line, "logs") / "crawl.log"
    os.truncate(log, log.stat().st_size - 100)
    assert line.scan() == [0, 0]
    counts = line.state.require(layout.key("output.AssembleOutput", BAD, stage=FINAL)).claim.counts
    assert (counts["lines"], counts["unread"]) == (276, 1)


def test_a_file_that_changed_since_it_was_listed_fails_and_is_retried(line: Line) -> None:
    whole = warc(line).read_bytes()
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY).returncode == 0
    warc(line).write_bytes(whole[:-5])
    scan = line.luigi("--module", "tasks.files", "files.ScanForOutputFiles", "--date-interval", DAY)
    assert scan.returncode == 30
    assert f"{len(whole)} bytes" in scan.stderr
    assert verified(line, GOOD)
    assert not verified(line, BAD)
    assert line.warcmill("reconcile", DAY).returncode == 1
    warc(line).write_bytes(whole)
    assert line.scan() == [0, 0]
    assert line.warcmill("reconcile", DAY).returncode == 0


def test_an_unreadable_folder_fails_its_launch_alone(line: Line) -> None:
    logs = bad(line, "logs")
    shutil.move(logs, logs.with_name("kept"))
    logs.symlink_to(logs)  # a loop: even root cannot read it
    assert line.scan() == [30, 0]
    assert verified(line, GOOD)
    assert line.warcmill("reconcile", DAY).returncode == 4
    logs.unlink()
    shutil.move(logs.with_name("kept"), logs)
    assert line.scan() == [0, 0]
    assert line.warcmill("reconcile", DAY).returncode == 0


@pytest.mark.parametrize("root", ["output", "jobs", "state", "store"])
def test_an_unmounted_root_is_an_outage_and_the_next_run_finishes(line: Line, root: str) -> None:
    sentinel = line.folders[root] / ".warcmill.json"  # type: ignore[index]
    kept = sentinel.read_bytes()
    sentinel.unlink()
    codes = line.scan()
    assert any(codes), codes
    assert line.warcmill("reconcile", DAY).returncode == 4
    sentinel.write_bytes(kept)
    assert line.scan() == [0, 0]
    assert line.warcmill("reconcile", DAY).returncode == 0


@pytest.mark.parametrize("content", [b"", b"{}\n"])
def test_an_emptied_marker_is_named_and_made_again(line: Line, content: bytes) -> None:
    assert line.scan() == [0, 0]
    marker = line.state.store.real(layout.marker_path(layout.key("output.ProcessOutputs", BAD)))
    before = marker.read_bytes()
    marker.write_bytes(content)
    assert line.warcmill("reconcile", DAY).returncode == 1
    assert line.scan() == [0, 0]
    assert marker.read_bytes().splitlines()[:20] == before.splitlines()[:20]
    assert [path.read_bytes() for path in (marker.parent / "aside").iterdir()] == [content]
    assert line.warcmill("reconcile", DAY).returncode == 0


def test_a_marker_copied_from_another_launch_stops_that_launch_alone(line: Line) -> None:
    good = line.state.store.real(layout.marker_path(layout.key("output.CheckJobStopped", GOOD)))
    foreign = line.state.store.real(layout.marker_path(layout.key("output.CheckJobStopped", BAD)))
    assert (
        line.luigi(
            "--module", "tasks.output", "output.CheckJobStopped", "--job", GOOD.job, "--launch-id", GOOD.id
        ).returncode
        == 0
    )
    foreign.parent.mkdir(parents=True)
    shutil.copy(good, foreign)
    scan = line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY)
    assert scan.returncode == 30
    assert "a sound marker, but of" in scan.stderr
    assert line.state.read(layout.key("output.ProcessOutputs", GOOD))
    assert foreign.read_bytes() == good.read_bytes()
    foreign.unlink()
    assert line.scan() == [0, 0]


def test_strange_names_reach_the_store_and_come_back(line: Line) -> None:
    odd = bad(line, "warcs") / "a b\n\u00e9[red]%2f.warc.gz"
    shutil.copy(warc(line), odd)
    assert line.scan() == [0, 0]
    stored = line.folders["store"] / "warcs" / BAD.job / BAD.id / "a%20b%0A%C3%A9%5Bred%5D%252f.warc.gz"
    assert stored.read_bytes() == odd.read_bytes()
    told = line.warcmill("reconcile", DAY)
    assert told.returncode == 1  # no log names it


def test_a_second_run_does_nothing(tmp_path: Path) -> None:
    line = new_line(tmp_path)
    assert line.scan() == [0, 0]
    before = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    assert line.scan() == [0, 0]
    after = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    changed = {path.name for path in after if after[path] != before.get(path)}
    scans = ("output.ScanForOutputs", "files.ScanForOutputFiles", "reports.ScanForReports")
    assert changed <= {*scans, *(f"ended.{scan}.json" for scan in scans), f"status.{DAY}.json"}
    assert line.warcmill("reconcile", DAY).returncode == 0


def test_a_file_lost_from_the_store_is_named_and_copied_again(line: Line) -> None:
    assert line.scan() == [0, 0]
    stored = line.folders["store"] / "warcs" / BAD.job / BAD.id / warc(line).name
    os.truncate(stored, 100)
    told = line.warcmill("reconcile", DAY)
    assert told.returncode == 1
    assert "and it has 100" in told.stdout
    stored.unlink()
    told = line.warcmill("reconcile", DAY)
    assert told.returncode == 1
    redo = f"warcmill redo {BAD.job} {BAD.id} copy final --downstream"
    assert redo in told.stdout
    assert line.warcmill(*redo.split()[1:]).returncode == 0
    assert line.scan() == [0, 0]
    assert stored.read_bytes() == warc(line).read_bytes()
    assert line.warcmill("reconcile", DAY).returncode == 0
