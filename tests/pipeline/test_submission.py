"""SIPs handed over and catalogued on a line as operators run it, and what they do when a submission stands."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
from pathlib import Path
from typing import Any

import preloaded
import pytest
from line import DAY, Line
from sample import JOB, LAUNCH_ID

from warcmill import layout
from warcmill.layout import SENTINEL
from warcmill.model import Launch
from warcmill.package.submit import Slip

LAUNCH = Launch(JOB, LAUNCH_ID)
NAME = f"{JOB}.{LAUNCH_ID}.final.tar"
ON = {"since": "2016-01-01", "organisation": "National Library", "naan": "12345"}

KILLED = """
import os, signal
import tasks.package
from warcmill.package import index_sip
index_sip.enter_again = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def line(done: Line) -> Line:
    """A finished archive with an index root; SIPs are switched on, and have a destination."""
    base = done.config.parent
    text = done.config.read_text()
    done.config.write_text(text.replace("\n[warcmill]\n", f"\n[warcmill]\nindex={base / 'index'}\n"))
    assert done.warcmill("init", "--adopt", "index", "--create").returncode == 0
    switch_on(done, destination=str(base / "destination"))
    assert done.warcmill("init", "--adopt", "package", "--create").returncode == 0
    return done


def switch_on(line: Line, **keys: str) -> None:
    """[package] with these keys."""
    text = line.config.read_text().partition("\n[package]")[0]
    section = [f"{key}={value}" for key, value in (ON | keys).items()]
    line.config.write_text("\n".join([text, "[package]", *section, ""]))


def asks(line: Line, *words: str) -> dict[str, Any]:
    document = json.loads(line.warcmill(*words, "--json").stdout)
    assert isinstance(document, dict)
    return document


def scan(line: Line) -> int:
    """The scan that makes, hands over and catalogues SIPs; all that comes before is done."""
    return line.luigi("--module", "tasks.package", "package.ScanForPackages", "--date-interval", DAY).returncode


def scan_all(line: Line) -> int:
    return line.scan_all(DAY)


def place(line: Line, path: str) -> Path:
    return line.config.parent / "destination" / path


def taken(line: Line) -> list[str]:
    """What the ingesting system takes away."""
    found = sorted(place(line, "ingest").glob("*"))
    for path in found:
        path.unlink()
    return [path.name for path in found]


def rows(line: Line) -> list[str]:
    with sqlite3.connect(line.config.parent / "index" / "catalogue.sqlite") as database:
        dump = list(database.iterdump())
    database.close()
    return dump


def gaps(line: Line) -> list[dict[str, str]]:
    (launch,) = asks(line, "reconcile", DAY)["launches"]
    found: list[dict[str, str]] = launch["gaps"]
    return found


def test_one_scan_hands_the_sip_over_and_catalogues_it_and_a_second_does_nothing(line: Line) -> None:
    assert (place(line, SENTINEL).read_text(), scan_all(line)) == ('{"roots": ["destination"], "schema": 1}\n', 0)
    assert taken(line) == [NAME]
    cells = asks(line, "status", DAY)["launches"][0]["cells"]
    assert [cells[word]["mark"] for word in ("package", "submit", "verify-sip", "catalogue")] == ["done"] * 4
    before = rows(line)
    assert scan_all(line) == 0
    assert (taken(line), rows(line), asks(line, "plan", DAY)["tasks"]) == ([], before, 0)
    doctor = {one["name"]: one["level"] for one in asks(line, "doctor")["checks"]}
    assert (doctor["root destination"], doctor["write destination"], doctor["catalogue"]) == ("ok", "ok", "ok")


