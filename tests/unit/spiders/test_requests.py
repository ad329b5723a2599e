"""A request as it waits: its key has one size, whatever led to it."""

from __future__ import annotations

import pytest
from scrapy import Request, Spider

from warcmill.crawl.uri import LONGEST_URI, Uri, make
from warcmill.spiders.requests import RequestForms

PAGE = "http://windmills.example/"


class Mills(Spider):
    name = "mills"


def unfiltered(parent: Uri | None, number: int = 1, name: bytes = b"\0" * 20) -> Uri:
    forms, request = RequestForms(Mills()), Request(PAGE, dont_filter=True)
    return forms.waiting(request, name, parent=parent, hop="L" if parent else "", number=number)


def test_the_key_of_an_unfiltered_request_has_one_size_in_each_generation() -> None:
    page, keys = unfiltered(None), list[str]()
    for _ in range(3_000):
        page = unfiltered(page)
        keys.append(page.key)
    assert len(set(keys)) == 3_000
    assert {len(key) for key in keys} == {75}
    assert len(page.hops) == 250


def test_an_unfiltered_request_is_the_same_when_its_page_is_visited_again_and_differs_from_its_siblings() -> None:
    page, other = make(f"{PAGE}1"), make(f"{PAGE}2")
    keys = [unfiltered(parent, number).key for parent in (page, other, None) for number in (1, 2)]
    assert len(set(keys)) == 6
    assert keys == [unfiltered(parent, number).key for parent in (page, other, None) for number in (1, 2)]
    assert unfiltered(None, 7).key == f"{'00' * 20}  7", "as ever: a spider that continues begins with the same"


@pytest.mark.parametrize("generations", [1, 1_400])
def test_a_page_of_a_state_whose_keys_had_those_of_their_ancestors_leads_on(generations: int) -> None:
    key = "".join(["00" * 20 + " "] * generations) + PAGE + " 1" * generations
    assert len(key) < LONGEST_URI
    assert len(unfiltered(make(PAGE, key=key)).key) == 75
