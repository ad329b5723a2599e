"""Idioms of public projects of Scrapy, each killed in the middle and continued: no item and no request is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from requesting.scrapy_idioms import NAMES, Ran, by_plain_scrapy, by_warcmill_killed


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    return by_plain_scrapy(tmp_path_factory.mktemp("plain") / "all")


@pytest.mark.parametrize("name", NAMES)
def test_an_idiom_that_is_killed_and_continued_brings_what_plain_scrapy_brings(
    name: str, plain: dict[str, Ran], tmp_path: Path
) -> None:
    wanted = plain[name]
    ours, printed = by_warcmill_killed(name, tmp_path, (sum(wanted.asked.values()) + 1) // 2)
    assert ours.code == wanted.code, printed
    assert ours.items == sorted(set(wanted.items))
    assert set(ours.asked) == set(wanted.asked)
