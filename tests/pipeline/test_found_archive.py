"""Every verb finds the archive as `crawl` does; without days or a launch, the last days and the newest are meant."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import preloaded
import pytest
from line import DAY, Line, new_line

from warcmill.model import Launch

LAUNCH = "20261121081735"
NEEDING = (
    ("status",), ("why",), ("plan", DAY), ("files",), ("reconcile",), ("depends", "weekly", LAUNCH), ("search", "w"),
    ("pulse", "status"), ("scan",), ("backfill", DAY), ("redo", "weekly", LAUNCH, "process"),
    ("verify", DAY), ("catalogue", "query", "--launch", "weekly", LAUNCH), ("versions", "list"),
    ("wacz", "weekly", LAUNCH, "-o", "x.wacz"),
)  # fmt: skip


def typed(folder: Path, *words: str, config: str = "") -> subprocess.CompletedProcess[str]:
    """A verb as a person types it in a folder, with LUIGI_CONFIG_PATH or without."""
    named = {"LUIGI_CONFIG_PATH": config} if config else {}
    return preloaded.run("commands.main", *words, env={**os.environ, **named}, folder=folder)


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Line:
    """A line in the folder `archive`, with one launch of long ago."""
    return new_line(tmp_path_factory.mktemp("here") / "archive")


@pytest.mark.parametrize("words", NEEDING, ids=lambda words: words[0])
def test_where_there_is_no_archive_each_verb_names_the_places_and_what_makes_one(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = typed(tmp_path, *words)
    assert (done.returncode, done.stdout) == (3, "")
    for part in (
        "LUIGI_CONFIG_PATH is not set",
        "./luigi.cfg",
        "./archive/luigi.cfg",
        "warcmill crawl URL",
        "init FOLD",
    ):
        assert part in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_verb_that_needs_no_archive_runs_without(tmp_path: Path) -> None:
    assert typed(tmp_path, "surt", "http://www.example.org/").returncode == 0


def test_another_programs_luigi_cfg_is_named(tmp_path: Path) -> None:
    (tmp_path / "luigi.cfg").write_text("[core]\n")
    done = typed(tmp_path, "status")
    assert (done.returncode, f"{tmp_path}/luigi.cfg has no section [warcmill]" in done.stderr) == (3, True)


def test_luigi_itself_does_not_look_into_the_folder_archive(line: Line) -> None:
    words = ("--module", "tasks.output", "output.ScanForOutputs", "--date-interval", DAY)
    done = preloaded.run("luigi", *words, env=dict(os.environ), folder=line.config.parent.parent)
    assert done.returncode != 0


@pytest.mark.parametrize("place", ["variable", "folder", "archive"])
def test_the_archive_is_found_at_each_place_also_by_the_scans(line: Line, tmp_path: Path, place: str) -> None:
    here = {"variable": tmp_path, "folder": line.config.parent, "archive": line.config.parent.parent}[place]
    config = str(line.config) if place == "variable" else ""
    done = typed(here, "scan", DAY, config=config)
    assert (done.returncode, "no gap" in done.stdout) == (0, True), done.stderr
    assert line.state.folder(Launch("weekly", LAUNCH))
    assert f"hardened; {line.config}" in typed(here, "doctor", "--json", config=config).stdout


def test_a_nearer_archive_goes_before_a_farther_one(line: Line) -> None:
    folder = line.config.parent.parent
    (folder / "luigi.cfg").write_text("[warcmill]\nstate=/nowhere\n")
    assert "[warcmill]: the key 'output' is missing" in typed(folder, "status").stderr
    assert typed(folder, "status", config=str(line.config)).returncode == 0
    (folder / "luigi.cfg").unlink()


@pytest.mark.parametrize("verb", ["status", "reconcile", "files", "scan"])
def test_without_days_the_last_seven_are_meant_and_printed(line: Line, verb: str) -> None:
    before = datetime.now(UTC).date()
    done = typed(line.config.parent, verb)
    today = datetime.now(UTC).date()
    days = [f"first day {one - timedelta(days=6)}, last day {one} (the last 7 days): " for one in (before, today)]
    assert any(one in done.stdout for one in days), "midnight may have come meanwhile"
    if Launch("weekly", LAUNCH).day < today - timedelta(days=6):
        assert f"the newest is weekly/{LAUNCH}: warcmill {verb} {DAY}" in done.stderr


def test_without_a_launch_the_newest_is_explained(line: Line) -> None:
    assert typed(line.config.parent, "scan", DAY).returncode == 0
    for words in ((), ("weekly",)):
        done = typed(line.config.parent, "why", *words)
        assert (done.returncode, done.stdout.startswith(f"weekly/{LAUNCH}")) == (0, True), done.stdout + done.stderr
    other = typed(line.config.parent, "why", "weakly")
    assert (other.returncode, "job weakly: no launch yet; 'warcmill crawl URL' makes one" in other.stderr) == (1, True)


def test_an_empty_archive_says_what_makes_a_launch(tmp_path: Path) -> None:
    assert typed(tmp_path, "init", "archive").returncode == 0
    for verb, code in (("why", 1), ("status", 0), ("files", 0), ("reconcile", 0), ("scan", 0)):
        done = typed(tmp_path, verb)
        assert (done.returncode, "no launch yet; 'warcmill crawl URL' makes one" in done.stderr) == (code, True), verb


def test_completion_knows_the_jobs_of_the_folder_archive(line: Line) -> None:
    assert typed(line.config.parent.parent, "__complete", "why", "").stdout.split() == ["weekly"]
