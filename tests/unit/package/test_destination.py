"""A SIP handed over exactly once: raced, interrupted, over what may lie at the destination."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from warcmill import layout
from warcmill.errors import Conflict, Mismatch, Unavailable
from warcmill.package.submit import Slip, Submission, hand_over
from warcmill.stores import Store, sentinel, temporary_names
from warcmill.stores.file import FileStore

DATA = b"a package of a crawl" * 50
SIP = Submission("daily.20161019234428.final.tar", "a" * 128, len(DATA), hashlib.sha512(DATA).hexdigest())


@dataclass
class Place:
    """A destination in a folder, and the ingesting system that empties it."""

    base: Path
    received: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def store(self) -> FileStore:
        return FileStore("destination", self.base)

    def ingest(self) -> None:
        """Take away all that is in the watched folder."""
        for path in sorted(self.base.joinpath("ingest").glob("*")):
            self.received.append((path.name, path.read_bytes()))
            path.unlink()

    def left(self, folder: str) -> list[str]:
        return sorted(path.name for path in self.base.joinpath(folder).glob("*"))

    def put(self, path: str, data: bytes) -> None:
        target = self.base / path
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(data)

    def is_whole(self) -> bool:
        """Whether the SIP was received once, and nothing else is left than its slips."""
        self.ingest()
        return (
            self.received == [(SIP.name, DATA)]
            and self.left("staging") == [f"{SIP.name}.sending.json"]
            and self.left("receipts") == [f"{SIP.name}.receipt.json"]
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new(tmp_path / "destination")


def new(base: Path) -> Place:
    sentinel.adopt({"destination": base})
    return Place(base)


def submit(store: Store, data: bytes = DATA) -> None:
    hand_over(store, SIP, lambda: io.BytesIO(data))


def test_it_is_handed_over_with_its_slips_and_never_again(place: Place) -> None:
    submit(place.store)
    assert place.left("ingest") == [SIP.name]
    assert json.loads((place.base / layout.receipt_path(SIP.name)).read_text()) == {
        "key": SIP.key,
        "sha512": SIP.sha512,
    }
    assert place.is_whole()
    submit(place.store)
    assert place.is_whole()


def test_a_receipt_that_was_lost_is_written_again_and_nothing_is_sent(place: Place) -> None:
    submit(place.store)
    place.ingest()
    (place.base / layout.receipt_path(SIP.name)).unlink()
    submit(place.store, b"must not be read")
    assert place.is_whole()


@pytest.mark.parametrize(
    ("path", "data", "why"),
    [
        (layout.receipt_path(SIP.name), Slip("b" * 128, SIP.sha512).encode(), "is of another SIP"),
        (layout.receipt_path(SIP.name), b'{"key": "', "cannot be read"),
        (layout.sending_path(SIP.name), b"", "cannot be read"),
        (layout.sending_path(SIP.name), Slip("b" * 128, SIP.sha512, "x").encode(), "is of another SIP"),
        (layout.ingest_path(SIP.name), b"another's", "a file is there already"),
    ],
    ids=["another's receipt", "torn receipt", "torn slip", "another's slip", "another's file"],
)
def test_what_is_not_ours_is_left_and_named(place: Place, path: str, data: bytes, why: str) -> None:
    place.put(path, data)
    for _ in range(2):
        with pytest.raises(Conflict, match=why):
            submit(place.store)
    left = {str(file.relative_to(place.base)) for file in place.base.rglob("*") if file.is_file()}
    assert left == {path, layout.SENTINEL}
    assert (place.base / path).read_bytes() == data
    (place.base / path).unlink()
    submit(place.store)
    assert place.is_whole()


def test_a_staged_file_that_was_damaged_is_not_handed_over(place: Place) -> None:
    staged = f"{SIP.name}.host.boot.1.abcdef01"
    place.put(f"staging/{staged}", DATA[:-1])
    place.put(layout.sending_path(SIP.name), Slip(SIP.key, SIP.sha512, staged).encode())
    with pytest.raises(Conflict, match="has 999 bytes, not 1000"):
        submit(place.store)
    assert place.left("ingest") == []


def test_what_dead_processes_left_is_removed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    half = temporary_names.name(SIP.name).replace(f".{os.getpid()}.", ".999999999.")
    place.put(f"staging/{half}", DATA[:10])
    place.put(f"staging/{half[1:].removesuffix('.tmp')}", DATA)
    sizes: list[list[str]] = []
    commit = FileStore.commit_new

    def spied(store: FileStore, *args: Any) -> bool:
        sizes.append([*place.left("staging"), *(one.name for one in place.base.glob("staging/.*"))])
        return commit(store, *args)

    monkeypatch.setattr(FileStore, "commit_new", spied)
    submit(place.store)
    assert sizes[0] == [], "there is room for one SIP only: what is left over goes first"
    assert place.is_whole()


def test_a_sip_that_changed_in_the_store_is_not_handed_over(place: Place) -> None:
    with pytest.raises(Mismatch):
        submit(place.store, DATA[:-1] + b"X")
    assert (place.left("ingest"), place.left("staging"), place.left("receipts")) == ([], [], [])


def test_a_full_disk_hands_nothing_over_and_leaves_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(Unavailable, match="No space left on device"):
        submit(place.store)
    monkeypatch.setattr(os, "write", real)
    assert list(place.base.glob("staging/.*")) == []
    submit(place.store)
    assert place.is_whole()


def test_a_destination_that_vanished_is_an_outage(place: Place) -> None:
    store = place.store
    place.base.rename(place.base.with_name("elsewhere"))
    with pytest.raises(Unavailable, match=layout.SENTINEL.replace(".", r"\.")):
        submit(store)


class Killed(BaseException):
    """Ends a submitter as a kill does: no except clause of the code takes it."""


class Turns:
    """Lets submitters take turns, a call of the store at a time; the ingesting system comes before every call.

    `schedule` gives the submitter of each call; when it is over, each goes on to its end in order. `killed` is a
    submitter that ends there instead.
    """

    def __init__(self, place: Place, schedule: list[int], killed: int | None) -> None:
        self.place, self.schedule, self.killed = place, schedule, killed
        self.change, self.over = threading.Condition(), {0: False, 1: False}
        self.calls = 0

    def wait(self, who: int) -> None:
        with self.change:
            self.change.wait_for(lambda: self.turn() == who)
            if not self.schedule and who == self.killed:
                raise Killed
            if self.schedule:
                self.schedule.pop(0)
            self.calls += 1
            self.place.ingest()

    def turn(self) -> int | None:
        while self.schedule and self.over[self.schedule[0]]:
            self.schedule.pop(0)
        if self.schedule:
            return self.schedule[0]
        left = [who for who, over in self.over.items() if not over]
        return self.killed if self.killed in left else min(left, default=None)

    def run(self, who: int, body: Callable[[], None]) -> None:
        try:
            body()
        except Killed:
            pass
        finally:
            with self.change:
                self.over[who] = True
                self.change.notify_all()


class Turned:
    """A store whose every call waits for its turn."""

    def __init__(self, turns: Turns, who: int) -> None:
        self.turns, self.who, self.store = turns, who, turns.place.store

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)
        if not callable(method):
            return method

        def call(*args: Any) -> Any:
            self.turns.wait(self.who)
            try:
                return list(method(*args)) if name == "list" else method(*args)
            finally:
                with self.turns.change:
                    self.turns.change.notify_all()

        return call


def race(place: Place, schedule: list[int], killed: int | None = None) -> int:
    """Two submitters with these turns; how many calls they made."""
    turns = Turns(place, schedule, killed)

    def body(who: int) -> None:
        turns.run(who, lambda: submit(Turned(turns, who)))  # type: ignore[arg-type]

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(body, who) for who in (0, 1)]:
            done.result()
    return turns.calls


def schedules(calls: int) -> Iterator[list[int]]:
    """One submitter is overtaken at every call of its own, for every number of calls of the other."""
    yield from ([0] * first + [1] * then for first in range(calls) for then in range(1 + first % 2, calls, 2))


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of races: what a lost disk would keep is the crash harness's question."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.mark.usefixtures("unsynced")
def test_of_two_submitters_that_overtake_each_other_anywhere_one_hands_over(tmp_path: Path) -> None:
    alone = race(new(tmp_path / "alone"), [0] * 100) // 2
    assert alone >= 9
    for number, schedule in enumerate(schedules(alone + 4)):
        place = new(tmp_path / f"{number}")
        told = list(schedule)
        race(place, schedule)
        assert place.is_whole(), told


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("killed", [0, 1])
def test_a_submitter_that_is_killed_while_another_races_it_costs_nothing(tmp_path: Path, killed: int) -> None:
    for number, schedule in enumerate(schedules(18)):
        place = new(tmp_path / f"{number}")
        told = list(schedule)
        race(place, schedule, killed)
        submit(place.store)
        place.ingest()
        assert place.received == [(SIP.name, DATA)], told
        assert place.left("receipts") == [f"{SIP.name}.receipt.json"]
