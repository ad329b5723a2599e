"""Archives of earlier versions, tests/data/archive-*: today's code redoes nothing, and answers as their version did.

Where an issue changes an answer, `since/NAME.diff` beside the answers has the difference, and all of it.
"""

from __future__ import annotations

import difflib
import gzip
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
DATES = KEPT.with_name("archive-0.1-dates")
JOB, IMPORTED = "old", "20161019234400"  # its launch
# What a run writes anew: `looked` has inodes and times of markers, for a scan that has nothing to do.
OF_A_RUN = {"log", "status", ".locks", "looked"}
SUMMARY = re.compile(r"status\.\d{4}-\d\d-\d\d\.json").fullmatch
OF_A_TIME = re.compile(rb'^ "(?:basis|written)": .*$', re.MULTILINE)


def unpacked(base: Path, kept: Path = KEPT) -> Line:
    """The archive in a folder of its own, with a luigi.cfg that names it."""
    with tarfile.open(kept / "roots.tar.xz") as packed:
        packed.extractall(base, filter="data")
    config = base / "luigi.cfg"
    config.write_text((kept / "luigi.cfg").read_text().replace(str(PLACE), str(base)))
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


def numbers_found(line: Line) -> list[int]:
    """The pages that a search for a word of all finds, once for each time."""
    found = json.loads(line.warcmill("search", "sail", "--json").stdout)
    return sorted(int(one["url"].rpartition("/")[2]) for one in found["found"])


def captures(line: Line) -> list[str]:
    """The keys and times of the CDX."""
    (current,) = line.config.parent.glob("index/versions/cdx/current/*.cdx.gz")
    return [row.rpartition(" {")[0] for row in gzip.decompress(current.read_bytes()).decode().splitlines()]


def test_an_extract_that_lacks_what_can_be_read_now_is_made_again_by_the_next_scan(tmp_path: Path) -> None:
    line = unpacked(tmp_path, DATES)
    assert numbers_found(line) == [0, 1, 2, 10]
    line.warcmill("scan", "2016-10")
    assert numbers_found(line) == [0, 1, 2, 10, 11, 12, 13, 14]
    assert captures(line) == [
        *(f"example,mill)/{page} 201610192344{page:02}" for page in (0, 1)),
        *(f"example,mill)/{page} 201610192345{page}" for page in range(10, 15)),
        "example,mill)/2 20161019234402",
    ]
    verified = line.warcmill("versions", "verify")
    assert verified.stdout == "version 2 of cdx: 8 captures of 2 WARCs read again, nothing is wrong\n"
    assert line.warcmill("versions", "diff", "1", "2").stdout.startswith(f"~ {JOB}/{IMPORTED}/offsets.warc.gz\n")
    before = files(tmp_path)
    why = line.warcmill("scan", "2016-10").stdout
    assert files(tmp_path) == before, "its extracts are made anew once"
    assert f"-> warcmill redo {JOB} {IMPORTED} cdx final --downstream\n" in why


def test_a_redo_makes_such_an_extract_again_and_counts_it(tmp_path: Path) -> None:
    line = unpacked(tmp_path, DATES)
    for word in ("cdx", "text"):
        assert line.warcmill("redo", JOB, IMPORTED, word, "final", "--downstream", "--reason", "dates").returncode == 0
    why = line.warcmill("scan", "2016-10").stdout
    assert numbers_found(line) == [0, 1, 2, 10, 11, 12, 13, 14]
    assert len(captures(line)) == 8
    assert "not indexed: 1 capture: no date; no index takes them" in why
    markers = tmp_path / "state/2016-10" / JOB / IMPORTED
    for step, counted in {"cdx": "captures", "text": "documents"}.items():
        marker = markers / f"index.{step}.{JOB}.{IMPORTED}.final"
        claim = json.JSONDecoder().raw_decode(marker.read_text())[0]["claim"]
        facts = {item["made"]["path"].rpartition("/")[2]: item["facts"] for item in claim["items"]}
        assert claim["counts"][counted] == 8
        assert {name: one.get("offset_dates") for name, one in facts.items()} == {
            "offsets.warc.gz": 4, "plain.warc.gz": None,
        }  # fmt: skip
        assert (markers / f"index.{step}-verified.{JOB}.{IMPORTED}.final").exists()
