"""URIs, their moves, how they are fetched, and those that hold their own bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from warcmill.crawl import uri as data_uri
from warcmill.crawl.fetch import exchange
from warcmill.crawl.fetch.exchange import FetchOptions, RenderOptions
from warcmill.crawl.uri import LONGEST_PAYLOAD, LONGEST_URI, MOVES, Status, Transitions, Uri, canonical, make, queue_of
from warcmill.errors import BadInput

NOW = 1_800_000_000.0

# Canonical URIs: as the WHATWG URL standard writes them


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTTP://WWW.Example.ORG:80/A/../b?c#d", "http://www.example.org/b?c"),
        ("https://bücher.example/ü?ü=ß", "https://xn--bcher-kva.example/%C3%BC?%C3%BC=%C3%9F"),
        ("https://example.org:443", "https://example.org/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://[0:0::1]/", "http://[::1]/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http:\\\\example.org\\a", "http://example.org/a"),
        (" http://example.org/a b\n", "http://example.org/a%20b"),
        ("http://example.org/@user?x=a@b", "http://example.org/@user?x=a@b"),
        ("dns:example.org", "dns:example.org"),
        ("data:text/plain,a#b", "data:text/plain,a"),
    ],
)
def test_a_uri_is_written_as_browsers_write_it(text: str, expected: str) -> None:
    assert canonical(text) == expected
    assert canonical(expected) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a URI with scheme and host"),
        ("/relative", "not a URI with scheme and host"),
        ("http://", "not a URI with scheme and host"),
        ("http://exa mple/", "not a URI with scheme and host"),
        ("http://example.org/\udc80", "not a URI with scheme and host"),
        ("ftp://example.org/", "ftp: is not fetched, only data, dns, http, https"),
        ("javascript:alert(1)", "javascript: is not fetched"),
        ("mailto:a@example.org", "mailto: is not fetched"),
        ("http://user:secret@example.org/", "it has credentials in it, which are not shown here"),
        ("http://user@example.org/", "it has credentials in it"),
        ("http://example.org/" + "x" * LONGEST_URI, f"longer than {LONGEST_URI} bytes"),
    ],
)
def test_what_cannot_be_fetched_is_refused_by_name_and_shows_no_secret(text: str, why: str) -> None:
    with pytest.raises(BadInput) as caught:
        canonical(text)
    assert why in caught.value.why
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("uri", "queue", "surt"),
    [
        ("http://www.example.org/A?B", "www.example.org", "http://(org,example,www,)/a?b"),
        ("https://www.example.org/", "www.example.org", "http://(org,example,www,)/"),
        ("https://example.org:8443/x", "example.org:8443", "http://(org,example,:8443)/x"),
        ("http://127.0.0.1/", "127.0.0.1", "http://(127.0.0.1)/"),
        ("http://[::1]/x", "[::1]", "http://([::1])/x"),
        ("http://[2001:db8::1]:81/x", "[2001:db8::1]:81", "http://([2001:db8::1]:81)/x"),
        ("dns:Example.org", "example.org", "dns:Example.org"),
        ("data:,x", "", "data:,x"),
    ],
)
def test_a_uri_has_the_queue_and_the_surt_of_its_host(uri: str, queue: str, surt: str) -> None:
    assert (make(uri).queue, make(uri).surt) == (queue, surt)
    assert queue_of(uri) == queue


def test_a_uri_is_known_by_its_canonical_form_or_by_the_key_of_its_maker() -> None:
    assert make("HTTP://a.example").key == "http://a.example/"
    assert (make("http://a.example/", key="itag 22").key, make("http://a.example/").status) == ("itag 22", "Created")


def test_a_payload_too_large_is_refused_and_the_largest_is_not() -> None:
    assert make("http://a.example/", payload="ü" * (LONGEST_PAYLOAD // 2)).payload
    with pytest.raises(BadInput, match=r"http://a\.example/: its payload is larger than 65536 bytes"):
        make("http://a.example/", payload="ü" * (LONGEST_PAYLOAD // 2) + "x")


# Moves


def moved(*path: Status, **more: Any) -> Uri:
    uri = make("http://a.example/")
    for status in path:
        Transitions(now=lambda: NOW).update(uri, status, **more)
    return uri


def test_only_the_moves_of_the_table_are_made() -> None:
    for before in Status:
        for to in Status:
            uri = make("http://a.example/")
            uri.status = before
            if to in MOVES[before]:
                assert Transitions().update(uri, to) is to
            else:
                with pytest.raises(BadInput, match=f"http://a.example/: no move from {before} to {to}"):
                    Transitions().update(uri, to)
                assert uri.status is before


def test_every_status_is_reached_and_only_a_removed_uri_is_at_its_end() -> None:
    assert set().union(*MOVES.values()) == set(Status) - {Status.CREATED}
    assert [status for status in Status if not MOVES[status]] == [Status.REMOVED]


def test_a_move_is_dated_and_sets_other_fields() -> None:
    uri = moved(Status.SCHEDULED, Status.DOWNLOADING, host_ip="127.0.0.1", tries=2)
    assert (uri.updated, uri.host_ip, uri.tries) == (NOW, "127.0.0.1", 2)


def test_what_a_uri_is_known_by_never_changes() -> None:
    uri = make("http://a.example/")
    with pytest.raises(TypeError, match="no update changes key, nothing"):
        Transitions().update(uri, Status.SCHEDULED, key="x", nothing=1)
    assert uri.status is Status.CREATED


def test_actions_run_before_and_after_a_move() -> None:
    told: list[object] = []
    moves = Transitions(
        before={Status.SCHEDULED: [lambda uri, to: told.append(("before", uri.status, to))]},
        after={Status.SCHEDULED: [lambda uri, to: told.append(("after", uri.status, to))]},
        now=lambda: NOW,
    )
    uri = make("http://a.example/")
    moves.update(uri, Status.SCHEDULED)
    assert told == [
        ("before", Status.CREATED, Status.SCHEDULED),
        ("after", Status.SCHEDULED, Status.SCHEDULED),
    ]


def test_an_action_before_that_raises_prevents_the_move() -> None:
    def refuse(uri: Uri, to: Status) -> None:
        raise BadInput(uri.key, "not now")

    uri = make("http://a.example/")
    with pytest.raises(BadInput, match="not now"):
        Transitions(before={Status.SCHEDULED: [refuse]}).update(uri, Status.SCHEDULED, tries=3)
    assert (uri.status, uri.tries, uri.updated) == (Status.CREATED, 0, 0)


# How it is fetched


def test_a_payload_without_a_fetch_is_a_plain_get() -> None:
    for payload in ("", "{}", '{"callback": "fetch"}', '{"other": 1}', '["fetch"]'):
        assert exchange.read(payload) == FetchOptions()


def test_a_fetch_is_read_from_the_payload() -> None:
    asked = {"method": "POST", "headers": {"X-A": "é"}, "body": "a=1", "range": [0, None], "render": True, "timeout": 9}
    assert exchange.read(json.dumps({"fetch": asked, "age": 3})) == FetchOptions(
        "POST", (("X-A", "é"),), "a=1", (0, None), RenderOptions(), 9.0
    )


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ([], "'fetch' is not an object"),
        ({"verb": "GET"}, "'fetch' has no 'verb'; it has body, headers, method, range, render, timeout"),
        ({"method": "GE T"}, "'method' is no HTTP method"),
        ({"method": "CONNECT"}, "'method' is no HTTP method"),
        ({"method": 1}, "'method' is no HTTP method"),
        ({"headers": []}, "'headers' is not an object"),
        ({"headers": {"A\r\nB": "x"}}, "is no header"),
        ({"headers": {"A": "x\r\nHost: evil"}}, "is no header"),
        ({"headers": {"Host": "x"}}, "'Host' is set by the crawler alone"),
        ({"body": 1}, "'body' is no text"),
        ({"range": [5, 1]}, "'range' is not"),
        ({"range": [True, None]}, "'range' is not"),
        ({"range": "bytes=0-"}, "'range' is not"),
        ({"render": 1}, "'render' is neither"),
        ({"timeout": -1}, "'timeout' is no number"),
        ({"timeout": True}, "'timeout' is no number"),
    ],
)
def test_a_fetch_that_is_wrong_is_refused_by_name(asked: object, why: str) -> None:
    with pytest.raises(BadInput) as caught:
        exchange.read(json.dumps({"fetch": asked}), "http://a.example/")
    assert str(caught.value).startswith("http://a.example/: payload: ")
    assert why in caught.value.why


def test_a_payload_that_is_no_json_is_refused() -> None:
    for payload in ('{"fetch"', '"fetch"' * 2, "[" * 100_000 + '"fetch"'):
        with pytest.raises(BadInput, match="not JSON"):
            exchange.read(payload)


# URIs that hold their own bytes


@pytest.mark.parametrize(
    ("uri", "mime", "body"),
    [
        ("data:,A%20brief%20note", "text/plain;charset=US-ASCII", b"A brief note"),
        ("data:text/html,<p>", "text/html", b"<p>"),
        ("data:;charset=utf-8,%C3%BC", "text/plain;charset=utf-8", b"\xc3\xbc"),
        ("data:image/png;base64,aGk=", "image/png", b"hi"),
        ("data:image/png;base64,aGk", "image/png", b"hi"),
        ("data:;BASE64,a%47k%3D", "text/plain;charset=US-ASCII", b"hi"),
        ("data:text/plain;base64;x,aGk=", "text/plain;base64;x", b"aGk="),
        ("data:,a,b", "text/plain;charset=US-ASCII", b"a,b"),
        ("data:,", "text/plain;charset=US-ASCII", b""),
    ],
)
def test_a_data_uri_holds_its_own_bytes(uri: str, mime: str, body: bytes) -> None:
    assert data_uri.read(uri) == (mime, body)


def test_a_data_uri_that_is_broken_is_refused() -> None:
    for uri, why in (
        ("data:text/plain", "without a comma"),
        ("data:;base64,a", "broken base64"),
        ("data:;base64,é!", "broken"),
    ):
        with pytest.raises(BadInput, match=why):
            data_uri.read(uri)
