"""A package index as a client sees it: serials, pages of the changelog, the list of projects; and odd answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xmlrpc.client import Fault, dumps, loads

import pytest

from warcmill.clients import package_index
from warcmill.clients.package_index import AskedPage, IndexClient, IndexEvent
from warcmill.errors import BadConfig, BadInput, Unavailable
from warcmill.model import Window

Answer = tuple[int, dict[str, str], bytes]


@contextmanager
def serving(answer: Callable[[str, tuple[object, ...]], Answer]) -> Iterator[tuple[IndexClient, list[float]]]:
    """An index that answers a method and its words, or a path; and the seconds that its client has slept."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            words, method = loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(answer(str(method), words))

        def do_GET(self) -> None:
            self._send(answer(self.path, (self.headers["Accept"], self.headers["User-Agent"])))

        def _send(self, found: Answer) -> None:
            self.send_response(found[0])
            for name, value in found[1].items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(found[2])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class calls it so
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    slept: list[float] = []
    try:
        with IndexClient(f"http://127.0.0.1:{server.server_address[1]}/", "http://me.example/", slept.append) as index:
            yield index, slept
    finally:
        server.shutdown()
        server.server_close()


def xml(value: object) -> Answer:
    return 200, {}, dumps((value,), methodresponse=True, allow_none=True).encode()


def row(serial: int, name: str = "demo", action: str = "new release", version: str | None = "1") -> list[object]:
    return [name, version, 1_700_000_000, action, serial]


def test_the_changelog_is_asked_for_in_pages_up_to_the_end_of_the_window() -> None:
    asked: list[object] = []

    def answer(method: str, words: tuple[object, ...]) -> Answer:
        asked.append((method, *words))
        (begin,) = words
        assert isinstance(begin, int)
        return xml([row(serial) for serial in range(begin + 1, min(begin + 4, 12))])

    with serving(answer) as (index, _):
        found = list(index.changes(Window(3, 9)))
    assert [event.serial for event in found if isinstance(event, IndexEvent)] == [4, 5, 6, 7, 8, 9]
    assert asked == [("changelog_since_serial", 3), ("changelog_since_serial", 6)]
    assert found[0] == IndexEvent("demo", "1", "new release", 4, 1_700_000_000)


def test_serials_backwards_and_the_same_page_for_ever_end() -> None:
    with serving(lambda _, words: xml([row(8), row(5), row(7, version=None), row(2)])) as (index, _):
        found = list(index.changes(Window(3, 8)))
        assert [event.serial for event in found if isinstance(event, IndexEvent)] == [8, 5, 7]
        with pytest.raises(Unavailable, match="ends at serial 8, and its last serial is 20"):
            list(index.changes(Window(3, 20)))


def test_a_changelog_that_ends_before_the_last_serial_is_not_read_as_nothing_new() -> None:
    with serving(lambda *_: xml([])) as (index, _):
        with pytest.raises(Unavailable, match="ends at serial 3, and its last serial is 20"):
            list(index.changes(Window(3, 20)))
        assert list(index.changes(Window(3, 3))) == []
    with serving(lambda *_: xml([["x"], "text"])) as (index, _), pytest.raises(Unavailable, match="cannot be read"):
        list(index.changes(Window(3, 20)))


def test_a_row_that_is_no_event_is_a_fault_of_its_own() -> None:
    rows = [row(4), ["x"], "text", row(5, name=""), row(0), [1, 2, 3, 4, 5], row(6, name="x" * 3000), row(7)]
    with serving(lambda *_: xml(rows)) as (index, _):
        found = list(index.changes(Window(3, 7)))
    assert [one.serial for one in found if isinstance(one, IndexEvent)] == [4, 7]
    assert sum(isinstance(one, BadInput) for one in found) == 6


@pytest.mark.parametrize(
    "body",
    [b"", b"no xml", b"<html/>", b'<!DOCTYPE x [<!ENTITY a "b">]><methodResponse>&a;</methodResponse>',
     b"<methodResponse><params><param><value><int>x</int></value></param></params></methodResponse>",
     b"<methodResponse><params><param><value><int>-4</int></value></param></params></methodResponse>",
     b"<methodResponse/>", b"<methodResponse>" + b"<value>" * 100_000],
)  # fmt: skip
def test_what_is_no_serial_is_refused(body: bytes) -> None:
    with (
        serving(lambda *_: (200, {}, body)) as (index, _),
        pytest.raises(BadInput, match=r"XML-RPC|not a whole number"),
    ):
        index.last_serial()


def test_a_busy_index_is_asked_again_after_the_time_that_it_names() -> None:
    busy = (200, {}, dumps(Fault(-1, "HTTPTooManyRequests: wait")).encode())
    answers: list[Answer] = [(503, {}, b""), (429, {"Retry-After": "7"}, b""), busy, xml(42)]
    with serving(lambda *_: answers.pop(0)) as (index, slept):
        assert index.last_serial() == 42
    assert slept == [2.0, 7.0, 2.0]


