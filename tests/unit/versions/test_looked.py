"""A fold reads the markers of a launch again only where its folder has changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from warcmill import chain, layout
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions import index_inputs
from warcmill.versions.index_inputs import Looked

LAUNCH = Launch("daily", "20161019234428")


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state with the folder of a launch, which nothing has changed for long; and an index root."""
    monkeypatch.setattr(index_inputs, "SETTLED", -3600)
    sentinel.adopt({"state": tmp_path / "state", "index": tmp_path / "index"})
    (tmp_path / "state" / layout.state_folder(LAUNCH)).mkdir(parents=True)
    return tmp_path


STEPS = ("cdx", "assemble")


def digest(line: Path, made: str, steps: tuple[str, ...] = STEPS) -> str:
    """The digest of the launch, which is `made` where its markers are read."""
    fold = Looked(MarkerStore(FileStore("state", line / "state")), FileStore("index", line / "index"), "cdx", steps)
    found = fold.digest(LAUNCH, lambda _: made)
    fold.remember()
    return found


def test_it_reads_what_has_changed(line: Path) -> None:
    assert [digest(line, made) for made in ("first", "second")] == ["first", "first"]
    (line / "state" / layout.state_folder(LAUNCH) / "index.cdx.daily").touch()
    assert [digest(line, made) for made in ("third", "fourth")] == ["third", "third"]


@pytest.mark.parametrize("kept", [b"", b"[]", b'{"daily/20161019234428": ["1.2", "first"]}', b"\xff"])
def test_it_reads_all_where_what_was_kept_is_damaged(kept: bytes, line: Path) -> None:
    digest(line, "first")
    (line / "index/versions/cdx/looked").write_bytes(kept)
    assert digest(line, "second") == "second"


@pytest.mark.parametrize("launches", [None, [], {str(LAUNCH): []}])
def test_it_reads_all_where_launches_are_not_as_they_are_kept(launches: object, line: Path) -> None:
    digest(line, "first")
    kept = line / "index/versions/cdx/looked"
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"launches": launches}))
    assert digest(line, "second") == "second"


def test_it_reads_all_where_other_steps_were_read(line: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [digest(line, made) for made in ("first", "second")] == ["first", "first"]
    assert [digest(line, made, (*STEPS, "viruses")) for made in ("third", "fourth")] == ["third", "third"]
    rows = [replace(row, marker="another.{job}") if row.word == "viruses" else row for row in chain.ROWS]
    monkeypatch.setattr(chain, "ROWS", tuple(rows))
    assert digest(line, "fifth", (*STEPS, "viruses")) == "fifth"


def test_what_has_changed_just_now_is_read_again(line: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_inputs, "SETTLED", 3600)
    assert [digest(line, made) for made in ("first", "second")] == ["first", "second"]
