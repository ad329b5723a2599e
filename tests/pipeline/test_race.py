"""Several processes publish one marker at once: no good one is moved, and equal claims never meet a Conflict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import preloaded
import pytest

from warcmill import layout
from warcmill.formats.logs import logzip
from warcmill.markers import claim as evidence
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Key, Launch
from warcmill.stores import Stat, sentinel
from warcmill.stores.file import FileStore

LAUNCH = Launch("daily", "20161019234428")
KEYS = [layout.key(task, LAUNCH, stage=FINAL) for task in ("output.AssembleOutput", "output.PackageLogs")]


def test_four_processes_at_one_marker(pytestconfig: pytest.Config, tell: Callable[[str], None]) -> None:
    """A third of the trials here: `scripts/test sweep` makes all, and so does .ci/run."""
    each = 25 if pytestconfig.getoption("--every-point") else 8
    done = preloaded.run("crash.race", "--each", str(each), env=preloaded.of_harness())
    tell(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-4_000:]
    assert ", violations: 0" in done.stdout


@pytest.fixture
def state(tmp_path: Path) -> MarkerStore:
    sentinel.adopt({"state": tmp_path})
    return MarkerStore(FileStore("state", tmp_path))


def publish(state: MarkerStore, key: Key, lines: int) -> Stat:
    claim = Claim(key, counts={"lines": lines})
    with state.scratch() as folder:
        path = folder / "logs.zip"
        if key.task == "output.PackageLogs":
            with path.open("xb") as file:
                logzip.write(file, [], lambda _: state.plain_document(claim))
        state.publish(key, claim, path if path.exists() else None)
    found = state.store.stat(layout.marker_path(key))
    assert found
    return found


def aside(state: MarkerStore) -> list[Stat]:
    return list(state.store.list(f"{layout.state_folder(LAUNCH)}/aside"))


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_good_marker_moved_by_mistake_is_brought_back(state: MarkerStore, key: Key) -> None:
    """As on a file system without locks: between the look and the move, a racer's good marker took the place."""
    state._put_aside(layout.marker_path(key), publish(state, key, 1))
    found = state.read(key)
    assert found
    assert found.claim.counts == {"lines": 1}
    assert aside(state) == []


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_good_marker_whose_place_was_taken_is_kept_and_named(
    state: MarkerStore, key: Key, caplog: pytest.LogCaptureFixture
) -> None:
    publish(state, key, 1)
    path = layout.marker_path(key)
    state.store.real(path).rename(state.store.base / "moved")
    publish(state, key, 2)
    moved = f"{path.rpartition('/')[0]}/aside/{layout.marker_name(key)}.20161020000000.0123abcd"
    state.store.real(moved).parent.mkdir()
    (state.store.base / "moved").rename(state.store.real(moved))
    state._bring_back_if_sound(path, moved)
    assert [entry.path for entry in aside(state)] == [moved]
    assert f"{moved}: sound, but a marker with another claim" in caplog.text
    found = state.read(key)
    assert found
    assert found.digest == evidence.claim_digest(Claim(key, counts={"lines": 2}))
