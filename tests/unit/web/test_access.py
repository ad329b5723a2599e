"""Roles of the pages: by tokens, the one-time token, a proxy; and posts, which need our Origin and a form's token."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import pytest
from indexing.searchable import Searchable
from operating.web_client import ask
from starlette.applications import Starlette

from warcmill.errors import BadInput, Conflict, NotReady
from warcmill.replay.pywb import NoReplay
from warcmill.stores.file import FileStore
from warcmill.web import access, app
from warcmill.web.access import FOLDER, Forms, OneTime, Proxies, Role, User, WebAccess
from warcmill.web.app import application
from warcmill.web.archive import Archive
from warcmill.web.request import Asked, ShownPage
from warcmill.web.routes import GET, POST, Route
from warcmill.web.served import Served

ROLES = [Role.READER, Role.CURATOR, Role.OPERATOR]


@pytest.fixture
def archive(tmp_path: Path) -> Searchable:
    """An archive in which nothing is published."""
    return Searchable(tmp_path)


@pytest.fixture
def state(archive: Searchable) -> FileStore:
    return archive.state.store


def pages(archive: Searchable, forms: Forms | None = None, **entry: object) -> Starlette:
    """The pages of an archive; `entry` are fields of its access."""
    state, replay = archive.state, NoReplay("none", "http://localhost")
    shown = Archive(state.store, lambda: archive.index, lambda: archive.store)
    opened = WebAccess(state.store, "warcmill-8090", **entry)  # type: ignore[arg-type]
    return application(Served(state, shown, replay, opened, lambda: archive.audited, forms=forms or Forms()))


def who(found: WebAccess, secret: str) -> User:
    return found.user_of("127.0.0.1", {"authorization": f"Bearer {secret}"}, {})


@pytest.mark.parametrize("role", ROLES)
def test_a_token_is_kept_as_its_digest_and_gives_its_role(state: FileStore, role: Role) -> None:
    secret = access.add_token(state, "anna", role, 30)
    (stored,) = (state.base / FOLDER).glob("*.json")
    assert secret not in stored.read_text()
    assert json.loads(stored.read_text())["sha256"] == access.digest_of(secret)
    found = WebAccess(state, "c")
    assert who(found, secret) == found.user_of("", {}, {"c": secret}) == User(role, "anna")
    assert who(found, f"{secret}x") == who(found, "") == who(found, "\udcff") == User()
    access.withdraw_token(state, "anna")
    assert who(found, secret) == User()


def test_a_token_may_be_the_password_of_basic(state: FileStore) -> None:
    """As pip and uv send what an address has before its @."""
    secret = access.add_token(state, "anna", Role.READER, None)
    found = WebAccess(state, "c")

    def given(text: str) -> User:
        return found.user_of("127.0.0.1", {"authorization": text}, {})

    for user in ("", "anna", "__token__"):
        assert given(f"Basic {b64encode(f'{user}:{secret}'.encode()).decode()}") == User(Role.READER, "anna")
    for odd in ("Basic", "Basic !", f"Basic {secret}", "Basic /w==", f"Basic {b64encode(secret.encode()).decode()}"):
        assert given(odd) == User()


def test_tokens_of_one_name_odd_names_and_none_are_refused(state: FileStore) -> None:
    access.add_token(state, "anna", Role.READER, None)
    with pytest.raises(Conflict, match="first run: warcmill serve token withdraw anna"):
        access.add_token(state, "anna", Role.OPERATOR, None)
    for name in ("", "../x", "a/b", "a" * 64, "-a", "a\n"):
        with pytest.raises(BadInput):
            access.add_token(state, name, Role.READER, None)
        with pytest.raises(NotReady, match="token list"):
            access.withdraw_token(state, name)
    for days in (0, -1, 100_000):
        with pytest.raises(BadInput, match="--days"):
            access.add_token(state, "berta", Role.READER, days)


def test_a_token_ends_after_its_days(state: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = access.add_token(state, "anna", Role.READER, 1)
    (token,) = access.tokens(state)
    assert not token.is_over
    monkeypatch.setattr(access.clock, "now", lambda: token.until)
    assert who(WebAccess(state, "c"), secret) == User()


@pytest.mark.parametrize(
    "data", ["", "{", "[]", '{"made": 1}', '{"made":"","until":"","role":"god","sha256":""}', "\0"]
)
def test_a_broken_file_opens_nothing_is_listed_and_can_be_withdrawn(state: FileStore, data: str) -> None:
    secret = access.add_token(state, "anna", Role.READER, None)
    (state.base / FOLDER / "broken.json").write_text(data)
    assert who(WebAccess(state, "c"), secret).role is Role.READER
    assert [(token.name, bool(token.why)) for token in access.tokens(state)] == [("anna", False), ("broken", True)]
    access.withdraw_token(state, "broken")


def test_the_one_time_token_is_used_up_by_signing_in(state: FileStore) -> None:
    found = WebAccess(state, "c", first=OneTime("printed-once-123456"))
    assert who(found, "printed-once-123456").role is Role.OPERATOR, "a program may use it before"
    session = found.signed_in("printed-once-123456")
    assert session
    assert found.user_of("", {}, {"c": session}) == User(Role.OPERATOR, "one-time token")
    assert found.signed_in("printed-once-123456") == ""
    assert who(found, "printed-once-123456") == User()


def test_signing_in_gives_a_cookie_that_no_script_reads(archive: Searchable, state: FileStore) -> None:
    secret = access.add_token(state, "anna", Role.READER, None)
    server = pages(archive)
    by_form = ask(server, "/sign-in", posted={"token": secret})
    for answer in (ask(server, "/sign-in", {"token": secret}), by_form):
        assert (answer.status, answer.header("location")) == (303, "/")
        cookie, *flags = answer.header("set-cookie").split("; ")
        assert set(flags) == {"Path=/", "HttpOnly", "SameSite=Strict"}
        assert ask(server, "/", headers={"cookie": cookie}).status == 200
    refused = ask(server, "/sign-in", posted={"token": "wrong"})
    assert (refused.status, refused.header("set-cookie")) == (403, "")
    assert "this token opens nothing" in refused.text
    out = ask(server, "/sign-out", posted={}, headers={"cookie": cookie})
    assert "Max-Age=0" in out.header("set-cookie")


def test_behind_https_the_cookie_is_secure(archive: Searchable, state: FileStore) -> None:
    secret = access.add_token(state, "anna", Role.READER, None)
    server = pages(archive, proxies=Proxies(access.networks(["127.0.0.1"])))
    sent = {"x-forwarded-proto": "https"}
    assert "; Secure" in ask(server, "/sign-in", {"token": secret}, headers=sent).header("set-cookie")
    assert "; Secure" not in ask(pages(archive), "/sign-in", {"token": secret}, headers=sent).header("set-cookie")


@pytest.mark.parametrize(
    ("user", "groups", "role"),
    [("anna", "", Role.READER), ("anna", "staff, ops", Role.OPERATOR), ("anna", "web", Role.CURATOR),
     ("berta", "", Role.OPERATOR), ("", "ops", Role.NOBODY), (" ", "ops", Role.NOBODY)],
)  # fmt: skip
def test_a_proxy_counts_only_from_its_address(state: FileStore, user: str, groups: str, role: Role) -> None:
    proxies = Proxies(access.networks(["10.0.0.0/8", "::1"]), "x-user", "x-groups", frozenset({"ops", "berta"}),
                      frozenset({"web"}))  # fmt: skip
    found = WebAccess(state, "c", proxies=proxies)
    headers = {"x-user": user, "x-groups": groups}
    assert found.user_of("10.1.2.3", headers, {}).role == found.user_of("::1", headers, {}).role == role
    assert found.user_of("127.0.0.1", headers, {}) == found.user_of("", headers, {}) == User()


@pytest.fixture
def acted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that forms gave to what was done, by a route of this test."""
    done: list[str] = []

    def view(_: Served, asked: Asked) -> ShownPage:
        done.append(asked.form)
        return ShownPage({"done": asked.form})

    monkeypatch.setattr(app, "ROUTES", (*app.ROUTES, Route("/act/{what}", GET + POST, Role.OPERATOR, view)))
    return done


