"""Documents of W3ACT handed in, also twice and cut; and handed on, so that no other program is harmed."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from defusedxml import ElementTree
from indexing.desks import NOW, DeskPlace, entry, id_of

from warcmill.documents import exchange, looking
from warcmill.documents.exchange import HandedIn
from warcmill.versions.documents.entries import Entry

DC = "{http://purl.org/dc/elements/1.1/}"
URL = "http://www.one.example/a.pdf"


@pytest.fixture
def place(tmp_path: Path) -> DeskPlace:
    return DeskPlace(
        tmp_path,
        entry("a", title="Annual report", more=["http://www.one.example/old copy%2B.pdf?t=1"]),
        entry("b", seen="20160101000000"),
        entry("c", url="http://www.one.example/b.pdf", seen="20170101000000"),
        entry("d"),
    )


def w3act(**fields: Any) -> dict[str, Any]:
    return {"document_url": URL, "wayback_timestamp": NOW, "status": "SAVED", **fields}


def hand_in(place: DeskPlace, *lines: Any) -> HandedIn:
    data = b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in lines)
    with place.opened() as desk:
        return exchange.hand_in(desk, place.open_store, "anna", io.BytesIO(data))


def test_a_document_is_found_by_url_and_time_with_what_was_said_of_it(place: DeskPlace) -> None:
    line = w3act(
        id=42, id_watched_target=7, title="Report, the annual one", landing_page_url="http://www.one.example/",
        authors=["A. Heron", "B. Stilt"], publishers=["The Office"], publication_date="2016-10-19T00:00:00",
        isbn="9780306406157", doi=None, filename="a.pdf", size=12,
    )  # fmt: skip
    done = hand_in(place, line)
    assert (done.lines, done.decided, done.waiting, done.bad) == (1, 1, [], [])
    shown = place.shown("a")
    assert (shown["status"], shown["target_id"], shown["publication_date"]) == ("SAVED", "7", "2016-10-19")
    assert (shown["title"], shown["publisher"]) == ("Report, the annual one", "The Office")
    assert shown["authors"] == "A. Heron; B. Stilt"


def test_twice_changes_nothing_and_never_what_was_decided_since(place: DeskPlace) -> None:
    lines = [w3act(title="Old"), {"sha256": id_of("d"), "status": "IGNORED"}]
    assert hand_in(place, *lines).decided == 2
    place.decide("a", "SUBMITTED", title="Mine")
    again = hand_in(place, *lines)
    assert (again.decided, again.known, len(place.made())) == (0, 2, 2)
    assert place.shown("a")["title"] == "Mine"


def test_one_that_was_cut_continues(place: DeskPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "AT_ONCE", 1)
    lines = [w3act(), {"id": id_of("d"), "status": "DELETED"}]
    assert hand_in(place, lines[0]).decided == 1
    done = hand_in(place, *lines)
    assert (done.decided, done.known) == (1, 1)
    assert [len(one.facts["documents"]) for one in place.made()] == [1, 1]  # type: ignore[arg-type]


def test_what_the_archive_has_not_is_named_and_found_later(place: DeskPlace) -> None:
    nowhere = w3act(document_url="http://other.example/x.pdf")
    body = {"sha256": id_of("h"), "status": "SAVED", "title": "Later"}
    other_time = w3act(wayback_timestamp="20010101000000")
    done = hand_in(place, nowhere, body, other_time)
    assert [(line, name) for line, name, _ in done.waiting] == [
        (1, f"http://other.example/x.pdf {NOW}"), (2, id_of("h")), (3, f"{URL} 20010101000000"),
    ]  # fmt: skip
    assert [why.partition(":")[0] for _, _, why in done.waiting] == [
        "the archive has no document of this URL yet",
        "the archive has no such body yet; what is said of it is kept",
        "the archive has this URL at other times",
    ]
    assert done.decided == 1
    place.publish(entry("h", title="x"), entry("g", url="http://other.example/x.pdf"))
    assert place.shown("h")["title"] == "Later"
    assert hand_in(place, nowhere, body, other_time).decided == 1


def test_the_time_says_which_of_two_bodies_at_a_url(place: DeskPlace) -> None:
    url = "http://www.one.example/b.pdf"
    assert hand_in(place, w3act(document_url=url, wayback_timestamp="20170101000000")).decided == 1
    assert place.shown("c")["status"] == "SAVED"
    done = hand_in(place, w3act(document_url=url, wayback_timestamp=""))
    assert done.waiting[0][2] == "2 documents were at this URL, and the line does not say when"


def test_a_url_with_blanks_and_signs_and_a_second_url_are_found(place: DeskPlace) -> None:
    assert hand_in(place, w3act(document_url="https://one.example/old%20copy%2B.pdf?t=1")).decided == 1


def test_new_ones_bring_no_decision(place: DeskPlace) -> None:
    done = hand_in(place, w3act(status="NEW", title="as extracted there"), w3act(document_url=URL, status=None))
    assert (done.new, done.decided, place.made()) == (2, 0, [])


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{\n", "it is not JSON"),
        (b"[" * 100_000 + b"\n", "it is not JSON"),
        (b'"x"\n', "it is not an object"),
        (b"{}\n", "it has no document_url and no sha256"),
        (w3act(status="KEPT"), "its status is not one of NEW"),
        (w3act(title="W" * 5_000), "its title: it has 5,000 characters"),
        (w3act(title="W" * (1 << 20)), "it has more than 1,048,576 bytes"),
        (w3act(publication_date="last year"), "its publication_date: it is not a year"),
        (w3act(landing_page_url="javascript:x"), "its landing_page_url: it is not a URL"),
        (b"\xff\xfe\n", "it is not JSON"),
    ],
)
def test_a_bad_line_is_named_and_the_others_count(place: DeskPlace, line: Any, why: str) -> None:
    done = hand_in(place, line, w3act())
    assert (done.lines, done.decided, [one[0] for one in done.bad]) == (2, 1, [1])
    assert why in done.bad[0][2]


def exported(entries: tuple[Entry, ...], tmp_path: Path, format_: str) -> str:
    place = DeskPlace(tmp_path / "other", *entries)
    with place.opened() as desk:
        return "".join(exchange.FORMATS[format_](looking.each(desk, looking.DeskQuery())))


HOSTILE = '=HYPERLINK("http://evil.example/";"x")'


def test_no_cell_of_a_spreadsheet_is_a_formula(tmp_path: Path) -> None:
    one = entry("a", title=HOSTILE, publisher="@SUM(1)", authors="-2+3", isbn="+1", doi='a "quoted",\r\ntext')
    rows = list(csv.DictReader(io.StringIO(exported((one,), tmp_path, "csv"), newline="")))
    assert (rows[0]["title"], rows[0]["publisher"]) == (f"'{HOSTILE}", "'@SUM(1)")
    assert (rows[0]["authors"], rows[0]["isbn"], rows[0]["doi"]) == ("'-2+3", "'+1", 'a "quoted", text')
    assert tuple(rows[0]) == exchange.COLUMNS


def test_dublin_core_is_xml_whatever_a_title_has(tmp_path: Path) -> None:
    title = "<b>&amp;</b> \x00\x0b\ufffe \u202e 年 ]]>"
    one = entry("a", title=title, authors="A. Heron; B. Stilt", isbn="9780306406157", doi="10.1/x", version_of="b",
                publication_date="2016-10")  # fmt: skip
    root = ElementTree.fromstring(exported((one, entry("b")), tmp_path, "dc").encode())
    first = root[0]
    assert [(each.tag.removeprefix(DC), each.text) for each in first] == [
        ("title", "<b>&amp;</b>     \u202e 年 ]]>"), ("creator", "A. Heron"), ("creator", "B. Stilt"),
        ("date", "2016-10"), ("format", "application/pdf"), ("identifier", URL),
        ("identifier", f"urn:sha256:{id_of('a')}"), ("identifier", "urn:isbn:9780306406157"),
        ("identifier", "doi:10.1/x"), ("relation", f"urn:sha256:{id_of('b')}"),
    ]  # fmt: skip
    assert len(root) == 2


def test_json_lines_can_be_handed_in_elsewhere(place: DeskPlace, tmp_path: Path) -> None:
    place.decide("a", "SAVED", title="Mine", isbn="1")
    with place.opened() as desk:
        data = "".join(exchange.json_lines(looking.each(desk, looking.DeskQuery(status="SAVED")))).encode()
    other = DeskPlace(tmp_path / "other", entry("a", title="Theirs"))
    with other.opened() as desk:
        assert exchange.hand_in(desk, other.open_store, "ben", io.BytesIO(data)).decided == 1
    assert other.shown("a") == place.shown("a") | {"urls": [URL]}
