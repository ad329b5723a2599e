"""The text from the command line, on the sample: the marker, the switch, the missing extra, exit codes."""

from __future__ import annotations

import json
import os
import shutil
from importlib import metadata
from pathlib import Path

import preloaded
import pytest
from luigi.configuration import LuigiConfigParser, add_config_path
from sample import JOB, LAUNCH_ID, lay_out

from commands.main import main
from warcmill import layout
from warcmill.launches import text_extracts
from warcmill.launches.extracts import Extracts
from warcmill.model import FINAL, Launch
from warcmill.stores.file import FileStore

LAUNCH = Launch(JOB, LAUNCH_ID)
DAY = "2026-11-21"
OK, NO, CONFIGURATION = 0, 1, 3
ON = "\n[text]\nsince=2026-11-01\n"
COUNTS = {"documents": 206, "hits": 0, "left_out": 62, "warcs": 1}
SCANS = (("output", "ScanForOutputs"), ("files", "ScanForOutputFiles"), ("index", "ScanForIndexing"))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample's crawl, and a line that has it in its store."""
    folder = tmp_path_factory.mktemp("stored")
    crawl, base = lay_out(folder / "crawl"), folder / "line"
    assert main(["init", str(base), "--output", str(crawl), "--jobs", str(crawl / "jobs")]) == OK
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LUIGI_CONFIG_PATH", str(base / "luigi.cfg"))
        for module, task in SCANS:
            code, told = luigi(module, task)
            assert (code, "SolrIndex" in told) == (OK, False), told
    return folder


@pytest.fixture
def line(stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that line; its folder."""
    shutil.copytree(stored, tmp_path / "copy", symlinks=True)
    base = tmp_path / "copy" / "line"
    config = base / "luigi.cfg"
    config.write_text(config.read_text().replace(str(stored), str(tmp_path / "copy")))
    monkeypatch.setenv("LUIGI_CONFIG_PATH", str(config))
    return base


def luigi(module: str, task: str, *arguments: str) -> tuple[int, str]:
    """Exit code, and what was printed."""
    words = ("--module", f"tasks.{module}", f"{module}.{task}", *(arguments or ("--date-interval", DAY)))
    done = preloaded.run("luigi", *words, env=os.environ)
    return done.returncode, done.stdout + done.stderr


def warcmill(*words: str) -> tuple[int, str]:
    """Exit code, and what was printed."""
    done = preloaded.run("commands.main", *words, env=os.environ)
    return done.returncode, done.stdout + done.stderr


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
    assert "ok   text" not in warcmill("doctor")[1]
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
    assert "ok   text" in warcmill("doctor")[1]
    monkeypatch.setattr(LuigiConfigParser, "_instance", None)
    add_config_path(str(line / "luigi.cfg"))
    version = metadata.version

    def without(package: str) -> str:
        if package == "pypdfium2":
            raise metadata.PackageNotFoundError(package)
        return version(package)

    monkeypatch.setattr("warcmill.formats.text.tools.version", without)
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
