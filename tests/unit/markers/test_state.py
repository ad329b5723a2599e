"""Markers over a store: what is absent, broken, foreign, and what a writer may do about it."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from warcmill import layout
from warcmill.errors import BadConfig, Conflict, Foreign, NotReady, Unavailable
from warcmill.markers import claim
from warcmill.markers.claim import Claim, SoundMarker
from warcmill.markers.state import MarkerStore, input_of
from warcmill.model import FINAL, Launch
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore

LAUNCH = Launch("daily", "20161019234428")
KEY = layout.key("output.AssembleOutput", LAUNCH, stage=FINAL)
CLAIM = Claim(KEY, counts={"lines": 1})


@pytest.fixture
def state(tmp_path: Path) -> MarkerStore:
    sentinel.adopt({"state": tmp_path})
    return MarkerStore(FileStore("state", tmp_path))


def marker(state: MarkerStore) -> Path:
    return state.store.real(layout.marker_path(KEY))


def aside(state: MarkerStore) -> list[Path]:
    return sorted((marker(state).parent / "aside").glob("*"))


def test_what_was_published_is_read_back(state: MarkerStore) -> None:
    assert state.read(KEY) is None
    state.publish(KEY, CLAIM)
    found = state.read(KEY)
    assert found
    assert found.claim == CLAIM
    assert list(state.folder(LAUNCH)) == [layout.marker_name(KEY)]
    assert state.stages(LAUNCH) == {FINAL}
    assert input_of(state, KEY).claim == claim.claim_digest(CLAIM)


def test_the_same_claim_again_is_success_another_is_conflict(state: MarkerStore) -> None:
    state.publish(KEY, CLAIM)
    before = marker(state).read_bytes()
    state.publish(KEY, CLAIM)
    with pytest.raises(Conflict, match="redo"):
        state.publish(KEY, Claim(KEY, counts={"lines": 2}))
    assert marker(state).read_bytes() == before


def test_a_record_says_what_its_evidence_says(state: MarkerStore) -> None:
    with pytest.raises(NotReady, match=r"run output\.AssembleOutput"):
        state.record(KEY)
    state.publish(KEY, CLAIM)
    found = state.require(KEY)
    assert state.record(KEY) == SoundMarker(found.claim, found.run)
    other = layout.key("output.AssembleOutput", Launch("daily", "20170101000000"), stage=FINAL)
    there = state.store.real(layout.marker_path(other))
    there.parent.mkdir(parents=True)
    there.write_bytes(marker(state).read_bytes())
    with pytest.raises(Foreign):
        state.record(other)


def test_a_record_of_a_broken_marker_is_absent_and_reported(
    state: MarkerStore, caplog: pytest.LogCaptureFixture
) -> None:
    state.publish(KEY, CLAIM)
    marker(state).write_bytes(marker(state).read_bytes()[:-1])
    with pytest.raises(NotReady, match=r"run output\.AssembleOutput"):
        state.record(KEY)
    assert "counts as absent" in caplog.text


@pytest.mark.parametrize("content", [b"", b"{}", b"not a marker\n"])
def test_a_broken_marker_counts_as_absent_and_only_its_writer_moves_it(state: MarkerStore, content: bytes) -> None:
    marker(state).parent.mkdir(parents=True)
    marker(state).write_bytes(content)
    assert state.read(KEY) is None
    assert marker(state).read_bytes() == content
    state.publish(KEY, CLAIM)
    found = state.read(KEY)
    assert found
    assert found.claim == CLAIM
    assert [path.read_bytes() for path in aside(state)] == [content]


def test_a_broken_marker_is_reported_once(state: MarkerStore, caplog: pytest.LogCaptureFixture) -> None:
    marker(state).parent.mkdir(parents=True)
    marker(state).write_bytes(b"")
    state.read(KEY)
    state.read(KEY)
    assert caplog.text.count("counts as absent") == 1


def test_a_marker_copied_from_another_step_is_foreign_and_stays(state: MarkerStore) -> None:
    other = layout.key("files.Checksum", LAUNCH, stage=FINAL)
    state.publish(other, Claim(other))
    store = state.store
    store.real(layout.marker_path(other)).rename(marker(state))
    with pytest.raises(Foreign, match=r"files\.Checksum"):
        state.read(KEY)
    with pytest.raises(Foreign):
        state.publish(KEY, CLAIM)
    assert marker(state).exists()
    assert aside(state) == []


def test_a_marker_of_a_newer_schema_is_foreign_and_stays(state: MarkerStore) -> None:
    state.publish(KEY, CLAIM)
    body = marker(state).read_bytes().rsplit(b"\n", 2)[0].replace(b'"schema": 1', b'"schema": 2') + b"\n"
    marker(state).write_bytes(body + hashlib.sha512(body).hexdigest().encode() + b"\n")
    with pytest.raises(Foreign, match="newer"):
        state.read(KEY)
    with pytest.raises(Foreign):
        state.publish(KEY, CLAIM)


def test_a_link_where_a_marker_should_be_is_an_outage_not_an_absence(state: MarkerStore) -> None:
    marker(state).parent.mkdir(parents=True)
    marker(state).symlink_to("/etc/hostname")
    with pytest.raises(Unavailable):
        state.read(KEY)


def test_a_lost_disk_is_never_an_absence(state: MarkerStore) -> None:
    (state.store.base / layout.SENTINEL).unlink()
    for act in (lambda: state.read(KEY), lambda: state.folder(LAUNCH), lambda: state.publish(KEY, CLAIM)):
        with pytest.raises(Unavailable, match="Mount the disk"):
            act()


def test_what_is_needed_and_missing_is_named_with_the_step_to_run(state: MarkerStore) -> None:
    with pytest.raises(NotReady, match=r"run output\.AssembleOutput\(job=daily"):
        state.require(KEY)


def half_done(folder: Path) -> None:
    (folder / "half").write_bytes(b"half")
    raise ValueError("x")


def test_scratch_is_gone_afterwards_also_after_an_error(state: MarkerStore) -> None:
    with pytest.raises(ValueError, match="x"), state.scratch() as folder:
        half_done(folder)
    assert list((state.store.base / ".scratch").iterdir()) == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_state_that_cannot_take_a_step_s_scratch_is_named(state: MarkerStore, code: int) -> None:
    """As seen on a full disk: `[Errno 28] No space left on device`, and nobody knew which."""
    with pytest.raises(Unavailable, match=f"state:[.]scratch is unavailable: .*{state.store.base}"), state.scratch():
        raise OSError(code, os.strerror(code))
    with pytest.raises(OSError, match="Input/output error"), state.scratch():
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    assert list((state.store.base / ".scratch").iterdir()) == []


@pytest.mark.parametrize("said", [b'{"roots": 5}', b'{"roots": null}', b'{"roots": [["state"]]}', b"[]", b"\xff", b""])
def test_a_root_s_file_that_init_never_wrote_is_said_so(said: bytes) -> None:
    with pytest.raises(BadConfig, match="is not the file that 'warcmill init' writes"):
        layout.check_sentinel("state", said, "/a/.warcmill.json")


def test_roots_that_are_swapped_are_said_so_in_words() -> None:
    with pytest.raises(BadConfig, match="marks this folder as 'jobs' and 'output', not 'state': correct luigi"):
        layout.check_sentinel("state", sentinel.sentinel(["output", "jobs"]), "/a/.warcmill.json")
