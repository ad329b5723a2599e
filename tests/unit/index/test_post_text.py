"""What is noted of a Solr besides its acknowledgements: when nothing is known of it any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from warcmill.index.sink_solr import COUNTS, Notes, Routing, SolrTarget
from warcmill.index.sinks import Acknowledged, SinkInput
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions.inputs import Hiding, ListedWarc

HAS = {"discovery": 7}
PART = SinkInput(ListedWarc("daily/20161019234428/a.warc.gz", "ab" * 64, 1), Hiding(0, "cd" * 64))


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    """Of a Solr that has acknowledged a WARC, and was counted."""
    sentinel.adopt({"index": tmp_path})
    made = Notes(
        FileStore("index", tmp_path), SolrTarget("http://127.0.0.1:1/solr", Routing("discovery", {}), "solr-1")
    )
    made.doubt(HAS)
    made.count(HAS)
    acknowledged(made).done(PART)
    return made


def acknowledged(notes: Notes) -> Acknowledged:
    return Acknowledged(notes.index, notes.place.name)


def is_sent_again(notes: Notes, counts: dict[str, int]) -> bool:
    notes.doubt(counts)
    return acknowledged(notes).missing([PART]) == [PART]


@pytest.mark.parametrize(("number", "again"), [(7, False), (8, False), (6, True), (0, True)])
def test_fewer_documents_than_were_counted_are_a_loss(notes: Notes, number: int, again: bool) -> None:
    assert is_sent_again(notes, {"discovery": number}) is again


def test_another_routing_sends_all_again(notes: Notes) -> None:
    place = SolrTarget(notes.place.server, Routing("discovery", {b"org,example)": "news"}), notes.place.name)
    assert is_sent_again(Notes(notes.index, place), {**HAS, "news": 0})


def test_counts_that_cannot_be_read_any_more_are_not_taken_for_none(
    notes: Notes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "sinks" / notes.place.name / COUNTS
    path.write_bytes(path.read_bytes()[:-9])
    assert is_sent_again(notes, HAS)
    assert f"index:sinks/{notes.place.name}/{COUNTS}" in caplog.text
