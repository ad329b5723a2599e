"""Documents that W3ACT gets from the desk: once, with each decision, withdrawn, and later where it is away."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from indexing.desks import DeskPlace, entry, id_of
from sites import w3act as servers
from sites.w3act import W3actServer

from warcmill.clients.w3act import W3act
from warcmill.documents.sinks import W3actDocuments, bring
from warcmill.errors import Unavailable
from warcmill.formats.feed import Target

WATCHED = Target("17", "One", ("http://www.one.example/",), watched=True)
A, B, C = (id_of(name) for name in "abc")


@pytest.fixture
def w3act() -> Iterator[W3actServer]:
    with servers.serving() as made:
        yield made


@pytest.fixture
def place(tmp_path: Path) -> DeskPlace:
    """A desk with two documents of a target, and one of none."""
    made = DeskPlace(tmp_path, entry("a", title="An A"), entry("b"), entry("c", url="http://else.example/c.pdf"))
    made.watched = (WATCHED,)
    return made


def bring_to(place: DeskPlace, server: W3actServer, *, password: str = "a secret", seconds: float = 60) -> list[str]:
    """What went wrong."""
    with place.opened() as desk, closing(W3act(server.url, "anna@library.example", password, seconds)) as client:
        return [*bring(place.index, desk, W3actDocuments(client))]


def test_it_gets_the_documents_of_targets_once(place: DeskPlace, w3act: W3actServer) -> None:
    assert bring_to(place, w3act) == []
    assert w3act.documents.keys() == {A, B}
    one = w3act.documents[A]
    assert (one["id_watched_target"], one["status"], one["title"], one["document_url"], one["sha256"]) == (
        17, "NEW", "An A", "http://www.one.example/a.pdf", A,
    )  # fmt: skip
    assert bring_to(place, w3act) == []
    assert (len(w3act.posts), w3act.logins) == (1, 1)


def test_it_gets_a_decision_and_nothing_else(place: DeskPlace, w3act: W3actServer) -> None:
    bring_to(place, w3act)
    place.decide("a", "SAVED", title="Another")
    place.decide("c", "IGNORED")
    assert bring_to(place, w3act) == []
    assert w3act.posts[1:] == [[A]]
    assert (w3act.documents[A]["status"], w3act.documents[A]["title"]) == ("SAVED", "Another")
    place.decide("c", target_id="18")
    assert bring_to(place, w3act) == []
    assert (w3act.posts[2:], w3act.documents[C]["id_watched_target"]) == ([[C]], 18)


def test_what_leaves_the_desk_is_withdrawn(place: DeskPlace, w3act: W3actServer) -> None:
    bring_to(place, w3act)
    place.publish(gone=["b"])
    assert bring_to(place, w3act) == []
    assert (w3act.posts[1:], w3act.documents[B]["status"]) == ([[B]], "DELETED")
    place.watched = ()
    assert bring_to(place, w3act) == []
    assert (w3act.posts[2:], w3act.documents[A]["status"]) == ([[A]], "DELETED")
    place.watched = (WATCHED,)
    place.publish(entry("b"))
    assert bring_to(place, w3act) == []
    assert {name: one["status"] for name, one in w3act.documents.items()} == {A: "NEW", B: "NEW"}


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("form", "answered 200 '<html><form action.*acknowledges nothing"),
        ("error", "answered 500 'oops'"),
        ("killed after", "does not answer: ConnectionError"),
        ("hang", "does not answer: ReadTimeout"),
    ],
)
def test_one_that_is_away_or_lies_gets_it_later(place: DeskPlace, w3act: W3actServer, fault: str, why: str) -> None:
    w3act.fault = fault
    (trouble,) = bring_to(place, w3act, seconds=0.3 if fault == "hang" else 60)
    assert trouble.endswith("; the next scan sends what is missing")
    assert re.search(why, trouble), trouble
    w3act.fault = ""
    assert bring_to(place, w3act) == []
    assert w3act.documents.keys() == {A, B}


def test_what_was_begun_and_left_the_desk_is_withdrawn(place: DeskPlace, w3act: W3actServer) -> None:
    w3act.fault = "killed after"
    assert len(bring_to(place, w3act)) == 1
    w3act.fault = ""
    place.publish(gone=["a"])
    assert bring_to(place, w3act) == []
    assert {name: one["status"] for name, one in w3act.documents.items()} == {A: "DELETED", B: "NEW"}


def test_a_document_that_is_refused_keeps_no_other(place: DeskPlace, w3act: W3actServer) -> None:
    w3act.fault = A
    (trouble,) = bring_to(place, w3act)
    assert f"1 documents are refused: {A}: W3ACT refuses documents with 400 'no such target'" in trouble
    assert w3act.documents.keys() == {B}
    w3act.fault = ""
    assert bring_to(place, w3act) == []
    assert w3act.documents.keys() == {A, B}


def test_a_session_that_is_over_and_a_wrong_password(place: DeskPlace, w3act: W3actServer) -> None:
    with place.opened() as desk, closing(W3act(w3act.url, "anna@library.example", "a secret")) as client:
        bring(place.index, desk, W3actDocuments(client))
        w3act.cookie = ""
        client.post([{"id": "x"}])
    assert (w3act.logins, "x" in w3act.documents) == (2, True)
    place.decide("a", "SAVED")
    (trouble,) = bring_to(place, w3act, password="wrong")
    assert "it refuses the login of anna@library.example with 400; look at its log" in trouble
    assert "wrong" not in trouble


def test_notes_that_are_damaged_are_named(place: DeskPlace, w3act: W3actServer) -> None:
    bring_to(place, w3act)
    (notes,) = (place.base / "index/documents").glob("w3act-*.sqlite")
    with closing(sqlite3.connect(notes)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    notes.write_bytes(b"no database" * 1000)
    with pytest.raises(Unavailable, match=r"index:documents/w3act-.*and remove this file: all is sent again"):
        bring_to(place, w3act)
    notes.unlink()
    assert bring_to(place, w3act) == []
    assert w3act.posts[1:] == [[A, B]]
