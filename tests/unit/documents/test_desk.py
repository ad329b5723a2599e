"""The desk: what people decided of documents stays, whatever becomes of the table, the version or the crawls."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest
from indexing.desks import DeskPlace, entry, id_of

from warcmill.documents import decided, looking
from warcmill.documents.decided import LONGEST, STATUSES, DocumentDecision
from warcmill.documents.desk import PATH, Desk
from warcmill.errors import BadInput, Conflict, Unavailable
from warcmill.formats.feed import Target
from warcmill.layout import archived_path
from warcmill.markers.decisions import LARGEST, RecordedDecision
from warcmill.versions.documents.entries import Entry

FIRST = "decisions/documents/000001.json"


@pytest.fixture
def place(tmp_path: Path) -> DeskPlace:
    return DeskPlace(
        tmp_path,
        entry("a", title="Annual report", publication_date="2026-03-01", publisher="The Office"),
        entry("b", title="Minutes", publication_date="2026-05", landing_page_url="http://www.one.example/list"),
        entry("c", url="http://two.example/c", publication_date="1999"),
    )


def listed(place: DeskPlace, **fields: str) -> list[str]:
    with place.opened() as desk:
        found = looking.ask(desk, looking.query_of(fields))
    names = {id_of(name): name for name in "abcdefgh"}
    return [names[one.entry.id] for one in found.documents]


def test_a_new_desk_has_all_entries_as_new_the_newest_publication_first(place: DeskPlace) -> None:
    assert listed(place) == ["b", "a", "c"]
    assert listed(place, status="NEW") == ["b", "a", "c"]
    shown = place.shown("a")
    assert (shown["title"], shown["status"], shown["target_id"]) == ("Annual report", "NEW", "")


def test_a_decision_is_in_the_store_at_once_and_says_who_over_what(place: DeskPlace) -> None:
    assert place.decide("a", "SAVED", title="Annual  report\n2026", doi="10.1/x") == 1
    data = (place.base / "state" / FIRST).read_bytes()
    assert (place.base / "store" / archived_path(FIRST)).read_bytes() == data
    (one,) = place.made()
    said = {"id": id_of("a"), "status": "SAVED", "title": "Annual report 2026", "doi": "10.1/x"}
    assert one.facts == {"documents": [said], "over": 0, "who": "anna"}
    assert place.shown("a")["title"] == "Annual report 2026"
    assert listed(place, status="SAVED") == ["a"]
    assert place.decide("a", "SAVED", title="Annual report 2026") == 0
    assert len(place.made()) == 1


def test_extraction_never_touches_what_a_person_wrote(place: DeskPlace) -> None:
    place.decide("a", title="Mine", publisher="")
    place.publish(entry("a", title="Other", publisher="Others", isbn="9780306406157"))
    shown = place.shown("a")
    assert (shown["title"], shown["publisher"], shown["isbn"]) == ("Mine", "", "9780306406157")
    place.decide("a", title=None, publisher=None)
    shown = place.shown("a")
    assert (shown["title"], shown["publisher"]) == ("Other", "Others")


def test_without_the_index_root_s_file_it_is_made_anew_with_all_decisions(place: DeskPlace) -> None:
    place.decide("a", "SAVED", title="Mine")
    place.decide("b", "IGNORED")
    before = [place.shown(name) for name in "abc"]
    shutil.rmtree(place.base / "index" / "documents")
    assert [place.shown(name) for name in "abc"] == before
    with place.opened() as desk:
        assert [said.words for _, said in desk.history(id_of("a"))] == ["SAVED, title “Mine”"]


@pytest.mark.parametrize("data", [b"no database", b"SQLite format 3\0" + b"\xff" * 5_000, b""])
def test_a_damaged_table_is_made_anew(place: DeskPlace, data: bytes) -> None:
    place.decide("a", "SAVED")
    for end in ("-wal", "-shm"):
        place.index.real(PATH + end).unlink(missing_ok=True)
    place.index.real(PATH).write_bytes(data)
    assert listed(place, status="SAVED") == ["a"]


def test_what_leaves_the_version_leaves_the_list_and_its_decision_waits_for_it(place: DeskPlace) -> None:
    place.decide("a", "SAVED", title="Mine")
    gone = place.entries[id_of("a")]
    place.publish(gone=["a"])
    assert (listed(place), place.shown("a")) == (["b", "c"], {})
    assert listed(place, words="mine") == []
    place.publish(gone)
    assert place.shown("a")["title"] == "Mine"


def test_a_version_whose_one_before_is_retired_is_compared_whole(place: DeskPlace) -> None:
    assert listed(place) == ["b", "a", "c"]
    place.publish(entry("d", publication_date="2027"), gone=["b"])
    place.before.clear()
    assert listed(place) == ["d", "a", "c"]
    place.version = ""
    assert listed(place) == []


def test_a_decision_may_come_before_its_entry(place: DeskPlace) -> None:
    assert place.decide("h", "IGNORED") == 1
    assert listed(place, status="IGNORED") == []
    place.publish(entry("h"))
    assert listed(place, status="IGNORED") == ["h"]


def test_of_two_over_one_state_the_second_is_told_who_when_and_what(place: DeskPlace) -> None:
    place.decide("b", "SAVED")
    place.decide("a", "IGNORED", who="anna")
    time = place.made()[1].time
    with pytest.raises(Conflict) as raised:
        place.decide("a", "SAVED", who="ben", over=1)
    told = f"anna has decided meanwhile, as decision 2 of {time}: IGNORED. Nothing was written"
    assert told in str(raised.value)
    assert (raised.value.exit_code, len(place.made())) == (1, 2)
    assert place.decide("a", "SAVED", who="ben", over=2) == 1
    assert place.decide("c", "SAVED", who="ben", over=1) == 1  # nobody has decided this one since


def test_two_at_the_same_moment_do_not_both_decide(place: DeskPlace) -> None:
    with place.opened() as slow:
        place.decide("a", "IGNORED", who="anna")
        with pytest.raises(Conflict, match="anna has decided meanwhile"):
            slow.decide(place.open_store, "ben", [DocumentDecision(id_of("a"), "SAVED")])
        assert slow.decide(place.open_store, "ben", [DocumentDecision(id_of("b"), "SAVED")]) == 1
    assert [one.facts["who"] for one in place.made()] == ["anna", "ben"]


def test_many_threads_lose_no_decision(place: DeskPlace) -> None:
    def decide(number: int) -> None:
        while True:
            try:
                place.decide("ab"[number % 2], note=f"note {number}", who=str(number))
            except Conflict:  # another was first
                continue
            return

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    made = place.made()
    assert sorted(one.facts["who"] for one in made) == [*map(str, range(8))]
    with place.opened() as desk:
        assert desk.decided(id_of("a")).fields["note"] == desk.history(id_of("a"))[0][1].fields["note"]


def test_with_the_store_away_it_stands_in_the_state_and_the_same_again_copies_it(place: DeskPlace) -> None:
    store, away = place.base / "store", place.base / "away"
    store.rename(away)
    with pytest.raises(Unavailable, match="Decision 1 stands in the state"):
        place.decide("a", "SAVED")
    away.rename(store)
    assert place.decide("a", "SAVED") == 0
    assert (store / archived_path(FIRST)).exists()
    assert listed(place, status="SAVED") == ["a"]


def test_a_state_that_lost_a_decision_is_named_and_brought_back(place: DeskPlace) -> None:
    for status in ("SAVED", "IGNORED"):
        place.decide("a", status)
    last = place.base / "state/decisions/documents/000002.json"
    last.unlink()
    with pytest.raises(BadInput, match=r"000002\.json: it is missing, and was there: bring it back"):
        place.shown("a")
    shutil.rmtree(place.base / "index" / "documents")
    with pytest.raises(Conflict, match="the state lacks this decision: run 'warcmill restore'"):
        place.decide("a", "SUBMITTED")
    assert not last.exists()


def test_other_decisions_of_the_same_numbers_are_read_from_the_start(place: DeskPlace, tmp_path: Path) -> None:
    place.decide("a", "SAVED")
    other = DeskPlace(tmp_path / "other", *place.entries.values())
    other.decide("b", "IGNORED")
    shutil.copy(other.base / "state" / FIRST, place.base / "state" / "new")
    (place.base / "state" / "new").rename(place.base / "state" / FIRST)
    assert (listed(place, status="IGNORED"), listed(place, status="SAVED")) == (["b"], [])


def test_a_target_is_that_of_the_list_now_unless_a_person_wrote_one(place: DeskPlace) -> None:
    assert listed(place, target="watched") == []
    one = Target("7", "One", ("http://www.one.example/",), watched=True)
    place.watched = (one, Target("8", "Two", ("http://two.example/",), watched=True))
    assert {name: place.shown(name)["target_id"] for name in "abc"} == {"a": "7", "b": "7", "c": "8"}
    place.decide("b", target_id="8")
    place.decide("c", landing_page_url="http://www.one.example/list")
    assert {name: place.shown(name)["target_id"] for name in "abc"} == {"a": "7", "b": "8", "c": "7"}
    place.watched = (one,)
    assert listed(place, target="watched") == ["b", "a", "c"]
    assert listed(place, target="8") == ["b"]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (DocumentDecision("x", "LOST"), "status: it is not one of NEW"),
        (DocumentDecision("x", "", {"url": "x"}), "url: it is not one of title"),
        (DocumentDecision("x", "", {"title": "W" * (LONGEST + 1)}), "title: it has 4,001 characters"),
        (DocumentDecision("x", "", {"landing_page_url": "javascript:alert(1)"}), "it is not a URL that begins"),
        (DocumentDecision("x", "", {"landing_page_url": "http://[/"}), "it is not a URL that begins"),
        (DocumentDecision("x", "", {"publication_date": "yesterday"}), "it is not a year, a month or a day"),
        (DocumentDecision("x", "", {"publication_date": "2026-13"}), "it is not a year, a month or a day"),
    ],
)
def test_what_no_field_takes_is_refused(said: DocumentDecision, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        decided.checked(said)


def test_text_of_any_script_stays_and_control_characters_go() -> None:
    arabic = "\u062a\u0642\u0631\u064a\u0631\u200f"
    title = f"{arabic} \u0000\u202e \ud800 年報\r\n"
    said = decided.checked(DocumentDecision("x", "", {"title": title}))
    assert said.fields["title"] == f"{arabic} \u202e 年報"


def test_many_are_split_into_decisions_that_are_not_too_large(place: DeskPlace) -> None:
    said = [DocumentDecision(id_of(str(number)), "SAVED", {"title": "年" * 3_900}) for number in range(120)]
    with place.opened() as desk:
        assert desk.decide(place.open_store, "anna", said) == 120
        assert desk.decide(place.open_store, "anna", said) == 0
    made = place.made()
    assert sum(len(list(decided.parse(one))) for one in made) == 120
    assert max(len(one.encode()) for one in made) < LARGEST
    assert len(made) == 3


def test_an_id_may_be_short_while_it_is_of_one(place: DeskPlace) -> None:
    whole = id_of("a")
    with place.opened() as desk:
        assert desk.id_of(whole[:8].upper()) == whole
        for typed, why in ((whole[:7], "not an id"), ("zzzzzzzz", "not an id"), (id_of("none")[:9], "has no such")):
            with pytest.raises(BadInput, match=why):
                desk.id_of(typed)
        twin = Entry("f" * 63 + "0", "application/pdf", 1, "20260101000000", ("http://a.example/",), ())
        place.publish(twin, Entry("f" * 63 + "1", "application/pdf", 1, "20260101000000", ("http://a.example/",), ()))
        desk.update()
        with pytest.raises(BadInput, match="several documents have these digits"):
            desk.id_of("ffffffff")


@pytest.mark.parametrize("typed", ["{}", '{"documents": [{"id": "x"}]}', '{"documents": [{"id": "%s", "title": 1}]}'])
def test_a_sealed_decision_that_is_none_of_documents_is_named(place: DeskPlace, typed: str) -> None:
    facts = json.loads(typed.replace("%s", id_of("a")))
    with pytest.raises(BadInput, match=r"state:decisions/documents/000003.json: no decision about documents"):
        list(decided.parse(RecordedDecision("documents", 3, "2026-01-01T00:00:00Z", facts)))


def test_statuses_are_those_of_w3act() -> None:
    assert STATUSES == ("NEW", "SAVED", "SUBMITTED", "IGNORED", "DELETED")


def test_the_desk_says_which_bodies_were_at_its_url_before_and_after(tmp_path: Path) -> None:
    place = DeskPlace(tmp_path, entry("a"), entry("b", version_of="a"), entry("c", version_of="b"))
    with place.opened() as desk:
        assert _versions(desk, "b") == [id_of("a"), id_of("c")]
        assert _versions(desk, "a") == [id_of("b")]


def _versions(desk: Desk, name: str) -> list[str]:
    found = desk.document(id_of(name))
    assert found
    return [one.entry.id for one in desk.versions(found.entry)]


def test_an_error_of_who_reads_the_desk_is_not_one_of_the_index_root(place: DeskPlace) -> None:
    with pytest.raises(BrokenPipeError), place.opened():
        raise BrokenPipeError
