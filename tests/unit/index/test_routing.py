"""Which collection a key belongs to."""

from __future__ import annotations

import pytest

from warcmill.errors import BadInput
from warcmill.formats.index.urlkey import urlkey
from warcmill.index.sink_solr import Routing, routing


def collection(one: Routing, url: str) -> str:
    return one.collection(f"{urlkey(url)} 20161019234428".encode())


def test_a_host_may_be_spelled_in_any_way() -> None:
    one = routing("all", {"books": (["B\u00fccher.example", "stra\u00dfe.example"], []), "all": ([], [])})
    for host, expected in {"xn--bcher-kva": "books", "xn--strae-oqa": "books", "strasse": "all"}.items():
        assert collection(one, f"http://{host}.example/") == expected


def test_the_longest_prefix_wins() -> None:
    one = routing(
        "all",
        {
            "gov": (["gov.example", "1.2.3.4"], ["org,example)/gov/"]),
            "news": ([], ["example,gov)/news", "org,example"]),
            "all": (["archive.gov.example"], []),
        },
    )
    for url, expected in {
        "http://www.gov.example/": "gov",
        "https://sub.gov.example:8443/x": "gov",
        "http://gov.example/News/1": "news",
        "http://notgov.example/": "all",
        "http://gov.example.net/": "all",
        "http://archive.gov.example/news": "all",
        "http://1.2.3.4/": "gov",
        "http://example.org/gov/1": "gov",
        "http://example.org/government": "news",
        "dns:gov.example": "all",
    }.items():
        assert collection(one, url) == expected, url
    assert one.collections == ("all", "gov", "news")


def test_without_routes_there_is_one_collection() -> None:
    one = routing("all", {})
    assert (collection(one, "http://e.x/"), one.collections) == ("all", ("all",))


@pytest.mark.parametrize(
    ("hosts", "surts", "why"),
    [
        (["e.x/path"], [], "e.x/path: not a host"),
        (["e.x:8080"], [], "not a host"),
        (["*.e.x"], [], "not a host"),
        (["[::1]"], [], "not a host"),
        ([], ["http://e.x/"], "not a SURT but a URL"),
        ([], ["x,e)/ 2016"], "a time, where only captures of all times"),
        (["b.x"], [], "b.x: is routed to both other and one"),
    ],
)
def test_what_is_no_route_is_named(hosts: list[str], surts: list[str], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        routing("all", {"other": ([], ["x,b"]), "one": (hosts, surts)})


def test_its_digest_follows_from_what_belongs_where() -> None:
    one, two = (
        routing("all", {"a": (["e.x"], []), "b": (["f.x"], [])}),
        routing("all", {"b": ([], ["x,f"]), "a": ([], ["x,e"])}),
    )
    assert one.digest == two.digest
    others = (routing("all", {"a": (["e.x", "f.x"], [])}), routing("any", {"a": (["e.x"], []), "b": (["f.x"], [])}))
    assert len({one.digest, *(other.digest for other in others)}) == 3
