"""Archives of earlier versions, tests/data/archive-*: today's code redoes nothing, and answers as their version did.

Where an issue changes an answer, `since/NAME.diff` beside the answers has the difference, and all of it.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
import tarfile
from pathlib import Path

import old_archive
import pytest
from line import Line
from old_archive import PLACE

from warcmill.layout import OutputLayout

KEPT = Path(__file__).parents[1] / "data" / "archive-0.1"
# What a run writes anew: `looked` has inodes and times of markers, for a scan that has nothing to do.
OF_A_RUN = {"log", "status", ".locks", "looked"}
SUMMARY = re.compile(r"status\.\d{4}-\d\d-\d\d\.json").fullmatch
OF_A_TIME = re.compile(rb'^ "(?:basis|written)": .*$', re.MULTILINE)


def unpacked(base: Path) -> Line:
    """The archive in a folder of its own, with a luigi.cfg that names it."""
    with tarfile.open(KEPT / "roots.tar.xz") as packed:
        packed.extractall(base, filter="data")
    config = base / "luigi.cfg"
    config.write_text((KEPT / "luigi.cfg").read_text().replace(str(PLACE), str(base)))
    return Line(config, {root: base / root for root in ("output", "jobs", "state", "store")}, OutputLayout.KIND_FIRST)


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Line:
    """The archive, which nobody changes."""
    return unpacked(tmp_path_factory.mktemp("old"))


def check_answer(line: Line, recorded: Path) -> None:
    """Ask again what was asked; the answer differs by what `since` has of it, by nothing without that."""
    before = recorded.read_text()
    words = shlex.split(before.splitlines()[0].removeprefix("$ warcmill "))
    after = old_archive.shown(words, line.warcmill(*words), line.config.parent)
    difference = "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), n=0))
    since = KEPT / "since" / f"{recorded.stem}.diff"
    assert difference == (since.read_text() if since.exists() else "")


def files(base: Path) -> dict[str, bytes]:
    """All files of the archive but those that a run writes anew, and the lines of a day's summary that it does."""
    found = {path.relative_to(base): path for path in base.rglob("*") if path.is_file()}
    return {
        str(name): OF_A_TIME.sub(b"", path.read_bytes()) if SUMMARY(name.name) else path.read_bytes()
        for name, path in found.items()
        if not OF_A_RUN.intersection(name.parts)
    }


@pytest.mark.parametrize("recorded", sorted((KEPT / "answers").iterdir()), ids=lambda path: path.stem)
def test_it_is_answered_as_before(looked_at: Line, recorded: Path) -> None:
    check_answer(looked_at, recorded)


def test_a_scan_finds_nothing_to_do(tmp_path: Path) -> None:
    line = unpacked(tmp_path)
    before = files(tmp_path)
    check_answer(line, KEPT / "answers-of-changes" / "scan.txt")
    assert files(tmp_path) == before


def test_what_is_read_back_and_retired_is_claimed_as_before(tmp_path: Path) -> None:
    line = unpacked(tmp_path)
    before = old_archive.claims(tmp_path)
    text = line.config.read_text()
    line.config.write_text(text.replace("retire=false", "retire=true"))
    for job, launch in old_archive.launches(tmp_path):
        for stage in old_archive.stages(tmp_path, job, launch):
            words = ("files.Retire", "--job", job, "--launch-id", launch, "--stage", stage)
            done = line.luigi("--module", "tasks.files", *words)
            assert done.returncode == 0, done.stderr
    line.config.write_text(text)
    new = {path: claim for path, claim in old_archive.claims(tmp_path).items() if path not in before}
    assert new == json.loads((KEPT / "claims.json").read_text())
    for recorded in sorted((KEPT / "answers-of-changes").glob("retired-*")):
        check_answer(line, recorded)


def test_the_sound_records_of_a_refused_warc_are_indexed_after_a_redo(tmp_path: Path) -> None:
    line = unpacked(tmp_path)
    job, launch = "damaged", "20261121081735"
    redone = line.warcmill("redo", job, launch, "cdx", "final", "--downstream", "--reason", "record by record")
    assert redone.returncode == 0, redone.stderr
    line.warcmill("scan", "2026-11-21")
    marker = tmp_path / f"state/2026-11/{job}/{launch}/index.cdx.{job}.{launch}.final"
    claim = json.JSONDecoder().raw_decode(marker.read_text())[0]["claim"]
    assert claim["counts"] == {"bad": 1, "captures": 15, "hits": 0, "unfit": 0, "warcs": 1}
    assert (marker.parent / f"index.cdx-verified.{job}.{launch}.final").exists()
