"""The books of a launch: groups, faults of each disk, launches after each other."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from crawls import killed_books
from crawls.faulty_sqlite import failing as failing_sqlite
from msgspec.structs import replace

from warcmill.crawl.books import books as books_module
from warcmill.crawl.books.books import Begins, BookEntry, Books, Kept, open_books
from warcmill.crawl.books.files import Folders
from warcmill.crawl.frontier import Gate, Intake, Lease, Rate, database, sqlite
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.uri import Status, make
from warcmill.errors import BadInput, Busy, Conflict, Foreign, Mismatch, NotReady, Unavailable, WarcmillError
from warcmill.formats.warc.records import Block

LAUNCH = killed_books.LAUNCH


def folders(folder: Path) -> Folders:
    return Folders(folder / "warcs", folder / "logs")


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return killed_books.new_folder(tmp_path / "crawl")


@asynccontextmanager
async def opened(crawl: Path, launch: str = LAUNCH, begins: Begins = Begins.FRESH) -> AsyncIterator[Books]:
    """Books that are closed in order."""
    frontier = SqliteFrontier(crawl / "books.sqlite", now=lambda: killed_books.MOMENT)
    try:
        books = await open_books(
            frontier, frontier.register, launch, folders(crawl), lambda n: killed_books.warc_files(crawl, n), begins
        )
    except BaseException:
        await frontier.close()
        raise
    await frontier.set_rate(Gate(""), Rate(at_once=None))
    try:
        yield books
    finally:
        await books.close()


async def leases(books: Books, *numbers: int) -> list[Lease]:
    await books.frontier.offer([make(killed_books.page(number)) for number in numbers])
    return await books.frontier.lease("h", 100)


def fetched(books: Books, lease: Lease) -> BookEntry:
    """The result of a visit."""
    books.frontier.transitions.update(lease.uri, Status.DOWNLOADING)
    books.frontier.transitions.update(lease.uri, Status.PARSED, http_status=200)
    records, line = killed_books.made(lease.uri.uri), killed_books.line(lease.uri)
    return BookEntry(lease.uri, lease, records, line, may_recall=True)


async def keep(books: Books, *leased: Lease) -> list[Kept]:
    return await asyncio.gather(*(books.keep(fetched(books, lease)) for lease in leased))


def lines(crawl: Path) -> list[str]:
    return [one.uri for one in killed_books.read_logs(crawl)[0]]


def test_results_of_one_time_are_one_group(crawl: Path) -> None:
    async def scenario() -> None:
        async with opened(crawl) as books:
            kept = await keep(books, *await leases(books, 1, 2, 3))
            assert all(one.held for one in kept)
            assert {one.places[0].name for one in kept} == {kept[0].places[0].name}

    asyncio.run(scenario())
    assert len(lines(crawl)) == 3
    groups = [words for words in _groups(crawl) if "Fs" in words]
    assert groups == [["Fs", "Fs", "Fs", "Fg"]]


def _groups(crawl: Path) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for word, _ in killed_books.journal_lines(crawl):
        found[-1].append(word)
        if word == "Fg":
            found.append([])
    return found


def test_a_result_waits_for_others_but_not_for_long(crawl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books_module, "WAIT", 0.01)

    async def scenario() -> None:
        async with opened(crawl) as books:
            first, _ = await leases(books, 1, 2)
            assert (await books.keep(fetched(books, first))).held

    asyncio.run(scenario())
    assert lines(crawl) == [killed_books.page(1)]


def test_all_exchanges_of_a_result_are_in_one_warc_and_the_line_names_the_first(crawl: Path) -> None:
    async def scenario() -> list[Kept]:
        async with opened(crawl) as books:
            return await keep(books, *await leases(books, *range(40)))

    kept = asyncio.run(scenario())
    assert len(list((crawl / "warcs").iterdir())) > 2, "they were too many for one file"
    assert all(len({place.name for place in one.places}) <= 1 for one in kept)
    assert {len(one.places) for one in kept} == {0, 2, 4}
    assert not list((crawl / "warcs").glob("*.open"))
    assert _whole(crawl) == []


def test_what_was_found_is_answered_for_and_scheduled(crawl: Path) -> None:
    async def scenario() -> None:
        async with opened(crawl) as books:
            (lease,) = await leases(books, 1)
            found = [make("http://x.example/"), make(killed_books.page(1)), make("http://y.example/")]
            found[2].priority = 1 << 60
            kept = await books.keep(replace(fetched(books, lease), found=found))
            assert [one.answer for one in kept.offered] == [Intake.NEW, Intake.SEEN, Intake.REFUSED]
            assert [uri.status for uri in found] == [Status.SCHEDULED, Status.CREATED, Status.CREATED]

    asyncio.run(scenario())


def test_nothing_is_written_of_a_result_whose_lease_has_ended_or_is_given_twice(crawl: Path) -> None:
    async def scenario() -> None:
        async with opened(crawl) as books:
            (lease,) = await leases(books, 1)
            result = fetched(books, lease)
            kept = await asyncio.gather(books.keep(result), books.keep(result))
            assert sorted(one.held for one in kept) == [False, True]
            assert not (await books.keep(result)).held

    asyncio.run(scenario())
    assert lines(crawl) == [killed_books.page(1)]


def test_a_record_that_does_not_fit_its_header_fails_alone(crawl: Path) -> None:
    async def scenario() -> None:
        async with opened(crawl) as books:
            bad, good = await leases(books, 1, 2)
            result = fetched(books, bad)
            (first, *rest) = result.records
            broken = first._replace(block=Block(first.block.length + 1, "", first.block.pieces))
            fates = await asyncio.gather(
                books.keep(replace(result, records=[broken, *rest])), *[keep(books, good)], return_exceptions=True
            )
            assert isinstance(fates[0], Mismatch)
            assert fates[1][0].held  # type: ignore[index]

    asyncio.run(scenario())
    assert lines(crawl) == [killed_books.page(2)]


def test_a_result_that_no_books_take_is_refused_before_it_is_written(crawl: Path) -> None:
    async def scenario() -> None:
        async with opened(crawl) as books:
            (lease,) = await leases(books, 1)
            result = fetched(books, lease)
            with pytest.raises(BadInput, match="200 is the limit"):
                await books.keep(replace(result, history=b"h" * 201))
            assert (await books.keep(result)).held

    asyncio.run(scenario())


# Faults

FAULTS = {
    "the WARC, at a write": ("pwrite", ".warc"),
    "the WARC, at a write, which cannot be taken back": ("pwrite ftruncate", ".warc"),
    "the WARC, at fdatasync": ("fdatasync", ".warc"),
    "a new WARC": ("open", ".warc"),
    "crawl.log, at a write": ("write", "crawl.log"),
    "crawl.log, at fdatasync": ("fdatasync", "crawl.log"),
    "the journal, at a write": ("write", "frontier.recover"),
    "the journal, at fdatasync": ("fdatasync", "frontier.recover"),
}


def failing(monkeypatch: pytest.MonkeyPatch, calls: str, kind: str, number: int) -> Callable[[], None]:
    """Let some calls fail on one kind of file; return what mends them."""
    mends = [_failing(monkeypatch, call, kind, number) for call in calls.split()]
    return lambda: [mend() for mend in mends] and None


def _failing(monkeypatch: pytest.MonkeyPatch, call: str, kind: str, number: int) -> Callable[[], None]:
    real = getattr(os, call)

    def fails(target: Any, *args: Any, **more: Any) -> Any:
        if killed_books._kind(target) == kind and not (call == "open" and not args[0] & os.O_CREAT):
            if call in ("write", "pwrite"):
                real(target, args[0][: len(args[0]) // 2], *args[1:])  # the disk takes some
            raise OSError(number, os.strerror(number))
        return real(target, *args, **more)

    monkeypatch.setattr(os, call, fails)
    return lambda: monkeypatch.setattr(os, call, real)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "error"])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_books_stop_at_a_fault_of_a_disk_name_it_and_go_on_when_it_is_mended(
    crawl: Path, monkeypatch: pytest.MonkeyPatch, fault: str, number: int
) -> None:
    async def broken() -> None:
        async with opened(crawl) as books:
            assert (await keep(books, (await leases(books, 1))[0]))[0].held
            if "new" in fault:
                books._files._warcs.sync()
                books._files._warcs.close()
            (lease,) = await leases(books, 2)
            mend = failing(monkeypatch, *FAULTS[fault], number)
            result = fetched(books, lease)
            with pytest.raises(Unavailable, match=rf"{FAULTS[fault][1]}.* is unavailable: {os.strerror(number)}"):
                await books.keep(result)
            mend()
            assert isinstance(books.stopped, Unavailable)
            for late in (books.frontier.lease("h", 1), books.frontier.offer([]), books.keep(result)):
                with pytest.raises(WarcmillError):
                    await late

    async def mended() -> None:
        async with opened(crawl) as books:
            kept = await keep(books, *await books.frontier.lease("h", 10))
            assert [one.held for one in kept] == [True], "the lease of the group that failed waits again"

    asyncio.run(broken())
    asyncio.run(mended())
    assert lines(crawl) == [killed_books.page(1), killed_books.page(2)]
    assert _whole(crawl) == []


def _whole(crawl: Path) -> list[str]:
    with database.sqlite3.connect(crawl / "books.sqlite") as db:
        return killed_books.violations(crawl, db)


def test_a_full_disk_under_the_database_stops_the_books(crawl: Path) -> None:
    async def broken() -> None:
        async with opened(crawl) as books:
            await keep(books, *await leases(books, 1))
            (lease,) = await leases(books, 2)
            pages = books.frontier.db.execute("PRAGMA page_count").fetchone()[0]
            books.frontier.db.execute(f"PRAGMA max_page_count={pages}")
            found = [make(f"http://{n}.example/{'x' * 900}") for n in range(90)]
            with pytest.raises(Unavailable, match=r"books\.sqlite is unavailable: database or disk is full"):
                await books.keep(replace(fetched(books, lease), found=found))

    async def mended() -> None:
        async with opened(crawl) as books:
            assert books.mended, "what the group had written was cut"
            assert [one.held for one in await keep(books, *await books.frontier.lease("h", 10))] == [True]

    asyncio.run(broken())
    asyncio.run(mended())
    assert _whole(crawl) == []


DATABASE = {
    "its log, at a write": ("log", "xWrite", 0),
    "its log, at a sync": ("log", "xSync", 1),
    "its file, at a write": ("database", "xWrite", 1),
    "its file, at a sync": ("database", "xSync", 1),
    "its file, at a read": ("database", "xRead", 0),
}


@pytest.mark.parametrize("fault", DATABASE)
def test_an_error_of_the_disk_under_the_database_stops_the_books(
    crawl: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Also where SQLite would keep it to itself: while it brings its log into the file."""
    file, method, kept_before = DATABASE[fault]

    async def broken() -> None:
        async with opened(crawl) as books:
            await keep(books, *await leases(books, 1))
            (lease,) = await leases(books, 2)
            if file == "database":
                books.frontier.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()  # so that the file has pages
                books.frontier.db.execute("PRAGMA shrink_memory")
            calls = failing_sqlite(books.frontier.db, file, method)
            if kept_before:
                assert (await books.keep(fetched(books, lease))).held
                assert calls() == 0, "a commit is in the log alone"
                monkeypatch.setattr(sqlite, "WRITE_BACK_AT", 0)
            with pytest.raises(Unavailable, match=r"books\.sqlite is unavailable: disk I/O error"):
                await (books.frontier.lease("h", 1) if kept_before else books.keep(fetched(books, lease)))
            assert calls() > 0
            assert isinstance(books.stopped, Unavailable)

    async def mended() -> None:
        async with opened(crawl) as books:
            kept = await keep(books, *await books.frontier.lease("h", 10))
            assert [one.held for one in kept] == [True] * (1 - kept_before)

    asyncio.run(broken())
    monkeypatch.undo()
    asyncio.run(mended())
    assert lines(crawl) == [killed_books.page(1), killed_books.page(2)]
    assert _whole(crawl) == []


