"""What every store must do, whatever is behind it: imported by the tests of each, run against the real thing.

A module that takes these in has a fixture `there`, the place that a store speaks for.
"""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Protocol

import pytest

from warcmill.errors import BadConfig, BadInput, Mismatch, NotReady, Unavailable
from warcmill.layout import SENTINEL, stored_name
from warcmill.stores import Store, temporary_names

FOLDER = "warcs/daily/20161019234428"
PATH = f"{FOLDER}/a.warc.gz"
DATA = b"0123456789" * 100_000
DEAD_PID = 4_194_304 + 1  # above every limit of pids
WRITERS, ROUNDS = 4, 15
HOSTILE = (
    "a b.warc.gz",
    "a%20b.warc.gz",
    "a:b;c&d=e?f#g.warc.gz",
    "'\"\\*[]{}|<>.warc.gz",
    "new\nline\x01.warc.gz",
    "u\u0308.warc.gz",
    "\u00fc.warc.gz",
    "\U0001f600.warc.gz",
    "-rf ~.warc.gz",
    "..warc.gz",
)


class Place(Protocol):
    """A root that is adopted, and ways to look at it and to break it that do not go through the store."""

    def open(self) -> Store:
        """The root's store, made anew."""

    def files(self) -> dict[str, bytes]:
        """All files by path, the sentinel left out."""

    def write(self, path: str, data: bytes) -> None:
        """Put a file there, over an older one."""

    def delete(self, path: str) -> None:
        """Take a file away."""

    def many(self, folder: str, count: int) -> list[str]:
        """Fill a folder; the names."""

    def outage(self) -> AbstractContextManager[None]:
        """The server, or the disk, is away for a while."""


def commit(store: Store, data: bytes, path: str = PATH) -> bool:
    return store.commit_new(path, io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())


class Asked:
    """A function in the place of a digest: it notes what it is asked, and what is to be seen meanwhile."""

    def __init__(self, answer: bool, there: Place) -> None:
        self._answer, self._there = answer, there
        self.digests: list[str] = []
        self.seen: list[dict[str, bytes]] = []

    def __call__(self, sha512: str) -> bool:
        self.digests.append(sha512)
        self.seen.append(self._there.files())
        return self._answer


def read(store: Store, path: str = PATH, start: int = 0) -> bytes:
    with store.open(path, start) as file:
        return file.read()


def read_back(store: Store, path: str = PATH) -> bytes:
    with store.read_back(path) as file:
        return file.read()


@pytest.fixture
def store(there: Place) -> Store:
    return there.open()


