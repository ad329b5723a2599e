"""The file store: published whole or not at all, nothing replaced, and an outage never an absence."""

from __future__ import annotations

import hashlib
import io
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warcmill.errors import BadConfig, BadInput, Mismatch, NotReady, Unavailable
from warcmill.layout import SENTINEL
from warcmill.stores import Stat, sentinel, temporary_names
from warcmill.stores.file import FileStore

PATH = "warcs/daily/20161019234428/a.warc.gz"
DATA = b"0123456789" * 100_000
DEAD_PID = 4_194_304 + 1  # above every limit of pids


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    sentinel.adopt({"store": tmp_path / "store"})
    return FileStore("store", tmp_path / "store")


def commit(store: FileStore, data: bytes, path: str = PATH) -> bool:
    return store.commit_new(path, io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())


def files(store: FileStore) -> list[str]:
    found = [path for path in store.base.rglob("*") if path.is_file() and path.name != SENTINEL]
    return sorted(str(path.relative_to(store.base)) for path in found)


def test_what_is_committed_is_there_whole(store: FileStore) -> None:
    assert store.stat(PATH) is None
    assert commit(store, DATA)
    found = store.stat(PATH)
    assert found
    assert (found.kind, found.size, found.name) == ("file", len(DATA), "a.warc.gz")
    assert store.server_digest(PATH) == ("sha512", hashlib.sha512(DATA).hexdigest())
    with store.open(PATH, start=999_995) as file:
        assert file.read() == b"56789"
    assert files(store) == [PATH]


def test_nothing_is_ever_replaced(store: FileStore) -> None:
    commit(store, DATA)
    before = store.stat(PATH)
    assert not commit(store, b"another")
    assert not commit(store, DATA)
    assert store.stat(PATH) == before
    assert files(store) == [PATH]


@pytest.mark.parametrize("there", ["link to nowhere", "folder"])
def test_not_even_a_link_to_nowhere_or_a_folder_is_replaced(store: FileStore, there: str) -> None:
    real = store.real(PATH)
    real.parent.mkdir(parents=True)
    real.mkdir() if there == "folder" else real.symlink_to("nowhere")
    assert not commit(store, DATA)
    assert real.is_dir() if there == "folder" else real.is_symlink()


def test_a_source_cut_short_or_altered_leaves_nothing(store: FileStore) -> None:
    digest = hashlib.sha512(DATA).hexdigest()
    for wrong in (DATA[:-1], b"x" + DATA[1:], b"", DATA + b"x"):
        with pytest.raises(Mismatch, match="while it was copied"):
            store.commit_new(PATH, io.BytesIO(wrong), len(DATA), digest)
    assert files(store) == []


class Growing:
    """A source without an end, as a file that is still written to faster than it is read."""

    def __init__(self) -> None:
        self.given = 0

    def read(self, size: int, /) -> bytes:
        self.given += size
        assert self.given < 10 << 20, "the store follows a source that never ends"
        return bytes(size)


def test_a_source_that_grows_without_end_is_given_up(store: FileStore) -> None:
    with pytest.raises(Mismatch):
        store.commit_new(PATH, Growing(), len(DATA), hashlib.sha512(DATA).hexdigest())
    assert files(store) == []


class Broken:
    """A source whose disk fails."""

    def read(self, size: int, /) -> bytes:
        raise Unavailable("output:a.warc.gz", "Input/output error")


def test_the_sources_own_outage_is_reported_as_such(store: FileStore) -> None:
    with pytest.raises(Unavailable, match=r"output:a\.warc\.gz"):
        store.commit_new(PATH, Broken(), 1, "")
    assert files(store) == []


def race(base: Path, byte: int, start: float, won: multiprocessing.Queue[tuple[int, bool]]) -> None:
    store = FileStore("store", base)
    data = bytes([byte]) * 300_000
    won.put((byte, commit(store, data, f"warcs/{start}")))


