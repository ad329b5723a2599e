"""A launch in one sentence: its numbers, its end in its own words, and what needs a person."""

from __future__ import annotations

import pytest

from warcmill.launches.cut_short import CutShort
from warcmill.reports.pages import ListSums
from warcmill.reports.sentence import parts, sentence

SUMS = ListSums(1_300, 1_288, 1_204, 12, 5, 3, {}, {})
ONE = ListSums(1, 1, 1, 0, 1, 1, {}, {})


@pytest.mark.parametrize(
    ("sums", "ended", "cut", "need", "said"),
    [
        (SUMS, "finished", CutShort("ended by --limit", 37, 32), 2,
         "1,204 pages of 3 sites, 12 not got, ended by --limit, 2 need you"),
        (SUMS, "confirmed", CutShort("cut by a quota", 37, 0, 3), 1,
         "1,204 pages of 3 sites, 12 not got, cut by a quota, 1 needs you"),
        (ONE, "", None, 0, "1 page of 1 site, 0 not got, running"),
        (ONE, "superseded", None, 0, "1 page of 1 site, 0 not got, ended"),
        (ONE, "closed", None, 0, "1 page of 1 site, 0 not got, closed by a person"),
        (None, "imported", None, 3, "its pages are not listed yet, imported, 3 need you"),
    ],
)  # fmt: skip
def test_each_end_has_its_words(sums: ListSums | None, ended: str, cut: CutShort | None, need: int, said: str) -> None:
    assert sentence(sums, ended, cut, need) == said


def test_each_number_has_a_list_that_proves_it() -> None:
    assert [part.proof for part in parts(SUMS, "finished", None, 2)] == ["pages", "sites", "not-got", "end", "gaps"]
