"""The folders of a launch in both layouts, its papers, its id, and the roots that it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from warcmill import layout
from warcmill.crawl.launch import folders as launch_folders
from warcmill.crawl.launch.folders import require_root
from warcmill.errors import BadConfig, Unavailable
from warcmill.layout import OutputLayout
from warcmill.model import Launch
from warcmill.stores import sentinel

LAUNCH = Launch("weekly", "20261121081735")


def test_both_layouts(tmp_path: Path) -> None:
    kind = launch_folders.of(tmp_path / "out", tmp_path / "jobs", OutputLayout.KIND_FIRST, LAUNCH)
    assert kind.warcs == tmp_path / "out/warcs/weekly/20261121081735"
    assert kind.reports == tmp_path / "out/reports/weekly/20261121081735"
    assert kind.own == tmp_path / "jobs/weekly/20261121081735"
    job = launch_folders.of(tmp_path, tmp_path, OutputLayout.JOB_FIRST, LAUNCH)
    assert job.logs == tmp_path / "weekly/20261121081735/logs"
    assert job.own == tmp_path / "weekly/20261121081735"
    assert kind.checkpoints == tmp_path / "jobs/weekly/checkpoints"


def test_a_launch_begins_with_its_folders_its_papers_and_latest(tmp_path: Path) -> None:
    job = tmp_path / "jobs/weekly"
    job.mkdir(parents=True)
    (job / "crawl.toml").write_text("[crawl]\n")
    (job / "seeds.txt").write_text("http://a.example/\n")
    earlier = Launch("weekly", "20261120081735")
    for launch in (earlier, LAUNCH, LAUNCH):
        folders = launch_folders.of(tmp_path / "out", tmp_path / "jobs", OutputLayout.KIND_FIRST, launch)
        launch_folders.begin(folders)
    assert {path.name for path in folders.own.iterdir()} == {"crawl.toml", "seeds.txt"}
    assert (job / "latest").readlink() == Path(LAUNCH.id)
    assert all(folder.is_dir() for folder in (folders.warcs, folders.logs, folders.reports, folders.checkpoints))
    (job / "seeds.txt").write_text("changed")
    assert (folders.own / "seeds.txt").read_text() == "http://a.example/\n"


def test_a_launch_id_is_later_than_all_before_it_whatever_the_clock_says(tmp_path: Path) -> None:
    job = tmp_path / "weekly"
    assert launch_folders.next_id(job, "20261121081735") == "20261121081735"
    for name in ("20261121235959", "latest", "checkpoints", "99999999999999", "20261399000000"):
        (job / name).mkdir(parents=True)
    assert launch_folders.next_id(job, "20261121081735") == "20261122000000"
    (job / "job.log").write_text(
        "2026-11-21T08:17:36.000Z INFO PREPARING 20270101000000\n2026-11-21T08:17:36.000Z INFO PREPARING 2099\n"
    )
    assert launch_folders.next_id(job, "20261121081735") == "20270101000001"
    assert launch_folders.next_id(job, "20270101000001") == "20270101000001"
    assert layout.next_launch_id("20261121081735", ["20261121081735"]) == "20261121081736"


def test_a_root_without_its_sentinel_is_an_outage(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"root 'output'.*mount the disk, then resume the crawl"):
        require_root(tmp_path, "output")
    sentinel.adopt({"output": tmp_path})
    require_root(tmp_path, "output")
    with pytest.raises(BadConfig, match="marks this folder as 'output', not 'jobs'"):
        require_root(tmp_path, "jobs")
    (tmp_path / ".warcmill.json").write_text("{")
    with pytest.raises(BadConfig, match="is not the file"):
        require_root(tmp_path, "output")


def test_output_must_be_a_folder() -> None:
    assert launch_folders.local("[engine.x] output", "/data/out") == Path("/data/out")
    with pytest.raises(BadConfig, match=r"\[engine.x\] output: 'sftp://h/x' is not a folder") as error:
        launch_folders.local("[engine.x] output", "sftp://h/x")
    assert error.value.exit_code == 3
