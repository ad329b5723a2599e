"""No pattern that reads foreign bytes takes more than linear time or memory, whatever the bytes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from records import hostile_texts
from records.hostile_texts import Use

import warcmill.crawl

ROOMS = ("warcmill.crawl", "warcmill.formats.surt", "warcmill.formats.warc.codings", "warcmill.formats.warc.http",
         "warcmill.formats.warc.records", "warcmill.formats.publications", "warcmill.extracts.harvest")  # fmt: skip
ALL = {name: use for module in hostile_texts.modules(*ROOMS) for name, use in hostile_texts.patterns(module).items()}
SOURCES = sorted(Path(warcmill.crawl.__file__).parent.rglob("*.py"))


def test_all_patterns_are_found() -> None:
    assert len({use.pattern.pattern for use in ALL.values()}) > 60
    assert "crawl.extract.html._ENDS['script']" in ALL
    assert ALL["crawl.extract.links._is_plain"].method == "fullmatch"


@pytest.mark.parametrize("use", ALL.values(), ids=ALL)
def test_sixteen_times_the_text_is_no_more_than_some_sixteen_times_the_work(use: Use) -> None:
    assert hostile_texts.too_slow(use) == ""
    assert hostile_texts.too_large(use) == ""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_pattern_hides_in_a_function(path: Path) -> None:
    """`re.sub(...)` keeps its pattern where no test finds it."""
    source = path.read_text("utf-8")
    assert not re.findall(r"\bre\.(?!compile\b|[A-Z])\w+\(", source)
    assert not re.findall(r"(?m)^ +(?!name: )\S.*\bre\.compile\(", source)


SLOW = {
    "backtracks, exponentially": r"url\(((?:[^\s()\\]|\\[0-9a-f]{1,6}\s?|\\.)*)\)",
    "two ways to match one letter": r"(?:a|a)*c",
    "begins again at each": r"<[^>]*>x",
    "blanks before an end": r"\s+$",
    "any, twice": r".*foo.*bar",
    "nested": r"(\w+\s?)*:",
}


@pytest.mark.parametrize("pattern", SLOW.values(), ids=SLOW)
def test_the_texts_find_patterns_that_are_slow(pattern: str) -> None:
    assert hostile_texts.too_slow(Use(re.compile(pattern)))


def test_the_texts_find_patterns_that_need_memory_for_each_letter() -> None:
    srcset = r"(?:[^,(]|\([^)]*\)?)*"  # eight megabytes of these took two gigabytes
    assert hostile_texts.too_large(Use(re.compile(srcset), "match"))
