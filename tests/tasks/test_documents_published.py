"""The list of documents from the command line, on the sample: it is published, hidden from, and asked by health."""

from __future__ import annotations

import json
from pathlib import Path

from operating.typed import luigi, warcmill
from sample import JOB, LAUNCH_ID

from warcmill.stores.file import FileStore
from warcmill.versions.documents import published
from warcmill.versions.documents.entries import Entry
from warcmill.versions.publication import Payloads

OK, NO = 0, 1
DAY = "2026-11-21"


def entries(base: Path) -> list[Entry]:
    index = FileStore("index", base / "index")
    current = Payloads(index, "documents").current()
    assert current
    return [*published.entries(index, current)]


def test_the_documents_of_the_sample_are_published_and_what_is_hidden_leaves_them_at_once(line: Path) -> None:
    with (line / "luigi.cfg").open("a") as file:
        file.write("\n[documents]\nsince=2026-11-01\n")
    assert luigi("documents", "ScanForDocuments")[0] == OK
    assert luigi("documents", "ScanForDocuments")[0] == OK
    code, printed = warcmill("versions", "list", "--of", "documents", "--json")
    (version,) = json.loads(printed)["versions"]
    assert (code, version["warcs"], version["current"]) == (OK, 1, True)
    assert warcmill("versions", "verify", "--of", "documents")[0] == OK
    found = entries(line)
    assert found
    for one in found:
        assert (one.captures[0].job, one.captures[0].launch) == (JOB, LAUNCH_ID)
        assert one.shown("title")
    url = found[0].urls[0]
    assert warcmill("versions", "hide", url, "--reason", "an order")[0] == OK
    assert {one.id for one in entries(line)} == {one.id for one in found[1:]}
    assert warcmill("versions", "unhide", url, "--reason", "over")[0] == OK
    assert entries(line) == found
    code, printed = warcmill("versions", "diff", "1", "2", "--of", "documents")
    assert (code, "has nothing of it" in printed) == (OK, True)


def test_health_names_a_list_of_watched_targets_that_cannot_be_read(line: Path) -> None:
    with (line / "luigi.cfg").open("a") as file:
        file.write("\n[documents]\nsince=2026-11-01\nwatched=/nowhere/targets.jsonl\n")
    code, printed = warcmill("health")
    assert (code, "/nowhere/targets.jsonl" in printed) == (NO, True)
    (line / "targets.jsonl").write_text(
        json.dumps({"id": 7, "title": "T", "seeds": ["http://a.example/"], "watched": True})
    )
    text = (line / "luigi.cfg").read_text().replace("/nowhere", str(line))
    (line / "luigi.cfg").write_text(text)
    assert "server watched targets: 1;" in warcmill("health")[1]
