"""The scope of a request: levels, redirects, domains, expressions, extensions, as Scrapy's link extractor has them."""

from __future__ import annotations

from typing import Any

import pytest

from warcmill.crawl.uri import Uri, make
from warcmill.errors import BadInput
from warcmill.requests.serving.scope import RequestScope, level, number_of, read_target

DOCUMENT = {
    "url": "http://a.example/", "appid": "testapp", "crawlid": "c", "spiderid": "link", "maxdepth": 2, "priority": 7,
    "expires": 0, "allowed_domains": None, "allow_regex": None, "deny_regex": None, "deny_extensions": None,
    "useragent": None, "cookie": None, "attrs": None,
}  # fmt: skip


def takes(uri: str, hops: str = "L", **scope: Any) -> bool:
    return RequestScope(**{"depth": 1, **scope}).judge(Uri(uri, uri, "", hops=hops)) is None


@pytest.mark.parametrize(
    ("hops", "depth", "taken"),
    [
        ("", 0, True), ("L", 0, False), ("E", 0, False), ("R", 0, True), ("RP", 0, True), ("P", 0, True),
        ("R" * 20, 0, True), ("R" * 21, 0, False), ("L", 1, True), ("E", 1, True), ("LL", 1, False), ("LE", 1, False),
        ("LR", 1, True), ("LRL", 2, True), ("X", 5, False), ("S", 5, False), ("I", 5, False), ("M", 5, False),
        ("L" * 100, 100, True),
    ],
)  # fmt: skip
def test_levels(hops: str, depth: int, taken: bool) -> None:
    assert takes("http://a.example/", hops, depth=depth) is taken


@pytest.mark.parametrize(
    ("uri", "scope", "taken"),
    [
        ("http://a.example/x", {"domains": ("a.example",)}, True),
        ("http://www.a.example:81/x", {"domains": ("a.example",)}, True),
        ("http://nota.example/x", {"domains": ("a.example",)}, False),
        ("http://a.example/p/1", {"allow": ("/p/",)}, True),
        ("http://a.example/q/1", {"allow": ("/p/", "^x")}, False),
        ("http://a.example/p/1", {"allow": ("/p/",), "deny": ("1$",)}, False),
        ("http://a.example/p/2", {"deny": ("1$",)}, True),
        ("http://a.example/a.PDF", {}, False),
        ("http://a.example/a.pdf?x=1", {}, False),
        ("http://a.example/a.pdf", {"extensions": frozenset()}, True),
        ("http://a.example/a.html", {"extensions": frozenset(["html"])}, False),
        ("http://a.example/?f=a.pdf", {}, True),
    ],
)
def test_links(uri: str, scope: dict[str, Any], taken: bool) -> None:
    assert takes(uri, **scope) is taken


def test_a_domain_may_be_spelled_in_any_way() -> None:
    domains = [".Stra\u00dfe.example", "3232235521:8080", "b%C3%BCcher.example.", "[0:0::1]:81", "a b"]
    scope = read_target(1, {**DOCUMENT, "allowed_domains": domains}).scope
    assert scope.domains == ("xn--strae-oqa.example", "192.168.0.1:8080", "xn--bcher-kva.example", "[::1]:81", "a b")


def test_a_part_of_a_page_is_denied_by_what_the_request_names_alone() -> None:
    assert takes("http://cdn.example/a.png", "E", domains=("a.example",), allow=("/p/",))
    assert not takes("http://cdn.example/a.png", "E", extensions=frozenset(["png"]))
    assert not takes("http://cdn.example/a.png", "E", deny=("cdn",))


def test_a_redirect_is_followed_wherever_it_leads() -> None:
    assert takes("http://b.example/x.pdf", "R", domains=("a.example",), allow=("/p/",), deny=("b",))


def test_an_expression_takes_time_linear_in_the_uri() -> None:
    assert takes(f"http://a.example/{'a' * 50_000}!", deny=("(a+)+$",))


def test_a_document_of_the_feed() -> None:
    target = read_target(12, {**DOCUMENT, "useragent": "me", "cookie": "a=1", "attrs": {"k": 1}, "spiderid": "other"})
    assert (target.crawl, target.source, target.spider) == ("other/c", "target:12", "other")
    assert (target.headers, target.attrs) == ((("User-Agent", "me"), ("Cookie", "a=1")), {"k": 1})
    assert read_target(0, DOCUMENT).spider == ""
    uri = make("http://a.example/")
    assert read_target(0, DOCUMENT).judge(uri) is None
    assert read_target(0, {**DOCUMENT, "expires": 1 << 40}).judge(uri) is None
    assert read_target(0, {**DOCUMENT, "expires": 10}).judge(uri)
    for broken in (
        {},
        {**DOCUMENT, "maxdepth": "x"},
        {**DOCUMENT, "allow_regex": ["("]},
        {**DOCUMENT, "allow_regex": 1},
    ):
        with pytest.raises(BadInput, match="target 3"):
            read_target(3, broken)


def test_numbers_and_levels() -> None:
    assert [number_of(text) for text in ("target:0", "target:77", "", "target:", "target:x", "http://a/")] == [
        0, 77, None, None, None, None
    ]  # fmt: skip
    assert level("LRELP") == 3


def test_expressions_that_are_too_large_together_are_refused_as_a_document_that_is_none() -> None:
    large = [rf"(\PN{{1,2}}){{300}}{number}" for number in range(3)]
    assert read_target(1, {**DOCUMENT, "deny_regex": large[:1]})
    with pytest.raises(BadInput, match="too large together"):
        read_target(1, {**DOCUMENT, "deny_regex": large})