def test_doctor_checks_the_place_where_sips_are_read_again(line: Line) -> None:
    destination, ingested = str(place(line, "")).rstrip("/"), line.config.parent / "ingested"

    def levels() -> dict[str, tuple[str, str]]:
        return {one["name"]: (one["level"], one["text"]) for one in asks(line, "doctor")["checks"]}

    assert "root verified_at" not in levels(), "it is the destination"
    switch_on(line, destination=destination, verified_at=str(ingested))
    level, text = levels()["root verified_at"]
    assert (level, "there is no such folder" in text) == ("fail", True)
    ingested.mkdir()
    assert levels()["root verified_at"] == ("ok", f"{ingested} is there, and can be read")
    switch_on(line, verified_at=str(ingested))
    level, text = levels()["packages"]
    assert (level, "[package] verified_at: is set without destination" in text) == ("fail", True)


def test_the_catalogue_is_asked_and_made_anew_when_it_is_gone(line: Line) -> None:
    assert line.warcmill("catalogue", "query").returncode == 1, "there is none yet"
    assert scan(line) == 0
    (sip,) = asks(line, "catalogue", "query", "--launch", JOB, LAUNCH_ID)["sips"]
    assert (sip["state"], sip["name"], sip["covers"], sip["stage"]) == ("verified", NAME, ["final"], "final")
    warc = sip["warcs"][0]
    found = line.warcmill("catalogue", "query", "--warc", warc["name"])
    assert (found.returncode, warc["name"] in found.stdout, "1 SIP" in found.stdout) == (0, True, True)
    (ark,) = [one["ark"] for one in sip["arks"] if one["name"] == warc["name"]]
    assert asks(line, "catalogue", "query", "--ark", ark)["sips"][0]["warcs"] == [warc]
    assert line.warcmill("catalogue", "query", "--state", "packaged").stdout == "no SIP fits\n"
    before = rows(line)
    (line.config.parent / "index" / "catalogue.sqlite").unlink()
    (gap,) = gaps(line)
    assert (gap["kind"], gap["name"], gap["todo"]) == (
        "not catalogued",
        f"08.indexed.{JOB}.{LAUNCH_ID}.final",
        "warcmill catalogue rebuild",
    )
    assert {one["name"]: one["level"] for one in asks(line, "doctor")["checks"]}["catalogue"] == "warn"
    assert line.warcmill("catalogue", "rebuild").stdout.endswith("catalogue.sqlite has 1 SIP\n")
    assert (rows(line), gaps(line)) == (before, [])


def test_a_destination_that_comes_later_gets_the_sips_that_are_catalogued_already(line: Line) -> None:
    switch_on(line)
    assert scan(line) == 0
    assert asks(line, "catalogue", "query", "--state", "packaged")["sips"]
    switch_on(line, destination=str(place(line, "")).rstrip("/"))
    assert scan(line) == 0
    assert (taken(line), gaps(line)) == ([NAME], [])
    assert asks(line, "catalogue", "query", "--state", "verified")["sips"]
    before = rows(line)
    assert line.warcmill("catalogue", "rebuild").returncode == 0
    assert rows(line) == before
    assert scan(line) == 0
    assert taken(line) == []


def test_a_kill_between_a_marker_and_the_catalogue_is_mended_by_the_next_scan(line: Line) -> None:
    switch_on(line)
    assert scan(line) == 0
    switch_on(line, destination=str(place(line, "")).rstrip("/"))
    assert [killed(line, step) for step in ("SubmitSip", "VerifySip")] == [-signal.SIGKILL] * 2
    (gap,) = gaps(line)
    assert (gap["kind"], gap["why"]) == (
        "not catalogued",
        "the catalogue has it as packaged, and verify-sip is done since",
    )
    assert asks(line, "plan", DAY)["tasks"] == 1
    assert scan(line) == 0
    assert (taken(line), gaps(line), asks(line, "plan", DAY)["tasks"]) == ([NAME], [], 0)
    assert asks(line, "catalogue", "query", "--state", "verified")["sips"]


