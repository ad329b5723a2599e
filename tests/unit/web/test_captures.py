"""The pages of one URL: its captures by year, the header of a record, and what hiding it hits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from indexing.searchable import Searchable
from operating.web_client import WebAnswer
from operating.web_client import ask as ask_app
from records.captures import response
from records.warcs import warc_gz, warcinfo
from starlette.applications import Starlette

from warcmill.extracts.text_workers import TextWorkers
from warcmill.versions import hidden_list
from warcmill.web.access import Role, WebAccess, add_token
from warcmill.web.actions import Actions
from warcmill.web.app import application
from warcmill.web.archive import Archive
from warcmill.web.served import Served

SECRET = "a-token-of-this-test"
URL = "http://many.example/"
HTML = b"Content-Type: text/html; charset=utf-8"


class NoReplay:
    """No pywb: these pages only lead to it."""

    address = "http://localhost:8091/name/"
    missing = ""

    def state(self) -> str:
        return "ready"


def page(date: str, words: bytes, status: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return response(URL, HTML, body=b"<title>A</title>" + words, status=status, WARC_Date=date)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searchable]:
    """A page of two years: captured, the same again, an error, then changed."""
    made = Searchable(tmp_path_factory.mktemp("an archive"))
    those = (
        page("2015-03-01T10:00:00Z", b"one"),
        page("2016-01-02T10:00:00Z", b"one"),
        page("2016-01-02T11:00:00Z", b"gone", b"HTTP/1.1 404 Not Found"),
        page("2016-12-31T23:59:59Z", b"two"),
    )
    with TextWorkers(1) as made.workers:
        made.add("20161019234428", {"a.warc.gz": warc_gz(warcinfo(), *those)})
        made.fold()
        yield made


@pytest.fixture
def server(archive: Searchable) -> Starlette:
    access = WebAccess(archive.state.store, "warcmill-8090", SECRET)
    shown = Archive(archive.state.store, lambda: archive.index, lambda: archive.store)
    return application(Served(archive.state, shown, NoReplay(), access, lambda: archive.audited))


def ask(server: Starlette, path: str, fields: dict[str, str], method: str = "GET") -> WebAnswer:
    return ask_app(server, path, fields, method, headers={"cookie": f"warcmill-8090={SECRET}"})


def document(server: Starlette, **fields: str) -> dict:
    return ask(server, "/captures", {"url": URL, "format": "json", **fields}).document


def test_each_capture_is_new_the_same_or_an_error(server: Starlette) -> None:
    found = document(server)
    assert found["years"] == {"2015": 1, "2016": 3}
    assert [(one["time"], one["change"]) for one in found["captures"]] == [
        ("20161231235959", "new"), ("20160102110000", "error"), ("20160102100000", "same"),
    ]  # fmt: skip
    assert [one["change"] for one in document(server, year="2015")["captures"]] == ["new"]
    assert len(document(server, year="2016", day="20160102")["captures"]) == 2
    assert document(server, year="0000")["captures"] == []
    text = ask(server, "/captures", {"url": URL, "year": "2016"}).text
    assert "day=20160102" in text
    assert ask(server, "/captures", {"url": URL, "year": "x"}).status == 400
    assert "Captures of a URL" in ask(server, "/captures", {"url": ""}).text
    assert document(server, url="http://nowhere.example/")["found"] == 0


def test_the_header_of_a_record_is_that_of_the_store(server: Starlette) -> None:
    one = document(server)["captures"][0]
    fields = {"url": URL, "warc": one["warc"], "offset": one["offset"]}
    head = ask(server, "/record", {**fields, "format": "json"}).document["head"]
    assert head.startswith("WARC/1.")
    assert "WARC-Date: 2016-12-31T23:59:59Z" in head
    assert "HTTP/1.1 200" in head
    assert "two" not in head
    assert ask(server, "/record", {**fields, "offset": "1"}).status == 404
    assert ask(server, "/record", {**fields, "warc": "../../etc/passwd"}).status == 404


def test_what_is_hidden_is_on_none_of_these_pages(server: Starlette, archive: Searchable) -> None:
    one = document(server, year="2015")["captures"][0]
    entry = f"{hidden_list.entry_of(URL)}2015"
    hidden_list.decide(archive.state.store, lambda: archive.store, entry, "of a test", hides=True)
    try:
        assert document(server)["years"] == {"2016": 3}
        fields = {"url": URL, "warc": one["warc"], "offset": one["offset"]}
        assert ask(server, "/record", fields).status == 404
    finally:
        hidden_list.decide(archive.state.store, lambda: archive.store, entry, "of a test", hides=False)


def test_a_rule_is_named_where_one_sees_its_page_and_lifting_it_shows_what_comes_back(
    archive: Searchable,
) -> None:
    token = add_token(archive.state.store, "anna", Role.CURATOR, None)
    access = WebAccess(archive.state.store, "warcmill-8090", SECRET)
    shown = Archive(archive.state.store, lambda: archive.index, lambda: archive.store)
    parts = (archive.state, shown, NoReplay(), access, lambda: archive.audited)
    server = application(Served(*parts, actions=Actions(("true",))))
    sent = {"cookie": f"warcmill-8090={token}"}
    page, host = f"{hidden_list.entry_of(URL)}2016", "example,many"
    for entry in (page, host):
        hidden_list.decide(archive.state.store, lambda: archive.store, entry, f"{entry}!", hides=True, by="berta")
    seen = ask_app(server, "/captures", {"url": URL}, headers=sent).text
    assert [text in seen for text in (f"{page}!", f"{host}!", "berta")] == [True] * 3
    assert "berta" not in ask(server, "/captures", {"url": URL}).text, "a reader hears of no rule"
    assert "berta" not in ask_app(server, "/captures", {"url": "http://other.example/"}, headers=sent).text

    def lifted(entry: str, **more: str) -> WebAnswer:
        return ask_app(server, "/unhide", {"entry": entry, **more}, headers=sent)

    assert lifted(host, format="json").document["found"] == 1, "of the other years: the page of 2016 stays hidden"
    assert lifted("example,nowhere").status == 404
    assert f"{page}!" in lifted("").text
    form = lifted(host, format="json").document["form"]
    posted = {"form": form, "entry": host, "reason": "lifted"}
    done = ask_app(server, "/unhide", posted=posted, headers=sent)
    words = ask_app(server, done.header("location"), {"format": "json"}, headers=sent).document["words"]
    assert words == ["versions", "unhide", "--reason=lifted", "--", host]
    for entry in (page, host):
        hidden_list.decide(archive.state.store, lambda: archive.store, entry, "of a test", hides=False)


def test_a_reader_hides_nothing(server: Starlette) -> None:
    assert ask(server, "/hide", {"entry": URL}).status == 403
