"""The pages of documents: a reader looks, a curator decides, by forms that need no JavaScript; whatever a title has."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from indexing.desks import DeskPlace, entry, id_of
from launches.engine import LAUNCH, Engine
from operating.web_client import WebAnswer
from operating.web_site import WebSite

from warcmill.documents.desk import LONGEST
from warcmill.formats.feed import Target
from warcmill.markers.decisions import DOCUMENTS
from warcmill.versions import hidden_list
from warcmill.web import hidden
from warcmill.web.views import documents

MARKUP = "<script>alert(1)</script> \u202egpj.exe \x07 &amp;"


class DeskSite(WebSite):
    """Pages over a desk."""

    def __init__(self, base: Path, *, is_on: bool = True) -> None:
        engine = Engine(base / "line")
        self.place = DeskPlace(
            base / "desk",
            entry("a", title="Annual report", publisher="The Office", publication_date="2026-03-01"),
            entry("b", title=MARKUP, publisher=MARKUP, landing_page_url="javascript:alert(1)"),
            entry("c", title="W" * (1 << 20), url="http://two.example/c", version_of="a"),
            entry("d", title="Old", seen="20160101000000"),
        )
        self.place.state = engine.state.store  # type: ignore[assignment]
        self.place.watched = (Target("7", "One & only", ("http://www.one.example/",), watched=True),)
        more = {"desk": self.place.opened, "has_documents": lambda: is_on} if is_on else {}
        super().__init__(engine, engine.audited, index=self.place.index, more=more)

    def token(self, path: str, action: str, role: str = "curator") -> dict[str, str]:
        """The hidden fields of the form that is posted to an address."""
        text = self.get(path.partition("?")[0], fields_of(path), role=role).text
        form = re.search(rf'<form method="post" action="{re.escape(action)}".*?</form>', text, re.DOTALL)
        assert form, f"no form of {action}"
        rows = re.findall(r'<input type="hidden" name="(form|over|back)" value="([^"]*)">', form[0])
        return {name: unescape(value) for name, value in rows}

    def decide(self, name: str, role: str = "curator", token: dict[str, str] | None = None, **fields: str) -> WebAnswer:
        """Post the form of a document."""
        path = f"/documents/{id_of(name)}"
        return self.post(path, {**(token or self.token(path, path)), **fields}, role=role)


def fields_of(path: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in path.partition("?")[2].split("&") if "=" in pair)


@pytest.fixture
def site(tmp_path: Path) -> DeskSite:
    return DeskSite(tmp_path)


def rows(answer: WebAnswer) -> list[str]:
    names = {id_of(name): name for name in "abcdh"}
    return [names[one] for one in re.findall(r'<a href="/documents/([0-9a-f]{64})">', answer.text)]


def test_a_person_sees_first_what_is_new_of_watched_targets_in_seven_days(site: DeskSite) -> None:
    assert rows(site.get("/documents", role="reader")) == ["a", "b"]
    assert sorted(rows(site.get("/documents", {"status": ""}, role="reader"))) == ["a", "b", "c", "d"]
    assert rows(site.get("/documents", {"words": "annual"}, role="reader")) == ["a"]
    assert "One &amp; only" in site.get("/documents").text


def test_json_is_that_of_the_verb(site: DeskSite) -> None:
    found = site.get("/documents", {"format": "json"}, role="reader").document
    assert found.keys() == {"after", "decision", "documents"}
    assert len(found["documents"]) == 4
    assert found["documents"][0]["id"] == id_of("a")
    one = site.get(f"/documents/{id_of('a')}", {"format": "json"}, role="reader").document
    assert one["candidates"]["title"][1] == {
        "by": "link", "date": one["document"]["first_seen"], "url": "http://www.one.example/", "value": "Download",
        "why_not": "it names no document",
    }  # fmt: skip


def test_readers_get_no_form_and_decide_nothing(site: DeskSite) -> None:
    for path in ("/documents", f"/documents/{id_of('a')}"):
        assert 'method="post" action="/documents' not in site.get(path, role="reader").text
    for path in ("/documents", f"/documents/{id_of('a')}"):
        assert site.post(path, {"form": "x"}, role="reader").status == 403
    assert not site.state.names(f"decisions/{DOCUMENTS}")


def test_one_button_decides_those_that_are_ticked_and_keeps_the_filters(site: DeskSite) -> None:
    token = site.token("/documents?status=NEW&days=7", "/documents")
    posted = {**token, "id": [id_of("a"), id_of("b")], "shown": [id_of(one) for one in "abc"], "to": "IGNORED"}
    answer = site.post("/documents", posted, role="curator")  # type: ignore[arg-type]
    assert (answer.status, answer.header("location")) == (303, "/documents?status=NEW&days=7&done=2")
    assert {name: site.place.shown(name)["status"] for name in "abc"} == {"a": "IGNORED", "b": "IGNORED", "c": "NEW"}
    shown = site.get("/documents", {"status": "NEW", "days": "7", "done": "2"})
    assert rows(shown) == ["c"]
    assert "2 documents are decided." in shown.text
    assert (site.roots.store.stat("state/_archive/decisions/documents/000001.json") or 0) != 0


def test_all_of_a_page_need_no_tick(site: DeskSite) -> None:
    token = site.token("/documents?status=NEW", "/documents")
    posted = {**token, "shown": [id_of(one) for one in "abc"], "which": "all", "to": "DELETED"}
    assert site.post("/documents", posted, role="curator").status == 303  # type: ignore[arg-type]
    assert [site.place.shown(name)["status"] for name in "abcd"] == ["DELETED"] * 3 + ["NEW"]


@pytest.mark.parametrize("posted", [{}, {"to": "SAVED"}, {"id": id_of("a")}, {"id": id_of("a"), "to": "LOST"},
                                    {"id": id_of("h"), "to": "SAVED"}, {"id": "x", "to": "SAVED"}])  # fmt: skip
def test_a_form_without_a_tick_or_of_what_is_not_there_decides_nothing(site: DeskSite, posted: dict[str, str]) -> None:
    token = site.token("/documents", "/documents")
    assert site.post("/documents", {**token, **posted}, role="curator").status == 400
    assert not site.state.names(f"decisions/{DOCUMENTS}")


def test_fields_are_picked_typed_emptied_and_given_back(site: DeskSite) -> None:
    key = documents._key("H")
    assert (
        site.decide("a", title=key, own_publisher=" The  Office of B ", publication_date="empty", status="SAVED").status
        == 303
    )
    shown = site.place.shown("a")
    assert (shown["title"], shown["publisher"], shown["publication_date"], shown["status"]) == (
        "H", "The Office of B", "", "SAVED")  # fmt: skip
    page = site.get(f"/documents/{id_of('a')}").text
    assert "as it is, written by a person" in page
    assert "curator" in page
    site.decide("a", title="again", publisher="again", own_note="ask Ben", status="SAVED")
    shown = site.place.shown("a")
    assert (shown["title"], shown["publisher"], shown["publication_date"]) == ("Annual report", "The Office", "")
    assert "ask Ben" in site.get(f"/documents/{id_of('a')}").text
    site.decide("a", own_note="", status="SAVED")
    assert "ask Ben" not in site.get(f"/documents/{id_of('a')}").text.partition("<h2>Decisions")[0]


def test_the_second_of_two_gets_the_page_anew_with_the_first_s_decision_and_what_was_typed(site: DeskSite) -> None:
    token = site.token(f"/documents/{id_of('a')}", f"/documents/{id_of('a')}")
    site.place.decide("a", "IGNORED", who="ben")
    answer = site.decide("a", token=token, own_title="Mine", status="SAVED")
    assert answer.status == 409
    assert "ben has decided meanwhile, as decision 1 of" in answer.text
    assert 'value="Mine"' in answer.text
    assert 'name="over" value="1"' in answer.text
    assert site.place.shown("a")["status"] == "IGNORED"
    many = site.post("/documents", {**site.token("/documents?status=", "/documents"), "over": "0",
                                           "id": id_of("a"), "to": "SAVED"}, role="curator")  # fmt: skip
    assert many.status == 409


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"own_publication_date": "yesterday"}, "publication_date: it is not a year"),
        ({"own_landing_page_url": "javascript:x"}, "landing_page_url: it is not a URL"),
        ({"own_title": "W" * (LONGEST + 1)}, "title: it has 4,001 characters"),
        ({"title": "0" * 20}, "title: what was picked is not there any more"),
    ],
)
def test_what_no_field_takes_is_said_on_the_page_and_nothing_is_written(
    site: DeskSite, fields: dict[str, str], why: str
) -> None:
    answer = site.decide("a", status="SAVED", **fields)
    assert answer.status == 400
    assert why in answer.text
    assert not site.state.names(f"decisions/{DOCUMENTS}")


@pytest.mark.parametrize("name", ["b", "c"])
@pytest.mark.parametrize("role", ["reader", "curator"])
def test_hostile_texts_are_escaped_isolated_and_bounded(site: DeskSite, name: str, role: str) -> None:
    for answer in (site.get("/documents", {"status": ""}, role=role), site.get(f"/documents/{id_of(name)}", role=role)):
        assert answer.status == 200
        assert len(answer.body) < 60_000
        assert not re.search(r"<script>alert|[\u202e\x07]|href=\"javascript", answer.text)
    shown = site.get(f"/documents/{id_of('b')}", role=role).text
    assert "<bdi>&lt;script&gt;alert(1)&lt;/script&gt; \\u202egpj.exe" in shown


def test_the_way_leads_to_replay_to_the_file_and_to_other_versions(site: DeskSite) -> None:
    shown = site.get(f"/documents/{id_of('c')}").text
    assert re.search(r'href="/capture\?time=\d{14}&amp;url=http%3A%2F%2Ftwo.example%2Fc"', shown)
    assert re.search(r'href="/capture\?time=\d{14}&amp;url=http%3A%2F%2Ftwo.example%2Fc&amp;file=1"', shown)
    assert f'<a href="/documents/{id_of("a")}">' in shown
    assert site.get(f"/documents/{id_of('c')[:8]}").status == 200
    assert f"/launches/{LAUNCH.job}/" in shown


@pytest.mark.parametrize("typed", ["nothing", "0" * 64, "%3Cb%3E"])
def test_a_document_that_is_not_there_is_404(site: DeskSite, typed: str) -> None:
    assert site.get(f"/documents/{typed}").status == 404


def test_without_documents_the_menu_has_none_and_the_page_says_how(tmp_path: Path) -> None:
    site = DeskSite(tmp_path, is_on=False)
    assert ">Documents</a>" not in site.get("/").text
    answer = site.get("/documents")
    assert (answer.status, "[documents] since" in answer.text) == (503, True)


def test_what_names_a_hidden_page_is_not_for_readers(site: DeskSite, monkeypatch: pytest.MonkeyPatch) -> None:
    prefixes = tuple(hidden_list.prefixes_of("example,two"))
    monkeypatch.setattr("warcmill.web.archive.Archive.hidden_prefixes", lambda _: prefixes)
    shown = site.get("/documents", {"status": ""}, role="reader").text
    assert "two.example" not in shown
    assert site.get(f"/documents/{id_of('c')}", role="reader").status == 404
    assert "two.example" not in site.get("/documents", {"format": "json"}, role="reader").text
    assert hidden.HIDDEN in site.get("/documents", {"status": ""}, role="curator").text
