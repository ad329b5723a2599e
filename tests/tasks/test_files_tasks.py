"""The transfer from the command line, on the sample: what is left, what exit codes say, what a second run does."""

from __future__ import annotations

import json
import os
from pathlib import Path

import preloaded
import pytest
from line import without_dead_seed, without_index
from sample import JOB, LAUNCH_ID, lay_out

from commands.main import main
from warcmill import chain, layout
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch
from warcmill.stores.file import FileStore

LAUNCH = Launch(JOB, LAUNCH_ID)
DAY = ("--date-interval", "2026-11-21")
STAGE = ("--job", JOB, "--launch-id", LAUNCH_ID, "--stage", "final")
OK, FAILED, SCHEDULING = 0, 30, 35


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new line around the sample, assembled; its folder."""
    crawl, base = without_dead_seed(lay_out(tmp_path / "crawl")), tmp_path / "line"
    assert main(["init", str(base), "--output", str(crawl), "--jobs", str(crawl / "jobs")]) == OK
    without_index(base / "luigi.cfg")
    monkeypatch.setenv("LUIGI_CONFIG_PATH", str(base / "luigi.cfg"))
    assert luigi("output", "ScanForOutputs", *DAY)[0] == OK
    return base


def luigi(module: str, task: str, *arguments: str) -> tuple[int, str]:
    """Exit code, and what was printed."""
    done = preloaded.run("luigi", "--module", f"tasks.{module}", f"{module}.{task}", *arguments, env=os.environ)
    return done.returncode, done.stdout + done.stderr


def marker(base: Path, task: str) -> Path:
    return base / "state" / layout.marker_path(layout.key(task, LAUNCH, stage=FINAL))


def left(base: Path) -> list[str]:
    """The steps of the transfer that have left their marker."""
    tasks = [row.task for row in chain.ROWS if row.task.startswith("files.")]
    return [task.removeprefix("files.") for task in tasks if marker(base, task).exists()]


def warcs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.warc.gz")}


def changed(line: Path) -> dict[Path, int]:
    """The files, and when each was written: not locks, nor the note of a scan's end, which each run writes."""
    files = (path for path in line.rglob("*") if path.is_file() and not {".locks", "status"} & {*path.parts})
    return {path: path.stat().st_mtime_ns for path in files}


def test_the_day_goes_into_the_store_and_a_second_run_does_nothing(line: Path) -> None:
    code, told = luigi("files", "ScanForOutputFiles", *DAY)
    assert (code, left(line)) == (OK, ["Checksum", "Copy", "Verify"]), told
    assert "first day 2026-11-21, last day 2026-11-21, 1 launches" in told
    assert warcs(line / "store") == warcs(line.parent / "crawl")
    before = changed(line)
    code, told = luigi("files", "ScanForOutputFiles", *DAY)
    assert code == OK
    assert "files.Verify" not in told
    assert before == changed(line)


def test_each_scan_goes_as_far_as_its_name(line: Path) -> None:
    for task, steps in (
        ("CalculateLocalChecksum", ["Checksum"]),
        ("CopyToHDFS", ["Checksum", "Copy"]),
        ("VerifyOnHDFS", ["Checksum", "Copy", "Verify"]),
    ):
        code, told = luigi("files", task, *DAY)
        assert (code, left(line)) == (OK, steps), told


def test_a_day_without_launches_is_ordinary(line: Path) -> None:
    assert luigi("files", "ScanForOutputFiles", "--date-interval", "2026-11-20")[0] == OK
    assert left(line) == []


def test_the_reports_have_the_hashes_of_the_warcs(line: Path) -> None:
    assert luigi("files", "Checksum", *STAGE)[0] == OK
    state = MarkerStore(FileStore("state", line / "state"))
    checked = state.require(layout.key("files.Checksum", LAUNCH, stage=FINAL)).claim.items
    assert len(checked) == 3
    for path in (layout.report_path(LAUNCH, FINAL, "info"), layout.report_path(LAUNCH, FINAL, "package")):
        hashes = json.loads((line / "state" / path).read_bytes())["hashes"]
        assert {hashes[item.file.path] for item in checked} == {f"sha512:{item.file.sha512}" for item in checked}


def test_retire_is_refused_until_an_operator_allows_it(line: Path) -> None:
    code, told = luigi("files", "Retire", *STAGE)
    assert (code, left(line)) == (SCHEDULING, [])
    assert "[files] retire" in told
    assert "set 'retire=true'" in told

    config = line / "luigi.cfg"
    config.write_text(config.read_text().replace("retire=false", "retire=true"))
    code, told = luigi("files", "ScanForOutputFiles", *DAY)
    assert (code, left(line)) == (OK, ["Checksum", "Copy", "Verify", "ReadBack", "Retire"]), told
    assert warcs(line.parent / "crawl") == {}
    assert len(warcs(line / "store")) == 2
    assert luigi("files", "ScanForOutputFiles", *DAY)[0] == OK


def test_a_failed_file_fails_the_scan_and_is_done_when_its_cause_is_gone(line: Path) -> None:
    (viral,) = (line.parent / "crawl" / "viral").rglob("*.warc.gz")
    viral.rename(viral.with_name("away"))
    code, told = luigi("files", "ScanForOutputFiles", *DAY)
    assert (code, left(line)) == (FAILED, [])
    assert f"{viral.name}: expected a file of {viral.with_name('away').stat().st_size} bytes, found nothing" in told
    viral.with_name("away").rename(viral)
    assert luigi("files", "ScanForOutputFiles", *DAY)[0] == OK


def test_a_spoiled_last_marker_is_made_again(line: Path) -> None:
    assert luigi("files", "VerifyOnHDFS", *DAY)[0] == OK
    path = marker(line, "files.Verify")
    good = path.read_bytes()
    path.write_bytes(b"")
    assert luigi("files", "VerifyOnHDFS", *DAY)[0] == OK
    assert path.read_bytes().splitlines()[0] == good.splitlines()[0]
    assert len(list((path.parent / "aside").iterdir())) == 1