@contextmanager
def of_a_dead_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is written meanwhile bears the number of a process that is no more."""
    with monkeypatch.context() as patch:
        patch.setattr(temporary_names, "os", SimpleNamespace(getpid=lambda: DEAD_PID))
        yield


def test_what_is_committed_is_there_whole(there: Place, store: Store) -> None:
    assert store.stat(PATH) is None
    assert commit(store, DATA)
    found = store.stat(PATH)
    assert found
    assert (found.kind, found.size, found.name) == ("file", len(DATA), "a.warc.gz")
    assert found.version
    assert read(store) == DATA
    assert there.files() == {PATH: DATA}
    assert list(store.list(FOLDER)) == [found]
    folder = store.stat(FOLDER)
    assert folder
    assert folder.kind == "folder"


@pytest.mark.parametrize("start", [0, 1, 511, 999_995, 1_000_000])
def test_a_reader_begins_where_it_is_asked_to_and_can_go_back(store: Store, start: int) -> None:
    commit(store, DATA)
    with store.open(PATH, start) as file:
        assert file.read() == DATA[start:]
        assert file.read(1) == b""
        file.seek(7)
        assert file.read(3) == b"789"
        assert file.seek(-5, io.SEEK_END) == len(DATA) - 5
        assert file.readline() == b"56789"


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_files_of_any_length_are_whole(there: Place, store: Store, size: int) -> None:
    data = (DATA * 4)[:size]
    assert commit(store, data)
    assert read(store) == data
    assert there.files() == {PATH: data}
    digest = store.server_digest(PATH)
    assert digest
    assert digest == store.server_digest(PATH)
    assert all(digest)


def test_what_is_not_there_is_reported_as_such(store: Store) -> None:
    commit(store, DATA)
    for path in ("none", f"{FOLDER}/none", f"{PATH}/below-a-file"):
        assert store.stat(path) is None
        assert list(store.list(path)) == []
        assert store.server_digest(path) is None
        with pytest.raises(NotReady):
            store.open(path)
    assert list(store.list(PATH)) == []
    assert store.sweep("none") == 0


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (3 << 20) + 1])
def test_what_is_read_back_is_what_is_there(store: Store, size: int) -> None:
    data = (DATA * 4)[:size]
    assert commit(store, data)
    assert read_back(store) == data
    with pytest.raises(NotReady):
        store.read_back("none")
    with pytest.raises(Unavailable, match="plain file"):
        store.read_back(FOLDER)


def test_a_folder_cannot_be_read(store: Store) -> None:
    commit(store, DATA)
    with pytest.raises(Unavailable, match="plain file"):
        store.open(FOLDER)


def test_without_its_sentinel_a_root_is_unavailable_and_never_empty(there: Place, store: Store) -> None:
    there.delete(SENTINEL)
    with pytest.raises(Unavailable, match=SENTINEL):
        there.open()
    with pytest.raises(Unavailable, match=SENTINEL):
        store.stat(PATH)
    with pytest.raises(Unavailable, match=SENTINEL):
        list(store.list(FOLDER))
    with pytest.raises(Unavailable, match=SENTINEL):
        store.open(PATH)
    with pytest.raises(Unavailable, match=SENTINEL):
        commit(store, DATA)
    assert there.files() == {}


@pytest.mark.parametrize("text", [b'{"roots": ["output"], "schema": 1}\n', b"not JSON", b"[]"])
def test_the_sentinel_of_another_root_is_a_matter_of_configuration(there: Place, text: bytes) -> None:
    there.delete(SENTINEL)
    there.write(SENTINEL, text)
    with pytest.raises(BadConfig, match="store"):
        there.open()


def test_an_outage_is_never_an_absence(there: Place, store: Store) -> None:
    commit(store, DATA)
    before = store.stat(PATH)
    assert before
    with there.outage():
        for ask in (
            there.open,
            lambda: store.stat(PATH),
            lambda: store.stat("none"),
            lambda: list(store.list(FOLDER)),
            lambda: list(store.list("none")),
            lambda: store.open(PATH),
            lambda: store.server_digest(PATH),
            lambda: commit(store, DATA, "another"),
            lambda: store.remove(PATH, before),
            lambda: store.move_aside(PATH, "aside", before),
        ):
            with pytest.raises(Unavailable):
                ask()
    assert there.files() == {PATH: DATA}
    assert store.stat(PATH) == before
    assert commit(store, b"more", "another")


def test_nothing_is_ever_replaced(there: Place, store: Store) -> None:
    commit(store, DATA)
    before = store.stat(PATH)
    assert not commit(store, b"another")
    assert not commit(store, DATA)
    assert not commit(store, b"onto a folder", FOLDER)
    assert store.stat(PATH) == before
    assert there.files() == {PATH: DATA}


def test_a_source_cut_short_or_altered_leaves_nothing(there: Place, store: Store) -> None:
    digest = hashlib.sha512(DATA).hexdigest()
    for wrong in (DATA[:-1], b"x" + DATA[1:], b"", DATA + b"x", DATA[:500_000]):
        with pytest.raises(Mismatch, match="while it was copied"):
            store.commit_new(PATH, io.BytesIO(wrong), len(DATA), digest)
    assert there.files() == {}
    assert commit(store, DATA)


class Failing:
    """A source that ends with an error of its own."""

    def __init__(self, data: bytes, error: Exception) -> None:
        self._stream, self._error = io.BytesIO(data), error

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        if not data:
            raise self._error
        return data


@pytest.mark.parametrize("size", [0, 1_000, 3 << 20])
@pytest.mark.parametrize("error", [Unavailable("the source", "is away"), OSError(5, "Input/output error")])
def test_an_error_of_the_source_is_reported_and_publishes_nothing(
    there: Place, store: Store, size: int, error: Exception
) -> None:
    with pytest.raises(Unavailable, match=r"is away|Input/output"):
        store.commit_new(PATH, Failing(bytes(size), error), 4 << 20, "0" * 128)
    assert PATH not in there.files()
    assert store.stat(PATH) is None
    assert commit(store, DATA)


@pytest.mark.parametrize("data", [b"", b"small", DATA * 3])
def test_a_function_is_asked_once_when_all_is_there_under_another_name(there: Place, store: Store, data: bytes) -> None:
    asked = Asked(True, there)
    assert store.commit_new(PATH, io.BytesIO(data), len(data), asked)
    assert asked.digests == [hashlib.sha512(data).hexdigest()]
    assert [(len(seen), PATH in seen) for seen in asked.seen] == [(1, False)]
    assert list(asked.seen[0].values()) == [data]
    assert there.files() == {PATH: data}


@pytest.mark.parametrize("data", [b"", b"small", DATA * 3])
def test_what_a_function_refuses_leaves_nothing(there: Place, store: Store, data: bytes) -> None:
    asked = Asked(False, there)
    with pytest.raises(Mismatch, match=r"a\.warc\.gz, while it was copied .* the caller accepts.* which it refused"):
        store.commit_new(PATH, io.BytesIO(data), len(data), asked)
    assert asked.digests == [hashlib.sha512(data).hexdigest()]
    assert there.files() == {}
    assert commit(store, data)


def test_an_error_of_the_function_publishes_nothing(there: Place, store: Store) -> None:
    def fail(_: str) -> bool:
        raise BadInput("a member", "is not what it was")

    with pytest.raises(BadInput, match="a member"):
        store.commit_new(PATH, io.BytesIO(DATA), len(DATA), fail)
    assert there.files() == {}


def test_a_function_is_not_asked_of_a_source_cut_short_or_grown(there: Place, store: Store) -> None:
    asked = Asked(True, there)
    for wrong in (DATA[:-1], b"", DATA + b"x", DATA[:500_000]):
        with pytest.raises(Mismatch, match="while it was copied"):
            store.commit_new(PATH, io.BytesIO(wrong), len(DATA), asked)
    assert asked.digests == []
    assert there.files() == {}


@pytest.mark.parametrize("size", [0, 1_000, 3 << 20])
def test_a_function_is_not_asked_of_a_source_that_fails_on_the_way(there: Place, store: Store, size: int) -> None:
    asked = Asked(True, there)
    with pytest.raises(Unavailable, match="is away"):
        store.commit_new(PATH, Failing(bytes(size), Unavailable("the source", "is away")), 4 << 20, asked)
    assert asked.digests == []
    assert all(temporary_names.is_temporary(path.rpartition("/")[2]) for path in there.files())


@pytest.mark.parametrize("data", [b"small", DATA * 3])
def test_where_something_is_there_already_no_function_is_asked_and_nothing_is_read(
    there: Place, store: Store, data: bytes
) -> None:
    commit(store, DATA)
    asked, source = Asked(True, there), io.BytesIO(data)
    assert not store.commit_new(PATH, source, len(data), asked)
    assert not store.commit_new(FOLDER, source, len(data), asked)
    assert (asked.digests, source.tell()) == ([], 0)
    assert there.files() == {PATH: DATA}


def test_what_takes_the_name_while_a_function_is_asked_stays(there: Place, store: Store) -> None:
    def slow(_: str) -> bool:
        return commit(there.open(), b"first")

    assert not store.commit_new(PATH, io.BytesIO(DATA), len(DATA), slow)
    assert there.files() == {PATH: b"first"}


def test_of_racing_writers_one_publishes_and_its_file_stays(there: Place) -> None:
    barrier = threading.Barrier(WRITERS)
    stores = [there.open() for _ in range(WRITERS)]

    def write(writer: int, number: int) -> bool:
        barrier.wait()
        return commit(stores[writer], bytes([writer]) * (100_000 + writer), f"{FOLDER}/{number}.warc.gz")

    with ThreadPoolExecutor(WRITERS) as threads:
        for number in range(ROUNDS):
            won = list(threads.map(write, range(WRITERS), [number] * WRITERS))
            assert sorted(won) == [False] * (WRITERS - 1) + [True]
            winner = won.index(True)
            found = there.files()[f"{FOLDER}/{number}.warc.gz"]
            assert found == bytes([winner]) * (100_000 + winner)
    assert len(there.files()) == ROUNDS


def test_hostile_names_stay_apart_and_come_back_as_they_went(there: Place, store: Store) -> None:
    paths = [f"{FOLDER}/{stored_name(name)}" for name in HOSTILE]
    for number, path in enumerate(paths):
        assert commit(store, str(number).encode(), path)
    assert [entry.path for entry in store.list(FOLDER)] == sorted(paths)
    assert there.files() == {path: str(number).encode() for number, path in enumerate(paths)}
    assert [read(store, path) for path in paths] == [str(number).encode() for number in range(len(paths))]
    assert [read_back(store, path) for path in paths] == [str(number).encode() for number in range(len(paths))]


def test_a_name_of_255_bytes_is_taken_and_one_of_256_told(store: Store) -> None:
    assert commit(store, DATA, f"{FOLDER}/{'n' * 255}")
    assert store.stat(f"{FOLDER}/{'n' * 255}")
    with pytest.raises((BadInput, Unavailable)):
        commit(store, DATA, f"{FOLDER}/{'n' * 256}")


@pytest.mark.parametrize("path", ["../out", "a/../../out", "/etc/passwd", "a//b", "a/./b", "nul\0", "a/"])
def test_no_path_leaves_the_root(store: Store, path: str) -> None:
    for ask in (store.stat, store.open, lambda path: commit(store, DATA, path), lambda path: list(store.list(path))):
        with pytest.raises(BadInput):
            ask(path)


def test_a_folder_of_many_pages_is_listed_whole_and_in_order(there: Place, store: Store) -> None:
    names = there.many(FOLDER, 2_500)  # WebHDFS lists 1,000 at a time, a server of SFTP 100
    assert [entry.name for entry in store.list(FOLDER)] == sorted(names)


def test_a_file_is_moved_aside_only_while_it_is_that_file(there: Place, store: Store) -> None:
    commit(store, DATA)
    seen = store.stat(PATH)
    assert seen
    there.delete(PATH)
    commit(store, b"another")
    assert not store.move_aside(PATH, "aside/one", seen)
    assert there.files() == {PATH: b"another"}
    seen = store.stat(PATH)
    assert seen
    assert store.move_aside(PATH, "aside/one", seen)
    assert there.files() == {"aside/one": b"another"}
    assert not store.move_aside(PATH, "aside/two", seen)


def test_of_two_that_move_one_file_aside_one_does(there: Place) -> None:
    stores = [there.open(), there.open()]
    barrier = threading.Barrier(2)
    for number in range(ROUNDS):
        commit(stores[0], DATA, f"{number}")
        seen = stores[0].stat(f"{number}")
        assert seen

        def move(one: int, number: int = number, seen: object = seen) -> bool:
            barrier.wait()
            return stores[one].move_aside(f"{number}", f"aside/{number}.{one}", seen)  # type: ignore[arg-type]

        with ThreadPoolExecutor(2) as threads:
            moved = list(threads.map(move, range(2)))
        assert sorted(moved) == [False, True]
        assert there.files()[f"aside/{number}.{moved.index(True)}"] == DATA
    assert len(there.files()) == ROUNDS


def test_a_file_is_removed_only_while_it_is_that_file(there: Place, store: Store) -> None:
    commit(store, DATA)
    seen = store.stat(PATH)
    assert seen
    there.delete(PATH)
    commit(store, b"another")
    with pytest.raises(Mismatch, match="no longer"):
        store.remove(PATH, seen)
    assert there.files() == {PATH: b"another"}
    now = store.stat(PATH)
    assert now
    store.remove(PATH, now)
    assert there.files() == {}
    with pytest.raises(Mismatch):
        store.remove(PATH, now)


def test_a_host_sweeps_what_its_own_dead_processes_left(
    there: Place, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(store, DATA)
    with of_a_dead_process(monkeypatch):
        dead = temporary_names.name("a.warc.gz")
    alive = temporary_names.name("a.warc.gz")
    elsewhere = dead.replace(temporary_names.host(), "elsewhere")
    for name in (dead, alive, elsewhere):
        there.write(f"{FOLDER}/{name}", b"half")
    assert store.sweep(FOLDER) == 1
    assert sorted(there.files()) == sorted([PATH, f"{FOLDER}/{alive}", f"{FOLDER}/{elsewhere}"])
