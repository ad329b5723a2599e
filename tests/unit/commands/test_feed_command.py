"""`warcmill feed check`: every fault by its place, counts of the rest, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands.main import main

SOUND = [
    {"id": 1, "seeds": ["http://a.example/", "http://b.example/"], "depth": "DEEP", "scope": "plus1"},
    {
        "id": 2,
        "seeds": ["http://c.example/"],
        "ignoreRobotsTxt": True,
        "loginPageUrl": "http://c.example/in",
        "schedules": [{"startDate": "2026-01-01", "frequency": word} for word in ("DAILY", "DAILY", "ANNUAL")]
        + [{"startDate": "2026-01-01", "frequency": "every 6 hours", "refresh": True}],
    },
]


def checked(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> tuple[int, str]:
    code = main(["feed", "check", str(path), *options])
    return code, capsys.readouterr().out


def written(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
    return path


def test_a_sound_feed_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = checked(capsys, written(tmp_path / "feed", *SOUND), "--json")
    assert code == 0
    assert json.loads(said) == {
        "targets": 2,
        "seeds": 3,
        "depths": {"CAPPED": 1, "CAPPED_LARGE": 0, "DEEP": 1},
        "scopes": {"resource": 0, "plus1": 1, "root": 1, "subdomains": 0},
        "frequencies": {
            "HOURLY": 0,
            "DAILY": 1,
            "WEEKLY": 0,
            "MONTHLY": 0,
            "QUARTERLY": 0,
            "SIXMONTHLY": 0,
            "ANNUAL": 1,
            "EVERY 6 HOURS": 1,
        },
        "refresh": 1,
        "ignore_robots": 1,
        "without_login": ["2"],
        "faults": [],
        "notes": [],
    }
    assert checked(capsys, written(tmp_path / "list", json.dumps(SOUND)))[1].endswith("\nwithout_login 1: 2\nsound\n")


def test_every_fault_is_named_by_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    faulty = [SOUND[0], "nope", {"id": 3, "seeds": []}, SOUND[0], "", "[1]", {"id": "\x1b[31m", "seeds": ["http://a/"]}]
    path = written(tmp_path / "feed", *faulty)
    code, said = checked(capsys, path)
    assert code == 1
    assert [line.partition(": ")[0] for line in said.splitlines()[:5]] == [
        f"{path}, line {number}" for number in (2, 3, 4, 6, 7)
    ]
    assert "is in the feed already, at line 1" in said
    assert said.endswith("\n5 faults\n")
    assert "\x1b" not in said
    assert [
        one["where"].rpartition(" ")[2] for one in json.loads(checked(capsys, path, "--json")[1])["faults"]
    ] == list("23467")


def test_a_note_is_printed_and_is_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "feed", {"id": 1, "seeds": ["www.a.example"]})
    code, said = checked(capsys, path)
    assert code == 0
    assert said.startswith(f"note: {path}, line 1: seeds: 'www.a.example' has no scheme")
    (note,) = json.loads(checked(capsys, path, "--json")[1])["notes"]
    assert note["where"] == f"{path}, line 1"


def test_a_list_names_the_place_and_a_broken_one_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "feed", json.dumps([SOUND[0], {"id": 9}]))
    assert f"{path}, target 2: seeds" in checked(capsys, path)[1]
    code, said = checked(capsys, written(path, json.dumps(SOUND)[:-1]))
    assert (code, said.startswith(f"{path}: is no JSON")) == (1, True)


@pytest.mark.parametrize("content", ["", "[]", "\n\n"])
def test_a_feed_of_nothing_is_no_sound_one(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    code, said = checked(capsys, written(tmp_path / "feed", content))
    assert code == 1
    assert said.endswith("\nno target\n")


def test_what_cannot_be_read_is_an_outage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["feed", "check", str(tmp_path / "gone")]) == 4
    assert "no such file" in capsys.readouterr().err
