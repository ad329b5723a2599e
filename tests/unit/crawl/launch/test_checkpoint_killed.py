"""A kill at any named point leaves a whole checkpoint or none, and the launch goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from crawls import killed_books, killed_checkpoints

KILLS = 68


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return killed_checkpoints.points(tmp_path_factory.mktemp("whole") / "crawl")


def test_the_points_meet_every_step_of_a_checkpoint(names: list[str]) -> None:
    assert {
        "rename crawl.log", "rename frontier.recover", "rename alerts.log", "rename progress-statistics.log",
        "open books.sqlite", "fsync books.sqlite", "rename .statistics.json.tmp", "rename .manifest.json.tmp",
        "fsync .valid.tmp", "rename .valid.tmp", "write job.log", "fdatasync job.log", "commit books.sqlite",
        "rename scope.log",
    } <= set(names)  # fmt: skip
    assert {names[kill.at] for kill in killed_books.sample(names, KILLS)} == set(names)


def test_a_kill_leaves_a_whole_checkpoint_or_none(
    names: list[str], tmp_path: Path, pytestconfig: pytest.Config, tell: Callable[[str], None]
) -> None:
    """A quarter of the kills here: `scripts/test sweep` tries all, and so does .ci/run."""
    kills = killed_books.tried(names, KILLS, pytestconfig.getoption("--every-point"))
    tell(f"kills of a crawl that takes checkpoints: {killed_books.listed(names, kills)}")
    for number, kill in enumerate(kills):
        assert killed_checkpoints.survives(tmp_path / str(number), kill) == [], names[kill.at]


def test_a_kill_while_a_database_is_restored_leaves_one_of_the_two(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    assert killed_books.run(killed_checkpoints.new_folder(whole), crawl=killed_checkpoints.crawl) == 0
    after = killed_checkpoints.visits(whole)

    def copied(name: str) -> Path:
        shutil.copytree(whole / "killed", tmp_path / name / "killed", symlinks=True)
        return tmp_path / name

    trace = tmp_path / "trace"
    restored = copied("restored")
    assert killed_books.run(restored, trace=trace, crawl=killed_checkpoints.restoring) == 0
    before = killed_checkpoints.visits(restored)
    assert 0 < before < after
    steps = trace.read_text().splitlines()
    assert "rename .books.sqlite.tmp" in steps
    for at, step in enumerate(steps):
        killed = copied(f"killed-{at}")
        killed_books.run(killed, killed_books.Kill(at), crawl=killed_checkpoints.restoring)
        assert killed_checkpoints.visits(killed) in (before, after), step
        assert killed_books.run(killed, crawl=killed_checkpoints.restoring) == 0, step
        assert killed_checkpoints.visits(killed) == before, step
