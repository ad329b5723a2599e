"""A folder of damaged WARCs and ARCs, imported: every sound record is found, every bad one is named where it begins."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any
from zlib import MAX_WBITS, decompressobj

import preloaded
import pytest
from records.damaged import corpus

JOB = "damaged"
FILES = {file.name: file for file in corpus()}


class Imported:
    """A line whose one launch is the corpus."""

    def __init__(self, base: Path) -> None:
        self.base = base / "line"
        self.source = base / "source"
        self.source.mkdir()
        for file in FILES.values():
            (self.source / file.name).write_bytes(file.data)
        assert self.warcmill("init", str(self.base)).returncode == 0
        done = self.warcmill("import", str(self.source), "--job", JOB, "--json")
        assert done.returncode == 1, "some are refused"
        self.launch = str(json.loads(done.stdout)["launch"]).partition("/")[2]
        for _ in range(2):  # the second publishes the versions
            self.warcmill("scan", "2016-10-19")

    def warcmill(self, *words: str) -> Any:
        environment = {**os.environ, "LUIGI_CONFIG_PATH": str(self.base / "luigi.cfg")}
        return preloaded.run("commands.main", *words, env=environment)

    def claim(self, word: str) -> Mapping[str, Any]:
        path = self.base / f"state/2016-10/{JOB}/{self.launch}/{word}.{JOB}.{self.launch}.final"
        claim = json.JSONDecoder().raw_decode(path.read_text())[0]["claim"]
        assert isinstance(claim, dict)
        return claim

    def version(self, name: str) -> Path:
        return self.base / "index/versions" / name / "current"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    return Imported(tmp_path_factory.mktemp("damaged"))


def found_by_url(imported: Imported) -> set[tuple[str, str]]:
    """The WARC and the URL of each line of the CDX."""
    found = set()
    for path in imported.version("cdx").glob("*.cdx.gz"):
        data = path.read_bytes()
        while data:
            inflater = decompressobj(16 + MAX_WBITS)
            for line in inflater.decompress(data).splitlines():
                known = json.loads(line[line.index(b"{") :])
                found.add((known["filename"].rpartition("/")[2], known["url"]))
            data = inflater.unused_data
    return found


def found_by_word(imported: Imported) -> set[tuple[str, str]]:
    """The WARC and the URL of each document with a word that is in every page."""
    found = set()
    asked = (
        "SELECT warc.name, page.url FROM words JOIN page ON page.id = words.rowid JOIN warc ON warc.id = page.warc"
        " WHERE words MATCH 'cassowary'"
    )
    for path in imported.version("text").glob("*.sqlite"):
        with closing(connect(path)) as database:
            found |= {(name.rpartition("/")[2], url) for name, url in database.execute(asked)}
    return found


def test_every_readable_page_is_found_by_url_and_by_word(imported: Imported) -> None:
    wanted = {(file.name, url) for file in FILES.values() for url in file.found}
    assert found_by_url(imported) == wanted
    assert found_by_word(imported) == wanted
    asked = json.loads(imported.warcmill("search", "cassowary", "--json").stdout)
    assert asked["captures"] == len(wanted)


def test_every_bad_record_is_named_where_it_begins_by_the_claim_and_by_check(imported: Imported) -> None:
    wanted = {file.name: (list(file.bad), list(file.odd)) for file in FILES.values()}
    items = {item["file"]["path"].rpartition("/")[2]: item for item in imported.claim("files.checksums")["items"]}
    named = {name: items[name]["facts"] for name in FILES}
    assert {name: (offsets(facts, "bad"), offsets(facts, "odd")) for name, facts in named.items()} == wanted
    checked = imported.warcmill("check", "--json", *(str(imported.source / name) for name in FILES)).stdout
    lines = {line["file"].rpartition("/")[2]: line for line in map(json.loads, checked.splitlines())}
    assert {name: (offsets(line, "bad"), offsets(line, "odd")) for name, line in lines.items()} == wanted


def offsets(facts: Mapping[str, Any], word: str) -> list[int]:
    return [fault["offset"] for fault in facts[word]]


def test_what_was_left_out_is_claimed_and_each_file_is_a_finding_until_it_is_accepted(imported: Imported) -> None:
    bad = sum(len(file.bad) for file in FILES.values())
    for word in ("index.cdx", "index.text"):
        assert imported.claim(word)["counts"]["bad"] == bad
    assert imported.claim("index.cdx")["counts"]["captures"] == sum(len(file.found) for file in FILES.values())
    (launch,) = json.loads(imported.warcmill("reconcile", "2016-10-19", "--json").stdout)["launches"]
    assert {(gap["kind"], gap["name"].rpartition("/")[2]) for gap in launch["gaps"]} == {
        ("refused", name) for name in FILES
    }
    words = ("accept", "--kind", "refused", "--launch", JOB, imported.launch, "--reason", "as they were delivered")
    assert imported.warcmill(*words).returncode == 0
    assert imported.warcmill("reconcile", "2016-10-19").returncode == 0
