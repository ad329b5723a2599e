"""A line that has the sample in its store: made once for a module, copied for each test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from line import without_dead_seed, without_index
from operating.typed import luigi
from sample import lay_out

from commands.main import main

SCANS = (("output", "ScanForOutputs"), ("files", "ScanForOutputFiles"), ("index", "ScanForIndexing"),
         ("reports", "ScanForReports"))  # fmt: skip


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample's crawl, and a line that has it in its store, with every switch off."""
    folder = tmp_path_factory.mktemp("stored")
    crawl, base = without_dead_seed(lay_out(folder / "crawl")), folder / "line"
    assert main(["init", str(base), "--output", str(crawl), "--jobs", str(crawl / "jobs")]) == 0
    without_index(base / "luigi.cfg")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LUIGI_CONFIG_PATH", str(base / "luigi.cfg"))
        for module, task in SCANS:
            code, printed = luigi(module, task)
            assert code == 0, printed
            assert not any(step in printed for step in ("CdxIndex", "SolrIndex", "Columns"))
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
