"""The rows of a window: which page of a project is taken, and that its past is dumped whatever its page is."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from mirroring.package_dumps import listed, row

from warcmill.extracts.distributions import CapturedPage, IndexAnswer
from warcmill.formats.pypi.dump import ListedFile
from warcmill.formats.pypi.lives import LifeEvent, ProjectLives
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
