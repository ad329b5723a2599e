"""[pypi] of luigi.cfg: what it may say, and what is refused before anything is asked."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from configured import configured
from line import Line, line_at

from tasks.config import engines, pypi
from warcmill.errors import BadConfig, Unavailable

KEYS = "index=http://index.example\ncontact=http://me.example/\n"
ENGINE = "\n[engine.own]\nkind=warcmill\njobs=mirror\n"


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return line_at(tmp_path)


def configure(monkeypatch: pytest.MonkeyPatch, line: Line, more: str, keys: str = KEYS) -> None:
    line.config.write_text(f"{line.config.read_text()}{ENGINE}\n[pypi]\njobs=mirror\n{keys}{more}")
    configured(monkeypatch, line.config)


def test_a_job_mirrors_an_index_by_its_name_alone(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, line, "")
    assert pypi.mirrors("mirror")
    assert not pypi.mirrors("daily")
    pypi.refuse_unfit("mirror")
    assert pypi.source().projects is None
    assert pypi.concurrency() == 1


@pytest.mark.parametrize(
    ("more", "first", "each"),
    [
        ("", True, 20_000),
        ("history=5\n", True, 5),
        ("history=0\n", False, sys.maxsize),
        ("releases=newest\n", False, 0),
    ],
)
def test_older_releases_come_later_unless_all_are_wanted_at_once(
    line: Line, monkeypatch: pytest.MonkeyPatch, more: str, first: bool, each: int
) -> None:
    configure(monkeypatch, line, more)
    assert (pypi.source().newest_first, pypi.source().history) == (first, each)
    assert pypi.recipe().needed


def test_a_number_of_projects_below_none_is_refused(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, line, "history=-1\n")
    with pytest.raises(BadConfig, match=r"\[pypi\] history: is -1; a number of projects"):
        pypi.source()


def test_without_the_section_no_job_does(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configured(monkeypatch, line.config)
    assert pypi.jobs() == ()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("releases=some\n", r"\[pypi\] releases: is some; one of all, newest"),
        ("wheels=none\n", r"\[pypi\] wheels: is none; one of tail, whole"),
        ("sdists=some\n", r"\[pypi\] sdists: is some; one of needed, all"),
        ("settings=/nowhere.toml\n", r"\[pypi\] settings: /nowhere.toml"),
        ("\n[feed]\njobs=mirror\n", r"\[pypi\] jobs: mirror is in \[feed\] jobs too"),
    ],
)
def test_what_cannot_start_is_refused(line: Line, monkeypatch: pytest.MonkeyPatch, more: str, why: str) -> None:
    configure(monkeypatch, line, more)
    with pytest.raises(BadConfig, match=why):
        pypi.refuse_unfit("mirror")


@pytest.mark.parametrize(("word", "waits"), [("wait", True), ("stop", False), ("", False)])
def test_a_due_crawl_waits_or_stops_the_one_that_runs(
    line: Line, monkeypatch: pytest.MonkeyPatch, word: str, waits: bool
) -> None:
    configure(monkeypatch, line, f"\n[job.mirror]\nfrequency=hourly\nstart=2026-01-01\noverrun={word}\n")
    assert engines.schedule_of("mirror").waits is waits


def test_another_word_is_refused(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, line, "\n[job.mirror]\nfrequency=hourly\nstart=2026-01-01\noverrun=maybe\n")
    with pytest.raises(BadConfig, match=r"\[job.mirror\] overrun: is maybe; stop or wait"):
        engines.schedule_of("mirror")


@pytest.mark.parametrize(
    ("keys", "why"),
    [("contact=http://me.example/\n", "index: is not set"), ("index=http://index.example\n", "contact: is not set"),
     ("index=index.example\ncontact=http://me.example/\n", "not an http or https URL"),
     (f"{KEYS}projects=a b/c\n", "not a name of a project")],
)  # fmt: skip
def test_an_index_needs_its_url_and_a_contact(line: Line, monkeypatch: pytest.MonkeyPatch, keys: str, why: str) -> None:
    configure(monkeypatch, line, "", keys)
    with pytest.raises(BadConfig, match=why):
        pypi.source()


def test_projects_are_named_in_the_key_in_a_file_or_by_a_command(
    line: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "projects.txt").write_text("Zope.Interface  # old\nsix\n")
    for text in ("six, zope-interface", f"{tmp_path}/projects.txt", f"command: cat {tmp_path}/projects.txt"):
        with monkeypatch.context() as patched:
            before = line.config.read_text()
            configure(patched, line, f"projects={text}\n")
            assert pypi.source().projects == frozenset(["six", "zope-interface"])
            line.config.write_text(before)
    configure(monkeypatch, line, f"projects={tmp_path}/none.txt\n")
    with pytest.raises(Unavailable, match="no such file"):
        pypi.source()


@pytest.mark.parametrize("number", ["0", "65", "many"])
def test_shards_are_written_by_1_to_64_at_once(line: Line, monkeypatch: pytest.MonkeyPatch, number: str) -> None:
    configure(monkeypatch, line, f"concurrency={number}\n")
    with pytest.raises(BadConfig, match=r"\[pypi\] concurrency"):
        pypi.concurrency()
