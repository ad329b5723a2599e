"""[documents] w3act from the command line, on the sample: scans tell it of documents and of decisions, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from operating.typed import luigi, warcmill
from sites import w3act as servers
from sites.w3act import W3actServer

OK, NO, FAILED = 0, 1, 30


@pytest.fixture
def w3act() -> Iterator[W3actServer]:
    with servers.serving() as made:
        yield made


def test_the_next_scan_tells_it(line: Path, w3act: W3actServer) -> None:
    (line / "password").write_text("a secret\n")
    with (line / "luigi.cfg").open("a") as file:
        file.write(f"\n[documents]\nsince=2026-11-01\nwatched={line / 'targets.jsonl'}\nw3act={w3act.url}\n")
        file.write(f"user=anna@library.example\npassword_file={line / 'password'}\n")
    (line / "targets.jsonl").write_text("")
    assert luigi("documents", "ScanForDocuments")[0] == OK
    assert w3act.posts == []  # nothing is of a target
    listed = json.loads(warcmill("documents", "list", "--json")[1])["documents"]
    assert listed
    host = urlsplit(listed[0]["document_url"]).netloc
    target = {"id": 17, "title": "One", "seeds": [f"http://{host}/", f"https://{host}/"], "watched": True}
    (line / "targets.jsonl").write_text(json.dumps(target))
    w3act.fault = "error"
    code, printed = luigi("documents", "ScanForDocuments")
    assert (code, f"W3ACT {w3act.url} is unavailable: it answered 500 'oops'" in printed) == (FAILED, True), printed
    assert "a secret" not in printed
    w3act.fault = ""
    assert luigi("documents", "ScanForDocuments")[0] == OK
    one = w3act.documents[listed[0]["id"]]
    assert (one["id_watched_target"], one["status"]) == (17, "NEW")
    posts = len(w3act.posts)
    assert warcmill("documents", "decide", listed[0]["id"], "--status", "SAVED", "--title", "A title")[0] == OK
    assert luigi("documents", "ScanForDocuments")[0] == OK
    assert luigi("documents", "ScanForDocuments")[0] == OK
    assert w3act.posts[posts:] == [[listed[0]["id"]]]
    assert (w3act.documents[listed[0]["id"]]["status"], w3act.documents[listed[0]["id"]]["title"]) == (
        "SAVED",
        "A title",
    )
    assert f"server w3act: {w3act.url}" in warcmill("health")[1]
    (line / "password").write_text("another\n")
    code, printed = warcmill("health")
    assert (code, "it refuses the login of anna@library.example" in printed) == (NO, True), printed
