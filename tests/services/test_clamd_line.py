"""The scan for viruses as an operator meets it: off, switched on over a finished archive, and accepted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from line import DAY, Line, new_line
from sample import JOB, LAUNCH_ID

from servers.clamd import MAX_FILE_SIZE, SIGNATURE, STREAM_MAX_LENGTH, ClamdServer
from warcmill import layout
from warcmill.launches import holdings
from warcmill.model import FINAL, Launch

LAUNCH = Launch(JOB, LAUNCH_ID)
FILES_SCAN = ("--module", "tasks.files", "files.ScanForOutputFiles", "--date-interval", DAY)
LOOKS = (("status", DAY), ("files", DAY), ("reconcile", DAY), ("why", JOB, LAUNCH_ID), ("plan", DAY))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Line:
    """The bundled launch, verified in the store long ago."""
    line = new_line(tmp_path_factory.mktemp("line"))
    assert line.scan() == [0, 0]
    return line


def switch_on(line: Line, clamd: ClamdServer, since: str) -> None:
    keys = (
        f"clamd={clamd.socket}\nsince={since}\nstream_max_length={STREAM_MAX_LENGTH}\nmax_file_size={MAX_FILE_SIZE}\n"
    )
    own = line.config.read_text().partition("\n[viruses]")[0]
    line.config.write_text(f"{own}\n[viruses]\n{keys}")


def looked_at(line: Line) -> list[str]:
    return [done.stdout for done in (line.warcmill(*words) for words in LOOKS)]


def test_switched_on_over_a_finished_archive_one_scan_does_what_is_missing_and_a_second_nothing(
    finished: Line, clamd: ClamdServer
) -> None:
    before = looked_at(finished)
    assert not any(word in text for text in before for word in ("viruses", "scanned", " vir "))
    switch_on(finished, clamd, "2026-11-22")
    assert looked_at(finished) == before, "it is on for later launches only"

    switch_on(finished, clamd, "2026-11-21")
    lacking = finished.warcmill("reconcile", DAY)
    assert (lacking.returncode, f"files.scanned.{JOB}.{LAUNCH_ID}.final" in lacking.stdout) == (1, True)
    assert finished.luigi(*FILES_SCAN).returncode == 0
    marker = finished.state.require(layout.step("viruses", LAUNCH, FINAL))
    assert marker.run.tools["clamd"] == clamd.client.version()
    again = finished.luigi(*FILES_SCAN)
    assert again.returncode == 0
    assert "files.VirusScan" not in again.stdout + again.stderr, "nothing is missing"

    held = holdings.of_stage(finished.state, LAUNCH, FINAL).holdings
    assert {str(one.word): [hit.signature for hit in one.hits or ()] for one in held} == {
        "whole": [],
        "viral": [SIGNATURE],
    }
    found = json.loads(finished.warcmill("reconcile", DAY, "--json").stdout)
    assert found["totals"]["scanned"] == found["totals"]["verified"] == 2
    (gap,) = (gap for gap in found["launches"][0]["gaps"] if gap["kind"] == "virus")
    assert (SIGNATURE in gap["why"], "warcmill accept 'virus:viral/" in gap["todo"]) == (True, True)

    accepted = finished.warcmill("accept", gap["name"], "--reason", "the EICAR test file")
    assert (accepted.returncode, "virus: virus:viral/" in accepted.stdout) == (0, True)
    files = json.loads(finished.warcmill("files", DAY, "--json").stdout)["files"]
    assert [(one["root"], one["steps"]["viruses"]) for one in files] == [
        ("output", "ok"),
        ("output", "ok"),
        ("state", "-"),
    ]
    assert finished.warcmill("files", DAY, "--lacking", "viruses").returncode == 0
    assert "ruses" in finished.warcmill("status", DAY).stdout
    assert finished.warcmill("verify", DAY).returncode == 0


def test_doctor_checks_the_clamd_that_is_configured(finished: Line, clamd: ClamdServer) -> None:
    switch_on(finished, clamd, "2026-11-21")
    told = json.loads(finished.warcmill("doctor", "--json").stdout)["checks"]
    assert [one["level"] for one in told if one["name"] == "viruses"] == ["warn", "ok", "ok"]


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("clamd", "", "[viruses] clamd: is not set"),
        ("since", "yesterday", "a day such as 2016-10-19"),
    ],
)
def test_a_wrong_key_stops_the_scan_by_name(
    key: str, value: str, why: str, finished: Line, clamd: ClamdServer, tmp_path: Path
) -> None:
    switch_on(finished, clamd, "2026-11-21")
    roots, section, keys = finished.config.read_text().partition("[viruses]")
    others = [one for one in keys.splitlines() if not one.startswith(f"{key}=")]
    config = tmp_path / "luigi.cfg"
    config.write_text("\n".join([roots + section, *others, f"{key}={value}", ""]))
    line = Line(config, finished.folders, finished.layout)
    words = (
        "--module",
        "tasks.files",
        "files.VirusScan",
        "--job",
        JOB,
        "--launch-id",
        LAUNCH_ID,
        "--stage",
        "cp00001-20261121081800",
    )
    done = line.luigi(*FILES_SCAN) if key == "since" else line.luigi(*words)
    assert (done.returncode != 0, why in done.stderr) == (True, True), done.stderr
    checks = json.loads(line.warcmill("doctor", "--json").stdout)["checks"]
    assert any(one["level"] == "fail" and why in one["text"] for one in checks), checks
