"""Stages of a launch and their SIPs, by real workers: holes, and a change of `stages`. None is left out unseen."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from launches.engine import LAUNCH, Engine, line_of
from line import Line, line_at
from records.warcs import http, record, warc_gz, warcinfo

from warcmill import layout
from warcmill.launches import holdings
from warcmill.markers.facts.package import Packaged
from warcmill.model import Launch, Stage

DAY = "2016-10-19"
STAGES = ("cp00001-20161019235000", "cp00002-20161019235500", "final")
WARCS = {stage: f"BL-20161019234430000-0000{number}-1~crawler~8443.warc.gz" for number, stage in enumerate(STAGES)}
OTHER = Launch("weekly", "20161019100000")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A launch of three stages with a WARC each, and another one."""
    line_at(tmp_path)
    made = Engine(tmp_path)
    made.folders["jobs"] = made.folders["output"] / "jobs"
    for stage, warc in WARCS.items():
        add(made, stage, warc)
    made.finish()
    other = Engine(tmp_path, launch=OTHER)
    other.folders["jobs"] = made.folders["jobs"]
    add(other, "final", "BL-20161019100000000-00000-1~crawler~8443.warc.gz")
    other.finish()
    return made


def add(engine: Engine, stage: str, warc: str) -> None:
    page = http(f"<p>{stage}</p>".encode(), b"Content-Type: text/html")
    engine.logs(line_of(f"http://{stage}.example/", warc), stage=stage)
    engine.warc(warc, warc_gz(warcinfo(), record(block=page)))


@pytest.fixture
def line(tmp_path: Path, engine: Engine) -> Line:
    return line_at(tmp_path)


def switch_on(line: Line, stages: str) -> None:
    text = line.config.read_text().partition("\n[package]")[0]
    line.config.write_text(f"{text}\n[package]\nsince=2016-01-01\norganisation=National Library\nstages={stages}\n")


def gaps(line: Line) -> dict[str, Any]:
    """The gaps of the launches by kind, without what this engine never writes."""
    found = json.loads(line.warcmill("reconcile", DAY, "--json").stdout)["launches"]
    return {gap["kind"]: gap | {"job": one["job"]} for one in found for gap in one["gaps"]}


def sips(line: Line, launch: Launch = LAUNCH) -> dict[str, Packaged]:
    found = [one.claim for one in line.state.folder(launch).values() if one.claim.key.task == "package.BuildSip"]
    return {claim.key["stage"]: Packaged.from_claim(claim) for claim in found}


def each_warc_is_in_one_sip(line: Line) -> None:
    """By what each SIP covers: all stages, and each once."""
    covered = [str(stage) for sip in sips(line).values() for stage in sip.covers]
    assert sorted(covered) == sorted(STAGES)
    held = [one.name for stage in covered for one in holdings.of_stage(line.state, LAUNCH, Stage.parse(stage)).holdings]
    assert sorted(held) == sorted(WARCS.values())


