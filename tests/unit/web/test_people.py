"""People: a token is made and shown once, its last use is kept cheaply, and one that is withdrawn ends what runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from launches.engine import LAUNCH, Engine
from operating.web_client import WebAnswer, ask
from operating.web_site import WebSite

from warcmill.stores import LocalStore
from warcmill.web import access, app
from warcmill.web.access import Role
from warcmill.web.request import Asked, SentBytes
from warcmill.web.routes import GET, Route
from warcmill.web.served import Served


@pytest.fixture
def site(tmp_path: Path) -> WebSite:
    engine = Engine(tmp_path)
    return WebSite(engine, engine.audited)


def made(site: WebSite, name: str, **more: str) -> WebAnswer:
    return site.post("/people", {"act": "add", "name": name, "role": "curator", **more})


def as_one(site: WebSite, secret: str, path: str) -> int:
    """The status that the browser of a person gets."""
    return ask(site.app, path, headers={"cookie": f"warcmill-8090={secret}"}).status


def secret_in(answer: WebAnswer) -> str:
    return answer.text.partition('<code class="command">')[2].partition("</code>")[0]


def test_a_token_is_shown_once_and_opens_what_its_role_may(site: WebSite) -> None:
    answer = made(site, "anna")
    secret = secret_in(answer)
    assert (answer.status, len(secret)) == (200, 32)
    assert (as_one(site, secret, "/hide"), as_one(site, secret, "/people")) == (200, 403)
    listed = site.get("/people", {"format": "json"}).document
    assert secret not in str(listed)
    (anna,) = (one for one in listed["tokens"] if one["name"] == "anna")
    assert (anna["role"], bool(anna["used"])) == ("curator", True)
    assert secret not in "".join(path.read_text() for path in (site.state.base / "web").rglob("*.json"))


def test_what_is_made_or_withdrawn_is_recorded_with_who_did_it(site: WebSite) -> None:
    made(site, "anna", days="30")
    site.post("/people", {"act": "withdraw", "name": "anna"})
    taken = site.actions.newest(site.state, 5)
    assert {(one.who, one.command, one.exit_code) for one in taken} == {
        ("operator", "warcmill serve token add anna --role=curator --days=30", 0),
        ("operator", "warcmill serve token withdraw anna", 0),
    }


@pytest.mark.parametrize(("field", "text"), [
    ("name", "../x"), ("name", ""), ("name", "reader"), ("role", "god"), ("days", "0"), ("days", "x"),
    ("days", "99999"),
])  # fmt: skip
def test_what_cannot_be_made_is_asked_for_again(site: WebSite, field: str, text: str) -> None:
    before = site.state.names(access.FOLDER)
    answer = made(site, **{"name": "anna", field: text})
    assert answer.status == 400
    assert field == "role" or 'class="wrong"' in answer.text
    assert site.state.names(access.FOLDER) == before
    assert not site.state.names("web/actions")


def test_one_that_is_withdrawn_opens_nothing_and_has_no_use(site: WebSite) -> None:
    secret = secret_in(made(site, "anna"))
    assert as_one(site, secret, "/jobs") == 200
    assert site.post("/people", {"act": "withdraw", "name": "anna"}).status == 200
    assert as_one(site, secret, "/jobs") == 403
    assert "anna" not in site.state.names(access.USES)
    assert site.post("/people", {"act": "withdraw", "name": "anna"}).status == 400


def test_a_use_is_written_once_a_minute(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    replace = site.state.replace

    def counted(path: str, data: bytes) -> None:
        written.append(path)
        replace(path, data)

    monkeypatch.setattr(type(site.state), "replace", lambda _, path, data: counted(path, data))
    for _ in range(20):
        site.get("/jobs", role="reader")
        site.get("/jobs", role="curator")
    assert sorted(written) == [f"{access.USES}/curator", f"{access.USES}/reader"]
    later = access.time.monotonic() + access.USE_SECONDS
    monkeypatch.setattr(access.time, "monotonic", lambda: later)
    site.get("/jobs", role="reader")
    assert len(written) == 3


def test_a_state_that_cannot_be_written_keeps_nobody_out(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: LocalStore, path: str, __: bytes) -> None:
        raise access.NotReady(path, "the disk is full")

    monkeypatch.setattr(type(site.state), "replace", full)
    assert site.get("/jobs", role="reader").status == 200


def test_a_download_breaks_off_once_its_token_is_withdrawn(site: WebSite, monkeypatch: pytest.MonkeyPatch) -> None:
    secret, sent = secret_in(made(site, "anna")), list[bytes]()

    def pieces() -> Iterator[bytes]:
        for number in range(1_000):
            if number == 3:
                access.withdraw_token(site.state, "anna")
            yield b"x" * 100

    def view(_: Served, __: Asked) -> SentBytes:
        return SentBytes(pieces(), "text/plain", 100_000)

    monkeypatch.setattr(app, "ROUTES", (*app.ROUTES, Route("/long", GET, Role.CURATOR, view)))
    monkeypatch.setattr(app, "LOOK_SECONDS", 0)
    del site.app  # made anew, of these routes
    messages: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        messages.append(message)
        sent.append(message.get("body", b""))

    headers = [(b"host", b"127.0.0.1:8090"), (b"cookie", f"warcmill-8090={secret}".encode())]
    scope = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": "GET",
             "scheme": "http", "path": "/long", "raw_path": b"/long", "query_string": b"", "root_path": "",
             "headers": headers, "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8090)}  # fmt: skip
    asyncio.run(site.app(scope, receive, send))
    assert len(b"".join(sent)) == 300
    assert messages[-1]["more_body"], "its end never comes: the connection is ended"


def test_nobody_but_an_operator_sees_people(site: WebSite) -> None:
    assert LAUNCH.job not in site.get("/people").text
    for role in ("reader", "curator", ""):
        assert site.get("/people", role=role).status == 403
        assert "/people" not in site.get("/jobs", role=role).text
