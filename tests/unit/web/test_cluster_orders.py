"""What programs post to a group of clusters: who may, in which form, and what is refused before its centre is asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from launches.engine import Engine
from operating.web_client import WebAnswer, ask
from operating.web_site import WebSite

from warcmill.clients.postgresql import PostgresqlPlace
from warcmill.clusters.group import Group
from warcmill.web import access, app
from warcmill.web.routes import LARGEST_LOAD, LARGEST_ORDER

ORDERS, URIS, LOAD = "/groups/web/orders", "/groups/web/uris", "/groups/web/load"
URL = "http://a.example/"
ADD = json.dumps({"uris": [URL]}).encode()
SUSPEND = json.dumps({"act": "suspend", "uris": [URL]}).encode()
REMOVE = json.dumps({"act": "remove", "uris": [URL]}).encode()
AWAY = 503  # what is good gets as far as the centre, which is away


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> WebSite:
    engine = Engine(tmp_path_factory.mktemp("a line"))
    away = Group("web", PostgresqlPlace("postgresql://warcmill@127.0.0.1:1/web"), ("east",))
    more = {"groups": lambda: ["web"], "group_named": lambda _: away}
    return WebSite(engine, engine.audited, more=more)


def refused(answer: WebAnswer, status: int) -> Any:
    assert answer.status == status, answer.text
    found = answer.document
    assert set(found) == {"error", "todo", "what", "why"}
    assert all(found.values())
    return found


@pytest.mark.parametrize(("path", "document", "type_", "least"), [
    (URIS, ADD, "application/json", "curator"), (ORDERS, SUSPEND, "application/json", "curator"),
    (ORDERS, REMOVE, "application/json", "operator"), (LOAD, URL.encode(), "text/plain", "curator"),
])  # fmt: skip
def test_each_role_gives_the_orders_that_it_may(
    site: WebSite, path: str, document: bytes, type_: str, least: str
) -> None:
    roles = ["", "reader", "curator", "operator"]
    for role in roles:
        status = AWAY if roles.index(role) >= roles.index(least) else 403
        found = refused(site.send(path, document, role, type_), status)
        if status == AWAY:
            assert "send the same again, a program with its Idempotency-Key" in found["why"]
    away = site.send(path, document, type_=type_)
    assert away.header("retry-after")


@pytest.mark.parametrize("document", [
    b"", b"{", b"null", b"[]", b'"add"', b"\xff", b'{"uris": ["\xff"]}', b'{"uris": "http://a.example/"}',
    b'{"uris": [1]}', b'{"uris": []}', b"{}", b'{"uris": ["http://a.example/"], "more": 1}', b'{"uris": ["\\ud800"]}',
    b'{"uris": ["http://a.example/\\ud800"]}', b'{"uris": ["\\u0000"]}', b'{"uris": [' * 50_000, b"[" * 400_000,
    b'{"a":' * 60_000, b'{"uris": ["no URL"]}', b"\xef\xbb\xbf{}", b'{"uris": ["http://a.example/"]} x',
    json.dumps({"uris": [f"{URL}{number}" for number in range(1001)]}).encode(), b'{"uris": null}', b"1e999",
])  # fmt: skip
def test_a_document_that_is_no_order_is_refused_by_name(site: WebSite, document: bytes) -> None:
    status = 413 if len(document) > LARGEST_ORDER else 400
    refused(site.send(URIS, document), status)
    refused(site.send(ORDERS, document), status)


@pytest.mark.parametrize(("wanted", "what"), [
    ({"act": "dance", "uris": [URL]}, "act"), ({"act": "rate", "site": "a.example", "hits": "many"}, "the document"),
    ({"act": "rate", "site": "a.example", "hits": 10**30}, "hits"), ({"act": "suspend"}, "suspend"),
    ({"act": "suspend", "prefix": "a\0"}, "prefix"), ({"act": "suspend", "prefix": "a.example"}, "a.example"),
    ({"act": "suspend", "site": ["a"]}, "the document"), ({"act": "suspend", "site": "a.example\0"}, "site"),
])  # fmt: skip
def test_what_is_wrong_with_an_order_is_named(site: WebSite, wanted: dict[str, Any], what: str) -> None:
    assert refused(site.send(ORDERS, json.dumps(wanted).encode()), 400)["what"] == what


@pytest.mark.parametrize(("headers", "status"), [
    ({"content_type": ""}, 415), ({"content_type": "text/html"}, 415), ({"content_type": "multipart/form-data"}, 415),
    ({"content_type": "application/json; charset=latin-1"}, 415), ({"content_encoding": "gzip"}, 415),
    ({"content_type": "application/json; charset=UTF-8"}, AWAY),
    ({"content_type": 'Application/JSON;charset="utf-8"'}, AWAY),
    ({"origin": "http://evil.example"}, 400), ({"origin": "null"}, 400), ({"origin": ""}, 400),
    ({"origin": "http://127.0.0.1:8090"}, AWAY), ({"idempotency_key": "a b"}, 400),
    ({"idempotency_key": "x" * 201}, 400),
    ({"idempotency_key": "x" * 200}, AWAY),
])  # fmt: skip
def test_what_comes_in_another_form_or_from_elsewhere_is_refused(
    site: WebSite, headers: dict[str, str], status: int
) -> None:
    for path, document in ((URIS, ADD), (ORDERS, SUSPEND)):
        answer = site.send(path, document, **{"accept": "application/json", **headers})
        refused(answer, status)


def test_a_post_that_any_page_could_send_needs_a_form_or_a_token_in_a_header(site: WebSite) -> None:
    cookie = {"cookie": "warcmill-8090=the-token-of-the-operator"}
    plain = {**cookie, "content-type": "text/plain"}
    assert "takes no cookie" in refused(ask(site.app, LOAD, document=b"x", headers=plain), 403)["why"]
    basic = {"authorization": "Basic eDp0aGUtdG9rZW4tb2YtdGhlLW9wZXJhdG9y", "content-type": "text/plain"}
    refused(ask(site.app, LOAD, document=b"x", headers=basic), 403)
    as_text = ask(site.app, ORDERS, document=SUSPEND, headers={**plain, "accept": "application/json"})
    refused(as_text, 415)
    in_json = {**cookie, "content-type": "application/json"}
    refused(ask(site.app, ORDERS, document=SUSPEND, headers=in_json), AWAY)
    form = {"act": "suspend", "uris": URL}
    assert site.post(ORDERS, {**form, "form": ""}).status == 400
    assert site.post(URIS, {**form, "form": ""}).status == 415


def test_no_document_is_longer_than_its_row_says(site: WebSite) -> None:
    for path, type_, most in ((ORDERS, "application/json", LARGEST_ORDER), (LOAD, "text/plain", LARGEST_LOAD)):
        for length in (most + 1, 2 * most):
            refused(site.send(path, b" " * length, type_=type_), 413)
        refused(site.send(path, b"", type_=type_, content_length=str(10**15)), 413)
        refused(site.send(path, b" " * (most + 1), "reader", type_), 403)


def test_as_many_large_documents_are_in_memory_as_there_is_room_for(site: WebSite) -> None:
    for _ in range(app.LARGE_AT_ONCE):
        assert app._large.acquire(blocking=False)
    try:
        assert "send it again in some seconds" in refused(site.send(LOAD, b"x", type_="text/plain"), 503)["why"]
        refused(site.send(LOAD, b"x", "reader", "text/plain"), 403)
    finally:
        for _ in range(app.LARGE_AT_ONCE):
            app._large.release()
    for length in (1, LARGEST_LOAD + 1):
        site.send(LOAD, b"x" * length, type_="text/plain")
    assert [app._large.acquire(blocking=False) for _ in range(app.LARGE_AT_ONCE + 1)] == [True] * 2 + [False]
    app._large.release(app.LARGE_AT_ONCE)


def test_a_token_that_is_withdrawn_gives_no_order(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    pages = WebSite(engine, engine.audited)
    secret = access.add_token(pages.state, "anna", access.Role.CURATOR, None)
    headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}
    refused(ask(pages.app, URIS, document=ADD, headers=headers), 404)
    access.withdraw_token(pages.state, "anna")
    refused(ask(pages.app, URIS, document=ADD, headers=headers), 403)


def test_a_list_for_programs_is_refused_in_json_whoever_asks(site: WebSite) -> None:
    for fields in ({"status": "odd"}, {"limit": "0"}, {"limit": "1001"}, {"limit": "-1"}):
        refused(site.get(URIS, fields), 400)
    refused(site.get("/groups/web/uri/history", {"url": "no URL"}), 400)
    refused(site.get("/groups/none/uris"), 404)
    refused(site.get(URIS), AWAY)
