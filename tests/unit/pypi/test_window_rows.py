"""The rows of a window: which page of a project is taken, and that its past is dumped whatever its page is."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from mirroring.package_dumps import listed, row
from msgspec.structs import replace

from warcmill.extracts.distributions import CapturedFile, CapturedPage, IndexAnswer
from warcmill.formats.pypi.distribution import DistributionFacts
from warcmill.formats.pypi.dump import ListedFile
from warcmill.formats.pypi.lives import DistributionLife, LifeEvent, ProjectLives, lives_in
from warcmill.formats.pypi.simple_page import SimplePage
from warcmill.pypi.feed import ProjectTarget
from warcmill.pypi.window_rows import WindowRows

PLACE = "https://x.example/simple/six/"
ONE, TWO = listed(row("six", "1.0")), listed(row("six", "2.0"))
ADDED = LifeEvent(15, 0, "2.0", f"add py3 file {TWO.filename}")


def page(serial: int, *files: ListedFile) -> IndexAnswer:
    shown = CapturedPage(SimplePage("six", serial, files, 0))
    return IndexAnswer(PLACE, "20261129000000", 0, 200, "application/vnd.pypi.simple.v1+json", shown)


@pytest.mark.parametrize(
    ("tries", "shown", "why"),
    [
        (0, page(15, ONE, TWO), ""),
        (0, page(14, ONE, TWO), "its page is of serial 14, and its last event of 15"),
        (1, page(14, ONE, TWO), "its page is of serial 14, and its last event of 15"),
        (2, page(14, ONE, TWO), ""),
        (2, page(14, ONE), "its page is of serial 14, and its last event of 15"),
        (9, page(14, ONE), "its page is of serial 14, and its last event of 15"),
    ],
)
def test_at_the_third_try_a_page_is_taken_that_has_all_that_the_events_name(
    tmp_path: Path, tries: int, shown: IndexAnswer, why: str
) -> None:
    target, past = ProjectTarget("six", PLACE, 15, (), tries), ProjectLives("six", (ADDED,))
    with closing(WindowRows(tmp_path, 1)) as rows:
        rows.hear([shown])
        rows.join([target], [past, ProjectLives("unasked")], newest=False)
        assert [one.why for one in rows.lacked if not one.file] == [why] * bool(why)
        states = [json.loads(line) for _, lines in rows.states() for line in lines]
        lives = [json.loads(line) for _, lines in rows.lives() for line in lines]
    assert [state["serial"] for state in states] == ([] if why else [shown.page.page.serial])  # type: ignore[union-attr]
    assert [one["project"] for one in lives] == ["six", "unasked"]
    assert lives[0]["events"][0]["action"] == ADDED.action


def test_a_row_that_no_reader_would_take_has_no_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a wheel of 43 kB whose METADATA has 16 MB of requirements: one longer line would stop each later update."""
    monkeypatch.setattr("warcmill.pypi.window_rows._MOST_IN_LINE", 2_000)
    target, facts = ProjectTarget("six", PLACE, 15, None, 0), DistributionFacts(requires_dist=("\xe9" * 400,) * 5)
    with closing(WindowRows(tmp_path, 1)) as rows:
        rows.hear([page(15, ONE, TWO), got(ONE.url, facts), got(TWO.url, BESIDE)])
        rows.join([target], None, newest=False)
        found = [json.loads(line) for _, lines in rows.rows() for line in lines]
    assert [(one["filename"], one["requires_dist"]) for one in found] == [
        (ONE.filename, None),
        (TWO.filename, ["beside"]),
    ]
    assert [one.why for one in rows.unreadable] == ["its facts take more than 2,000 bytes"]


def test_a_page_that_no_reader_would_take_is_lacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warcmill.pypi.window_rows._MOST_OF_PAGE", 2_000)
    with closing(WindowRows(tmp_path, 1)) as rows:
        rows.hear([page(15, ONE, replace(TWO, yanked="\xe9" * 400))])
        rows.join([ProjectTarget("six", PLACE, 15, None, 0)], None, newest=False)
        assert [line for _, lines in rows.states() for line in lines] == []
    assert "its page has 2 files, which take" in rows.lacked[0].why


