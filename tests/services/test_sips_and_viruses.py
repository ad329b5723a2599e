"""[package] and [viruses] switched on over a finished archive: one scan does what is missing, and a second nothing."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from line import DAY, Line, new_line
from sample import JOB, LAUNCH_ID

from servers.clamd import MAX_FILE_SIZE, SIGNATURE, STREAM_MAX_LENGTH, ClamdServer
from warcmill import chain, layout
from warcmill.launches import holdings
from warcmill.markers.facts.package import Packaged
from warcmill.model import FINAL, Launch

LAUNCH = Launch(JOB, LAUNCH_ID)
NEW = ("viruses", "package", "submit", "verify-sip", "catalogue")


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """The bundled launch, verified in the store long ago, with an index root."""
    made = new_line(tmp_path)
    assert made.scan() == [0, 0]
    made.config.write_text(made.config.read_text().replace("\n[warcmill]\n", f"\n[warcmill]\nindex={tmp_path}/index\n"))
    assert made.warcmill("init", "--adopt", "index", "--create").returncode == 0
    return made


def switch_on(line: Line, clamd: ClamdServer) -> None:
    base = line.config.parent
    limits = f"stream_max_length={STREAM_MAX_LENGTH}\nmax_file_size={MAX_FILE_SIZE}\n"
    viruses = f"[viruses]\nclamd={clamd.socket}\nsince={DAY}\n{limits}"
    package = f"[package]\nsince={DAY}\norganisation=National Library\nnaan=12345\ndestination={base}/destination\n"
    line.config.write_text(f"{line.config.read_text()}\n{viruses}\n{package}")
    assert line.warcmill("init", "--adopt", "package", "--create").returncode == 0


def snapshot(line: Line) -> dict[str, bytes]:
    """All that a line has but attempts, locks, its log and reports."""
    state = line.folders["state"]
    files = (
        path
        for root in (state, line.folders["store"], line.config.parent / "destination")
        for path in root.rglob("*")
        if path.is_file()
    )
    return {
        str(path): path.read_bytes()
        for path in files
        if not {"attempts", ".locks", "log"} & set(path.parts)
        and not (state in path.parents and path.suffix == ".json")
    }


def rows(line: Line) -> list[str]:
    database = sqlite3.connect(line.config.parent / "index" / "catalogue.sqlite")
    try:
        return list(database.iterdump())
    finally:
        database.close()


def test_one_scan_does_what_is_missing_and_a_second_nothing(line: Line, clamd: ClamdServer) -> None:
    before = snapshot(line)
    switch_on(line, clamd)
    line.warcmill("scan", DAY)
    done = snapshot(line)
    assert {path: data for path, data in done.items() if path in before} == before, "nothing proven is touched"
    assert all(line.state.holds(layout.step(word, LAUNCH, FINAL)) for word in NEW)
    (gap,) = json.loads(line.warcmill("reconcile", DAY, "--json").stdout)["launches"][0]["gaps"]
    assert gap["kind"] == "virus", "the SIP was built after the scan: no step is to be done again"
    assert "was done before that" not in gap["why"]
    built = line.state.require(layout.step("package", LAUNCH, FINAL))
    assert {
        chain.by_task(chain.ROWS)[key.task].word
        for one in built.claim.inputs
        if (key := layout.parse_marker_path(one.marker))
    } == {"verify", "viruses"}
    assert SIGNATURE.encode() in line.store.real(Packaged.from_claim(built.claim).sip.path).read_bytes(), "in PREMIS"

    catalogued = rows(line)
    line.warcmill("scan", DAY)
    assert snapshot(line) == done
    assert rows(line) == catalogued
    assert json.loads(line.warcmill("plan", DAY, "--json").stdout)["tasks"] == 0
    assert line.warcmill("accept", gap["name"], "--reason", "the EICAR test file").returncode == 0
    assert line.warcmill("scan", DAY).returncode == 0
    (line.config.parent / "index" / "catalogue.sqlite").unlink()
    assert line.warcmill("catalogue", "rebuild").returncode == 0
    assert rows(line) == catalogued

    held = Counter(one.name for one in holdings.of_stage(line.state, LAUNCH, FINAL).holdings)
    (sip,) = json.loads(line.warcmill("catalogue", "query", "--json").stdout)["sips"]
    assert Counter(warc["name"] for warc in sip["warcs"]) == held
    for verb in (["status", DAY], ["files", DAY], ["why", JOB, LAUNCH_ID], ["reconcile", DAY]):
        assert line.warcmill(*verb).returncode == 0, verb
    marks = json.loads(line.warcmill("status", DAY, "--json").stdout)["launches"][0]["cells"]
    assert {word: marks[word]["mark"] for word in NEW} == dict.fromkeys(NEW, "done")
