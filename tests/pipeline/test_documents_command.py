"""A curator's week by the command: documents are found by a scan, decided, handed on, and stay decided."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from line import DAY, Line, new_line, with_index_root

from warcmill.stores import sentinel

BZIP2 = "http://assets.gov.example/uploads/10502/bzip2.pdf"


@pytest.fixture(scope="module")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> Line:
    made = with_index_root(new_line(tmp_path_factory.mktemp("line")))
    with made.config.open("a") as file:
        file.write(f"\n[documents]\nsince={DAY}\n")
    assert made.scan_all(DAY) == 0
    return made


@pytest.fixture
def line(scanned: Line, tmp_path: Path) -> Line:
    """A copy of the line that was scanned."""
    here, there = str(scanned.config.parent), str(tmp_path / "line")
    shutil.copytree(here, there, symlinks=True)
    config = tmp_path / "line" / "luigi.cfg"
    config.write_text(config.read_text().replace(here, there))
    folders = {root: tmp_path / "line" / path.relative_to(here) for root, path in scanned.folders.items()}
    return Line(config, folders, scanned.layout)


def asked(line: Line, *words: str, code: int = 0) -> Any:
    done = line.warcmill("documents", *words, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_a_curator_corrects_one_title_ignores_the_rest_and_loses_nothing(line: Line) -> None:
    found = asked(line, "list")["documents"]
    urls = {one["document_url"]: one["id"] for one in found}
    assert BZIP2 in urls
    one = urls.pop(BZIP2)
    done = asked(line, "decide", one[:8], "--status", "SAVED", "--title", "A program, and its library")
    assert done == {"changed": 1, "decision": 1}
    rest = [*urls.values()]
    assert asked(line, "decide", *rest, "--status", "IGNORED")["changed"] == len(rest) == 3
    before = asked(line, "list")["documents"]
    index = line.config.parent / "index-root"
    shutil.rmtree(index)
    sentinel.adopt({"index": index})
    assert line.scan_all(DAY) == 0
    assert asked(line, "list")["documents"] == before
    shown = asked(line, "show", one[:8])
    assert shown["document"]["title"] == "A program, and its library"
    assert shown["history"][0]["fields"] == {"title": "A program, and its library"}
    exported = line.warcmill("documents", "export", "--status", "SAVED", "--format", "jsonl").stdout
    assert [json.loads(text)["id"] for text in exported.splitlines()] == [one]


def test_the_verb_says_what_it_refuses(line: Line, tmp_path: Path) -> None:
    one = next(found["id"] for found in asked(line, "list")["documents"] if found["document_url"] == BZIP2)
    assert asked(line, "decide", one, "--status", "SAVED", "--over", "0")["decision"] == 1
    for words, code, why in (
        (("decide", one, "--status", "IGNORED", "--over", "0"), 1, "has decided meanwhile, as decision 1 of"),
        (("decide", one, "--publication-date", "soon"), 1, "publication_date: it is not a year"),
        (("decide", one), 1, "neither a status nor a field is given"),
        (("decide", one, "--title", "x", "--withdraw", "title"), 1, "this field gets a value by the same command"),
        (("decide", "00000000", "--status", "SAVED"), 1, "the version has no such"),
        (("show", "x"), 1, "it is not an id of a document"),
        (("list", "--status", "LOST"), 2, "invalid choice"),
        (("list", "--prefix", "a b"), 0, ""),
        (("export", "--status", "SAVED", "--since", "soon"), 2, "is not a day"),
        (("import", str(tmp_path / "none")), 4, "No such file"),
    ):
        done = line.warcmill("documents", *words)
        assert (done.returncode, why in done.stderr) == (code, True), done.stderr
    again = line.warcmill("documents", "decide", one, "--status", "SAVED")
    assert (again.returncode, again.stdout) == (0, "nothing new: it was decided so before\n")


def test_old_decisions_of_w3act_are_imported_once(line: Line, tmp_path: Path) -> None:
    one = next(found for found in asked(line, "list")["documents"] if found["document_url"] == BZIP2)
    rows = [
        {"document_url": BZIP2, "wayback_timestamp": one["wayback_timestamp"], "status": "SUBMITTED", "title": "Bzip2"},
        {"document_url": "http://gone.example/x.pdf", "wayback_timestamp": "20160101000000", "status": "SAVED"},
        {"status": "SAVED"},
    ]
    file = tmp_path / "w3act.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    done = asked(line, "import", str(file), code=1)
    assert (done["decided"], done["lines"]) == (1, 3)
    assert done["waiting"][0]["name"] == "http://gone.example/x.pdf 20160101000000"
    assert done["bad"][0]["line"] == 3
    assert asked(line, "import", str(file), code=1)["known"] == 1
    said = line.warcmill("documents", "import", str(file)).stdout
    assert "3 lines: 0 decided, 1 decided before, 0 NEW, 1 not in the archive yet, 1 bad" in said
    done = line.warcmill("documents", "export", "--status", "SUBMITTED", "--format", "csv")
    assert done.returncode == 0, done.stderr
    saved = done.stdout
    assert saved.count("Bzip2") == 1


def test_a_second_scan_does_nothing_and_what_is_hidden_leaves_the_list(line: Line) -> None:
    desk = line.config.parent / "index-root/documents/desk.sqlite"
    before = desk.stat().st_mtime_ns
    assert line.scan_all(DAY) == 0
    assert desk.stat().st_mtime_ns == before
    one = next(found["id"] for found in asked(line, "list")["documents"] if found["document_url"] == BZIP2)
    asked(line, "decide", one, "--status", "SAVED", "--title", "Mine")
    assert line.warcmill("versions", "hide", BZIP2, "--reason", "asked for").returncode == 0
    assert line.scan_all(DAY) == 0
    assert BZIP2 not in line.warcmill("documents", "list").stdout
    assert line.warcmill("versions", "unhide", BZIP2, "--reason", "asked for").returncode == 0
    assert line.scan_all(DAY) == 0
    assert asked(line, "show", one)["document"]["title"] == "Mine"


def test_before_the_first_scan_the_verb_names_it(tmp_path: Path) -> None:
    done = with_index_root(new_line(tmp_path)).warcmill("documents", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "nothing is published yet: 'warcmill scan' lists documents, where luigi.cfg has [documents]" in done.stderr


def test_without_an_index_the_verb_names_the_key(tmp_path: Path) -> None:
    done = new_line(tmp_path).warcmill("documents", "list")
    assert (done.returncode, "[warcmill] index" in done.stderr) == (3, True)