def test_a_post_needs_our_origin_and_a_token_of_this_form(
    archive: Searchable, state: FileStore, acted: list[str]
) -> None:
    forms = Forms()
    server = pages(archive, forms)
    user = User(Role.OPERATOR, "anna")
    cookie = {"cookie": f"warcmill-8090={access.add_token(state, 'anna', Role.OPERATOR, None)}"}
    form = forms.new(user, "/act/a")
    for odd in ({"origin": "http://evil.example"}, {"origin": "null"}, {"origin": ""}, {"origin": "http://127.0.0.1"}):
        assert ask(server, "/act/a", posted={"form": form}, headers={**cookie, **odd}).status == 400
    for token in ("", "x", form[:-1], form.replace("2", "3"), forms.new(user, "/act/b"), Forms().new(user, "/act/a"),
                  forms.new(User(Role.OPERATOR, "berta"), "/act/a")):  # fmt: skip
        assert ask(server, "/act/a", posted={"form": token}, headers=cookie).status == 400
    assert acted == []
    assert [ask(server, "/act/a", posted={"form": form}, headers=cookie).status for _ in "12"] == [200, 200]
    assert acted == [form.partition(".")[0]] * 2, "the same name: what is done is found again"


def test_odd_bodies_of_forms_are_refused(archive: Searchable, state: FileStore, acted: list[str]) -> None:
    server = pages(archive)
    cookie = {"cookie": f"warcmill-8090={access.add_token(state, 'anna', Role.OPERATOR, None)}"}
    long = ask(server, "/act/a", posted={"reason": "x" * 1_000_000}, headers=cookie)
    many = ask(server, "/act/a", posted={f"f{number}": "" for number in range(100)}, headers=cookie)
    odd = ask(server, "/act/a", posted={}, headers={**cookie, "content-length": "²"})
    assert [(answer.status, "the form" in answer.text) for answer in (long, many, odd)] == [(400, True)] * 3
    assert acted == []