def test_lives_that_no_reader_would_take_go_without_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of files that are there first: the same dump reads these anew."""
    facts = row("six", "1.0", *(f"six.m{number}" for number in range(100)))
    there, gone = DistributionLife(ONE, 1, None, facts), DistributionLife(TWO, 1, 9, facts)
    for most, kept in ((9_000, [True, True]), (3_000, [False, True]), (1_000, [False, False])):
        monkeypatch.setattr("warcmill.pypi.window_rows._MOST_IN_LINE", most)
        with closing(WindowRows(tmp_path, 1)) as rows:
            rows.join([], [ProjectLives("six", (), 1, (there, gone))], newest=False)
            (line,) = [line for _, lines in rows.lives() for line in lines]
        files = lives_in(line).files
        assert [one.row is not None for one in files] == kept
        assert [one.bare() for one in files] == [there.bare(), gone.bare()]


def wheel(tag: str, core: str | None = "c" * 64) -> ListedFile:
    name = f"six-1.0-{tag}.whl"
    return ListedFile(name, f"https://x.example/files/{name}", "a" * 64, None, None, None, None, core)


def got(url: str, facts: DistributionFacts | None, fault: str = "", sha256: str | None = None) -> IndexAnswer:
    """An answer for a file; without facts one that has none."""
    name = url.rpartition("/")[2]
    captured = CapturedFile(name, 0, 9, sha256, facts or DistributionFacts(), fault)
    return IndexAnswer(url, "20261129000000", 0, 200, "", None, captured)


OWN = DistributionFacts(version="1.0", requires_dist=("own",), modules=("six", "six.win"))
BESIDE = DistributionFacts(version="1.0", requires_dist=("beside",))
ALONE = DistributionFacts(modules=("six",))


@pytest.mark.parametrize(
    ("answers", "expected", "lacked", "differing"),
    [
        ({"win": OWN, "win+": BESIDE, "mac+": BESIDE}, {"win": ("beside", None), "mac": ("beside", "win")}, [], []),
        ({"win": "cut", "win+": BESIDE, "mac+": BESIDE}, {"win": ("beside", None), "mac": ("beside", "win")}, [], []),
        ({"win": OWN, "mac": OWN, "win+": "other", "mac+": BESIDE}, {"win": ("own", None), "mac": ("beside", None)},
         [], ["win"]),
        ({"win": OWN, "mac": OWN}, {"win": ("own", None), "mac": ("own", None)}, [], []),
        ({"win": OWN, "win+": BESIDE}, {"win": ("beside", None)}, ["mac"], []),
        ({"win+": BESIDE, "mac+": BESIDE}, {}, ["mac", "win"], []),
        ({"win": "cut", "win+": "other", "mac+": BESIDE}, {"mac": ("beside", "win")}, ["win"], ["win"]),
    ],
)  # fmt: skip
def test_the_row_of_a_wheel_has_requirements_from_beside_it_and_names_whose_modules_it_has(
    tmp_path: Path,
    answers: dict[str, DistributionFacts | str],
    expected: dict[str, tuple[str, str | None]],
    lacked: list[str],
    differing: list[str],
) -> None:
    files = {"win": wheel("cp311-cp311-win32"), "mac": wheel("cp311-cp311-macosx_11_0_arm64")}
    alone = wheel("cp310-cp310-win32")
    heard = [page(15, *files.values(), alone), got(alone.url, OWN)]
    for place, found in answers.items():
        file = files[place.rstrip("+")]
        if place.endswith("+"):
            digest = "d" * 64 if found == "other" else file.core
            heard.append(got(f"{file.url}.metadata", BESIDE, sha256=digest))
        elif found == "cut":
            heard.append(got(file.url, ALONE, "it is needed from byte 7 on"))
        else:
            heard.append(got(file.url, OWN))
    with closing(WindowRows(tmp_path, 1)) as rows:
        rows.hear(heard)
        rows.join([ProjectTarget("six", PLACE, 15, None)], newest=False)
        made = {row["filename"]: row for _, lines in rows.rows() for row in map(json.loads, lines)}
        assert [one.file for one in rows.lacked] == [files[name].filename for name in lacked]
        assert [one.file for one in rows.differing] == [files[name].filename for name in differing]
    del made[alone.filename]
    assert {name: (row["requires_dist"][0], row.get("modules_of")) for name, row in made.items()} == {
        files[name].filename: (of, shared and files[shared].filename) for name, (of, shared) in expected.items()
    }
    assert all(row["modules"][0] == "six" for row in made.values())
