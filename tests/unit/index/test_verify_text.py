"""index.text-verified: what the published text has of each WARC, without a server; tests/services has a real Solr."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from indexing.text_archive import ONE, TWO, TextArchive, warc

from warcmill import layout
from warcmill.errors import NotReady, Unsettled
from warcmill.extracts.text_workers import TextWorkers
from warcmill.index import verify_text
from warcmill.markers.claim import Claim
from warcmill.markers.facts import readers
from warcmill.markers.facts.index import TextFound
from warcmill.model import FINAL, Launch
from warcmill.versions import hidden_list

LAUNCH, NEXT = Launch("daily", ONE), Launch("daily", TWO)
PAGES = {f"e{number % 3}.example/{number:02}": f"<title>T</title>word{number} quokka" for number in range(9)}


@pytest.fixture(scope="module")
def workers() -> Iterator[TextWorkers]:
    with TextWorkers(1) as made:
        yield made


@pytest.fixture
def archive(tmp_path: Path, workers: TextWorkers) -> TextArchive:
    made = TextArchive(tmp_path)
    made.workers = workers
    made.add(ONE, {"a.warc.gz": warc(PAGES), "b.warc.gz": warc({})})
    return made


def verify(archive: TextArchive, launch: Launch = LAUNCH) -> Claim:
    return verify_text.verify(archive.state, archive.index, None, launch, FINAL)


def harm(archive: TextArchive, statement: str) -> None:
    """Change the segments of the current version, as a fault would."""
    published = archive.payloads.current()
    assert published
    for segment in published.segments:
        path = archive.index.real(segment.files[".sqlite"].path)
        path.chmod(0o644)
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(statement)


def test_every_document_is_found_and_the_claim_follows_from_the_stage(archive: TextArchive) -> None:
    with pytest.raises(NotReady, match=r"run 'warcmill scan', which publishes one"):
        verify(archive)
    archive.fold()
    claim = verify(archive)
    assert claim.counts == {"warcs": 2, "documents": 9}
    assert readers.of(claim) == TextFound.from_claim(claim)
    assert [one.marker for one in claim.inputs] == [layout.marker_path(layout.step("text", LAUNCH, FINAL))]
    archive.add(TWO, {"a.warc.gz": warc({"new.example/": "new"})})
    assert not verify_text.is_ready(archive.state, archive.index, None, NEXT, FINAL)
    with pytest.raises(NotReady, match=r"version 1 does not list it; run 'warcmill scan'"):
        verify(archive, NEXT)
    hidden_list.decide(archive.state.store, lambda: archive.store, "example,e2", "order of a court", hides=True)
    archive.fold()
    assert verify_text.is_ready(archive.state, archive.index, None, NEXT, FINAL)
    assert verify(archive) == claim


@pytest.mark.parametrize("harmed", [False, True])
def test_a_text_of_a_script_without_blanks_is_there_as_it_was(archive: TextArchive, harmed: bool) -> None:
    text = "<title>東京</title>日本語の文章 and ภาษาไทย"
    archive.add(TWO, {"a.warc.gz": warc({"ja.example/": text, "two.example/": text + "\u200bwith one of its own"})})
    archive.fold()
    if harmed:
        harm(archive, "UPDATE words SET content = replace(content, '語', '誤')")
        with pytest.raises(Unsettled, match="誤"):
            verify(archive, NEXT)
    else:
        assert verify(archive, NEXT).counts == {"warcs": 1, "documents": 2}


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (
            "DELETE FROM page WHERE url LIKE '%/04'",
            "documents of daily/20161019234428/a.warc.gz in version 1: expected 9",
        ),
        ("UPDATE page SET url = 'http://other.example/' WHERE url LIKE '%/04'", "found .*http://other.example/"),
        ("UPDATE page SET key = 'com,shown)/ 2016' WHERE url LIKE '%/04'", r"found .*com,shown\)/"),
        ("UPDATE page SET offset = offset + 1 WHERE url LIKE '%/04'", "in version 1: times found: expected 1, found 0"),
        ("UPDATE words SET content = 'word4 wombat' WHERE content MATCH 'word4'", "found .*word4 wombat"),
        ("UPDATE words_data SET block = x'' WHERE id > 10", "SQLite: |times found by its word"),
    ],
    ids=["missing", "other URL", "other key", "other place", "other words", "words that no search finds"],
)
def test_what_is_not_as_it_should_be_is_named(archive: TextArchive, statement: str, why: str) -> None:
    archive.fold()
    harm(archive, statement)
    with pytest.raises(Unsettled, match=why):
        verify(archive)


def test_a_record_with_a_virus_must_not_be_there_from_its_scan_on(archive: TextArchive) -> None:
    archive.fold()
    archive.scan(LAUNCH, {"a.warc.gz": len(warc({}))})
    with pytest.raises(Unsettled, match="expected 8, found 9"):
        verify(archive)
    archive.fold()
    assert verify(archive).counts["documents"] == 9


@pytest.mark.parametrize("damage", ["cut", "emptied", "removed"])
def test_a_damaged_extract_refuses_nothing_for_good_and_names_the_redo(archive: TextArchive, damage: str) -> None:
    archive.fold()
    for extract in (archive.base / "index/extracts").rglob("*.jsonl.gz"):
        extract.chmod(0o644)
        extract.write_bytes(extract.read_bytes()[: -6 if damage == "cut" else 0])
        if damage == "removed":
            extract.unlink()
    redo = f"warcmill redo {LAUNCH.job} {LAUNCH.id} text final --downstream --reason TEXT, then a scan"
    with pytest.raises(Unsettled, match=redo):
        verify(archive)


def test_a_stage_without_a_warc_asks_for_no_version(tmp_path: Path, workers: TextWorkers) -> None:
    """No scan would ever publish one, so its remedy would be itself."""
    made = TextArchive(tmp_path)
    made.workers = workers
    made.add(ONE, {})
    assert verify_text.is_ready(made.state, made.index, None, LAUNCH, FINAL)
    assert verify(made).counts == {"warcs": 0, "documents": 0}
