"""The dumps of a package index's job, by their markers: which generation a dump is of; full dumps that are decided."""

from __future__ import annotations

import hashlib
import io
from contextlib import closing
from pathlib import Path

import pytest
from mirroring.package_dumps import JOB, DumpedIndex
from msgspec.structs import replace

from warcmill import layout
from warcmill.base.digests import Readable
from warcmill.errors import BadInput, NotReady, Unsettled
from warcmill.extracts.distributions import FACTS
from warcmill.launches import full_dumps
from warcmill.launches.full_dumps import FullDump
from warcmill.layout import DumpedData, DumpFile, parse_dump_path
from warcmill.markers import decisions
from warcmill.markers.attempts import Attempts
from warcmill.markers.claim import Claim
from warcmill.markers.state import rests_on
from warcmill.model import Launch, Window
from warcmill.pypi import dump, dumps, feed, full_dump
from warcmill.pypi.window_rows import WindowRows
from warcmill.stores import Sha512
from warcmill.stores.file import FileStore

LAUNCHES = [Launch(JOB, f"2026112106000{at}") for at in range(4)]


def leave(
    index: DumpedIndex,
    launch: Launch,
    window: Window,
    generation: int,
    *,
    whole: bool = True,
    full: FullDump | None = None,
) -> Claim:
    """Leave the marker of a dump, which rests on the whole one before, or of a full dump."""
    key = full.key if full else layout.step("dump", launch)
    facts = {**feed.serials(window), "generation": generation, "whole": whole, "lacked": [], "unreadable": []}
    before = dumps.whole_before(index.state, launch)
    inputs = rests_on(before) if before else ()
    claim = Claim(key, inputs, counts={"rows": 0, "projects": 0, "files": 0}, facts=facts)
    index.state.publish(key, claim)
    return claim


@pytest.mark.parametrize(
    ("before", "window", "generation"),
    [
        (Window(0, 100), Window(100, 120), 3),
        (Window(0, 100), Window(0, 100), 4),
        (Window(90, 100), Window(0, 120), 4),
        (Window(0, 0), Window(0, 120), 3),
        (Window(0, 0), Window(0, 0), 3),
    ],
)
def test_a_full_crawl_begins_a_generation(tmp_path: Path, before: Window, window: Window, generation: int) -> None:
    """Not after a dump of an index that was empty: the window from 0 is then the next one."""
    index, launches = DumpedIndex(tmp_path), LAUNCHES
    assert dumps.next_generation(index.state, window, dumps.whole_before(index.state, launches[2])) == 1
    assert full_dumps.newest_generation(index.state, JOB) == 0
    leave(index, launches[0], before, 3)
    leave(index, launches[1], Window(0, 400), 9, whole=False)
    assert dumps.next_generation(index.state, window, dumps.whole_before(index.state, launches[2])) == generation
    assert full_dumps.newest_generation(index.state, JOB) == 3


def decided(index: DumpedIndex) -> FullDump:
    return full_dump.decide(index.state, lambda: index.store, JOB)


def test_a_full_dump_is_decided_once_until_it_is_dumped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = DumpedIndex(tmp_path)
    with pytest.raises(NotReady, match="no whole dump yet"):
        decided(index)
    leave(index, LAUNCHES[0], Window(0, 0), 1)
    with pytest.raises(NotReady, match="was empty"):
        decided(index)
    leave(index, LAUNCHES[1], Window(0, 100), 1)
    first = decided(index)
    assert first == FullDump(LAUNCHES[1], 2)
    assert decided(index) == first
    assert full_dumps.newest_generation(index.state, JOB) == 1
    monkeypatch.setattr(full_dump, "FACTS", replace(FACTS, generation=9))
    second = decided(index)
    assert second == FullDump(LAUNCHES[1], 3)
    leave(index, LAUNCHES[1], Window(0, 100), 2, full=first)
    assert full_dumps.newest_generation(index.state, JOB) == 2
    leave(index, LAUNCHES[1], Window(0, 100), 3, full=second)
    assert full_dumps.newest_generation(index.state, JOB) == 3
    assert decided(index) == FullDump(LAUNCHES[1], 4)
    assert len(decisions.read(index.state.store, decisions.GENERATIONS)) == 3
    assert full_dumps.all_decided(index.state, "another") == []


