"""What a page asks not to be followed: by its links and its header."""

from __future__ import annotations

import pytest

from warcmill.crawl.extract.links import EMBED, LINK, REDIRECT, Link
from warcmill.crawl.fetch.answer import HeaderFields
from warcmill.crawl.visit.offers import closes, followed

LINKS = [
    Link("http://a.x/1", LINK, "a/@href"),
    Link("http://a.x/2", LINK, "a/@href", nofollow=True),
    Link("http://a.x/3.png", EMBED, "img/@src"),
    Link("http://a.x/4", REDIRECT, "location:"),
]


def test_links_that_say_so_are_left_out() -> None:
    assert [link.uri[-1] for link in followed(LINKS, is_closed=False)] == ["1", "g", "4"]


def test_a_closed_page_keeps_what_belongs_to_it() -> None:
    assert [link.hop for link in followed(LINKS, is_closed=True)] == [EMBED, REDIRECT]


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("nofollow", True),
        ("NoIndex, NOFOLLOW", True),
        ("none", True),
        ("noindex", False),
        ("googlebot: nofollow", False),
        ("googlebot: nofollow, none", False),
        ("Warcmill: noindex, nofollow", True),
        ("googlebot: nofollow, warcmill: none", True),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow", True),
        ("max-snippet:20, noindex", False),
    ],
)
def test_who_is_asked_not_to_follow(header: str, expected: bool) -> None:
    fields = HeaderFields([("x-robots-tag", header)] if header else [])
    assert closes(fields, "warcmill") is expected


def test_each_header_counts() -> None:
    assert closes(HeaderFields([("x-robots-tag", "googlebot: all"), ("x-robots-tag", "nofollow")]), "warcmill")