def test_of_many_racers_one_wins_and_its_bytes_stay_whole(store: FileStore) -> None:
    context = multiprocessing.get_context("fork")
    for trial in range(15):
        won: multiprocessing.Queue[tuple[int, bool]] = context.Queue()  # type: ignore[assignment]
        racers = [context.Process(target=race, args=(store.base, byte, trial, won)) for byte in range(1, 5)]
        for racer in racers:
            racer.start()
        answers = [won.get(timeout=300) for _ in racers]
        for racer in racers:
            racer.join()
        (winner,) = (byte for byte, made in answers if made)
        assert store.real(f"warcs/{trial}").read_bytes() == bytes([winner]) * 300_000
    assert files(store) == sorted(f"warcs/{trial}" for trial in range(15))


def fill_up(base: Path) -> None:
    """In a process of its own: its files may be no longer than 64 KiB, as on a disk that is full there."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    store = FileStore("store", base)
    with pytest.raises(Unavailable, match="store:big"):
        commit(store, DATA, "big")
    assert commit(store, b"fits", "small")


def test_a_disk_that_is_full_leaves_nothing_half_made(store: FileStore) -> None:
    child = multiprocessing.get_context("fork").Process(target=fill_up, args=(store.base,))
    child.start()
    child.join(300)
    assert child.exitcode == 0
    assert files(store) == ["small"]


@pytest.mark.parametrize("path", ["../a", "a/../../b", "a//b", "./a", "a/.", "a\0b"])
def test_no_path_leaves_the_root(store: FileStore, path: str) -> None:
    for call in (store.stat, store.open, store.names):
        with pytest.raises(BadInput, match="not a path inside"):
            call(path)
    with pytest.raises(BadInput):
        commit(store, DATA, path)


NAMES = ("with space", "naïve", "nai\u0308ve", "new\nline", "tab\t'\"%41", "n" * 255, "\udcff")


@pytest.mark.parametrize("name", NAMES)
def test_names_of_every_kind(store: FileStore, name: str) -> None:
    assert commit(store, b"1", f"warcs/{name}")
    assert [entry.name for entry in store.list("warcs")] == [name]
    assert store.names("warcs") == {name}
    assert not commit(store, b"2", f"warcs/{name}")


def test_a_name_too_long_is_an_outage_with_its_reason(store: FileStore) -> None:
    with pytest.raises(Unavailable, match="name too long"):
        commit(store, b"1", "n" * 256)


def test_links_pipes_and_folders_are_not_read(store: FileStore, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"secret")
    (store.base / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(store.base / "pipe")
    (store.base / "folder").mkdir()
    for name in ("link", "pipe", "folder"):
        with pytest.raises(Unavailable, match=f"store:{name}"):
            store.open(name)
    kinds = {entry.name: entry.kind for entry in store.list("")}
    assert kinds == {SENTINEL: "file", "folder": "folder", "link": "other", "pipe": "other"}


def test_absence_is_said_only_where_the_sentinel_is(store: FileStore) -> None:
    commit(store, DATA)
    with pytest.raises(NotReady, match="no such file"):
        store.open("warcs/none")
    assert (list(store.list("none")), store.names("none"), store.server_digest("none")) == ([], frozenset(), None)
    (store.base / SENTINEL).rename(store.base / "hidden")
    for call in (store.stat, store.open, store.names, store.server_digest, lambda path: list(store.list(path))):
        with pytest.raises(Unavailable, match="Mount the disk"):
            call("none")
    with pytest.raises(Unavailable):
        commit(store, DATA, "new")
    with pytest.raises(Unavailable):
        FileStore("store", store.base)


def test_a_root_that_is_gone_or_another_is_reported(store: FileStore, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Mount the disk"):
        FileStore("store", tmp_path / "nowhere")
    with pytest.raises(BadConfig, match="not 'output'"):
        FileStore("output", store.base)
    (store.base / SENTINEL).write_text("{}")
    with pytest.raises(BadConfig, match="warcmill init"):
        FileStore("store", store.base)


def test_remove_takes_only_the_very_file(store: FileStore) -> None:
    commit(store, DATA)
    seen = store.stat(PATH)
    assert seen
    os.utime(store.real(PATH), ns=(1, 1))
    with pytest.raises(Mismatch, match="no longer the file"):
        store.remove(PATH, seen)
    now = store.stat(PATH)
    assert now
    store.remove(PATH, now)
    assert store.stat(PATH) is None
    with pytest.raises(Mismatch):
        store.remove(PATH, now)


def test_move_aside_takes_only_the_very_file(store: FileStore) -> None:
    commit(store, b"broken", "a")
    seen = store.stat("a")
    assert seen
    assert not store.move_aside("a", "aside/a", Stat("a", "file", 6, "another"))
    assert store.move_aside("a", "aside/a", seen)
    assert not store.move_aside("a", "aside/b", seen)
    assert files(store) == ["aside/a"]


def test_sweep_removes_what_the_dead_of_this_host_left(store: FileStore) -> None:
    mine = temporary_names.name("a.warc.gz")
    _, host, boot, _, random, _ = mine.rsplit(".", 5)
    dead = f".a.warc.gz.{host}.{boot}.{DEAD_PID}.{random}.tmp"
    elsewhere = f".a.warc.gz.elsewhere.{boot}.{DEAD_PID}.{random}.tmp"
    earlier = f".a.warc.gz.{host}.00000000.1.{random}.tmp"
    kept = [mine, elsewhere, "a.tmp", ".hidden"]
    for name in (*kept, dead, earlier):
        (store.base / name).write_bytes(b"half")
    assert store.sweep("") == 2
    assert files(store) == sorted(kept)


def test_a_killed_process_that_is_not_reaped_yet_is_dead(store: FileStore) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    with child:
        name = temporary_names.name("a").replace(f".{os.getpid()}.", f".{child.pid}.")
        (store.base / name).write_bytes(b"half")
        assert store.sweep("") == 0
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert store.sweep("") == 1


def test_a_line_appended_after_a_torn_one_stands_alone(store: FileStore) -> None:
    store.append("log", b"one")
    with store.real("log").open("ab") as file:
        file.write(b'{"torn')
    store.append("log", b"two")
    assert store.real("log").read_bytes() == b'one\n{"torn\ntwo\n'


def test_reports_may_be_replaced(store: FileStore) -> None:
    store.replace("r/info.json", b"1")
    store.replace("r/info.json", b"22")
    assert store.real("r/info.json").read_bytes() == b"22"
    assert files(store) == ["r/info.json"]


def test_a_small_file_is_read_at_once_as_it_is_opened(store: FileStore) -> None:
    commit(store, DATA)
    assert store.read(PATH, len(DATA) + 1) == DATA
    assert store.read(PATH, 7) == DATA[:7]
    assert store.read_end(PATH, len(DATA) + 1) == (DATA, len(DATA))
    assert store.read_end(PATH, 7) == (DATA[-7:], len(DATA))
    commit(store, b"", "empty")
    assert (store.read("empty", 7), store.read_end("empty", 7)) == (b"", (b"", 0))
    for read in (store.read, store.read_end):
        with pytest.raises(NotReady):
            read(f"{PATH}.not", 7)
        with pytest.raises(BadInput):
            read("../a", 7)
        with pytest.raises(Unavailable):
            read(PATH.rpartition("/")[0], 7)
    (store.base / SENTINEL).unlink()
    for read in (store.read, store.read_end):
        with pytest.raises(Unavailable, match="Mount the disk"):
            read(f"{PATH}.not", 7)


def test_a_small_file_that_comes_in_parts_is_read_whole(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store, DATA)
    whole = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, most: whole(descriptor, min(most, 7_777)))
    assert store.read(PATH, len(DATA) + 1) == DATA
    assert store.read(PATH, 7) == DATA[:7]
