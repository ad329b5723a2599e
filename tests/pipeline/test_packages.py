"""SIPs on a line as operators run it: switched on over a finished archive, changed, and reported by every command."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from line import DAY, Line
from sample import JOB, LAUNCH_ID

from warcmill import layout
from warcmill.markers.facts.package import Packaged
from warcmill.model import Launch

LAUNCH = Launch(JOB, LAUNCH_ID)
ON = {"since": "2016-01-01", "organisation": "National Library", "naan": "12345"}
SCAN = ("--module", "tasks.package", "package.ScanForPackages", "--date-interval", DAY)
REMEDY = f"warcmill scan {DAY}"


def switch_on(line: Line, **keys: str) -> None:
    """[package] with these keys."""
    text = line.config.read_text().partition("\n[package]")[0]
    line.config.write_text(
        "\n".join([text, "[package]", *(f"{key}={value}" for key, value in (ON | keys).items()), ""])
    )


def asks(line: Line, *words: str) -> dict[str, Any]:
    document = json.loads(line.warcmill(*words, "--json").stdout)
    assert isinstance(document, dict)
    return document


def sips(line: Line) -> dict[str, Packaged]:
    markers = line.state.folder(LAUNCH).values()
    return {
        one.claim.key["stage"]: Packaged.from_claim(one.claim)
        for one in markers
        if one.claim.key.task == "package.BuildSip"
    }


def snapshot(line: Line) -> dict[str, bytes]:
    """Every marker and stored file."""
    roots = line.folders["state"] / "2026-11" / JOB / LAUNCH_ID, line.folders["store"]
    files = (path for root in roots for path in root.rglob("*") if path.is_file() and "attempts" not in path.parts)
    return {str(path): path.read_bytes() for path in files}


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout.splitlines()[-1]


def test_switched_on_over_an_archive_one_scan_does_what_is_missing_and_the_next_nothing(done: Line) -> None:
    before = snapshot(done)
    switch_on(done)
    assert asks(done, "status", DAY)["launches"][0]["cells"]["package"]["mark"] == "waiting"
    (gap,) = asks(done, "why", *str(LAUNCH).split("/"))["gaps"]
    assert (gap["kind"], gap["name"], gap["todo"]) == ("lacking", f"05.packaged.{JOB}.{LAUNCH_ID}.final", REMEDY)
    (planned,) = asks(done, "plan", DAY)["launches"]
    assert [one["task"] for one in planned["tasks"]] == ["package.BuildSip"]
    assert {one["steps"]["package"] for one in asks(done, "files", DAY)["files"]} == {"lacking"}
    ran = done.warcmill("scan", DAY)
    assert (ran.returncode, last_line(ran)[-6:]) == (0, "no gap"), ran.stderr
    assert {stage: tuple(map(str, sip.covers)) for stage, sip in sips(done).items()} == {"final": ("final",)}
    after = snapshot(done)
    assert {path: data for path, data in after.items() if path in before} == before
    assert done.scan_all(DAY) == 0
    assert snapshot(done) == after
    assert asks(done, "status", DAY)["launches"][0]["cells"]["package"] == {"done": 1, "mark": "done", "of": 1}
    totals = asks(done, "reconcile", DAY)["totals"]
    assert totals["packaged"] == totals["verified"] > 0
    assert {one["steps"]["package"] for one in asks(done, "files", DAY)["files"]} == {"ok"}
    assert asks(done, "plan", DAY)["tasks"] == 0
    assert "aged" in done.warcmill("reconcile", DAY).stdout


def test_without_the_section_nothing_mentions_it(done: Line) -> None:
    for verb in (["status", DAY], ["reconcile", DAY], ["why", JOB, LAUNCH_ID], ["plan", DAY], ["files", DAY]):
        told = done.warcmill(*verb)
        assert (told.returncode, "pack-" in told.stdout, "sip" in told.stdout.lower()) == (0, False, False), verb
        if verb[0] != "plan":
            assert "package" not in json.dumps(asks(done, *verb)), verb
    ran = done.warcmill("scan", DAY)
    assert (ran.returncode, "ackage" in ran.stderr + ran.stdout) == (0, False)


def test_a_lost_or_changed_sip_is_found_and_built_again(done: Line, tmp_path: Path) -> None:
    switch_on(done)
    assert done.luigi(*SCAN).returncode == 0
    sip = done.store.real(sips(done)["final"].sip.path)
    data = sip.read_bytes()
    assert done.warcmill("verify", DAY).returncode == 0
    sip.chmod(0o644)
    sip.write_bytes(data[:-1] + b"x")
    (finding,) = asks(done, "verify", DAY)["findings"]
    assert (finding["name"], finding["why"][:9]) == (f"store:sips/{LAUNCH}/final.tar", "its sha51")
    shutil.move(sip, tmp_path / "away")
    gap = next(one for one in asks(done, "reconcile", DAY)["launches"][0]["gaps"] if one["kind"] == "lost")
    assert gap["name"] == f"sips/{LAUNCH}/final.tar"
    assert done.warcmill(*gap["todo"].split()[1:]).returncode == 0
    assert done.luigi(*SCAN).returncode == 0
    assert sip.read_bytes() == data


def test_a_broken_setting_is_named_before_anything_runs(done: Line) -> None:
    switch_on(done, organisation="")
    ran = done.luigi(*SCAN)
    assert ran.returncode == 35
    assert "[package] organisation: is not set" in ran.stderr


@pytest.mark.parametrize("word", ["verify", "copy"])
def test_a_redo_below_it_moves_the_sip_s_marker_too_and_the_same_sip_is_found(done: Line, word: str) -> None:
    switch_on(done)
    assert done.luigi(*SCAN).returncode == 0
    moved = done.warcmill("redo", JOB, LAUNCH_ID, word, "final", "--downstream")
    assert moved.returncode == 0, moved.stderr
    assert f"05.packaged.{JOB}.{LAUNCH_ID}.final" in moved.stdout
    assert REMEDY in moved.stdout
    assert done.scan_all(DAY) == 0
    assert sips(done)["final"].covers == (layout.Stage.parse("final"),)