@pytest.mark.parametrize("stages", ["every", "final"])
def test_a_stage_whose_file_is_gone_holds_up_the_sips_after_it_until_it_is_back(line: Line, stages: str) -> None:
    """Assembled, and then gone from the crawler's disk before it was copied."""
    assert line.luigi("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY).returncode == 0
    (warc,) = line.folders["output"].rglob(WARCS[STAGES[1]])
    shutil.move(warc, line.config.parent / "away")
    switch_on(line, stages)
    assert line.scan_all(DAY) != 0
    built = {"every": [STAGES[0]], "final": []}[stages]
    assert list(sips(line)) == built, "none that leaves the stage out"
    assert list(sips(line, OTHER)) == ["final"], "the other launch is done"
    gap = gaps(line)["gone"]
    assert (gap["stage"], gap["name"]) == (STAGES[1], str(warc.relative_to(line.folders["output"])))
    shutil.move(line.config.parent / "away", warc)
    assert line.scan_all(DAY) == 0
    each_warc_is_in_one_sip(line)
    assert gaps(line) == {}


def until_the_next_second() -> None:
    now = int(time.time())
    while int(time.time()) == now:
        time.sleep(0.02)


def test_a_stage_that_lost_its_markers_when_the_next_is_packaged(line: Line) -> None:
    """It is proven again, and its SIP found or built again; what rests on another one than there is now is named."""
    switch_on(line, "every")
    assert line.scan_all(DAY) == 0
    for task in ("files.Verify", "package.BuildSip"):
        key = layout.key(task, LAUNCH, stage=STAGES[1])
        (line.folders["state"] / layout.marker_path(key)).unlink()
    assert gaps(line)["lacking"]["stage"] == STAGES[1]
    until_the_next_second()  # in the same one, the run that verifies it would be equal to the one before
    assert line.scan_all(DAY) == 1, "it is done, and has left gaps"
    each_warc_is_in_one_sip(line)
    assert sips(line)[STAGES[1]].sip.name == f"{STAGES[1]}.2.tar", "the run that verified it is another one"
    found = gaps(line)
    assert (found["stale"]["stage"], set(found)) == ("final", {"stale", "orphaned"})
    assert line.warcmill(*found["stale"]["todo"].split()[1:]).returncode == 0
    line.scan_all(DAY)
    each_warc_is_in_one_sip(line)
    assert set(gaps(line)) == {"orphaned"}, "the 05 that named the first one was lost, and not moved aside"


def test_a_stage_that_appears_when_the_launch_is_packaged(line: Line) -> None:
    """Its logs and its WARC were on a disk that was not mounted: its number lacks, which is a hole that is named."""
    away = line.config.parent / "away"
    away.mkdir()
    hidden = [*line.folders["output"].rglob(f"*.{STAGES[1]}"), *line.folders["output"].rglob(WARCS[STAGES[1]])]
    for path in hidden:
        shutil.move(path, away / path.name)
    switch_on(line, "final")
    line.scan_all(DAY)
    assert {str(stage) for sip in sips(line).values() for stage in sip.covers} == {STAGES[0], STAGES[2]}
    for path in hidden:
        shutil.move(away / path.name, path)
    gap = gaps(line)["late stage"]
    assert gap["name"] == STAGES[1]
    assert line.warcmill(*gap["todo"].split()[1:]).returncode == 0
    assert line.scan_all(DAY) == 0
    each_warc_is_in_one_sip(line)
    assert gaps(line) == {}


def test_stages_that_is_changed_in_the_middle_changes_only_what_no_sip_covers(line: Line, engine: Engine) -> None:
    """The launch runs; its first checkpoint is packaged; final is set, and every again when it has ended."""
    job = line.folders["jobs"] / LAUNCH.job
    logs = [job / "job.log", job / LAUNCH.id / "job.log"]
    ended = [path.read_text() for path in logs]
    for path in logs:
        words = f"PREPARING {LAUNCH.id}", f"CHECKPOINTED {STAGES[0]}", f"CHECKPOINTED {STAGES[1]}"
        path.write_text("".join(f"2016-10-20T00:10:00.123Z INFO {word}\n" for word in words))
    switch_on(line, "every")
    late = {path: path.read_bytes() for path in line.folders["output"].rglob(f"*.{STAGES[1]}")}
    for path in late:
        path.unlink()
    assert line.scan_all(DAY) == 0
    first = sips(line)
    assert list(first) == [STAGES[0]]
    for path, data in late.items():
        path.write_bytes(data)
    switch_on(line, "final")
    assert line.scan_all(DAY) == 0
    assert (sips(line), gaps(line)) == (first, {}), "the second waits for the final one"
    for path, text in zip(logs, ended, strict=True):
        path.write_text(text)
    assert line.scan_all(DAY) == 0
    last = sips(line)
    assert {stage: tuple(map(str, sip.covers)) for stage, sip in last.items()} == {
        STAGES[0]: STAGES[:1],
        "final": STAGES[1:],
    }
    assert last[STAGES[0]] == first[STAGES[0]]
    each_warc_is_in_one_sip(line)
    switch_on(line, "every")
    before = {path: path.read_bytes() for path in line.folders["store"].rglob("*") if path.is_file()}
    assert line.scan_all(DAY) == 0
    assert (sips(line), gaps(line)) == (last, {})
    assert {path: path.read_bytes() for path in line.folders["store"].rglob("*") if path.is_file()} == before
    refused = line.luigi(
        "--module", "tasks.package", "package.BuildSip",
        "--job", LAUNCH.job, "--launch-id", LAUNCH.id, "--stage", STAGES[1],
    )  # fmt: skip
    assert (refused.returncode != 0, "the SIP of stage final covers this stage" in refused.stderr) == (True, True)
