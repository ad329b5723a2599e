"""Which handler takes a message: as the running original did in the recorded cases, and under hostile ones.

`tests/data/requests/cases.json` has, for each recorded case that has one, the request and the line that the original
logged of it, without times. Regexes, headers and URLs that would do harm are refused after the schema.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warcmill.errors import BadConfig, BadInput
from warcmill.requests import compat
from warcmill.requests.handlers import HANDLERS, DroppedMessage, MessageHandler, TakenMessage, sort_message
from warcmill.requests.incoming import (
    CrawlAction,
    CrawlRequest,
    PolicyChange,
    StatsRequest,
    read_request,
)

CASES: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data" / "requests" / "cases.json").read_text("utf-8"))
TYPES: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data" / "requests" / "types.json").read_text("utf-8"))
CRAWL = {"url": "http://a.example/", "appid": "testapp", "crawlid": "abc123"}
# Of a version that was never released.
NOT_OURS = {"domain_max_pages"}
FITTING: dict[str, dict[str, Any]] = {
    "ScraperHandler": CRAWL,
    "ActionHandler": {"action": "info", "appid": "testapp", "crawlid": "c", "spiderid": "link", "uuid": "u"},
    "StatsHandler": {"appid": "testapp", "stats": "rest", "uuid": "u"},
    "ZookeeperHandler": {
        "action": "domain-update", "appid": "testapp", "domain": "a.example", "hits": 1, "uuid": "u", "window": 1
    },
}  # fmt: skip
VALUES = {
    "ScraperHandler": CrawlRequest,
    "ActionHandler": CrawlAction,
    "StatsHandler": StatsRequest,
    "ZookeeperHandler": PolicyChange,
}


def encoded(document: object) -> bytes:
    return document.encode() if isinstance(document, str) else json.dumps(document).encode()


def crawl(**more: Any) -> CrawlRequest:
    taken = sort_message(encoded({**CRAWL, **more}))
    assert isinstance(taken, TakenMessage), taken
    made = read_request(taken.handler.name, taken.document)
    assert isinstance(made, CrawlRequest)
    return made


@pytest.mark.parametrize(("handler", "field"), [(name, field) for name, of in TYPES["taken"].items() for field in of])
def test_each_field_takes_the_values_that_the_original_takes(handler: str, field: str) -> None:
    """`types.json` has values of many types and lengths, and for each field a 1 for those with which the running
    original took the message."""
    document, values = FITTING[handler], TYPES["values"]
    found = [sort_message(encoded({**document, field: value})) for value in values]
    taken = [isinstance(one, TakenMessage) and one.handler.name == handler for one in found]
    recorded = [one == "1" for one in TYPES["taken"][handler][field]]
    deeper = [field == "maxdepth" and value in (4, 100) for value in values]  # theirs ends at 3
    assert taken == [one or other for one, other in zip(recorded, deeper, strict=True)]


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"bad-maxdepth-4", "zk-update-without-hits"}))
def test_a_recorded_request_is_taken_or_dropped_with_the_line_of_the_original(name: str) -> None:
    line = {key: value for key, value in CASES[name]["line"].items() if key not in {"level", *NOT_OURS}}
    found = sort_message(encoded(CASES[name]["request"]))
    if isinstance(found, TakenMessage):
        assert {"message": found.handler.line, **found.document, "parsed": True, "valid": True} == line
        assert isinstance(read_request(found.handler.name, found.document), VALUES[found.handler.name])
    else:
        assert {"message": found.line, **found.extra} == line


def test_a_depth_of_4_is_taken_where_theirs_had_3() -> None:
    assert sort_message(encoded(CASES["bad-maxdepth-4"]["request"])) == TakenMessage(
        HANDLERS[0],
        {
            **{name: one["default"] for name, one in compat.SCRAPER["properties"].items() if "default" in one},
            **CASES["bad-maxdepth-4"]["request"],
        },
    )
    assert crawl(maxdepth=100).maxdepth == 100
    assert isinstance(sort_message(encoded({**CRAWL, "maxdepth": 101})), DroppedMessage)


def test_a_rate_without_hits_is_refused_with_their_words() -> None:
    case = CASES["zk-update-without-hits"]
    taken = sort_message(encoded(case["request"]))
    assert isinstance(taken, TakenMessage)
    with pytest.raises(BadInput) as refused:
        read_request(taken.handler.name, taken.document)
    assert refused.value.why == case["line"]["message"]


def test_the_values_of_a_crawl() -> None:
    assert crawl() == CrawlRequest(
        **CRAWL, spiderid="link", maxdepth=0, priority=1, expires=0, allowed_domains=None, allow_regex=None,
        deny_regex=None, deny_extensions=None, useragent=None, cookie=None, attrs=None,
    )  # fmt: skip
    full = crawl(allow_regex=["/p/"], cookie="a=1; b=2", attrs={"k": [1, {"x": None}]}, expires=1_795_311_044)
    assert (full.allow_regex, full.cookie, full.attrs) == (("/p/",), "a=1; b=2", {"k": [1, {"x": None}]})


def test_the_values_of_the_others() -> None:
    for document, made in (
        ({"uuid": "u", "appid": "app", "spiderid": "link", "action": "stop"},
         CrawlAction("stop", "u", "app", "link", None)),
        ({"uuid": "u", "appid": "app"}, StatsRequest("all", "u", "app")),
        ({"uuid": "u", "appid": "app", "domain": "a.example", "action": "domain-update", "hits": 5, "window": 60},
         PolicyChange("domain-update", "a.example", "u", "app", 5, 60, 1.0)),
        ({"uuid": "u", "appid": "app", "domain": "a.example", "action": "blacklist-update"},
         PolicyChange("blacklist-update", "a.example", "u", "app", 0, 0, 1.0)),
    ):  # fmt: skip
        taken = sort_message(encoded(document))
        assert isinstance(taken, TakenMessage)
        assert read_request(taken.handler.name, taken.document) == made


@pytest.mark.parametrize(
    ("url", "fetched"),
    [
        ("127.0.0.1:8624/p/3.html", "http://127.0.0.1:8624/p/3.html"),
        ("localhost:80", "http://localhost:80"),
        ("www.a.example", "http://www.a.example"),
        ("//a.example/x", "http://a.example/x"),
        ("HTTPS://a.example/", "HTTPS://a.example/"),
        ("  http://a.example/ ", "http://a.example/"),
        ("a.example/?u=http://b.example/", "http://a.example/?u=http://b.example/"),
    ],
)
def test_http_is_put_before_an_address_without_scheme(url: str, fetched: str) -> None:
    assert crawl(url=url).url == fetched


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("url", "file:///etc/passwd", "of the scheme file"),
        ("url", "FILE:///etc/passwd", "of the scheme FILE"),
        ("url", "javascript:alert(1)", "of the scheme javascript"),
        ("url", "ftp://a.example/", "of the scheme ftp"),
        ("url", "", "it has no host"),
        ("url", "http:///", "it has no host"),
        ("url", "http://a.example/\r\nHost: b", "control characters"),
        ("url", "http://a.example/" + "x" * 9000, "8,192 are the most"),
        ("cookie", "a=1\r\nX-Evil: 1", "no header can have"),
        ("useragent", "me\nX-Evil: 1", "no header can have"),
        ("useragent", "a\u2028b", "no header can have"),
        ("crawlid", "a\nb", "crawlid has control characters"),
        ("appid", "app\x1b[31m", "appid has control characters"),
        ("allow_regex", ["(a"], "no regular expression of RE2"),
        ("deny_regex", ["(?=a)"], "no regular expression of RE2"),
        ("deny_regex", ["((a{1000}){1000}){1000}"], "no regular expression of RE2"),
        ("deny_regex", [rf"(\PN{{1,2}}){{300}}{number}" for number in range(3)], "deny_regex: its expressions are too"),
        ("allow_regex", [f"a{number}" for number in range(101)], "100 are the most"),
        ("allowed_domains", [f"a{number}.example" for number in range(1001)], "1,000 are the most"),
        ("expires", 10**30, "too large a number"),
    ],
)
def test_a_value_that_would_do_harm_is_refused_by_name(field: str, value: Any, why: str) -> None:
    with pytest.raises(BadInput, match="request") as refused:
        crawl(**{field: value})
    assert why in refused.value.why
    assert field in refused.value.why


def test_a_pattern_that_takes_others_for_ever_is_taken() -> None:
    assert crawl(allow_regex=["(a+)+$"]).allow_regex == ("(a+)+$",)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"{",
        b'{"url": nope',
        b"\xff\xfe",
        b'{"a": "\xff"}',
        b'{"a": NaN}',
        b"[" * 10_000,
        b'{"a":' * 10_000,
        b'"\\ud800"',
    ],
)  # fmt: skip
def test_what_is_no_json_is_dropped_with_the_known_line(message: bytes) -> None:
    found = sort_message(message)
    assert isinstance(found, DroppedMessage)
    assert (found.line, found.extra["parsed"], found.extra["valid"]) == ("Unparseable JSON Received", False, False)
    assert json.dumps(found.extra)
    assert found.why


@pytest.mark.parametrize(
    "document", [None, 5, [], [CRAWL], "x", {"appid": 1}, {**CRAWL, "more": 1}, {**CRAWL, "url": None}]
)
def test_what_fits_no_schema_is_dropped_and_every_handler_says_why(document: object) -> None:
    found = sort_message(encoded(document) if document != "x" else b'"x"')
    assert isinstance(found, DroppedMessage)
    assert found.line == "Did not find schema to validate request"
    assert [part.partition(":")[0] for part in found.why.split("; ") if "Handler" in part] == [
        handler.name for handler in HANDLERS
    ]


@pytest.mark.parametrize("wrong", [1.0, True, "1", 0, 101, None, 10**400])
def test_a_priority_is_an_integer_from_1_to_100(wrong: Any) -> None:
    assert isinstance(sort_message(encoded({**CRAWL, "priority": wrong})), DroppedMessage)


def test_a_message_nested_deep_in_its_attributes_is_dropped() -> None:
    deep: Any = 1
    for _ in range(98):
        deep = [deep]
    assert isinstance(sort_message(encoded({**CRAWL, "attrs": {"x": deep}})), TakenMessage)
    found = sort_message(encoded({**CRAWL, "attrs": {"x": [[deep]]}}))
    assert isinstance(found, DroppedMessage)
    assert "nested deeper than 100" in found.why


def test_a_list_of_very_many_different_things_takes_no_time_that_grows_faster_than_it() -> None:
    many = [{"x": number} for number in range(200_000)]
    assert isinstance(sort_message(encoded({**CRAWL, "allowed_domains": many})), DroppedMessage)


def test_the_lowest_rank_takes_a_message_that_fits_several() -> None:
    both = [MessageHandler("Late", 900, {"type": "object"}), MessageHandler("Early", 5, {"type": "object"})]
    found = sort_message(b"{}", [*both, *HANDLERS])
    assert isinstance(found, TakenMessage)
    assert found.handler.name == "Early"
    assert [(handler.name, handler.rank) for handler in HANDLERS] == [
        ("ScraperHandler", 100), ("ActionHandler", 200), ("StatsHandler", 300), ("ZookeeperHandler", 400)
    ]  # fmt: skip
    assert sort_message(b"{}", []) == DroppedMessage(compat.NO_SCHEMA, True, {}, "there is no handler")


def test_defaults_are_filled_in_also_inside_and_never_shared() -> None:
    inner = {"type": "object", "properties": {"b": {"default": []}}}
    handler = MessageHandler(
        "H", 1, {"type": "object", "properties": {"a": {**inner, "default": {}}, "c": {"default": {}}}}
    )
    first, second = (sort_message(b"{}", [handler]) for _ in range(2))
    assert isinstance(first, TakenMessage)
    assert isinstance(second, TakenMessage)
    assert first.document == {"a": {"b": []}, "c": {}}
    first.document["a"]["b"].append(1)
    assert second.document == {"a": {"b": []}, "c": {}}


def test_a_schema_may_refer_to_its_own_definitions() -> None:
    schema = {"definitions": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/definitions/n"}}}
    handler = MessageHandler("Mine", 500, {**schema, "required": ["a"]})
    assert isinstance(sort_message(b'{"a": 1}', [handler]), TakenMessage)
    assert isinstance(sort_message(b'{"a": "x"}', [handler]), DroppedMessage)


@pytest.mark.parametrize(
    "schema", [{"type": "nonsense"}, {"$ref": "http://127.0.0.1:9/x.json"}, {"$ref": "file:///etc/passwd"}]
)
def test_a_schema_that_is_none_or_refers_elsewhere_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(BadConfig, match="the JSON Schema of Mine"):
        MessageHandler("Mine", 500, schema)
