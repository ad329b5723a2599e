"""The books balance after a kill at any named point: a log line is a record is a visit, no URI is lost or repeated."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from crawls import killed_books

from benchmarks.books_sweep import sweep

KILLS = 60


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return killed_books.points(tmp_path_factory.mktemp("whole") / "crawl")


def test_the_points_meet_every_kind_of_call_on_every_file(names: list[str]) -> None:
    assert {
        "write crawl.log", "write frontier.recover", "pwrite .warc", "fdatasync .warc", "fdatasync crawl.log",
        "fdatasync frontier.recover", "commit books.sqlite", "rename .warc", "rename crawl.log",
        "rename frontier.recover", "write results.jsonl", "fdatasync results.jsonl", "rename results.jsonl",
        "open .warc", "open crawl.log", "fsync warcs",
    } <= set(names)  # fmt: skip
    assert {names[kill.at] for kill in killed_books.sample(names, KILLS)} == set(names)


def test_a_kill_loses_nothing_and_repeats_nothing(
    names: list[str], tmp_path: Path, pytestconfig: pytest.Config, tell: Callable[[str], None]
) -> None:
    """A quarter of the kills here: `scripts/test sweep` tries all, and so does .ci/run."""
    kills = killed_books.tried(names, KILLS, pytestconfig.getoption("--every-point"))
    tell(f"kills of a crawl that keeps books: {killed_books.listed(names, kills)}")
    for number, kill in enumerate(kills):
        assert killed_books.survives(tmp_path / str(number), kill) == [], names[kill.at]


def test_several_kills_of_one_crawl_at_any_moment_lose_nothing(tmp_path: Path) -> None:
    kills, wrong = sweep(tmp_path, 5, random.Random(7))
    assert kills >= 5
    assert wrong == []
