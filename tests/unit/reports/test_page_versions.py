"""The lines that differ between two texts: bounded in time and length, whatever the texts are."""

from __future__ import annotations

import time

import pytest

from warcmill.reports.page_versions import ADDED, KEPT, REMOVED, SHOWN, difference


def test_lines_that_were_removed_and_added_stand_between_one_line_before_and_after() -> None:
    then = "\n".join(f"line {number}" for number in range(2_000))
    now = then.replace("line 1500", "another line").replace("line 700\n", "")
    assert difference(then, now) == ([
        (KEPT, "line 699"), (REMOVED, "line 700"), (KEPT, "line 701"),
        (KEPT, "line 1499"), (REMOVED, "line 1500"), (ADDED, "another line"), (KEPT, "line 1501"),
    ], False)  # fmt: skip


@pytest.mark.parametrize(("then", "now"), [("", ""), ("a", "a"), ("a\n\nb", "a\nb"), (None, "a"), ("a", None)])
def test_the_same_words_and_no_words_have_no_difference(then: str | None, now: str | None) -> None:
    assert difference(then, now) == ([], False)


def test_a_paragraph_is_compared_by_sentences_and_a_text_may_contain_the_other() -> None:
    assert difference("It rains. It snows.", "It rains. It shines.") == (
        [(KEPT, "It rains."), (REMOVED, "It snows."), (ADDED, "It shines.")], False
    )  # fmt: skip
    assert difference("a", "a\na") == ([(KEPT, "a"), (ADDED, "a")], False)
    assert difference("a\na", "a") == ([(KEPT, "a"), (REMOVED, "a")], False)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("x\n" * 100_000, "y\n" + "x\ny\n" * 100_000),
        ("\n".join(map(str, range(100_000))), "\n".join(map(str, range(100_000, 0, -1)))),
        ("a. " * 1_000_000, "b. " * 1_000_000),
    ],
)
def test_long_texts_take_no_long_time_and_are_said_to_be_cut(then: str, now: str) -> None:
    begun = time.monotonic()
    lines, is_cut = difference(then, now)
    assert (is_cut, len(lines) <= SHOWN, time.monotonic() - begun < 30) == (True, True, True)
