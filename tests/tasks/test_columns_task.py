"""The Parquet files from the command line, on the sample: the marker, the switch, the missing extra, a lost file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from configured import configured
from operating.typed import luigi, warcmill
from pyarrow import parquet
from sample import JOB, LAUNCH_ID

from commands.main import main
from warcmill import layout
from warcmill.model import FINAL, Launch

LAUNCH = Launch(JOB, LAUNCH_ID)
DAY = "2026-11-21"
OK, NO, CONFIGURATION, FAILED = 0, 1, 3, 30
ON = "\n[columns]\nsince=2026-11-01\n"
FILE = f"index/columns/crawl={JOB}-{LAUNCH_ID}/final.parquet"


def switch_on(base: Path, section: str = ON) -> None:
    with (base / "luigi.cfg").open("a") as file:
        file.write(section)


def duckdb(query: str) -> object:
    """The rows of its answer; in a process of its own, as it reports leaks when a process ends."""
    command = "import duckdb, json, sys; print(json.dumps(duckdb.sql(sys.argv[1]).fetchall()))"
    done = subprocess.run([sys.executable, "-c", command, query], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def counts(base: Path) -> object:
    marker = base / "state" / layout.marker_path(layout.key("index.Columns", LAUNCH, stage=FINAL))
    return json.loads(marker.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[0])["claim"]["counts"]


def test_switched_on_late_it_writes_what_duckdb_reads(line: Path) -> None:
    switch_on(line)
    code, printed = warcmill("reconcile", DAY)
    assert (code, "columns" in printed) == (NO, True)
    assert luigi("index", "ScanForIndexing")[0] == OK
    assert counts(line) == {"rows": 268, "warcs": 1}
    query = f"SELECT crawl, count(*), count(text_length) FROM '{line}/index/columns/*/*.parquet' GROUP BY crawl"
    assert duckdb(query) == [[f"{JOB}-{LAUNCH_ID}", 268, 0]]
    code, printed = luigi("index", "ScanForIndexing")
    assert (code, "index.Columns" in printed) == (OK, False)
    assert warcmill("reconcile", DAY)[0] == OK
    assert '"name": "columns"' in warcmill("doctor", "--json")[1]


def test_a_file_that_is_gone_is_written_again_with_the_same_bytes(line: Path) -> None:
    switch_on(line)
    assert luigi("index", "ScanForIndexing")[0] == OK
    before = (line / FILE).read_bytes()
    for made in ("columns", "extracts"):
        shutil.rmtree(line / "index" / made)
    assert luigi("index", "ScanForIndexing")[0] == OK
    assert (line / FILE).read_bytes() == before


def test_text_lengths_are_joined_where_text_is_on(line: Path) -> None:
    switch_on(line, ON + "[text]\nsince=2026-11-01\n")
    assert luigi("index", "ScanForIndexing")[0] == OK
    with (line / FILE).open("rb") as file:
        lengths = {
            str(row["url"]): row["text_length"]
            for row in parquet.read_table(file, page_checksum_verification=True).to_pylist()
        }
    assert sum(length is not None for length in lengths.values()) > 100
    (found,) = json.loads(warcmill("search", "zlib", "--json")[1])["found"]
    assert lengths[found["url"]] is not None


def test_switched_off_nothing_is_made_and_nobody_mentions_it(line: Path) -> None:
    for verb in ("status", "reconcile", "plan"):
        code, printed = warcmill(verb, DAY)
        assert (code, "columns" in printed) == (OK, False)
    assert "columns" not in warcmill("doctor", "--json")[1]


def test_without_the_extra_it_is_a_wrong_configuration(
    line: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    switch_on(line)
    configured(monkeypatch, line / "luigi.cfg")
    monkeypatch.setattr("tasks.config.chains._PYARROW", "no-such-package")
    why = "[columns] since: is set, and no-such-package cannot be found: pip install 'warcmill[columns]', or empty it"
    for verb in ("status", "scan"):
        assert main([verb, DAY]) == CONFIGURATION
        assert why in capsys.readouterr().err
    assert main(["doctor"]) == NO
    assert "pip install 'warcmill[columns]'" in capsys.readouterr().out