def test_what_follows_a_full_dump_is_of_its_generation(tmp_path: Path) -> None:
    index = DumpedIndex(tmp_path)
    leave(index, LAUNCHES[0], Window(0, 100), 1)
    late = leave(index, LAUNCHES[2], Window(100, 120), 1, whole=False)
    full = decided(index)
    before = dumps.whole_before(index.state, LAUNCHES[1])
    assert dumps.next_generation(index.state, Window(100, 120), before) == full.generation == 2
    assert dumps.next_generation(index.state, Window(0, 120), before) == 3
    with pytest.raises(NotReady, match="dumped in generation 1, and dump_full has begun 2"):
        dumps.refuse_outdated(index.state, LAUNCHES[2], late)
    leave(index, LAUNCHES[1], Window(100, 120), 1)
    with pytest.raises(NotReady, match=f"launch {LAUNCHES[1].id} is dumped in generation 1 meanwhile"):
        full_dump.refuse_late(index.state, full)
    assert decided(index) == FullDump(LAUNCHES[1], 3)


def test_the_launches_of_a_full_dump_are_a_chain_without_a_gap(tmp_path: Path) -> None:
    index = DumpedIndex(tmp_path)
    leave(index, LAUNCHES[0], Window(0, 100), 1)
    leave(index, LAUNCHES[1], Window(100, 400), 1, whole=False)
    leave(index, LAUNCHES[2], Window(100, 100), 1)
    leave(index, LAUNCHES[3], Window(100, 120), 1)
    found = full_dump.chain(index.state, LAUNCHES[3])
    assert [layout.launch_of(marker.claim.key) for marker in found] == [LAUNCHES[at] for at in (0, 2, 3)]
    for lost in (LAUNCHES[0], LAUNCHES[2], LAUNCHES[3]):
        path = layout.marker_path(layout.step("dump", lost))
        (index.base / "state" / path).unlink()
        with pytest.raises(NotReady, match=path):
            full_dump.chain(index.state, LAUNCHES[3])


def test_a_decision_that_names_nothing_is_refused(tmp_path: Path) -> None:
    index = DumpedIndex(tmp_path)
    decisions.make(index.state.store, lambda: index.store, decisions.GENERATIONS, {"job": JOB, "generation": True})
    with pytest.raises(BadInput, match="it names no job, launch and generation"):
        full_dumps.all_decided(index.state, JOB)


def test_chains_of_shards_begin_a_quarter_of_a_data_set_apart(tmp_path: Path) -> None:
    index, key, asked = DumpedIndex(tmp_path), layout.step("dump", LAUNCHES[0]), list[tuple[DumpedData, int]]()

    def place(data: DumpedData, number: int) -> str:
        return DumpFile(JOB, 1, data, Window(0, 9), number).path

    class Store(FileStore):
        def commit_new(self, path: str, source: Readable, size: int, sha512: Sha512) -> bool:
            if found := parse_dump_path(path):
                asked.append((found.data, found.number))
            return super().commit_new(path, source, size, sha512)

    with index.state.scratch() as folder, closing(WindowRows(folder, 256)) as rows:
        rows.join([], newest=False)
        dump.write(Attempts(index.state, key), Store("store", index.base / "store"), folder, place, rows, 1)
    first = [(data, number) for data in (DumpedData.DISTRIBUTIONS, DumpedData.STATE) for number in (0, 64, 128, 192)]
    assert asked[:12] == [*first, *((DumpedData.DISTRIBUTIONS, number) for number in (1, 65, 129, 193))]
    assert len(set(asked)) == len(asked) == 512


def test_a_damaged_file_in_the_way_of_a_dump_is_no_file_of_it(tmp_path: Path) -> None:
    """Left as it is, and the dump is not made: as a refused file it would be in the claim."""
    index, key = DumpedIndex(tmp_path), layout.step("dump", LAUNCHES[0])

    def place(data: DumpedData, number: int) -> str:
        return DumpFile(JOB, 1, data, Window(0, 9), number).path

    path, data = place(DumpedData.STATE, 0), b"no dump"
    assert index.store.commit_new(path, io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())
    with index.state.scratch() as folder, closing(WindowRows(folder, 1)) as rows:
        rows.join([], newest=False)
        with pytest.raises(Unsettled, match="a damaged dump of this window is there"):
            dump.write(Attempts(index.state, key), index.store, folder, place, rows, 1)
    assert (index.base / "store" / path).read_bytes() == data
