"""Checkpoints: their names and files, which are whole, and how a database comes back."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from crawls import killed_books, killed_checkpoints
from crawls.killed_checkpoints import NOW, THE_LAUNCH

from warcmill.crawl.books.books import Books, open_books
from warcmill.crawl.books.files import Folders
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.launch import checkpoint
from warcmill.crawl.launch.folders import LaunchFolders
from warcmill.crawl.launch.job_log import JobLog
from warcmill.crawl.logs.logs import Logs
from warcmill.crawl.logs.statistics import Statistics
from warcmill.crawl.uri import Status, make
from warcmill.errors import BadInput, Busy, Mismatch, NotReady, Unavailable
from warcmill.model import Launch, Stage

FIRST = "cp00001-20261121081902"


@dataclass
class Crawl:
    """A launch that is open."""

    books: Books
    logs: Logs
    folders: LaunchFolders
    base: Path

    async def take(self, now: str = NOW, launch: Launch = THE_LAUNCH, continues: Stage | None = None) -> Path:
        stage = checkpoint.next_stage(self.folders, now, continues)
        job_log = JobLog(self.folders.job, self.folders.own, launch)
        return await checkpoint.take(self.books, self.logs, job_log, Statistics(["http://a.example/"]), self.folders,
                                     launch, stage, "the row")  # fmt: skip


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return killed_checkpoints.new_folder(tmp_path / "crawl")


@asynccontextmanager
async def opened(base: Path) -> AsyncIterator[Crawl]:
    folders = killed_checkpoints.folders(base)
    frontier = SqliteFrontier(killed_checkpoints.database(base), now=lambda: killed_books.MOMENT)
    books = await open_books(
        frontier,
        frontier.register,
        THE_LAUNCH.id,
        Folders(folders.warcs, folders.logs),
        lambda n: killed_books.warc_files(base, n),
    )
    logs = Logs(folders.logs)
    try:
        yield Crawl(books, logs, folders, base)
    finally:
        await books.close()
        logs.close()


def taken(base: Path, times: int = 1) -> list[Path]:
    """Checkpoints of a crawl in which one URI more waits each time."""

    async def run() -> list[Path]:
        async with opened(base) as crawl:
            found = []
            for number in range(times):
                await crawl.books.frontier.offer([make(killed_books.page(number))])
                found.append(await crawl.take())
            return found

    return asyncio.run(run())


def waiting(path: Path) -> int:
    async def run() -> int:
        frontier = SqliteFrontier(path)
        counts = await frontier.count()
        await frontier.close()
        return counts[Status.SCHEDULED]

    return asyncio.run(run())


def test_a_checkpoint_has_heritrix_s_folder_and_name_and_valid(base: Path) -> None:
    (folder,) = taken(base)
    assert folder == base / "killed/checkpoints" / FIRST
    assert {path.name for path in folder.iterdir()} == {
        "books.sqlite", "statistics.json", "manifest.json", "valid", "crawl.toml", "seeds.txt", "surts.txt",
        "exclude.txt",
    }  # fmt: skip
    heading, row = (folder / "valid").read_text().split("\n")
    assert heading.split()[:2] == ["timestamp", "discovered"]
    assert row == "the row"
    found = checkpoint.read(folder, "killed")
    assert (found.launch, str(found.stage)) == (THE_LAUNCH, FIRST)
    assert checkpoint.statistics(found).seeds.keys() == {"http://a.example/"}
    for own in ("job.log", f"{THE_LAUNCH.id}/job.log"):
        assert (base / "killed" / own).read_text().endswith(f"INFO CHECKPOINTED {FIRST}\n")


def test_numbers_and_stamps_only_grow_whatever_the_clock_says(base: Path) -> None:
    names = [folder.name for folder in taken(base, 3)]
    assert names == [FIRST, "cp00002-20261121081903", "cp00003-20261121081904"]
    folders = killed_checkpoints.folders(base)
    assert str(checkpoint.next_stage(folders, "20200101000000")) == "cp00004-20261121081905"
    shutil.rmtree(folders.checkpoints)
    folders.checkpoints.mkdir()
    assert str(checkpoint.next_stage(folders, "20200101000000")) == "cp00004-20261121081905"  # its logs have it


def test_a_launch_that_continues_another_counts_on(tmp_path: Path) -> None:
    folders = killed_checkpoints.folders(tmp_path)
    folders.make()
    assert str(checkpoint.next_stage(folders, NOW, Stage.parse("cp00007-20261120000000"))) == f"cp00008-{NOW}"
    assert str(checkpoint.next_stage(folders, "20200101000000")) == "cp00001-20261121081845"  # after the launch's id
    (folders.logs / "crawl.log.cp99999-20261121081845").touch()
    with pytest.raises(BadInput, match="no number is left"):
        checkpoint.next_stage(folders, NOW)


def test_the_newest_whole_checkpoint_is_found_and_torn_ones_are_named(base: Path) -> None:
    first, second, third = taken(base, 3)
    launch = THE_LAUNCH
    (third / "valid").unlink()
    found = checkpoint.newest(first.parent, launch)
    assert found.checkpoint
    assert found.checkpoint.folder == second
    assert [text.partition(":")[0] for text in found.passed_over] == [third.name]
    assert "no 'valid'" in found.passed_over[0]
    with (second / "books.sqlite").open("ab") as file:
        file.write(b"x")
    found = checkpoint.newest(first.parent, launch)
    assert found.checkpoint
    assert found.checkpoint.folder == first
    assert "books.sqlite should have" in found.passed_over[1]
    (first / "seeds.txt").unlink()
    assert checkpoint.newest(first.parent, launch).checkpoint is None
    assert checkpoint.newest(base / "none", launch) == checkpoint.Found(None)


def test_a_checkpoint_of_another_launch_is_not_taken(base: Path) -> None:
    (folder,) = taken(base)
    earlier, later = Launch("killed", "20261121000000"), Launch("killed", "20261122000000")
    assert checkpoint.newest(folder.parent, earlier) == checkpoint.Found(None)
    assert checkpoint.newest(folder.parent, later) == checkpoint.Found(None)
    assert checkpoint.named(folder.parent, "killed", FIRST).launch == THE_LAUNCH
    with pytest.raises(NotReady, match="no such checkpoint"):
        checkpoint.named(folder.parent, "killed", "cp00009-20261121081902")
    with pytest.raises(BadInput, match="its manifest is that of killed"):
        checkpoint.named(folder.parent, "other", FIRST)


@pytest.mark.parametrize("change", [
    {"schema": 2}, {"files": []}, {"files": {}}, {"files": {"../x": {"size": 1, "sha512": "0" * 128}}}, {"launch": 5},
    {"files": {"books.sqlite": {"size": "1", "sha512": "0" * 128}}}, {"files": {"books.sqlite": {"size": 1}}},
])  # fmt: skip
def test_a_manifest_of_something_else_is_refused_by_name(base: Path, change: dict[str, object]) -> None:
    (folder,) = taken(base)
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(BadInput, match=r"manifest\.json cannot be used"):
        checkpoint.read(folder, "killed")


def test_a_database_comes_back_and_the_one_before_is_kept(base: Path) -> None:
    first, _ = taken(base, 2)
    target = killed_checkpoints.database(base)
    found = checkpoint.read(first, "killed")
    assert waiting(target) == 2
    before = checkpoint.database(found, target)
    assert before
    assert (waiting(target), waiting(before)) == (1, 2)
    assert checkpoint.database(found, target.with_name("new.sqlite")) is None


def test_a_write_ahead_log_of_the_database_before_is_not_replayed_into_the_new_one(base: Path, tmp_path: Path) -> None:
    (first,) = taken(base)
    target = killed_checkpoints.database(base)
    pid = os.fork()
    if pid == 0:  # dies with commits in its write-ahead log alone

        async def offer() -> None:
            await SqliteFrontier(target).offer([make(killed_books.page(n)) for n in range(1, 40)])
            os._exit(9)

        asyncio.run(offer())
    os.waitpid(pid, 0)
    assert target.with_name("books.sqlite-wal").stat().st_size > 0
    before = checkpoint.database(checkpoint.read(first, "killed"), target)
    assert before
    assert (waiting(target), waiting(before)) == (1, 40)


def test_only_the_last_database_before_is_kept(base: Path) -> None:
    first, second = taken(base, 2)
    target = killed_checkpoints.database(base)
    for folder in (first, second, first):
        before = checkpoint.database(checkpoint.read(folder, "killed"), target)
    assert before
    assert (waiting(target), waiting(before)) == (1, 2)
    assert [path.name for path in target.parent.iterdir() if "before" in path.name] == ["books.sqlite.before"]


def test_a_write_ahead_log_whose_database_is_gone_is_set_aside(base: Path) -> None:
    (first,) = taken(base)
    target = killed_checkpoints.database(base)
    target.unlink()
    target.with_name("books.sqlite-wal").write_bytes(b"of another")
    assert checkpoint.database(checkpoint.read(first, "killed"), target) is None
    assert waiting(target) == 1
    assert target.with_name("books.sqlite-wal.orphan").read_bytes() == b"of another"


def test_a_damaged_database_is_replaced_and_kept(base: Path) -> None:
    (first,) = taken(base)
    target = killed_checkpoints.database(base)
    target.write_bytes(b"nothing of the sort " * 1000)
    before = checkpoint.database(checkpoint.read(first, "killed"), target)
    assert before
    assert before.read_bytes().startswith(b"nothing of the sort")
    assert waiting(target) == 1


def test_a_database_in_use_is_not_replaced(base: Path) -> None:
    (first,) = taken(base)
    target = killed_checkpoints.database(base)
    user = SqliteFrontier(target)
    with pytest.raises(Busy):
        checkpoint.database(checkpoint.read(first, "killed"), target)
    asyncio.run(user.close())
    assert waiting(target) == 1


def test_a_copy_that_has_changed_is_refused_and_nothing_is_replaced(base: Path) -> None:
    (first,) = taken(base)
    with (first / "books.sqlite").open("r+b") as file:
        file.seek(5000)
        file.write(b"\xff")
    target = killed_checkpoints.database(base)
    with pytest.raises(Mismatch, match="SHA-512"):
        checkpoint.database(checkpoint.read(first, "killed"), target)
    assert waiting(target) == 1
    assert not [path for path in target.parent.iterdir() if path.name.endswith(".tmp")]


def test_without_its_root_s_sentinel_nothing_is_changed(base: Path) -> None:
    def refuse() -> None:
        raise Unavailable("root 'output'", ".warcmill.json: No such file")

    async def run() -> None:
        async with opened(base) as crawl:
            stage = checkpoint.next_stage(crawl.folders, NOW)
            with pytest.raises(Unavailable, match="output"):
                await checkpoint.take(crawl.books, crawl.logs, JobLog(base, base, THE_LAUNCH), Statistics(),
                                      crawl.folders, THE_LAUNCH, stage, "", refuse)  # fmt: skip
            assert not list(crawl.folders.logs.glob("*.cp0*"))
            assert not list(crawl.folders.checkpoints.iterdir())

    asyncio.run(run())


def test_a_full_disk_leaves_no_checkpoint_and_the_next_has_another_name(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> tuple[Path, Path]:
        async with opened(base) as crawl:
            await crawl.books.frontier.offer([make(killed_books.page(1))])
            with monkeypatch.context() as patched:
                patched.setattr(crawl.books.frontier, "db", _Backup(crawl.books.frontier.db))
                with pytest.raises(Unavailable, match="disk is full"):
                    await crawl.take()
            first = crawl.folders.checkpoints / FIRST
            return first, await crawl.take()

    torn, whole = asyncio.run(run())
    assert not (torn / "valid").exists()
    assert whole.name == "cp00002-20261121081903"
    found = checkpoint.newest(whole.parent, THE_LAUNCH)
    assert found.checkpoint
    assert found.checkpoint.folder == whole


@pytest.mark.parametrize("call", ["fsync", "open"])
def test_an_error_of_the_disk_below_a_snapshot_is_named(base: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    async def run() -> None:
        async with opened(base) as crawl:
            target, real = crawl.folders.checkpoints / "copy.sqlite", getattr(os, call)

            def fails(what: object, *more: object) -> object:
                path = os.readlink(f"/proc/self/fd/{what}") if isinstance(what, int) else str(what)
                if path == str(target):
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                return real(what, *more)

            with monkeypatch.context() as patched:
                patched.setattr(os, call, fails)
                with pytest.raises(Unavailable, match=r"copy\.sqlite is unavailable: Input/output error"):
                    await crawl.books.frontier.snapshot(target)
            assert crawl.books.stopped is None, "the crawl goes on without that checkpoint"

    asyncio.run(run())


class _Backup:
    """A connection whose copies meet a full disk."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def backup(self, *_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    def __getattr__(self, name: str) -> object:
        return getattr(self._db, name)
