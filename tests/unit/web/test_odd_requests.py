"""Odd requests to every route: hostile values in each parameter, header and form. None is a fault, or runs anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from launches import states
from launches.states import JOB, WHOLE
from msgspec.structs import replace
from operating.web_client import WebAnswer, ask
from operating.web_site import WebSite
from requesting import script_books

from warcmill.audit import day_summary
from warcmill.audit.answers.line import JobEngine
from warcmill.clients.postgresql import PostgresqlPlace
from warcmill.clusters.group import Group
from warcmill.web.routes import FORM_TYPE, GET, POST, ROUTES, Route
from warcmill.web.views.launches.launch import path_of as path_of_launch

SCRIPT = "<script>alert(1)</script>"
ODD = (
    "../../etc/passwd", "..%2f", "%2e%2e", "a\r\nSet-Cookie: a=b", "a\0b", "a" * 20_000, "\u202egpj.exe", "\ufffd",
    SCRIPT, "9" * 5_000, "-1", "0", "", "\u0661", "{{7*7}}", "{job}", "\x85", "\\", "'\"",
)  # fmt: skip
PARTS = {
    "job": JOB, "launch_id": WHOLE.id, "stage": "final", "name": "logs/crawl.log",
    "action_id": "20161019234428-0123456789ab", "serial": "7", "project": "a-b", "filename": "a_b-1-py3-none-any.whl",
    "module": "yaml", "group": "web", "cluster": JOB, "host": "example.org", "number": "7",
    "id": "0" * 64, "target": "7",
}  # fmt: skip
OF_SCRIPTS = {"name": "shop", "key": "on_start"}
FIELDS = {
    "/": ("token",), "/search": ("q", "site", "from", "to", "year", "type", "page"), "/capture": ("time", "url"),
    "/packages/requires/{filename}": ("project",), "/status": ("by", "from", "to", "job", "state", "page"),
    "/sign-in": ("token",), "/captures": ("url", "year", "day"), "/record": ("url", "warc", "offset"),
    "/hide": ("entry",), "/jobs": ("words", "tag"), "/calendar": ("words", "tag", "day"),
    "/jobs-at-once": ("do", "job", "of"), "pages": ("view", "words", "host", "status", "type", "why", "kind", "after"),
    "files": ("lacking", "name", "page"), "quality": ("report",),
    "/jobs/{job}": ("status", "group"), "tasks": ("status", "script", "before"),
    "results": ("before", "after", "format"),
    "/groups/{group}/clusters/{cluster}": ("status", "domain", "before"), "{host:path}": ("status", "after"),
    "uri": ("url", "crawl", "key"), "orders": ("state", "cluster", "before"), "history": ("url", "crawl", "key"),
    "targets": ("words", "owner", "paused", "page", "saved"), "export-targets": ("as",),
    "uris": ("status", "host", "cluster", "prefix", "after", "limit"),
    "watch": ("action", "saved"), "queue": ("host", "rule", "after", "hits"), "leave-out": ("rule", "by"),
    "limits": ("documents",), "{launch_id}": ("page",), "{name:path}": ("begin",), "accept": ("finding",),
}  # fmt: skip
QUERIES = (b"\xff\xfe", b"q=%ff", b"q=%ed%a0%80", b"%", b"&&=", b"page=1&page=-1", b"a=1&" * 30, b"format=x")
HEADERS = (
    {"host": "["}, {"host": "[::1"}, {"host": ""}, {"host": "a b"}, {"host": "x:99999"}, {"cookie": "\xff;=;;"},
    {"authorization": "Bearer \xff"}, {"x-forwarded-host": "["},
)  # fmt: skip
OF_FORMS = (
    {"origin": "http://["}, {"origin": "http://]:8"}, {"origin": "\xe9"}, {"origin": "http://evil.example"},
    {"origin": "http://127.0.0.1:8090/"}, {"origin": "http://x@127.0.0.1:8090"}, {"content-length": "9" * 5_000},
    {"content-length": "\xb2"}, {"content-length": "-1"}, {"content-type": ""},
    {"content-type": "multipart/form-data"}, {"content-type": "multipart/form-data; boundary=x; charset=undefined"},
)  # fmt: skip
HANDLED = {200, 303, 400, 403, 404, 405, 409, 415, 421}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> WebSite:
    """The pages of launches in every state; their job, which has scripts, is started and stopped here."""
    made = states.made(tmp_path_factory.mktemp("states")).site()
    made.audited = replace(made.audited, engines={JOB: JobEngine("engine.own", "warcmill", driven=True)})
    script_books.leave(made.roots.folders["jobs"] / JOB)
    away = Group("web", PostgresqlPlace("postgresql://warcmill@127.0.0.1:1/web"), (JOB,))
    made.more = {"groups": lambda: ["web"], "group_named": lambda _: away}
    return made


def path_of(route: Route, **parts: str) -> str:
    known = PARTS | OF_SCRIPTS if "/scripts/" in route.path else PARTS
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: {**known, **parts}[found[1]], route.path)


def check(answer: WebAnswer, about: object) -> None:
    """Every answer is one that a view has chosen, and none has text from outside as it came."""
    is_away = answer.status == 503  # without an index, there is nothing to be searched
    assert answer.status in HANDLED or is_away, (about, answer.status, answer.text[:500])
    if not answer.header("content-disposition").startswith("attachment"):  # a file is no page
        assert SCRIPT not in answer.text or answer.header("content-type") == "application/json", about
        assert "\u202e" not in answer.text, about
    assert not any(char in text for _, text in answer.headers for char in "\r\n\0"), about


def odd_ones(route: Route) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The addresses of a route with one odd part or field each."""
    for odd in ODD:
        for part in re.findall(r"\{(\w+)", route.path):
            yield path_of(route, **{part: odd}), {}
            yield path_of(route, **{part: odd}), {"format": "json"}
        for field in FIELDS.get(route.path) or FIELDS.get(route.path.rpartition("/")[2], ()):
            yield path_of(route), {field: odd}


