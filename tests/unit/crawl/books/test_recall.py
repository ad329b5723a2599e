"""Recorded answers: found by the books, read from the WARC as they came."""

from __future__ import annotations

import asyncio
import gzip
from contextlib import closing
from pathlib import Path

import pytest
from crawls import killed_books

from warcmill.crawl.books.books import BookEntry, Books, open_books
from warcmill.crawl.books.files import Folders, recall
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.uri import Status, make
from warcmill.errors import BadInput, Unavailable
from warcmill.formats.warc import records
from warcmill.formats.warc.records import Block, Capture

URI = "http://h.example/a.css"
LONG = bytes(range(256)) * 8192  # 2 MiB
PACKED = gzip.compress(b"x", mtime=0)


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    return killed_books.new_folder(tmp_path / "crawl")


async def opened(crawl: Path, launch: str = killed_books.LAUNCH) -> Books:
    frontier = SqliteFrontier(crawl / "books.sqlite")
    folders = Folders(crawl / "warcs", crawl / "logs")
    return await open_books(
        frontier, frontier.register, launch, folders, lambda n: killed_books.warc_files(crawl, n)
    )  # fmt: skip


def entry(raw: bytes, *, may_recall: bool = True, crawl: str = "") -> BookEntry:
    """An answer that was fetched besides the frontier."""
    uri = make(URI, crawl=crawl)
    uri.status = Status.PARSED
    answer = records.response(Capture(URI, "2026-11-21T08:18:44Z"), Block.of(raw), "", "time")
    return BookEntry(uri, None, [answer], killed_books.line(uri), may_recall=may_recall)


def recalled(crawl: Path, raw: bytes) -> list[object]:
    """What is read of an answer that was recorded: from the WARC that is open, and once it is closed."""

    async def scenario() -> list[object]:
        found: list[object] = []
        books = await opened(crawl)
        await books.keep(entry(raw))
        for is_last in (False, True):
            path, offset = await books.find("", URI) or (crawl, 0)
            answer = recall(URI, path, offset, crawl)
            payload = b"".join(answer.payload())
            found.append((path.suffix, answer.status, answer.fields.pairs, payload, answer.truncated))
            answer.close()
            if not is_last:
                await books.rotate(killed_books.STAGE)
        await books.close()
        return found

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("raw", "payload"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"HTTP/1.1 301 Moved\r\nLocation: /b.css\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + PACKED, PACKED),
        (b"HTTP/1.1 200 OK\r\n\r\n" + LONG, LONG),
        (b"no head at all", b"no head at all"),
    ],
    ids=["length", "chunks", "redirect", "gzip", "long", "http 0.9"],
)
def test_an_answer_is_read_as_it_came(crawl: Path, raw: bytes, payload: bytes) -> None:
    is_open, is_closed = recalled(crawl, raw)
    assert [is_open[0], is_closed[0]] == [".open", ".gz"]  # type: ignore[index]
    for found in (is_open, is_closed):
        assert found[3:] == (payload, "time")  # type: ignore[index]
    assert is_open[1] == (301 if b"301" in raw else 200)  # type: ignore[index]


def test_only_what_may_be_recalled_is_found_in_its_own_crawl_and_launch(crawl: Path) -> None:
    async def scenario() -> None:
        books = await opened(crawl)
        await books.keep(entry(b"HTTP/1.1 200 OK\r\n\r\n", may_recall=False))
        assert await books.find("", URI) is None
        await books.keep(entry(b"HTTP/1.1 200 OK\r\n\r\n", crawl="other"))
        assert await books.find("", URI) is None
        found = await books.find("other", URI)
        await books.close()
        books = await opened(crawl)  # the same launch once more
        assert found
        assert await books.find("other", URI) == (found[0].with_suffix(""), found[1])
        await books.close()
        books = await opened(crawl, "20261122081844")
        assert await books.find("other", URI) is None  # its WARC is another launch's
        await books.close()

    asyncio.run(scenario())


def test_a_warc_that_was_closed_since_it_was_found_is_read(crawl: Path) -> None:
    """A WARC that is full gets its final name, and a page that is open stops no crawl by that."""

    async def scenario() -> None:
        books = await opened(crawl)
        await books.keep(entry(b"HTTP/1.1 200 OK\r\n\r\n"))
        found = await books.find("", URI)
        await books.close()
        assert found
        assert not found[0].exists()
        with closing(recall(URI, *found, crawl)) as answer:
            assert answer.status == 200

    asyncio.run(scenario())


def test_a_warc_that_was_taken_away_has_nothing(crawl: Path) -> None:
    async def scenario() -> None:
        books = await opened(crawl)
        await books.keep(entry(b"HTTP/1.1 200 OK\r\n\r\n"))
        await books.rotate(killed_books.STAGE)
        for path in (crawl / "warcs").iterdir():
            path.unlink()
        assert await books.find("", URI) is None
        await books.close()

    asyncio.run(scenario())


def test_another_record_and_a_lost_file_are_named(crawl: Path) -> None:
    async def scenario() -> None:
        books = await opened(crawl)
        await books.keep(entry(b"HTTP/1.1 200 OK\r\n\r\n"))
        path, offset = await books.find("", URI) or (crawl, 0)
        for at in (0, offset):
            with pytest.raises(BadInput, match="it is another"):
                recall(URI if at == 0 else f"{URI}2", path, at, crawl)
        with pytest.raises(Unavailable, match=r"lost\.warc\.gz"):
            recall(URI, path.with_name("lost.warc.gz"), offset, crawl)
        await books.close()

    asyncio.run(scenario())