def test_a_long_log_of_the_database_is_brought_into_its_file(crawl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "WRITE_BACK_AT", 10)

    async def scenario() -> None:
        async with opened(crawl) as books:
            await books.frontier.offer([make(killed_books.page(number)) for number in range(60)])
            before = (crawl / "books.sqlite").stat().st_size
            await books.frontier.count()
            assert (crawl / "books.sqlite").stat().st_size > before

    asyncio.run(scenario())


def test_tails_are_kept_and_never_written_over(crawl: Path) -> None:
    async def once() -> tuple[str, ...]:
        async with opened(crawl) as books:
            await keep(books, *await leases(books, *range(3)))
            return books.mended

    asyncio.run(once())
    for number in (1, 2):
        with (crawl / "logs" / "crawl.log").open("ab") as log:
            log.write(b"tail %d" % number)
        assert any("crawl.log was cut" in text for text in asyncio.run(once()))
    (crawl / "warcs" / "T-20261122000000000-00099-1~h~0.warc.gz.open").write_bytes(b"unknown")
    assert any("holds nothing that the books know" in text for text in asyncio.run(once()))
    assert (crawl / "logs" / "crawl.log.orphan").read_bytes() == b"tail 1"
    assert (crawl / "logs" / "crawl.log.2.orphan").read_bytes() == b"tail 2"
    assert (crawl / "warcs" / "T-20261122000000000-00099-1~h~0.warc.gz.orphan").read_bytes() == b"unknown"
    assert _whole(crawl) == []


