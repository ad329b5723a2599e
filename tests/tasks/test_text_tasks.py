"""The text from the command line, on the sample: the marker, the switch, the missing extra, exit codes."""

from __future__ import annotations

import json
import shutil
from importlib import metadata
from pathlib import Path

import pytest
from configured import configured
from operating.typed import luigi, warcmill
from sample import JOB, LAUNCH_ID

from commands.main import main
from warcmill import layout
from warcmill.extracts import text as text_extracts
from warcmill.extracts.extracts import Extracts
from warcmill.model import FINAL, Launch
from warcmill.stores.file import FileStore

LAUNCH = Launch(JOB, LAUNCH_ID)
DAY = "2026-11-21"
OK, NO, CONFIGURATION = 0, 1, 3
ON = "\n[text]\nsince=2026-11-01\n"
COUNTS = {"documents": 206, "hits": 0, "left_out": 62, "warcs": 1}


def switch_on(base: Path, more: str = "") -> None:
    with (base / "luigi.cfg").open("a") as file:
        file.write(ON + more)


def marker(base: Path) -> Path:
    return base / "state" / layout.marker_path(layout.key("index.SolrIndex", LAUNCH, stage=FINAL))


def counts(base: Path) -> object:
    return json.loads(_body(base))["claim"]["counts"]


def _body(base: Path) -> bytes:
    return marker(base).read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[0]


def test_switched_on_late_it_reads_the_store_once(line: Path) -> None:
    switch_on(line)
    code, told = warcmill("reconcile", DAY)
    assert (code, "text" in told) == (NO, True)
    assert "index.SolrIndex" in warcmill("plan", DAY)[1]
    shutil.rmtree(line.parent / "crawl" / "warcs")
    assert luigi("index", "ScanForIndexing")[0] == OK
    assert counts(line) == COUNTS
    verified = line / "state" / layout.marker_path(layout.step("verify-text", LAUNCH, FINAL))
    body = verified.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[0]
    assert json.loads(body)["claim"]["counts"] == {"documents": 206, "warcs": 1}
    code, told = luigi("index", "ScanForIndexing")
    assert (code, "SolrIndex" in told, "VerifySolr" in told) == (OK, False, False)
    assert "text" in warcmill("status", DAY)[1]
    code, told = warcmill("search", "zlib", "--json")
    (only,) = json.loads(told)["found"]
    assert (code, only["url"], only["type"]) == (
        OK,
        "http://assets.gov.example/uploads/10502/bzip2.pdf",
        "application/pdf",
    )
    assert "[Debian New Maintainers]" in warcmill("search", "Debian New Maintainers", "--site", "docs.example")[1]
    assert warcmill("versions", "hide", "example,gov,assets", "--reason", "an order")[0] == OK
    assert warcmill("search", "zlib") == (NO, "0 captures found\n")


def test_switched_off_nothing_is_made_and_nobody_mentions_it(line: Path) -> None:
    assert list((line / "index").iterdir()) == [line / "index/.warcmill.json"]
    assert warcmill("search", "zlib")[0] == NO
    for verb in ("status", "reconcile", "plan", "files"):
        code, told = warcmill(verb, DAY)
        assert (code, "text" in told) == (OK, False)
    assert '"name": "text"' not in warcmill("doctor", "--json")[1]
    step = ("--job", JOB, "--launch-id", LAUNCH_ID, "--stage", "final")
    assert luigi("index", "SolrIndex", *step)[0] == OK


def test_for_another_job_it_is_not_due(line: Path) -> None:
    switch_on(line, "jobs=another\n")
    assert luigi("index", "ScanForIndexing")[0] == OK
    assert not marker(line).exists()


def test_the_deleted_text_is_made_again(line: Path) -> None:
    switch_on(line)
    assert luigi("index", "ScanForIndexing")[0] == OK
    (file,) = (line / "index/extracts").rglob("*.jsonl.gz")
    extract, claim = file.read_bytes(), json.loads(_body(line))["claim"]
    documents = list(text_extracts.lines(Extracts(FileStore("index", line / "index")), file.name.partition(".")[0]))
    papers = [one for one in map(json.loads, documents) if one.get("content_type_served") == "application/pdf"]
    assert [one["content_text_length"] > 100 for one in papers] == [True] * 4
    shutil.rmtree(line / "index/extracts")
    assert warcmill("redo", JOB, LAUNCH_ID, "text", "final", "--downstream")[0] == OK
    assert luigi("index", "ScanForIndexing")[0] == OK
    assert (file.read_bytes(), json.loads(_body(line))["claim"]) == (extract, claim)


def test_without_the_extra_it_is_a_wrong_configuration(
    line: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    switch_on(line)
    assert '"name": "text"' in warcmill("doctor", "--json")[1]
    configured(monkeypatch, line / "luigi.cfg")
    version = metadata.version

    def without(package: str) -> str:
        if package == "pypdfium2":
            raise metadata.PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr("warcmill.formats.text.document.version", without)
    for verb in ("status", "reconcile", "plan", "scan"):
        assert main([verb, DAY]) == CONFIGURATION
    told = capsys.readouterr().err
    assert "[text] since: is set, and pypdfium2 cannot be found: pip install 'warcmill[text]', or empty it" in told
    assert main(["doctor"]) == NO
    assert "pip install 'warcmill[text]'" in capsys.readouterr().out


def test_a_line_without_an_index_root_is_named(line: Path) -> None:
    config = line / "luigi.cfg"
    text = "".join(row for row in config.read_text().splitlines(keepends=True) if not row.startswith("index="))
    config.write_text(text)
    switch_on(line)
    code, told = warcmill("status", DAY)
    assert (code, "[text] since: is set without [warcmill] index" in told) == (CONFIGURATION, True)
