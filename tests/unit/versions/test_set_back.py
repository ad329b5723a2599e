"""A `current` that leads to an older version: named where one looks, not shown, and led forward by the next fold."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from indexing.indexed import Archive
from launches.engine import Engine
from records.captures import response
from records.warcs import warc_gz, warcinfo

from warcmill.audit.answers import dues
from warcmill.audit.answers.line import AuditedLine
from warcmill.errors import NotReady, Unavailable
from warcmill.stores import LocalStore
from warcmill.versions.publication import hidden_now, set_back
from warcmill.versions.verify import verify

ONE, TWO = "20161019234428", "20161020234428"
SAID = "version 1 is the current one, and 2 the newest; run 'warcmill scan'"


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """Version 2 is the newest, and `current` leads to version 1."""
    made = Archive(tmp_path)
    for launch, url in ((ONE, "http://a.example/"), (TWO, "http://b.example/")):
        made.add(launch, {"a.warc.gz": warc_gz(warcinfo(), response(url))})
        made.fold()
    lead_to(made, 1)
    return made


def lead_to(archive: Archive, number: int) -> None:
    """Have `current` lead to a version, as an old copy of the index root does that was put back."""
    published = archive.payloads.numbered(number)
    assert published
    archive.payloads.point(published)


def line_of(archive: Archive, index: Callable[[], LocalStore]) -> AuditedLine:
    """The line, of which no engine is asked for anything."""
    return AuditedLine(archive.state, Engine(archive.base).rootmap, {}, lambda: archive.store, index)


def gaps(archive: Archive, index: LocalStore) -> list[tuple[str, str, str]]:
    found = dues.of_days(line_of(archive, lambda: index), date(2016, 10, 19), date(2016, 10, 20)).gaps
    return [(gap.kind, gap.name, gap.todo) for gap in found if gap.kind == dues.SET_BACK]


def test_it_is_named_and_nothing_of_it_is_shown(archive: Archive) -> None:
    state, index = archive.state.store, archive.index
    assert gaps(archive, index) == [("set back", "index:versions/cdx/current", "warcmill scan")]
    assert [one for one in verify(state, index, "cdx").findings if SAID in one]
    assert not verify(state, index, "cdx", 1).findings
    with pytest.raises(NotReady, match=SAID):
        hidden_now(state, index, "cdx")


def test_the_next_fold_leads_to_the_newest(archive: Archive) -> None:
    state, index = archive.state.store, archive.index
    folded = archive.fold()
    assert (folded.number, folded.new) == (2, False)
    assert set_back(state, index, "cdx") == ""
    assert gaps(archive, index) == []
    assert verify(state, index, "cdx").findings == ()
    assert len(archive.lines()) == 2


def test_a_fold_that_has_just_listed_its_version_is_waited_for(archive: Archive) -> None:
    fold = threading.Timer(0.01, lead_to, (archive, 2))
    fold.start()
    assert set_back(archive.state.store, archive.index, "cdx") == ""
    fold.join()


def test_an_index_that_is_away_is_named_elsewhere(archive: Archive) -> None:
    os.rename(archive.base / "index", archive.base / "away")

    def away() -> LocalStore:
        raise Unavailable("root 'index'", "no such folder")

    found = dues.of_days(line_of(archive, away), date(2016, 10, 19), date(2016, 10, 20)).gaps
    assert not [gap for gap in found if gap.kind == dues.SET_BACK]
