"""Workers of a launch whose frontier is in a real Redis: who leads begins it, and who does not joins it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from redis import Redis

from servers.redis import RedisServer
from warcmill.crawl.books.books import Books, open_books
from warcmill.crawl.books.files import Folders
from warcmill.crawl.frontier import database
from warcmill.crawl.frontier.link import RedisLink, RedisPlace
from warcmill.crawl.frontier.redis import RedisFrontier
from warcmill.crawl.frontier.register import Register
from warcmill.crawl.uri import make
from warcmill.errors import Unavailable
from warcmill.formats.warc.writer import WarcFiles, Writer

LEADS, JOINS = True, False


async def opened(server: RedisServer, folder: Path, launch: str, leads: bool) -> Books:
    """The books of a launch in a folder, by whom leads or by a worker."""
    folders = Folders(folder / launch / "warcs", folder / launch / "logs")
    for one in (folders.warcs, folders.logs):
        one.mkdir(parents=True, exist_ok=True)
    register = Register(database.open_database(folder / "db"), folder / "db", is_shared=True)
    place = RedisPlace(server.url, prefix=folder.parent.name.replace("_", "-"))
    frontier = RedisFrontier(RedisLink(place, "job"), register, leads=leads)
    writer = Writer("job", 1, "host")
    try:
        return await open_books(frontier, register, launch, folders, lambda n: WarcFiles(folders.warcs, writer, (), n))
    except BaseException:
        await frontier.close()
        raise


async def offer(books: Books, *names: str) -> None:
    await books.frontier.offer([make(f"http://{name}.example/") for name in names])


async def waits(books: Books) -> int:
    return (await books.frontier.waiting(10)).queued


def test_a_worker_joins_the_launch_that_redis_has_and_begins_none(redis: RedisServer, tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(Unavailable, match="Redis has no launch"):
            await opened(redis, tmp_path / "worker", "1", JOINS)
        leader = await opened(redis, tmp_path / "leader", "1", LEADS)
        worker = await opened(redis, tmp_path / "worker", "1", JOINS)
        await offer(leader, "a")
        await offer(worker, "b")
        assert await waits(leader) == 2
        await worker.close()
        await leader.close()

    asyncio.run(main())


def test_what_a_worker_has_of_a_launch_that_is_over_stays_out_of_the_next(redis: RedisServer, tmp_path: Path) -> None:
    async def main() -> None:
        leader = await opened(redis, tmp_path / "leader", "1", LEADS)
        worker = await opened(redis, tmp_path / "worker", "1", JOINS)
        await offer(worker, "before")
        await leader.close()
        leader = await opened(redis, tmp_path / "leader", "2", LEADS)
        await offer(worker, "late")
        assert await waits(leader) == 0
        assert worker.frontier.is_over
        assert await worker.frontier.lease("w", 5) == []
        await worker.close()
        worker = await opened(redis, tmp_path / "worker", "2", JOINS)
        await offer(worker, "of", "two")
        assert await waits(leader) == 2
        await worker.close()
        await leader.close()

    asyncio.run(main())


def test_an_emptied_redis_hears_the_journals_of_all_when_the_leader_has_begun_anew(
    redis: RedisServer, tmp_path: Path
) -> None:
    async def main() -> None:
        leader = await opened(redis, tmp_path / "leader", "1", LEADS)
        worker = await opened(redis, tmp_path / "worker", "1", JOINS)
        await offer(leader, "a", "b")
        await offer(worker, "c", "d", "e")
        assert len(await worker.frontier.lease("w", 2)) == 2
        Redis(port=redis.port).flushall()
        assert await worker.frontier.lease("w", 1) == []  # it waits for the leader
        assert not worker.frontier.is_over
        await offer(worker, "f")
        assert await leader.frontier.lease("l", 1) == []  # it sees that all is lost, and begins anew
        assert await waits(leader) == 2
        deadline = time.monotonic() + 20
        while await waits(leader) < 6 and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        assert await waits(leader) == 6
        assert len([*await leader.frontier.lease("l", 6), *await worker.frontier.lease("w", 6)]) == 6
        await worker.close()
        await leader.close()

    asyncio.run(main())