@pytest.mark.parametrize("route", [one for one in ROUTES if set(GET) <= set(one.methods)], ids=lambda one: one.path)
def test_no_part_field_or_header_is_a_fault(site: WebSite, route: Route) -> None:
    for number, (path, fields) in enumerate(odd_ones(route)):
        method = GET[number % 2]
        check(ask(site.app, path, fields, method, headers=site.headers("operator")), (path[:99], str(fields)[:99]))
    for query in QUERIES:
        check(ask(site.app, path_of(route), headers=site.headers("operator"), query=query), query)
    for headers in HEADERS:
        for fields in ({}, {"format": "json"}):
            check(ask(site.app, path_of(route), fields, headers={**site.headers("operator"), **headers}), headers)


@pytest.mark.parametrize("route", [one for one in ROUTES if set(POST) <= set(one.methods)], ids=lambda one: one.path)
def test_no_form_is_a_fault_and_none_from_elsewhere_acts(site: WebSite, route: Route) -> None:
    path, before = path_of(route), site.state.names("web/actions")
    for role in ("operator", ""):
        for headers in OF_FORMS:
            answer = ask(site.app, path, posted={"token": "x"}, headers=site.headers(role, **headers))
            assert answer.status in ({400, 403} if route.takes == (FORM_TYPE,) else {400, 403, 413, 415}), headers
    for odd in ODD:
        check(ask(site.app, path, posted={"form": odd, "token": odd}, headers=site.headers("operator")), odd[:99])
    assert site.state.names("web/actions") == before


def test_an_odd_reason_is_one_word_of_the_command_or_refused(site: WebSite) -> None:
    for odd in ODD:
        answer = site.post(f"/launches/{JOB}/{WHOLE.id}/close", {"reason": odd})
        check(answer, odd[:99])
        if answer.status == 303:
            words = site.get(answer.header("location"), {"format": "json"}).document["words"]
            assert words[:3] == ["close", JOB, WHOLE.id]
            assert [word.partition("=")[0] for word in words[3:]] == ["--reason"]
            check(site.get(answer.header("location")), odd[:99])


def test_who_is_signed_in_opens_the_printed_address_again(site: WebSite) -> None:
    answer = site.get("/", {"token": "it is used up"}, role="reader")
    assert (answer.status, answer.header("location")) == (303, "/")


@pytest.mark.parametrize(
    "path", [day_summary.path(WHOLE.day), "status/now.json", "web/actions/20161019234428-0123456789ab.json"]
)
def test_a_folder_in_place_of_a_file_takes_no_other_page_away(tmp_path: Path, path: str) -> None:
    site = states.made(tmp_path).site()
    site.state.real(path).unlink(missing_ok=True)
    site.state.real(path).mkdir(parents=True)
    october = {"from": "2016-10", "to": "2016-10"}
    assert site.get("/status", october).status == site.get("/status", {**october, "by": "day"}).status == 200
    for shown in ("/", "/status", "/jobs", path_of_launch(WHOLE), "/metrics", "/scan"):
        assert site.get(shown).status == 200, shown