def test_a_file_that_has_lost_what_was_durable_is_named(crawl: Path) -> None:
    async def once() -> None:
        async with opened(crawl) as books:
            await keep(books, *await leases(books, 1))

    asyncio.run(once())
    os.truncate(crawl / "logs" / "crawl.log", 10)
    with pytest.raises(Mismatch, match=r"the length of .*crawl\.log by the crawl's books: expected \d+, found 10"):
        asyncio.run(once())
    (crawl / "logs" / "crawl.log").unlink()
    with pytest.raises(Mismatch, match=r"crawl\.log by the crawl's books: expected \d+, found no file"):
        asyncio.run(once())


# Launches


def next_launch(crawl: Path) -> None:
    for name in ("warcs", "logs"):
        shutil.rmtree(crawl / name)
        (crawl / name).mkdir()


def test_a_fresh_launch_may_visit_all_again_with_what_the_last_has_left(crawl: Path) -> None:
    async def first() -> None:
        async with opened(crawl) as books:
            (one,) = await leases(books, 1)
            await books.keep(replace(fetched(books, one), history=b"digest"))
            await books.frontier.offer([make(killed_books.page(2))])

    async def second() -> None:
        async with opened(crawl, "20261122000000") as books:
            assert [(one.uri.uri, one.history) for one in await leases(books, 1)] == [(killed_books.page(1), b"digest")]
            assert (await books.frontier.count())[Status.PARSED] == 0

    asyncio.run(first())
    next_launch(crawl)
    asyncio.run(second())


