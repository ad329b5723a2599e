"""The index from the command line, on the sample: extracts by Checksum, the marker, switches, exit codes."""

from __future__ import annotations

import gzip
import json
import shutil
from contextlib import closing
from hashlib import sha512
from pathlib import Path

import pytest
from line import without_dead_seed, without_index
from operating.typed import luigi, warcmill
from sample import JOB, LAUNCH_ID, lay_out

from commands.main import main
from warcmill import layout
from warcmill.model import FINAL, Launch
from warcmill.stores.file import FileStore
from warcmill.versions.publication import open_version

LAUNCH = Launch(JOB, LAUNCH_ID)
DAY = ("--date-interval", "2026-11-21")
OK, FAILED, SCHEDULING = 0, 30, 35
ON = "\n[index]\nsince=2026-11-01\n"


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new line around the sample; its folder."""
    crawl, base = without_dead_seed(lay_out(tmp_path / "crawl")), tmp_path / "line"
    assert main(["init", str(base), "--output", str(crawl), "--jobs", str(crawl / "jobs")]) == OK
    without_index(base / "luigi.cfg")
    monkeypatch.setenv("LUIGI_CONFIG_PATH", str(base / "luigi.cfg"))
    return base


def configure(base: Path, text: str) -> None:
    with (base / "luigi.cfg").open("a") as file:
        file.write(text)


def scanned(base: Path) -> str:
    """What the scans print, which all succeed."""
    told = ""
    scans = "output.ScanForOutputs", "files.ScanForOutputFiles", "index.ScanForIndexing", "reports.ScanForReports"
    for module, _, task in (scan.partition(".") for scan in scans):
        code, out = luigi(module, task, *DAY)
        assert code == OK, out
        told += out
    return told


def marker(base: Path, task: str) -> Path:
    return base / "state" / layout.marker_path(layout.key(task, LAUNCH, stage=FINAL))


def extracts(base: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (base / "index" / "extracts").rglob("*.cdxj.gz")}


def contents(index: Path) -> dict[str, str]:
    """The digests of what is in the extracts of lines and of text."""
    files = [path for kind in ("cdxj-*", "text-*") for path in (index / "extracts").glob(f"{kind}/*/*.gz")]
    return {path.name: sha512(gzip.decompress(path.read_bytes())).hexdigest() for path in files}


def lines(index: Path) -> list[bytes]:
    """The lines of the current version."""
    with closing(open_version(FileStore("index", index), "cdx")[1]) as lookup:
        return list(lookup.beginning_with(b""))


def claim(base: Path, task: str) -> dict[str, object]:
    found = json.loads(marker(base, task).read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[0])["claim"]
    assert isinstance(found, dict)
    return found


def test_where_the_switch_is_on_checksum_leaves_the_lines_and_the_index_takes_them(line: Path) -> None:
    configure(line, ON)
    luigi("output", "ScanForOutputs", *DAY)
    assert luigi("files", "ScanForOutputFiles", *DAY)[0] == OK
    made = extracts(line)
    assert len(made) == 1
    scanned(line)
    assert claim(line, "index.CdxIndex")["counts"] == {"captures": 268, "hits": 0, "unfit": 0, "warcs": 1}
    assert extracts(line) == made
    code, told = luigi("index", "ScanForIndexing", *DAY)
    assert (code, "CdxIndex" in told) == (OK, False)


def test_switched_on_late_it_reads_the_store_and_changes_nothing_else(line: Path) -> None:
    scanned(line)
    assert not marker(line, "index.CdxIndex").exists()
    before = marker(line, "files.Checksum").read_bytes()
    assert warcmill("reconcile", "2026-11-21")[0] == OK
    configure(line, ON)
    assert warcmill("reconcile", "2026-11-21")[0] == 1
    shutil.rmtree(line.parent / "crawl" / "warcs")
    assert luigi("index", "ScanForIndexing", *DAY)[0] == OK
    assert claim(line, "index.CdxIndex")["counts"] == {"captures": 268, "hits": 0, "unfit": 0, "warcs": 1}
    assert marker(line, "files.Checksum").read_bytes() == before
    assert len(extracts(line)) == 1


def test_switched_off_nothing_is_made_and_nobody_mentions_it(line: Path) -> None:
    told = scanned(line)
    assert "cdx" not in told.lower()
    assert list((line / "index").iterdir()) == [line / "index/.warcmill.json"]
    for verb in (
        ["status", "2026-11-21"],
        ["reconcile", "2026-11-21"],
        ["plan", "2026-11-21"],
        ["files", "2026-11-21"],
    ):
        code, told = warcmill(*verb)
        assert (code, "cdx" in told) == (OK, False)
    assert luigi("index", "CdxIndex", "--job", JOB, "--launch-id", LAUNCH_ID, "--stage", "final")[0] == OK


def test_for_another_job_it_is_not_due(line: Path) -> None:
    configure(line, f"{ON}jobs=another\n")
    scanned(line)
    assert not marker(line, "index.CdxIndex").exists()


def test_an_index_out_of_reach_costs_the_transfer_nothing(line: Path) -> None:
    configure(line, ON)
    shutil.move(line / "index", line / "elsewhere")
    luigi("output", "ScanForOutputs", *DAY)
    code, told = luigi("files", "ScanForOutputFiles", *DAY)
    assert (code, "read again from the store to be indexed" in told) == (OK, True), told
    assert luigi("index", "ScanForIndexing", *DAY)[0] == FAILED
    shutil.move(line / "elsewhere", line / "index")
    assert luigi("index", "ScanForIndexing", *DAY)[0] == OK
    assert len(extracts(line)) == 1


def test_the_last_line_of_a_scan_counts_a_failed_fold(line: Path) -> None:
    configure(line, ON)
    decisions = line / "state" / "decisions" / "access"
    decisions.mkdir(parents=True)
    (decisions / "000001.json").write_text("cut short")
    code, told = warcmill("scan", "2026-11-21")
    last = next(text for text in told.splitlines() if text.startswith("scan 2026-11-21"))
    assert (code, last.partition("; next:")[0]) == (
        1,
        "scan 2026-11-21: 1 launch, 2 WARCs, 0 refused, 1 failed (index.FoldCdx), 2 gaps",
    )


def test_a_line_without_an_index_root_is_named(line: Path) -> None:
    config = line / "luigi.cfg"
    text = "".join(row for row in config.read_text().splitlines(keepends=True) if not row.startswith("index="))
    config.write_text(text)
    code, told = luigi("index", "CdxIndex", "--job", JOB, "--launch-id", LAUNCH_ID, "--stage", "final")
    assert (code, "[warcmill] index: is not set" in told) == (SCHEDULING, True), told
    configure(line, ON)
    code, told = warcmill("status", "2026-11-21")
    assert (code, "[index] since: is set without [warcmill] index" in told) == (3, True)


def test_the_deleted_index_is_made_again(line: Path) -> None:
    configure(line, ON)
    scanned(line)
    made = extracts(line)
    shutil.rmtree(line / "index/extracts")
    assert warcmill("redo", JOB, LAUNCH_ID, "cdx", "final", "--downstream")[0] == OK
    scanned(line)
    assert extracts(line) == made


def test_one_scan_makes_the_lost_index_root_again(line: Path) -> None:
    configure(line, f"{ON}[text]\nsince=2026-11-01\n")
    scanned(line)
    index = line / "index"
    made, markers, captures = contents(index), marker(line, "index.VerifyCdx").read_bytes(), lines(index)
    documents = json.loads(warcmill("search", "the", "--json")[1])["captures"]
    assert (len(made), len(captures), documents > 100) == (2, 268, True)
    shutil.rmtree(index)
    assert warcmill("init", "--adopt", "index", "--create")[0] == OK
    assert luigi("index", "ScanForIndexing", *DAY)[0] == OK
    assert contents(index) == made
    assert (lines(index), marker(line, "index.VerifyCdx").read_bytes()) == (captures, markers)
    assert json.loads(warcmill("search", "the", "--json")[1])["captures"] == documents
    assert warcmill("reconcile", "2026-11-21")[0] == OK


def test_what_is_indexed_is_published_verified_and_with_nothing_new_stays(line: Path) -> None:
    configure(line, ON)
    scanned(line)
    assert claim(line, "index.VerifyCdx")["counts"] == {"captures": 268, "elsewhere": 0, "warcs": 1}
    code, told = warcmill("versions", "list", "--json")
    (version,) = json.loads(told)["versions"]
    assert (code, version["number"], version["lines"], version["current"]) == (OK, 1, 268, True)
    code, told = luigi("index", "ScanForIndexing", *DAY)
    assert (code, "cdx: version 1 has all: no new version" in told, "VerifyCdx" in told) == (OK, True, False), told
    assert warcmill("reconcile", "2026-11-21")[0] == OK
    assert warcmill("versions", "verify")[0] == OK
    uris = (line / "index/versions/cdx/current/inputs.txt").read_text().splitlines()
    assert [Path(uri.removeprefix("file://")).is_file() for uri in uris] == [True]


def test_a_hidden_prefix_is_gone_and_stays_away_from_what_is_made_again(line: Path) -> None:
    configure(line, ON)
    scanned(line)
    code, told = warcmill("versions", "hide", "example,docs", "--reason", "order of a court")
    assert (code, "shows 15 captures of it" in told) == (OK, True), told
    assert luigi("index", "ScanForIndexing", *DAY)[0] == OK
    assert warcmill("versions", "verify")[0] == OK
    shown = json.loads(warcmill("versions", "list", "--json")[1])["versions"][1]["lines"]
    assert shown < 268
    shutil.rmtree(line / "index/extracts")
    shutil.rmtree(line / "index/versions")
    assert warcmill("redo", JOB, LAUNCH_ID, "verify-cdx", "final")[0] == OK
    code, told = luigi("index", "ScanForIndexing", *DAY)
    assert (code, "cdx: version 2 is the current one" in told) == (OK, True), told
    (first, second) = json.loads(warcmill("versions", "list", "--json")[1])["versions"]
    assert (first["lines"], second["lines"]) == (None, shown)
    assert claim(line, "index.VerifyCdx")["counts"] == {"captures": 268, "elsewhere": 0, "warcs": 1}


def test_one_that_cannot_be_indexed_keeps_no_other_from_being_published(line: Path) -> None:
    configure(line, ON)
    scanned(line)
    assert warcmill("redo", JOB, LAUNCH_ID, "cdx", "final", "--downstream")[0] == OK
    shutil.rmtree(line / "index/extracts")
    (stored,) = (line / "store/warcs").rglob("*.warc.gz")
    stored.rename(stored.with_name("moved"))
    code, told = luigi("index", "ScanForIndexing", *DAY)
    assert (code, "version 2 is the current one; captures: 0, WARCs: 0" in told) == (FAILED, True), told
    stored.with_name("moved").rename(stored)
    code, told = luigi("index", "ScanForIndexing", *DAY)
    assert (code, "version 3 is the current one; captures: 268, WARCs: 1" in told) == (OK, True), told
    assert claim(line, "index.VerifyCdx")["counts"] == {"captures": 268, "elsewhere": 0, "warcs": 1}


def test_asked_for_alone_verify_waits_for_a_version(line: Path) -> None:
    configure(line, ON)
    scanned(line)
    shutil.rmtree(line / "index/versions")
    assert warcmill("redo", JOB, LAUNCH_ID, "verify-cdx", "final")[0] == OK
    words = ("--job", JOB, "--launch-id", LAUNCH_ID, "--stage", "final")
    code, told = luigi("index", "VerifyCdx", *words)
    assert (code, "run 'warcmill scan', which publishes one" in told) == (FAILED, True), told
