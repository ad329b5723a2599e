"""Idioms of public projects of Scrapy run as they are: items, requests and figures are those of plain Scrapy."""

from __future__ import annotations

from pathlib import Path

import pytest
from requesting.scrapy_idioms import NAMES, Ran, by_plain_scrapy, by_warcmill


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    return by_plain_scrapy(tmp_path_factory.mktemp("plain") / "all")


def test_there_are_thirty(plain: dict[str, Ran]) -> None:
    assert len(NAMES) >= 30
    assert all(found.items for found in plain.values())


@pytest.mark.parametrize("name", NAMES)
def test_an_idiom_runs_as_by_plain_scrapy(name: str, plain: dict[str, Ran], tmp_path: Path) -> None:
    ours, printed = by_warcmill(name, tmp_path)
    wanted = plain[name]
    for field in Ran._fields:
        assert getattr(ours, field) == getattr(wanted, field), printed
