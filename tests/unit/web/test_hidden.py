"""The names of what is hidden, in texts and in answers of any shape."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import pytest
from markupsafe import Markup
from msgspec import Struct

from warcmill.versions.hidden_list import Hidden
from warcmill.web.hidden import HIDDEN, HiddenNames

CRAWL_LOG = "2026-11-21T10:00:00.123Z 200 812 {} LL {} text/html #012 20261121100000123+45 sha1:ABC - -"


def hiding(*entries: str) -> HiddenNames:
    return HiddenNames(tuple(Hidden(1, dict.fromkeys(entries, "a reason")).prefixes()))


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("example,docs", "http://docs.example/"),
        ("example,docs", "https://a.b.docs.example:8443/x?y"),
        ("example,docs", "docs.example"),
        ("example,docs", "WWW.Docs.Example"),
        ("example,docs", "1 200 docs.example 0 0"),
        ("example,docs", "dns:docs.example"),
        ("example,docs", "http://(example,docs,)/maint"),
        ("example,docs", "+http://(example,docs,"),
        ("example,docs", "https://(example,docs,:8443)/"),
        ("example,docs", "example,docs:8080)/maint"),
        ("example,docs", CRAWL_LOG.format("http://docs.example/a", "http://other.example/")),
        ("example,docs", CRAWL_LOG.format("http://other.example/a", "http://docs.example/")),
        ("example,docs", '{"seed": "http://docs.example/", "n": 1}'),
        ("example,docs", "<value>http://docs.example/</value>"),
        ("example,docs", "search?q=http%3A%2F%2Fdocs.example%2F"),
        ("example,docs", "http://localhost:8091/0123/20261121100000/http://docs.example/a"),
        ("example,docs", "cannot connect to docs.example:443, retried"),
        ("example,docs", "urn:text:http://docs.example/a"),
        ("example,docs)/", "docs.example"),
        ("example,docs:8080)/", "http://docs.example:8080/a"),
        ("example,docs:8080)/", "1 200 docs.example"),
        ("example,docs)/private/", "http://docs.example/private/a.html: 404"),
        ("example,docs)/private/", "(http://www.docs.example/private/)"),
        ("example,docs)/private/", "http://(example,docs,)/private/a"),
        ("example,docs)/private/a.html ", "http://docs.example/private/a.html"),
        ("example,docs)/private/a.html ", "see (http://docs.example/private/a.html), http://b.example/"),
        ("example,docs)/private/a.html ", "http://docs.example/private/a.html: code 404"),
        ("example,docs)/ 20261121", CRAWL_LOG.format("http://docs.example/", "-")),
        ("example,xn--mller-kva", "http://m\u00fcller.example/"),
        ("example,xn--mller-kva", "m%C3%BCller.example"),
        ("example,xn--strae-oqa", "http://stra\u00dfe.example/"),
        ("example,xn--strae-oqa", "stra%C3%9Fe.example"),
        ("1,0,0,127:8123)/", "http://127.0.0.1:8123/a"),
        ("1,0,0,127:8123)/", "1 200 127.0.0.1"),
        ("localhost)/", "3 localhost"),
        ("dns:docs.example", "dns:docs.example"),
    ],
)  # fmt: skip
def test_a_text_names_what_is_hidden(entry: str, text: str) -> None:
    assert hiding(entry).are_in(text)
    assert hiding("org,elsewhere", entry).are_in(text)


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("example,docs", "http://docs2.example/"),
        ("example,docs", "http://docs.example.org/"),
        ("example,docs", "the docs of example"),
        ("example,docs", "http://other.example/docs"),
        ("example,docs)/private/", "http://docs.example/"),
        ("example,docs)/private/", "docs.example"),
        ("example,docs)/private/", "http://other.example/private/"),
        ("example,docs)/private/a.html ", "http://docs.example/private/a.html2"),
        ("example,docs)/private/a.html ", "http://docs.example/private/"),
        ("example,docs)/ 20261121", CRAWL_LOG.format("http://docs.example/", "-").replace("20261121", "20261120")),
        ("example,docs)/ 20261121", "http://docs.example/"),
        ("1,0,0,127:8123)/", "http://127.0.0.1:8124/"),
        ("example,docs", ""),
    ],
)  # fmt: skip
def test_other_texts_do_not(entry: str, text: str) -> None:
    assert not hiding(entry).are_in(text)


def test_nothing_hidden_changes_nothing() -> None:
    answer = {"a": ["http://docs.example/"]}
    assert not hiding()
    assert hiding().without(answer) is answer


class Pair(NamedTuple):
    name: str
    number: int


class Row(Struct, frozen=True):
    name: str
    parts: tuple[str, ...] = ()


URL, OTHER = "http://docs.example/a", "http://other.example/"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (URL, HIDDEN),
        ([URL, OTHER], [OTHER]),
        ({"seed": URL, "n": 1}, {"seed": HIDDEN, "n": 1}),
        ([{"seed": URL}, {"seed": OTHER}], [{"seed": OTHER}]),
        ({"by_host": {"docs.example": 3, "other.example": 4}}, {"by_host": {"other.example": 4}}),
        ([("docs.example", 3), ("other.example", 4)], [("other.example", 4)]),
        ({"first": (URL, OTHER)}, {"first": (OTHER,)}),
        ([Pair("docs.example", 1), Pair("b.example", 2)], [Pair("b.example", 2)]),
        ([Row(URL), Row("a", (URL, OTHER))], [Row("a", (OTHER,))]),
        ([("Hosts", [("docs.example", 3), ("b", 4)], 2)], [("Hosts", [("b", 4)], 2)]),
        ({Row(URL): 1, Row(OTHER): 2}, {Row(OTHER): 2}),
        (f"a {URL}\nb {OTHER}\n", f"{HIDDEN}\nb {OTHER}\n"),
        (b"a http://docs.example/\nb\xff\n", b"[hidden]\nb\xff\n"),
        (Markup("docs.example"), Markup("docs.example")),
        ([None, 3, True], [None, 3, True]),
    ],
)  # fmt: skip
def test_entries_rows_keys_and_lines_that_name_it_are_left_out(value: object, shown: object) -> None:
    assert hiding("example,docs").without(value) == shown


def test_a_table_of_numbers_stays_one() -> None:
    shown = hiding("example,docs").without(Counter({"docs.example": 3, "b": 4}))
    assert (shown, shown["docs.example"]) == (Counter({"b": 4}), 0)


def test_lines_are_marked_for_others() -> None:
    assert hiding("example,docs").marked(f"{URL}\n{OTHER}") == f"{HIDDEN} {URL}\n{OTHER}"
