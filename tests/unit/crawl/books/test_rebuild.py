"""A damaged database is named, and made again from the journal and the files of the launch."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from crawls import killed_books

from warcmill.crawl.books.books import BookEntry, Books, open_books
from warcmill.crawl.books.files import Folders
from warcmill.crawl.frontier import Defer, Finish, Gate, Intake, Rate
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.launch.database import rebuild
from warcmill.crawl.uri import FOREVER, Status, make
from warcmill.errors import BadInput, NotReady

KILLS = (40, 120, 200, 260)


def folders(folder: Path) -> Folders:
    return Folders(folder / "warcs", folder / "logs")


def damage(database: Path) -> None:
    """Write over much of the database, as a failing disk does."""
    for path in (Path(f"{database}-wal"), Path(f"{database}-shm")):
        path.unlink(missing_ok=True)
    data = bytearray(database.read_bytes())
    data[2048:] = random.Random(1).randbytes(len(data) - 2048)
    database.write_bytes(data)


def checkpointed(database: Path) -> None:
    """Bring all of the WAL into the file, so that damage to that meets everything."""
    with sqlite3.connect(database) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def spent_in(database: Path) -> list[tuple[object, ...]]:
    """What quotas have counted."""
    with closing(sqlite3.connect(database)) as db:
        return db.execute("SELECT * FROM spent").fetchall()


@pytest.mark.parametrize("at", KILLS)
def test_a_crawl_whose_database_was_damaged_goes_on_and_loses_nothing(tmp_path: Path, at: int) -> None:
    crawl = killed_books.new_folder(tmp_path / "crawl")
    killed_books.run(crawl, killed_books.Kill(at))
    database = crawl / "books.sqlite"
    checkpointed(database)
    spent = spent_in(database)
    damage(database)
    with pytest.raises(BadInput, match=r"books\.sqlite: the database is damaged .* can be rebuilt from the journal"):
        asyncio.run(killed_books.crawl(crawl))
    assert asyncio.run(rebuild(database, killed_books.LAUNCH, folders(crawl))) > 0
    assert (crawl / "books.sqlite.orphan").exists(), "the damaged one is kept"
    assert spent_in(database) == spent
    assert killed_books.run(crawl) == 0
    assert killed_books.at_the_end(crawl) == []


def test_without_a_journal_nothing_is_touched(tmp_path: Path) -> None:
    crawl = killed_books.new_folder(tmp_path / "crawl")
    (crawl / "books.sqlite").write_bytes(b"x")
    with pytest.raises(NotReady, match="no journal"):
        asyncio.run(rebuild(crawl / "books.sqlite", killed_books.LAUNCH, folders(crawl)))
    assert (crawl / "books.sqlite").read_bytes() == b"x"


def test_all_of_a_uri_and_of_its_visits_comes_back(tmp_path: Path) -> None:
    crawl = killed_books.new_folder(tmp_path / "crawl")
    before, after = asyncio.run(_before(crawl)), asyncio.run(_after(crawl))
    assert before == after
    assert len(before) == 8


async def _opened(crawl: Path) -> tuple[SqliteFrontier, Books]:
    frontier = SqliteFrontier(crawl / "books.sqlite", now=lambda: killed_books.MOMENT)
    books = await open_books(
        frontier, frontier.register, killed_books.LAUNCH, folders(crawl), lambda n: killed_books.warc_files(crawl, n)
    )
    return frontier, books


async def _before(crawl: Path) -> list[object]:
    """Do all that may be done to a URI."""
    frontier, books = await _opened(crawl)
    await frontier.set_rate(Gate(""), Rate(at_once=None))
    offered = [
        make("http://a.example/1", key="the key", hops="LE", via="http://v.example/", source="http://s.example/",
             payload='{"age": "é { }"}', priority=4, cluster="k"),
        make("http://a.example/2", source="http://a.example/2", crawl="c"),
        make("data:,with a space", hops="a b"),
        make("http://a.example/later", not_before=killed_books.MOMENT + 5000),
        make("http://a.example/never", not_before=FOREVER),
        *(make(f"http://b.example/{n}") for n in range(6)),
        make("http://gone.example/", crawl="purged"),
    ]  # fmt: skip
    assert {one.answer for one in await frontier.offer(offered)} == {Intake.NEW}
    await frontier.purge("purged")
    leases = {lease.uri.uri: lease for lease in await frontier.lease("h", 100)}
    for number, status in ((0, Status.PARSED), (1, Status.FAILED), (2, Status.PARSED)):
        frontier.transitions.update(leases[f"http://b.example/{number}"].uri, Status.DOWNLOADING, tries=number + 1)
        frontier.transitions.update(leases[f"http://b.example/{number}"].uri, status, http_status=404)
    await frontier.finish([Finish(leases["http://b.example/0"], b"\0history"), Finish(leases["http://b.example/1"])])
    await frontier.finish([Finish(leases["http://b.example/2"], b"h", again=killed_books.MOMENT + 60)])
    waiting = leases["http://b.example/3"]
    frontier.transitions.update(waiting.uri, Status.DOWNLOADING, tries=3)
    await frontier.defer([Defer("", waiting.uri.key, killed_books.MOMENT + 9, waiting)])
    await frontier.defer([Defer("", "http://b.example/4", FOREVER), Defer("", "data:,with a space", 2e9)])
    await frontier.remove("", ["http://b.example/5"])
    asked = [leases[uri] for uri in ("http://b.example/4", "data:,with a space", "http://b.example/5")]
    ends = [Defer(one.uri.crawl, one.uri.key, 0.0, one) for one in asked]  # what was asked for takes effect
    assert await frontier.defer(ends) == [True] * 3
    for number, memory in enumerate(({"cookie": "é", "state": "1"}, {"state": "", "more": "2"})):
        visited = make(f"http://spider.example/{number}", crawl="c", spider="s")
        visited.status = Status.PARSED
        await books.keep(BookEntry(visited, memory=memory))
    return await _seen(frontier)


async def _after(crawl: Path) -> list[object]:
    (crawl / "books.sqlite-wal").unlink(missing_ok=True)
    await rebuild(crawl / "books.sqlite", killed_books.LAUNCH, folders(crawl))
    frontier, _ = await _opened(crawl)
    return await _seen(frontier)


async def _seen(frontier: SqliteFrontier) -> list[object]:
    """All that a frontier shows, and close it as a kill would."""
    counts = [dict(await frontier.count(crawl)) for crawl in ("", "c", "purged")]
    for one in counts:  # what is out waits again
        one[Status.SCHEDULED] += one.pop(Status.DOWNLOADING)
    remembered = (await frontier.memory("s")).texts
    assert remembered == {"cookie": "é", "more": "2"}
    found: list[object] = [*counts]
    names = ("key", "uri", "queue", "crawl", "hops", "via", "source", "priority", "payload", "cluster", "tries")
    found += [
        sorted(tuple(str(getattr(uri, name)) for name in names) for uri in (await frontier.list(crawl)).uris)
        for crawl in ("", "c", "purged")
    ]
    found.append(sorted(frontier.db.execute("SELECT digest, id IS NULL, visit FROM seen").fetchall()))
    found.append(
        [
            one.answer
            for one in await frontier.offer([make("http://b.example/5"), make("http://a.example/2", crawl="c")])
        ]
    )
    await frontier.close()
    return found