def test_a_launch_that_continues_has_what_waits_and_has_seen_what_was_seen(crawl: Path) -> None:
    async def first() -> None:
        async with opened(crawl) as books:
            await keep(books, *await leases(books, 1))
            await books.frontier.offer([make(killed_books.page(2)), make(killed_books.page(3), not_before=2e9)])

    async def second() -> None:
        async with opened(crawl, "20261122000000", Begins.CONTINUES) as books:
            assert [one.uri.uri for one in await leases(books, 1)] == [killed_books.page(2)]
            assert [uri.uri for uri in (await books.frontier.list()).uris] == [
                killed_books.page(2),
                killed_books.page(3),
            ]

    asyncio.run(first())
    next_launch(crawl)
    asyncio.run(second())


def test_a_launch_that_follows_has_what_waits_at_its_time_and_all_else_may_come_again(crawl: Path) -> None:
    async def first() -> None:
        async with opened(crawl) as books:
            once, often = await leases(books, 1, 2)
            await keep(books, once)
            books.frontier.transitions.update(often.uri, Status.DOWNLOADING)
            books.frontier.transitions.update(often.uri, Status.PARSED, http_status=200)
            assert (await books.keep(BookEntry(often.uri, often, history=b"left", again=2e9))).held
            await books.frontier.offer([make(killed_books.page(3)), make(killed_books.page(4), not_before=2e9)])

    async def second() -> None:
        async with opened(crawl, "20261122000000", Begins.FOLLOWS) as books:
            counts = await books.frontier.count()
            assert (counts[Status.SCHEDULED], counts[Status.PARSED]) == (3, 0)
            waiting = {uri.uri: uri.not_before for uri in (await books.frontier.list()).uris}
            assert waiting == {killed_books.page(2): 2e9, killed_books.page(3): 0.0, killed_books.page(4): 2e9}
            found = await leases(books, 1, 2, 3, 4)
            assert [one.uri.uri for one in found] == [killed_books.page(3), killed_books.page(1)]

    asyncio.run(first())
    next_launch(crawl)
    asyncio.run(second())


