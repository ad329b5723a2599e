"""Questions to the desk: each filter, alone and with others, in the order of publication, a page at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from indexing.desks import NOW, DeskPlace, entry, id_of

from warcmill.documents import looking
from warcmill.documents.decided import DocumentDecision
from warcmill.documents.desk import Desk
from warcmill.errors import BadInput
from warcmill.formats.feed import Target

ONE = Target("1", "One", ("http://www.one.example/",), watched=True)
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
NAMES = {id_of(name): name for name in "abcdefgh"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> DeskPlace:
    made = DeskPlace(
        tmp_path_factory.mktemp("desk"),
        entry("a", title="Annual report of herons", publisher="The Office", publication_date="2026-03-01"),
        entry("b", title="Minutes", publication_date="2026-05", type_=DOCX),
        entry("c", url="http://two.example/c report", publication_date="1999", seen="20160101000000"),
        entry("d", url="http://sub.two.example/d", type_=ODS, title="年次報告書"),
        entry("e", url="http://two.example:8080/e", type_="application/epub+zip", publisher="Office & Sons"),
        entry("f", url="http://twofold.example/f", type_="application/vnd.ms-office", seen="20160101000001"),
    )
    made.watched = (ONE,)
    made.decide("a", "SAVED")
    made.decide("c", "IGNORED", publisher="Herons Ltd")
    return made


@pytest.fixture
def desk(place: DeskPlace) -> Iterator[Desk]:
    with place.opened() as found:
        yield found


def asked(desk: Desk, **fields: str) -> str:
    return "".join(NAMES[one.entry.id] for one in looking.ask(desk, looking.query_of(fields)).documents)


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, "bacedf"),
        ({"status": "SAVED"}, "a"),
        ({"status": "NEW"}, "bedf"),
        ({"target": "watched"}, "ba"),
        ({"target": "1", "status": "NEW"}, "b"),
        ({"target": "2"}, ""),
        ({"type": "pdf"}, "ac"),
        ({"type": "text"}, "b"),
        ({"type": "sheet"}, "d"),
        ({"type": "epub"}, "e"),
        ({"type": "other"}, "f"),
        ({"type": "slides"}, ""),
        ({"days": "7"}, "baed"),
        ({"days": "7", "type": "pdf"}, "a"),
        ({"prefix": "two.example"}, "ced"),
        ({"prefix": "example,two"}, "ced"),
        ({"prefix": "example,two)/"}, "c"),
        ({"prefix": "http://two.example/c"}, "c"),
        ({"prefix": "http://two.example/", "status": "NEW"}, ""),
        ({"prefix": "zwölf.example"}, ""),
        ({"words": "herons"}, "ac"),
        ({"words": "HERONS annual"}, "a"),
        ({"words": '"annual report"'}, "a"),
        ({"words": '"report annual"'}, ""),
        ({"words": "報告"}, "d"),
        ({"words": "office"}, "ae"),
        ({"words": 'title:x OR "'}, ""),
        ({"publisher": "office"}, "ae"),
        ({"publisher": "herons"}, "c"),
        ({"publisher": "office", "words": "herons"}, "a"),
        ({"publisher": "office", "status": "NEW"}, "e"),
    ],
)
def test_each_filter_finds_its_documents(
    desk: Desk, fields: dict[str, str], found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sorted(asked(desk, **fields)) == sorted(found)
    page = looking.ask(desk, looking.query_of(fields))
    assert page.found == len(found)
    in_order = "".join(NAMES[one.entry.id] for one in page.documents)
    for few, slower in ((-1, 1), (10_000, 0), (10_000, 10_000_000)):  # no condition leads, words never do, or always
        monkeypatch.setattr(looking, "FEW", few)
        monkeypatch.setattr(looking, "SLOWER", slower or 100)
        assert asked(desk, **fields) == in_order


def test_pages_follow_each_other_without_a_gap_in_any_order(desk: Desk) -> None:
    for fields in ({}, {"status": "NEW"}, {"days": "7"}):
        whole, after, seen = looking.ask(desk, looking.query_of(fields)).documents, "", []
        for _ in whole:
            page = looking.ask(desk, looking.query_of({**fields, "after": after}), 1)
            seen += page.documents
            after = page.after
        assert (tuple(seen), after) == (whole, "")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"status": "LOST"}, "status: it is not one of NEW"),
        ({"type": "html"}, "type: it is not one of pdf"),
        ({"days": "-1"}, "days: it is not a number"),
        ({"days": "\u0661"}, "days: it is not a number"),
        ({"after": "x"}, "after: it is not a place"),
        ({"words": "w" * 1_001}, "words: it has more than 1,000"),
        ({"words": "*"}, "words: there is no letter"),
    ],
)
def test_a_question_that_means_nothing_is_refused(desk: Desk, fields: dict[str, str], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        looking.ask(desk, looking.query_of(fields))


@pytest.mark.parametrize(
    "text", ['"', "'; DROP TABLE document; --", "\0", "NEAR(", "a\u202eb", "publisher : x", "-", "{"]
)
def test_no_text_is_syntax(desk: Desk, text: str) -> None:
    for name in ("words", "publisher", "prefix", "target"):
        with suppress(BadInput):
            asked(desk, **{name: text})
    assert asked(desk) == "bacedf"


def test_a_million_rows_of_each_condition_are_never_looked_up(desk: Desk) -> None:
    """The plans: each condition that leads has its index, and without one the documents come in their order."""
    choices = {"status": "NEW", "target": "watched", "type": "pdf", "days": "7", "prefix": "two.example"}
    traced: list[str] = []
    desk.database.set_trace_callback(traced.append)
    for names in product((False, True), repeat=len(choices)):
        fields = {name: value for (name, value), is_in in zip(choices.items(), names, strict=True) if is_in}
        asked(desk, **fields)
    desk.database.set_trace_callback(None)
    plans = {row[3] for one in set(traced) if one.startswith("SELECT") for row in _plan(desk.database, one)}
    scans = {plan for plan in plans if plan.startswith("SCAN document")}
    in_order = {"SCAN document USING INDEX by_publication", "SCAN document USING COVERING INDEX by_publication"}
    assert scans <= in_order | {"SCAN document USING COVERING INDEX by_key"}  # the latter counts FEW of all


def _plan(database: sqlite3.Connection, statement: str) -> list[tuple[int, int, int, str]]:
    return database.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()


def test_what_is_exported_is_decided_since(tmp_path: Path) -> None:
    place = DeskPlace(tmp_path, *(entry(name) for name in "abc"))
    with place.opened() as desk:
        desk.decide(place.open_store, "anna", [DocumentDecision(id_of(name), "SAVED") for name in "ab"])
        today = f"{NOW[:4]}-{NOW[4:6]}-{NOW[6:8]}"
        query = looking.DeskQuery(status="SAVED", changed=today)
        assert sorted(NAMES[one.entry.id] for one in looking.each(desk, query)) == ["a", "b"]
        assert list(looking.each(desk, looking.DeskQuery(status="SAVED", changed="2999-01-01"))) == []
