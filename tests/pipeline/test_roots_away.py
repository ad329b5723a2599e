"""The verbs that look, with every other root renamed away: they show what the state knows, and name what is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import sample
from line import DAY, Line, line_at

from warcmill.audit import remedies
from warcmill.model import Launch

JOB, LAUNCH_ID = sample.JOB, sample.LAUNCH_ID
LAUNCH = Launch(JOB, LAUNCH_ID)
AWAY = ("output", "jobs", "store", "index")
VERBS = [("status", DAY), ("why", JOB, LAUNCH_ID), ("files", DAY), ("files", JOB, LAUNCH_ID), ("reconcile", DAY)]


@pytest.fixture
def line(tmp_path: Path, finished: Line) -> Line:
    shutil.copytree(finished.config.parent, tmp_path / "line", symlinks=True)
    return line_at(tmp_path / "line")


def rename_away(line: Line, *roots: str) -> list[Path]:
    """Rename the folders of roots; return those that there were."""
    folders = [folder for root in roots if (folder := line.state.store.base.parent / root).exists()]
    for folder in folders:
        folder.rename(f"{folder}.away")
    assert folders
    return folders


def answered(line: Line, *words: str) -> tuple[int, Any]:
    result = line.warcmill(*words, "--json")
    return result.returncode, json.loads(result.stdout)


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_each_names_every_missing_root_with_what_to_do(line: Line, words: tuple[str, ...]) -> None:
    folders = rename_away(line, *AWAY)
    result = line.warcmill(*words)
    assert result.returncode == 4, result.stderr
    assert str(LAUNCH) in result.stdout
    code, document = answered(line, *words)
    assert code == 4
    named = [f"{one['what']}: {one['why']}" for one in document["away"]]
    for folder in folders:
        assert str(folder) in result.stderr
        assert any(str(folder) in text for text in named), (folder, named)
    assert len(named) == len(set(named))
    assert {one["todo"] for one in document["away"]} == {remedies.ROOT}
    assert f"-> {remedies.ROOT}" in result.stderr


def test_status_shows_the_same_steps_as_before(line: Line) -> None:
    _, before = answered(line, "status", DAY)
    rename_away(line, *AWAY)
    _, now = answered(line, "status", DAY)
    [was], [is_now] = before["launches"], now["launches"]
    assert is_now.pop("away")
    assert was.pop("away") == []
    assert is_now == was
    assert now["totals"] == before["totals"]


def test_files_lists_the_same_files_and_does_not_call_one_gone(line: Line) -> None:
    _, before = answered(line, "files", JOB, LAUNCH_ID)
    rename_away(line, "output")
    _, now = answered(line, "files", JOB, LAUNCH_ID)
    assert len(now["files"]) == len(before["files"]) > 0
    engines = [file for file in now["files"] if file["root"] == "output"]
    assert {file["on_disk"] for file in engines} == {None}
    assert "not on disk" not in line.warcmill("files", JOB, LAUNCH_ID).stdout


def test_an_outage_is_no_absence(line: Line) -> None:
    """The files of a root that is away are not called lost, gone or late; all that it hides is one gap for the root."""
    _, before = answered(line, "why", JOB, LAUNCH_ID)
    rename_away(line, *AWAY)
    code, now = answered(line, "why", JOB, LAUNCH_ID)
    assert (code, now["gaps"], now["ended"]) == (4, before["gaps"], before["ended"])
    code, reconciled = answered(line, "reconcile", DAY)
    [launch] = reconciled["launches"]
    kinds = {gap["kind"] for gap in launch["gaps"]} - {gap["kind"] for gap in before["gaps"]}
    assert (code, kinds) == (4, {"unavailable"})
    assert all("on_disk" not in stage for stage in launch["stages"])


def test_a_launch_that_may_be_in_a_missing_root_is_not_called_unknown(line: Line) -> None:
    rename_away(line, "output")
    result = line.warcmill("why", JOB, "20161020000000")
    assert result.returncode == 4
    assert "is unavailable" in result.stderr


def test_a_report_is_shown_without_the_roots_of_engines(line: Line) -> None:
    before = line.warcmill("report", JOB, LAUNCH_ID)
    rename_away(line, "output", "jobs")
    now = line.warcmill("report", JOB, LAUNCH_ID)
    assert (now.returncode, now.stdout) == (before.returncode, before.stdout)
    assert f"-> {remedies.ROOT}" in now.stderr