def killed(line: Line, step: str) -> int:
    """Run a step that is killed when it has left its marker, before it changes the catalogue; its exit code."""
    folder = line.config.parent / "killed"
    folder.mkdir(exist_ok=True)
    (folder / "killed.py").write_text(KILLED)
    of_stage = ["--job", JOB, "--launch-id", LAUNCH_ID, "--stage", "final"]
    env = {**os.environ, "LUIGI_CONFIG_PATH": str(line.config), "PYTHONPATH": str(folder)}
    return preloaded.run("luigi", "--module", "killed", f"package.{step}", *of_stage, env=env).returncode


def test_a_redo_has_to_name_it_and_sends_nothing_again(line: Line) -> None:
    """And it is verified again where the ingesting system has put it by then."""
    assert scan(line) == 0
    sip = place(line, layout.ingest_path(NAME)).read_bytes()
    assert taken(line) == [NAME]
    marker = f"06.submitted.{JOB}.{LAUNCH_ID}.final"
    refused = line.warcmill("redo", JOB, LAUNCH_ID, "submit", "final", "--downstream")
    assert (refused.returncode, marker in refused.stdout + refused.stderr) == (1, True)
    done = line.warcmill("redo", JOB, LAUNCH_ID, "submit", "final", "--downstream", "--also", marker)
    assert done.returncode == 0, done.stderr
    assert scan(line) != 0
    (gap,) = gaps(line)
    assert gap["name"] == f"07.verified.{JOB}.{LAUNCH_ID}.final"
    assert "set [package] verified_at" in gap["why"]
    ingested = line.config.parent / "ingested"
    ingested.mkdir()
    (ingested / NAME).write_bytes(sip)
    switch_on(line, destination=str(place(line, "")).rstrip("/"), verified_at=str(ingested))
    assert scan(line) == 0
    assert (taken(line), gaps(line)) == ([], [])


def test_a_receipt_of_another_sip_stands_until_an_operator_has_looked(line: Line) -> None:
    receipt = place(line, layout.receipt_path(NAME))
    receipt.parent.mkdir()
    receipt.write_bytes(Slip("b" * 128, "c" * 128).encode())
    assert scan(line) != 0
    (gap,) = gaps(line)
    assert gap["name"] == f"06.submitted.{JOB}.{LAUNCH_ID}.final"
    assert "receipt.json: is of another SIP" in gap["why"]
    assert "When a submission stands" in gap["why"]
    receipt.unlink()
    assert scan(line) == 0
    assert (taken(line), gaps(line)) == ([NAME], [])


def test_a_destination_that_vanished_is_named_and_what_was_half_sent_is_sent_again(line: Line) -> None:
    """Its disk is not mounted; and before that, a submitter was killed while it sent."""
    half = place(line, f"{layout.STAGING}/.{NAME}.host.1.2.0123456789abcdef.tmp")
    half.parent.mkdir()
    half.write_bytes(b"half of a SIP")
    place(line, "").rename(away := line.config.parent / "away")
    assert scan(line) != 0
    (gap,) = gaps(line)
    assert gap["name"] == f"06.submitted.{JOB}.{LAUNCH_ID}.final"
    assert "destination" in gap["why"]
    assert "Mount the disk" in gap["why"]
    assert {one["name"]: one["level"] for one in asks(line, "doctor")["checks"]}["root destination"] == "fail"
    assert not place(line, "").exists(), "an unmounted disk gets no folder"
    away.rename(place(line, ""))
    assert scan(line) == 0
    assert (taken(line), gaps(line)) == ([NAME], [])


def test_without_a_destination_the_task_names_the_key(line: Line) -> None:
    switch_on(line)
    stage = ("--job", JOB, "--launch-id", LAUNCH_ID, "--stage", "final")
    ran = line.luigi("--module", "tasks.package", "package.SubmitSip", *stage)
    assert (ran.returncode, "[package] destination: is not set" in ran.stderr) == (35, True)
    told = line.warcmill("init", "--adopt", "package")
    assert (told.returncode, "[package] destination: is not set" in told.stderr) == (3, True)