def test_a_launch_continues_from_a_checkpoints_copy(crawl: Path) -> None:
    copy = crawl / "copy.sqlite"

    async def first() -> None:
        async with opened(crawl) as books:
            await keep(books, *await leases(books, 1))
            await books.frontier.offer([make(killed_books.page(2))])
            await books.rotate(killed_books.STAGE)
            await books.frontier.snapshot(copy)
            await keep(books, *await books.frontier.lease("h", 10))

    async def second() -> None:
        async with opened(crawl, "20261122000000", Begins.CONTINUES) as books:
            assert [one.uri.uri for one in await leases(books, 1)] == [killed_books.page(2)]

    asyncio.run(first())
    assert (crawl / "logs" / f"crawl.log.{killed_books.STAGE}").stat().st_size
    next_launch(crawl)
    os.replace(copy, crawl / "books.sqlite")
    asyncio.run(second())


def test_a_stage_that_was_rotated_already_is_refused_and_mixes_no_logs(crawl: Path) -> None:
    async def twice() -> None:
        async with opened(crawl) as books:
            await keep(books, *await leases(books, 1))
            await books.rotate(killed_books.STAGE)
            rotated = (crawl / "logs" / f"crawl.log.{killed_books.STAGE}").read_bytes()
            with pytest.raises(Conflict, match="is there already; nothing was renamed"):
                await books.rotate(killed_books.STAGE)
            assert (crawl / "logs" / f"crawl.log.{killed_books.STAGE}").read_bytes() == rotated

    asyncio.run(twice())


def test_no_launch_begins_over_one_that_was_killed(crawl: Path) -> None:
    killed_books.run(crawl, killed_books.Kill(100))

    async def other() -> None:
        async with opened(crawl, "20261122000000"):
            pass

    with pytest.raises(NotReady, match=f"launch {LAUNCH} was killed; open its books first"):
        asyncio.run(other())


# The database


def test_two_processes_never_have_one_database(crawl: Path) -> None:
    async def scenario() -> None:
        async with opened(crawl):
            with pytest.raises(Busy, match=r"the crawl of .*books\.sqlite"):
                SqliteFrontier(crawl / "books.sqlite")

    asyncio.run(scenario())


def test_a_network_file_system_is_refused(crawl: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_magic", lambda folder: 0x6969)
    with pytest.raises(Unavailable, match="it is on NFS; the crawler's database needs a local disk"):
        SqliteFrontier(crawl / "books.sqlite")


def test_the_type_of_a_real_file_system_is_read() -> None:
    assert database._magic(Path("/proc")) == 0x9FA0  # PROC_SUPER_MAGIC, statfs(2)
    with pytest.raises(Unavailable, match="No such file"):
        database._magic(Path("/no such folder"))


def test_another_programs_database_is_not_touched(crawl: Path) -> None:
    path = crawl / "books.sqlite"
    with database.sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(Foreign, match="not a database of this crawler"):
        SqliteFrontier(path)
    assert path.read_bytes() == before
