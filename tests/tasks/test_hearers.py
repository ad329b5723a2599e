"""Who listens to files.Checksum where [package] is on: formats are heard, so that no SIP reads a WARC for them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import preloaded
import pytest
from line import without_dead_seed, without_index
from sample import JOB, LAUNCH_ID, lay_out

from commands.main import main
from warcmill import layout
from warcmill.model import FINAL, Launch

LAUNCH = Launch(JOB, LAUNCH_ID)
ON = "\n[package]\nsince=2026-11-01\norganisation=National Library\nform=reference\n"


def new_line(base: Path, section: str) -> Path:
    """A new line around the sample, with its logs assembled; its folder."""
    crawl, line = without_dead_seed(lay_out(base / "crawl")), base / "line"
    assert main(["init", str(line), "--output", str(crawl), "--jobs", str(crawl / "jobs")]) == 0
    without_index(line / "luigi.cfg")
    with (line / "luigi.cfg").open("a") as file:
        file.write(section)
    assert luigi(line, "output", "ScanForOutputs")[0] == 0
    return line


def luigi(line: Path, module: str, task: str) -> tuple[int, str]:
    """Exit code, and what was printed."""
    words = ("--module", f"tasks.{module}", f"{module}.{task}", "--date-interval", "2026-11-21")
    done = preloaded.run("luigi", *words, env=os.environ | {"LUIGI_CONFIG_PATH": str(line / "luigi.cfg")})
    return done.returncode, done.stdout + done.stderr


def claim(line: Path) -> object:
    """The claim of files.Checksum."""
    marker = line / "state" / layout.marker_path(layout.key("files.Checksum", LAUNCH, stage=FINAL))
    return json.loads(marker.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[0])["claim"]


def extracts(line: Path) -> list[str]:
    """The WARCs whose formats are known, by their SHA-512."""
    return sorted(path.name.partition(".")[0] for path in line.glob("index/extracts/formats-*/*/*"))


@pytest.fixture
def line(tmp_path: Path) -> Path:
    """A line with [package] on."""
    return new_line(tmp_path, ON)


def test_checksum_leaves_the_formats_of_every_warc_and_claims_what_it_always_does(line: Path, tmp_path: Path) -> None:
    assert luigi(line, "files", "ScanForOutputFiles")[0] == 0
    warcs = list(line.glob("store/[wv]*/*/*/*.warc.gz"))
    assert extracts(line) == sorted(hashlib.sha512(path.read_bytes()).hexdigest() for path in warcs)
    assert {path.relative_to(line / "store").parts[0] for path in warcs} == {"viral", "warcs"}
    plain = new_line(tmp_path / "plain", "")
    assert luigi(plain, "files", "ScanForOutputFiles")[0] == 0
    assert claim(line) == claim(plain)
    assert extracts(plain) == []
    for path in warcs:  # who read one now would find nothing
        path.write_bytes(bytes(path.stat().st_size))
    code, told = luigi(line, "package", "ScanForPackages")
    assert code == 0, told
    (sip,) = line.glob("store/sips/*/*/*")
    assert b"text/html: 2" in sip.read_bytes()


def test_an_index_out_of_reach_costs_the_transfer_nothing(line: Path) -> None:
    shutil.move(line / "index", line / "elsewhere")
    code, told = luigi(line, "files", "ScanForOutputFiles")
    assert (code, "read again from the store to be packaged" in told) == (0, True), told


def test_a_siegfried_that_fails_costs_the_formats_only(line: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = line.parent / "broken"
    broken.mkdir()
    (broken / "pygfried.py").write_text("raise SystemExit('no signatures')")
    monkeypatch.setenv("PYTHONPATH", str(broken))
    code, told = luigi(line, "files", "ScanForOutputFiles")
    assert (code, "not heard by FormatsHearer" in told, "siegfried" in told) == (0, True, True), told
    assert extracts(line) == []
    monkeypatch.delenv("PYTHONPATH")
    assert luigi(line, "package", "ScanForPackages")[0] == 0
    assert len(extracts(line)) == 2
