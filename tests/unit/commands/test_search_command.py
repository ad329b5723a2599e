"""warcmill search: what is asked, and how it is printed."""

from __future__ import annotations

import pytest

from commands import search as command
from commands.console.terminal import console
from commands.main import main
from warcmill.versions.search import FoundDocument, SearchAnswer

ONE = FoundDocument("http://a.example/", "20161019234428", "", "a [word]\x1b", "text/html", "daily/x/a.warc.gz", 4)


@pytest.mark.parametrize(
    "words", [["search"], ["search", "..."], ["search", ""], ["search", "x", "--from", "19.10.2016"],
              ["search", "x", "--to", "2016-1"], ["search", "x", "--type", "exe"],
              ["search", "x", "--from", "2016-13"], ["search", "x", "--to", "2015-02-29"]],
)  # fmt: skip
def test_wrong_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)


def test_days_become_the_first_digits_of_times() -> None:
    assert [command._day(text) for text in ("2016", "2016-10", "2016-10-19")] == ["2016", "201610", "20161019"]


def test_an_answer_is_printed_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    assert console()
    command._print(SearchAnswer(1, 21, (ONE,)))
    told = capsys.readouterr()
    assert told.out.splitlines() == [
        "http://a.example/",
        "  http://a.example/  2016-10-19T23:44:28Z",
        "  a [word]\\x1b",
    ]
    assert told.err == "21 captures found; the best 1 are shown\n"
