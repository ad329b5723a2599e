"""[group.NAME] of luigi.cfg: what it may say, and what is refused before PostgreSQL is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from configured import configured
from line import Line, line_at

from tasks.config import groups, known
from warcmill.errors import BadConfig, NotReady

CENTRE = "centre=postgresql://warcmill@db.example:5433/web?sslmode=require\n"
ENGINE = "\n[engine.own]\nkind=warcmill\njobs=east, west\n\n[engine.other]\njobs=south\n"


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return line_at(tmp_path)


def configure(monkeypatch: pytest.MonkeyPatch, line: Line, text: str) -> None:
    line.config.write_text(f"{line.config.read_text()}{ENGINE}\n{text}")
    configured(monkeypatch, line.config)


def test_a_group_is_its_jobs_and_its_centre_whose_password_is_shown_nowhere(
    line: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("secret\n")
    configure(monkeypatch, line, f"[group.web]\n{CENTRE}password_file={tmp_path}/password\njobs=east, west\n")
    found = groups.group_named("web")
    assert (found.name, found.jobs, found.centre.password) == ("web", ("east", "west"), "secret")
    assert "secret" not in repr(found)
    assert groups.group_of("west") == found
    assert not [one for one in known.unknown() if "group" in one.name]
    with pytest.raises(NotReady, match="its folder is not on this machine"):
        groups.journals_of("east")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"\[group.web\]: there is no such section"),
        ("[group.wob]\n", "did you mean .wob"),
        ("[group.web]\njobs=east\n", r"\[group.web\] centre: is not set"),
        (f"[group.web]\n{CENTRE}", r"\[group.web\] jobs: is not set"),
        (f"[group.web]\n{CENTRE}jobs=east\ncenter=x\n", "there is no such key; did you mean centre"),
        (f"[group.web]\n{CENTRE}jobs=east\npassword=secret\n", "may not be in luigi.cfg itself"),
        ("[group.web]\ncentre=mysql://db.example/web\njobs=east\n", "is not postgresql://USER@HOST"),
        ("[group.web]\ncentre=postgresql://db.example\njobs=east\n", "is not postgresql://USER@HOST"),
        ("[group.web]\ncentre=postgresql://u:secret@db.example/web\njobs=east\n", "has a password in it"),
        ("[group.web]\ncentre=postgresql://u@db.example/web?password=secret\njobs=east\n", "has a password in it"),
        ("[group.web]\ncentre=postgresql://db.example:x/web\njobs=east\n", "cannot be read as a URL"),
    ],
)
def test_a_section_that_does_not_fit_is_refused(
    line: Line, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    configure(monkeypatch, line, text)
    with pytest.raises(BadConfig, match=words) as refused:
        groups.group_named("web")
    assert "secret" not in str(refused.value)


def test_a_job_is_of_one_group_and_of_the_built_in_crawler(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"[group.web]\n{CENTRE}jobs=east, south\n[group.other]\n{CENTRE}jobs=east\n"
    configure(monkeypatch, line, text)
    with pytest.raises(BadConfig, match=r"listed in group.other and in group.web|group.web and in group.other"):
        groups.group_of("east")
    with pytest.raises(BadConfig, match="none lists job 'west'"):
        groups.group_of("west")
    with pytest.raises(BadConfig, match="of no engine with kind=warcmill"):
        groups.journals_of("south")