@pytest.mark.parametrize(
    ("answer", "why"),
    [((503, {}, b""), "answered 503, 4 times"), ((404, {}, b""), "answered 404"),
     ((302, {"Location": "/"}, b""), "302"),
     ((429, {"Retry-After": "9999"}, b""), "answered 429"),
     ((200, {}, dumps(Fault(1, "no such method")).encode()), "fault: .*no such method"),
     ((200, {"Content-Length": "900"}, b"<methodResponse>"), "broke off")],
)  # fmt: skip
def test_an_index_that_does_not_answer_is_unavailable(answer: Answer, why: str) -> None:
    with serving(lambda *_: answer) as (index, _), pytest.raises(Unavailable, match=why):
        index.last_serial()


def test_projects_are_listed_with_their_serials() -> None:
    asked: list[tuple[object, ...]] = []

    def answer(path: str, words: tuple[object, ...]) -> Answer:
        asked.append((path, *words))
        projects = [{"name": "Foo_Bar", "_last-serial": 7}, {"name": "x"}]
        return 200, {}, json.dumps({"meta": {"_last-serial": 9}, "projects": projects}).encode()

    with serving(answer) as (index, _):
        assert index.projects() == (9, [("Foo_Bar", 7), ("x", 0)], "")
        assert index.page("foo-bar").endswith("/simple/foo-bar/")
    assert asked[0][:2] == ("/simple/", "application/vnd.pypi.simple.v1+json")
    assert "http://me.example/" in str(asked[0][2])


def test_each_invalid_row_of_the_list_fails_alone() -> None:
    rows = '{"name": "a", "_last-serial": NaN}, {"name": "b", "_last-serial": -7}, {"name": 1}, {"name": "c"}, 9'
    body = f'{{"meta": {{"_last-serial": NaN}}, "projects": [{rows}]}}'.encode()
    faults = list[BadInput]()
    with serving(lambda *_: (200, {}, body)) as (index, _):
        assert index.projects(faults.append) == (0, [("a", 0), ("b", 0), ("c", 0)], "")
    assert [fault.why.partition(" (")[0] for fault in faults] == [
        "its serial is not a whole number: 'nan'",
        "its serial is not a whole number: '-7'",
        "a row that is not a project: \"{'name': 1}\"",
        "a row that is not a project: '9'",
        "its serial is not a whole number: 'nan'",
    ]
    assert "/simple/, 'b'" in str(faults[1])


def test_a_list_of_a_greater_version_is_refused() -> None:
    body = b'{"meta": {"api-version": "2.0"}, "projects": []}'
    with serving(lambda *_: (200, {}, body)) as (index, _), pytest.raises(BadInput, match=r"of version '2\.0'"):
        index.projects()


def test_events_beyond_the_last_serial_are_of_the_next_window() -> None:
    def answer(_: str, words: tuple[object, ...]) -> Answer:
        return xml([row(10**9), *(row(serial) for serial in (4, 5) if serial > words[0])])  # type: ignore[operator]

    with serving(answer) as (index, _):
        found = [event.serial for event in index.changes(Window(3, 6)) if isinstance(event, IndexEvent)]
    assert found == [4, 5]


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"projects": [{"name": 1}]}', b"\xff", b"[" * 100_000])
def test_what_is_no_list_of_projects_is_refused(body: bytes) -> None:
    with serving(lambda *_: (200, {}, body)) as (index, _), pytest.raises(BadInput, match="not a list of projects"):
        index.projects()


def test_an_answer_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_index, "LARGEST", 1000)
    with serving(lambda *_: (200, {}, b"x" * 2000)) as (index, _), pytest.raises(BadInput, match="more than 1,000"):
        index.projects()
    with serving(lambda *_: xml([row(n) for n in range(99)])) as (index, _), pytest.raises(BadInput, match="1,000"):
        list(index.changes(Window(0, 9)))


def test_not_changed_is_an_answer_where_a_validator_was_sent() -> None:
    with serving(lambda *_: (304, {}, b"")) as (index, _):
        assert index.changed_projects('"1"', lambda _fault: None) is None
        for etag, modified in (('"1"', None), (None, "Sun, 29 Nov 2026 00:00:00 GMT")):
            assert index.project_page("six", etag, modified) == AskedPage(None)
        for ask in (index.projects, lambda: index.project_page("six")):
            with pytest.raises(Unavailable, match="answered 304"):
                ask()


@pytest.mark.parametrize("url", ["", "ftp://x.example", "https://", "http://x.example/?token=1", "x"])
def test_what_is_no_url_of_an_index_is_refused(url: str) -> None:
    with pytest.raises(BadConfig, match=r"\[pypi\] index"):
        IndexClient(url, "http://me.example/")
