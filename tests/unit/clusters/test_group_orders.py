"""Orders as persons and programs ask for them: which are made, and which are refused, with what is wrong."""

from __future__ import annotations

import math
from io import BytesIO
from typing import Any

import pytest

from warcmill.clusters import orders
from warcmill.clusters.orders import OrderRequest
from warcmill.errors import BadInput

A, B = "http://a.example/", "http://b.example/"


@pytest.mark.parametrize(("wanted", "subject"), [
    ({"act": "add", "uris": (A,)}, {"uris": [A]}),
    ({"act": "add", "uris": ("HTTP://A.example", f"{A}#part", B)}, {"uris": [A, B]}),
    ({"act": "suspend", "uris": (A,)}, {"uri": A}),
    ({"act": "suspend", "uris": (A,), "crawl": "shop", "key": "7"}, {"uri": A, "crawl": "shop", "key": "7"}),
    ({"act": "remove", "uris": (A, B, A), "crawl": "shop"}, {"uris": [A, B], "crawl": "shop"}),
    ({"act": "resume", "site": "http://A.Example:80/x"}, {"site": "a.example"}),
    ({"act": "resume", "site": "b\u00fccher.example:8080"}, {"site": "xn--bcher-kva.example:8080"}),
    ({"act": "suspend", "prefix": "http://(example,a,)/x"}, {"prefix": "http://(example,a,)/x"}),
    ({"act": "rate", "site": "a.example", "hits": 2, "window": 1.5}, {"site": "a.example", "hits": 2, "window": 1.5}),
    ({"act": "rate", "site": "a.example", "none": True}, {"site": "a.example", "none": True}),
])  # fmt: skip
def test_an_order_names_its_subject_as_crawls_write_it(wanted: dict[str, Any], subject: dict[str, Any]) -> None:
    assert OrderRequest(**wanted).subject() == subject


@pytest.mark.parametrize(("wanted", "what"), [
    ({"act": ""}, "act"), ({"act": "take", "uris": (A,)}, "act"), ({"act": "add"}, "add"),
    ({"act": "add", "site": "a.example"}, "add"), ({"act": "add", "uris": (A,), "site": "a.example"}, "add"),
    ({"act": "rate", "uris": (A,)}, "rate"), ({"act": "rate", "prefix": "http://(example,"}, "rate"),
    ({"act": "suspend", "site": "a.example", "prefix": "http://(example,"}, "suspend"),
    ({"act": "suspend", "site": "a.example", "hits": 1}, "suspend"),
    ({"act": "suspend", "site": "a.example", "crawl": "shop"}, "suspend"),
    ({"act": "add", "uris": (A,), "crawl": "shop"}, "add"), ({"act": "remove", "uris": (A, B), "key": "7"}, "key"),
    ({"act": "remove", "prefix": "example.org"}, "example.org"),
    ({"act": "remove", "prefix": "http://(a,\0"}, "prefix"),
    ({"act": "remove", "site": "a.example\0"}, "site"), ({"act": "remove", "uris": (A,), "crawl": "\ud800"}, "crawl"),
    ({"act": "rate", "site": "a.example", "window": math.nan}, "window"),
    ({"act": "rate", "site": "a.example", "window": math.inf}, "window"),
    ({"act": "add", "uris": ("no URL",)}, "no URL"), ({"act": "add", "uris": ("http://a.example/\ud800",)}, None),
    ({"act": "add", "uris": ("http://u:p@a.example/",)}, None), ({"act": "add", "uris": (A,) * 1001}, "uris"),
    ({"act": "add", "uris": (f"{A}{'x' * 3000}",) * 100}, "uris"), ({"act": "suspend", "site": "a b"}, None),
])  # fmt: skip
def test_what_is_no_order_is_refused_and_named(wanted: dict[str, Any], what: str | None) -> None:
    with pytest.raises(BadInput) as found:
        OrderRequest(**wanted).subject()
    assert what in (None, found.value.path)
    assert "p@" not in str(found.value)


def test_lines_of_a_file_are_urls_blank_or_bad() -> None:
    bad = list[orders.BadLine]()
    lines = b"HTTP://a.example\r\n\n  \nno URL\nhttp://b.example/\xff\n\x00\nhttp://b.example/"
    assert [*orders._uris(BytesIO(lines), bad, None)] == [A, B]
    assert [(one.number, one.why) for one in bad][:2] == [(4, "not a URI with scheme and host"), (5, "it is not UTF-8")]
    assert [one.number for one in bad] == [4, 5, 6]
    with pytest.raises(BadInput, match=r"more than 2 lines are not URLs; the first is line 4"):
        list(orders._uris(BytesIO(lines), [], 2))
