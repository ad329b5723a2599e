"""The extract of publications from the command line, on the sample: its markers, its switch, a lost extract."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

from operating.typed import luigi, warcmill
from sample import JOB, LAUNCH_ID

from warcmill import layout
from warcmill.model import FINAL, Launch

LAUNCH = Launch(JOB, LAUNCH_ID)
DAY = "2026-11-21"
OK, NO, CONFIGURATION = 0, 1, 3
ON = "\n[documents]\nsince=2026-11-01\n"


def switch_on(base: Path) -> None:
    with (base / "luigi.cfg").open("a") as file:
        file.write(ON)


def claim(base: Path, task: str) -> Any:
    marker = base / "state" / layout.marker_path(layout.key(task, LAUNCH, stage=FINAL))
    return json.loads(marker.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[0])["claim"]


def extract(base: Path) -> list[dict[str, Any]]:
    (path,) = (base / "index/extracts").glob("harvest-1/*/*.jsonl.gz")
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_switched_on_late_it_has_every_document_that_the_crawl_log_has(line: Path) -> None:
    switch_on(line)
    code, printed = warcmill("reconcile", DAY)
    assert (code, "documents" in printed) == (NO, True)
    assert "documents.VerifyDocuments" in warcmill("plan", DAY)[1]
    assert luigi("documents", "ScanForDocuments")[0] == OK
    counts = claim(line, "documents.ExtractDocuments")["counts"]
    assert counts == {"documents": 4, "faults": 0, "hits": 0, "pages": 196, "revisits": 1, "warcs": 1}
    verified = claim(line, "documents.VerifyDocuments")
    assert verified["counts"] == {"entries": 5, "lines": 5}
    assert verified["facts"] == {"first": [], "reasons": {}, "unread": []}
    code, printed = luigi("documents", "ScanForDocuments")
    assert (code, "documents.ExtractDocuments" in printed) == (OK, False)
    assert warcmill("reconcile", DAY)[0] == OK
    assert '"name": "documents"' in warcmill("doctor", "--json")[1]
    assert "docu" in warcmill("status", DAY)[1]
    before = extract(line)
    shutil.rmtree(line / "index/extracts")
    redo = warcmill("redo", JOB, LAUNCH_ID, "documents", "final", "--downstream", "--reason", "a test")
    assert redo[0] == OK
    assert luigi("documents", "ScanForDocuments")[0] == OK
    assert extract(line) == before


def test_switched_off_nothing_is_made_and_nobody_mentions_it(line: Path) -> None:
    for verb in ("status", "reconcile", "plan"):
        code, printed = warcmill(verb, DAY)
        assert (code, "documents" in printed) == (OK, False)
    assert not (line / "index/extracts").exists() or not [*(line / "index/extracts").glob("harvest*")]
