"""`warcmill import`: a folder that wget left goes all the way; what cannot be imported is refused by name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import preloaded
import pytest
from line import Line
from packing import foreign_waczs
from sample import JOB, LAUNCH_ID

from warcmill.layout import SENTINEL

WGET = Path(__file__).parents[1] / "data" / "wget"  # wget 1.21.3: WARC/1.0, URIs in angle brackets, one file not gzip
JOBS = "wget"
SECTIONS = """
[package]
since=2016-01-01
organisation=National Library
naan=12345
destination={base}/destination
"""


@dataclass
class Fresh:
    """A line as `warcmill init` makes it, and a folder of WARCs beside it."""

    base: Path
    source: Path

    def warcmill(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LUIGI_CONFIG_PATH": str(self.base / "luigi.cfg")}
        return preloaded.run("commands.main", *words, env=environment)

    def asks(self, *words: str) -> dict[str, Any]:
        document = json.loads(self.warcmill(*words, "--json").stdout)
        assert isinstance(document, dict)
        return document

    def configure(self, text: str) -> None:
        with (self.base / "luigi.cfg").open("a") as config:
            config.write(text)

    def imports(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.warcmill("import", str(self.source), "--job", JOBS, *words)


@pytest.fixture
def fresh(tmp_path: Path) -> Fresh:
    base, source = tmp_path / "line", tmp_path / "from wget"
    shutil.copytree(WGET, source)
    fresh = Fresh(base, source)
    assert fresh.warcmill("init", str(base)).returncode == 0
    return fresh


def test_a_folder_of_wget_is_stored_verified_indexed_packaged_and_without_a_gap(fresh: Fresh) -> None:
    fresh.configure(SECTIONS.format(base=fresh.base))
    assert fresh.warcmill("init", "--adopt", "package", "--create").returncode == 0
    done = fresh.asks("import", str(fresh.source), "--job", JOBS)
    job, launch_id = done["launch"].split("/")
    assert (job, done["files"], done["refused"], done["missing"]) == (JOBS, 2, 0, [])
    assert done["left_out"] == ["WGET-one.cdx: not named as a WARC"]
    fresh.warcmill("scan", launch_id[:4])  # the version of the index that has its lines is published by the next scan
    scanned = fresh.warcmill("scan", launch_id[:4])
    assert scanned.returncode == 0, scanned.stdout + scanned.stderr
    assert "no gap" in scanned.stdout
    assert "WARN" not in scanned.stderr, "a line of imports alone has no engine, which is ordinary"
    (launch,) = fresh.asks("status", launch_id[:4])["launches"]
    marks = {word: cell["mark"] for word, cell in launch["cells"].items()}
    assert (launch["ended"], {marks.pop("read-back"), marks.pop("retire")}) == ("imported", {"not due"})
    assert set(marks.values()) == {"done"}
    assert {"cdx", "package", "verify-sip", "catalogue"} <= set(marks)
    (report,) = fresh.asks("reconcile", launch_id[:4])["launches"]
    assert (report["gaps"], report["stages"][0]["unnamed"]) == ([], 0)
    assert "nothing is missing" in fresh.warcmill("why", *done["launch"].split("/")).stdout
    summary = json.loads(next((fresh.base / "state").glob("*/status.*.json")).read_text())
    assert (summary["launches"][0]["troubles"], summary["launches"][0]["counts"]["unnamed"]) == ([], 0)
    levels = {one["name"]: one["level"] for one in fresh.asks("doctor")["checks"]}
    assert levels["launches"] == levels["write output [engine.imported]"] == "ok"
    wacz = fresh.base / "out.wacz"
    made = fresh.warcmill("wacz", job, launch_id, "-o", str(wacz))
    assert made.returncode == 0, made.stderr


def test_the_same_folder_again_is_nothing_new(fresh: Fresh) -> None:
    first = fresh.imports()
    assert first.returncode == 0, first.stderr
    assert "2 WARCs" in first.stdout
    assert "Next:\n  warcmill scan 20" in first.stdout
    again = fresh.imports()
    assert (again.returncode, again.stdout.splitlines()[0]) == (0, "nothing new: 2 WARCs are imported already")
    assert fresh.asks("import", str(fresh.source), "--job", JOBS)["launch"] == ""


def test_what_is_refused_or_may_be_missing_is_named_and_reconcile_lists_it_until_it_is_accepted(fresh: Fresh) -> None:
    (fresh.source / "cut.warc.gz").write_bytes((WGET / "WGET-one.warc.gz").read_bytes()[:-9])
    (fresh.source / "link.warc.gz").symlink_to("/etc/hostname")
    done = fresh.imports("--launch-id", "20260101000000")
    assert done.returncode == 1
    assert "  refused: cut.warc.gz: at offset" in done.stdout
    assert "  missing: link.warc.gz: a link or a special file; not followed" in done.stdout
    assert fresh.warcmill("scan", "2026-01-01").returncode == 1
    gaps = {gap["kind"]: gap["name"] for gap in fresh.asks("reconcile", "2026")["launches"][0]["gaps"]}
    assert gaps == {"refused": f"{JOBS}/20260101000000/warcs/cut.warc.gz", "not imported": "link.warc.gz"}
    for name in gaps.values():
        words = ("accept", name, "--launch", JOBS, "20260101000000", "--reason", "seen")
        assert fresh.warcmill(*words).returncode == 0
    assert fresh.warcmill("reconcile", "2026").returncode == 0


def test_a_warc_that_changed_after_its_import_is_named(fresh: Fresh) -> None:
    assert fresh.imports("--launch-id", "20260101000000").returncode == 0
    folder = fresh.base / "imported" / JOBS / "20260101000000" / "warcs"
    path = folder / "WGET-two.warc"
    data = path.read_bytes().replace(b"text/html", b"text/plan")
    path.unlink()  # it may be a link
    path.write_bytes(data)
    (folder / "WGET-one.warc.gz").unlink()
    fresh.warcmill("scan", "2026")
    gaps = {
        (gap["kind"], gap["name"].rpartition("/")[2]) for gap in fresh.asks("reconcile", "2026")["launches"][0]["gaps"]
    }
    assert {("not as imported", "WGET-two.warc"), ("not as imported", "WGET-one.warc.gz")} <= gaps


def test_an_import_without_its_marker_is_no_launch_that_a_scan_takes_and_the_next_import_completes_it(
    fresh: Fresh,
) -> None:
    assert fresh.imports("--launch-id", "20260101000000").returncode == 0
    (marker,) = (fresh.base / "state").glob("*/*/*/*.imported")
    shutil.rmtree(marker.parent)
    assert fresh.warcmill("scan", "2026").returncode == 1
    assert not list((fresh.base / "state").glob("*/*/*/*"))
    answer = fresh.asks("why", JOBS, "20260101000000")
    assert [one["why"] for one in answer["waiting"]] == [
        f"its import was cut short. To complete it: warcmill import FOLDER --job {JOBS}"
    ]
    (gap,) = answer["gaps"]
    assert (gap["kind"], gap["todo"]) == ("lacking", f"warcmill import FOLDER --job {JOBS}")
    closed = fresh.warcmill("close", JOBS, "20260101000000", "--reason", "it is over")
    assert (closed.returncode, "what ends it is its import" in closed.stderr) == (1, True)
    again = fresh.imports()
    assert "20260101000000: its import was cut short, and is complete now" in again.stdout
    assert marker.exists()
    assert fresh.warcmill("scan", "2026").returncode == 0


def test_a_wacz_is_stored_and_indexed_and_what_is_bad_in_it_is_a_finding(fresh: Fresh) -> None:
    members = {f"archive/{path.name}": path.read_bytes() for path in sorted(WGET.glob("*.warc*"))}
    listed = foreign_waczs.pages(("2026-11-22T13:39:26Z", "http://127.0.0.1:17071/b.html", "A title by a script"))
    members |= {"pages/pages.jsonl": listed, "logs/wget.log": b"done\n"}
    path = foreign_waczs.write(fresh.base / "wget.wacz", foreign_waczs.whole(members))
    words = ("import", str(path), "--job", JOBS, "--launch-id", "20260101000000")
    done = fresh.warcmill(*words)
    assert (done.returncode, done.stdout.splitlines()[-3]) == (0, "  with 4 logs and lists of pages"), done.stderr
    scanned = fresh.warcmill("scan", "2026-01-01")
    assert (scanned.returncode, "no gap" in scanned.stdout) == (0, True), scanned.stdout
    (logs,) = (fresh.base / "state").glob("*/*/*/02.*.zip")
    with ZipFile(logs) as packed:
        assert packed.read("reports/pages.jsonl") == listed
        assert packed.read("logs/wget.log") == b"done\n"
    assert "nothing new: 2 WARCs are imported already" in fresh.warcmill(*words).stdout
    (found,) = {one["url"] for one in fresh.asks("search", "script")["found"]}
    assert found == "http://127.0.0.1:17071/b.html"
    verified = {path.name.partition(".wget")[0] for path in (fresh.base / "state").glob("*/*/*/index.*verified*")}
    assert verified == {"index.cdx-verified", "index.text-verified"}
    assert fresh.warcmill("wacz", JOBS, "-o", str(fresh.base / "ours.wacz")).returncode == 0
    with ZipFile(fresh.base / "ours.wacz") as ours:
        (_, page) = map(json.loads, ours.read("pages/pages.jsonl").splitlines()[:2])
    assert (page["url"], page["title"]) == (found, "A title by a script")
    again = fresh.asks("import", str(fresh.base / "ours.wacz"), "--job", "ours")
    assert (again["files"], again["missing"], again["remarks"]) == (2, [], [])
    changed = foreign_waczs.whole(members) | {"logs/wget.log": b"else"}
    bad = foreign_waczs.write(fresh.base / "bad.wacz", changed)
    named = fresh.warcmill("import", str(bad), "--job", "other", "--launch-id", "20260101000000")
    assert (named.returncode, "  missing: bad.wacz/logs/wget.log: it has 4 bytes" in named.stdout) == (1, True)
    assert fresh.warcmill("scan", "2026-01-01").returncode == 1
    gaps = [gap for each in fresh.asks("reconcile", "2026-01-01")["launches"] for gap in each["gaps"]]
    assert [(gap["kind"], gap["name"]) for gap in gaps] == [("not imported", "bad.wacz/logs/wget.log")]


def test_what_is_no_wacz_is_refused(fresh: Fresh, tmp_path: Path) -> None:
    path = tmp_path / "cut.wacz"
    path.write_bytes(b"PK\3\4")
    refused = fresh.warcmill("import", str(path), "--job", JOBS)
    assert (refused.returncode, "cut.wacz: not a whole zip" in refused.stderr) == (1, True)
    refused = fresh.warcmill("import", str(path), str(WGET), "--job", JOBS)
    assert (refused.returncode, "name one folder, or WACZ files alone" in refused.stderr) == (2, True)
    refused = fresh.warcmill("import", str(tmp_path / "none.wacz"), "--job", JOBS)
    assert (refused.returncode, "there is no such file" in refused.stderr) == (1, True), refused.stderr
    path = fresh.base / "store" / "x.wacz"
    path.write_bytes(b"")
    refused = fresh.warcmill("import", str(path), "--job", JOBS)
    assert (refused.returncode, "one is inside the other" in refused.stderr) == (2, True)


def test_an_engine_s_job_is_refused_by_name(line: Line, tmp_path: Path) -> None:
    source = tmp_path / "from wget"
    shutil.copytree(WGET, source)
    assert line.warcmill("import", str(source), "--job", JOBS).returncode == 3, "it has no root for imports yet"
    adopted = line.warcmill("init", "--adopt", "engine.imported").stdout
    section = adopted.partition("luigi.cfg:\n")[2]
    assert section.split() == ["[engine.imported]", f"output={tmp_path / 'imported'}"]
    with line.config.open("a") as config:
        config.write(f"{section}\n[engine.first]\nkind=heritrix\njobs=daily\n[writer.render]\n")
        config.write(f"root={tmp_path}/render\njobs=hourly\nlayout=prefix\n")
    for job, why in (
        (JOB, f"an engine crawls job '{JOB}': {tmp_path}/output/"),
        ("daily", "job 'daily' is crawled by [engine.first]"),
        ("hourly", "[writer.render] writes WARCs of job 'hourly'"),
    ):
        refused = line.warcmill("import", str(source), "--job", job)
        assert (refused.returncode, why in refused.stderr) == (2, True), refused.stderr
    assert sorted(path.name for path in (tmp_path / "imported").iterdir()) == [SENTINEL]


def test_a_job_whose_crawls_are_only_in_the_archive_is_refused_too(done: Line, tmp_path: Path) -> None:
    with done.config.open("a") as config:
        config.write(f"\n[engine.imported]\noutput={tmp_path}/imported\n")
    assert done.warcmill("init", "--adopt", "engine.imported", "--create").returncode == 0
    for folder in (*(tmp_path / "output").glob(f"*/{JOB}"), *(tmp_path / "output" / "jobs").glob(JOB)):
        shutil.rmtree(folder, ignore_errors=True)
    source = tmp_path / "from wget"
    shutil.copytree(WGET, source)
    refused = done.warcmill("import", str(source), "--job", JOB)
    why = f"an engine crawled job '{JOB}': launch {LAUNCH_ID} was not imported"
    assert (refused.returncode, why in refused.stderr) == (2, True), refused.stderr


def test_folders_of_the_line_files_and_what_is_not_there(fresh: Fresh) -> None:
    assert fresh.imports().returncode == 0
    for folder in (fresh.base / "imported", fresh.base / "store", fresh.base, fresh.base / "imported" / JOBS):
        refused = fresh.warcmill("import", str(folder), "--job", "other")
        assert (refused.returncode, "one is inside the other" in refused.stderr) == (2, True), refused.stderr
    refused = fresh.warcmill("import", str(WGET / "WGET-two.warc"), "--job", "other")
    assert (refused.returncode, "is a file; name the folder that it is in" in refused.stderr) == (2, True)
    refused = fresh.warcmill("import", "/nowhere", "--job", "other")
    assert (refused.returncode, "there is no such folder; mount its disk" in refused.stderr) == (4, True)
    assert fresh.imports("--launch-id", "2016").returncode == 2
    refused = fresh.imports("--launch-id", "09990101000000")
    assert (refused.returncode, "no scan takes days of the year 0999" in refused.stderr) == (2, True), refused.stderr
    assert fresh.warcmill("import", str(fresh.source), "--job", "../x").returncode == 2


def test_an_imported_root_that_is_not_there_is_an_outage_and_engines_jobs_go_on(done: Line, tmp_path: Path) -> None:
    with done.config.open("a") as config:
        config.write(f"\n[engine.imported]\noutput={tmp_path}/gone\n[engine.first]\nkind=heritrix\njobs={JOB}\n")
    status = done.warcmill("status", LAUNCH_ID[:4])
    assert (status.returncode, JOB in status.stdout) == (4, True)
    assert f"root 'output' ({tmp_path}/gone) is unavailable" in status.stderr
    assert done.warcmill("why", JOB, LAUNCH_ID).returncode == 0


def test_init_again_keeps_a_line_from_before_imports_as_it_is(fresh: Fresh) -> None:
    config = fresh.base / "luigi.cfg"
    head, _, rest = config.read_text().partition("[engine.imported]\n")
    before = head + rest.partition("\n\n")[2]
    config.write_text(before)
    shutil.rmtree(fresh.base / "imported")
    assert fresh.warcmill("init", str(fresh.base)).returncode == 0
    assert config.read_text() == before
    assert not (fresh.base / "imported").exists()


def test_wrong_keys_of_its_section_are_told(fresh: Fresh) -> None:
    config = fresh.base / "luigi.cfg"
    sound = config.read_text()
    for key, why in (
        ("jobs=daily", "there is no such key; there are output"),
        ("url=https://x", "there is no such key"),
    ):
        config.write_text(sound.replace("[engine.imported]\n", f"[engine.imported]\n{key}\n"))
        refused = fresh.imports()
        assert (refused.returncode, f"[engine.imported] {key.partition('=')[0]}" in refused.stderr) == (3, True)
        assert why in refused.stderr
    config.write_text(sound.replace("[engine.imported]\noutput=", "[engine.imported]\noutput=sftp://x@h"))
    assert "it is a folder of this host" in fresh.imports().stderr