def test_a_form_is_as_large_as_its_row_says_and_none_is_read_of_who_may_not_post(
    archive: Searchable, state: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[Asked] = []

    def view(_: Served, asked: Asked) -> ShownPage:
        got.append(asked)
        return ShownPage({})

    route = Route("/large", GET + POST, Role.CURATOR, view, is_signed=False, body=2_000_000)
    monkeypatch.setattr(app, "ROUTES", (*app.ROUTES, route))
    server = pages(archive)
    curator, reader = (
        {"cookie": f"warcmill-8090={access.add_token(state, role.word, role, None)}"}
        for role in (Role.CURATOR, Role.READER)
    )
    text = "a line\r\n" * 150_000
    assert ask(server, "/large", posted={"text": text}, headers=curator).status == 200
    assert got[0].fields["text"] == text
    assert ask(server, "/large", posted={"text": text * 2}, headers=curator).status == 400
    assert ask(server, "/large", posted={"text": text * 2}, headers=reader).status == 403
    assert len(got) == 1


def test_a_field_that_comes_several_times_is_a_list(
    archive: Searchable, state: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[Asked] = []

    def view(_: Served, asked: Asked) -> ShownPage:
        got.append(asked)
        return ShownPage({})

    monkeypatch.setattr(app, "ROUTES", (*app.ROUTES, Route("/many", GET + POST, Role.READER, view, is_signed=False)))
    server = pages(archive)
    cookie = {"cookie": f"warcmill-8090={access.add_token(state, 'anna', Role.READER, None)}"}
    asked = {"script": ["b", "a", "", "b"], "one": "1"}
    assert ask(server, "/many", asked, headers=cookie).status == 200
    assert ask(server, "/many", posted=asked, headers=cookie).status == 200
    for one in got:
        assert one.lists == {"script": ["b", "a", "", "b"], "one": ["1"]}
        assert one.fields == {"script": "b", "one": "1"}
        assert one.address == "/many?script=b&script=a&script=&script=b&one=1"
    for odd in ({"a": ["1"] * 1001}, {f"f{number}": "" for number in range(21)}):
        assert ask(server, "/many", odd, headers=cookie).status == 400
        assert ask(server, "/many", posted=odd, headers=cookie).status == 400
    assert len(got) == 2


def test_every_route_asks_for_its_role(archive: Searchable, state: FileStore) -> None:
    secrets = {role: access.add_token(state, role.word, role, None) for role in ROLES}
    server = pages(archive)
    for route in app.ROUTES:
        path = route.path.replace("{", "").replace("}", "")
        for role in Role:
            sent = {"authorization": f"Bearer {secrets[role]}"} if role else {}
            for method in route.methods:
                foreign = {**sent, "origin": "http://evil.example"} if method == "POST" else sent
                answer = ask(server, path, method=method, posted={} if method == "POST" else None, headers=foreign)
                if method == "POST":
                    assert answer.status in (400, 403), route.path
                elif role < route.role:
                    assert answer.status == 403, route.path
                else:
                    assert answer.status not in (403, 405, 500), (route.path, role)


def test_an_address_that_is_none_keeps_the_menu_of_who_asks(archive: Searchable, state: FileStore) -> None:
    sent = {"authorization": f"Bearer {access.add_token(state, 'anna', Role.READER, None)}"}
    for path, fields in (("/nowhere", {}), ("/search", {"page": "0", "q": "heron"})):
        answer = ask(pages(archive), path, fields, headers=sent)
        assert answer.status in (400, 404)
        assert 'href="/status"' in answer.text
    assert 'href="/status"' not in ask(pages(archive), "/nowhere").text


def test_with_the_state_away_nobody_is_let_in_and_what_everyone_may_see_is_there(archive: Searchable) -> None:
    sent = {"authorization": "Bearer some-token-that-is-long"}
    server = pages(archive)
    archive.state.store.base.rename(archive.state.store.base.with_name("away"))
    shown = [ask(server, path, headers=sent) for path in ("/status", "/static/warcmill.css", "/nowhere", "/sign-in")]
    assert [answer.status for answer in shown] == [503, 200, 404, 200]
    assert "the folder of the state does not answer" in shown[0].text
