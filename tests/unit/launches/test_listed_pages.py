"""Pages of the lists that came in a WACZ: the nearest in time, whatever else is in the list."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from packing import foreign_waczs

from warcmill.formats.index.urlkey import urlkey
from warcmill.launches import listed_pages
from warcmill.launches.listed_pages import ListedPage, ListedPages

KEY = urlkey("http://a.example/")


@pytest.fixture
def pages() -> Iterator[ListedPages]:
    with closing(ListedPages()) as made:
        yield made


def test_the_page_of_the_nearest_time_counts(pages: ListedPages) -> None:
    first, second = ("2016-01-01T00:00:00Z", "First"), ("2018-01-01T00:00:00.5Z", "Second")
    listed = foreign_waczs.pages(*((time, "http://a.example/", title) for time, title in (first, second)))
    pages.add(io.BytesIO(listed), are_seeds=True)
    times = ("20150101000000", "20160101000001", "20170901000000", "20200101000000")
    assert [pages.of(KEY, time) for time in times] == [
        ListedPage("First", True),
        ListedPage("First", True),
        ListedPage("Second", True),
        ListedPage("Second", True),
    ]
    assert pages.of(urlkey("http://b.example/"), times[0]) is None


@pytest.mark.parametrize(
    ("listed", "own", "title"),
    [
        ("Shown", "", "Shown"),
        ("Shown", "Own", "Shown / Own"),
        ("Own and more", "Own", "Own and more"),
        ("", "Own", "Own"),
    ],
)
def test_a_title_is_found_by_both(pages: ListedPages, listed: str, own: str, title: str) -> None:
    pages.add(io.BytesIO(foreign_waczs.pages(("2016", "http://a.example/", listed))), are_seeds=False)
    assert pages.titled(KEY, "20160101000000", own) == title
    assert pages.titled(urlkey("http://b.example/"), "20160101000000", own) == own


def test_lines_that_are_no_page_are_passed_over(pages: ListedPages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed_pages, "_LONGEST", 200)
    odd = ["", "[]", "null", '{"url": 1}', '{"url": "http://c.example/", "ts": "yesterday"}', "[" * 150, "\ud800"]
    odd += [json.dumps({"url": "http://d.example/", "title": "x" * 500}), '{"url": "http://e.example/", "title": 5}']
    good = foreign_waczs.pages(("2016-01-01T00:00:00Z", "http://a.example/", "a\x1b[31m \n title"))
    data = "\n".join(odd).encode("utf-8", "surrogatepass") + b"\n" + good
    pages.add(io.BytesIO(data), are_seeds=True)
    assert pages.of(KEY, "20160101000000") == ListedPage("a [31m title", True)
    assert pages.of(urlkey("http://c.example/"), "20160101000000") == ListedPage("", True)
    assert pages.of(urlkey("http://d.example/"), "20160101000000") is None
    assert pages.of(urlkey("http://e.example/"), "20160101000000") == ListedPage("", True)
