"""What a person asks of a crawl that runs: a visit that is under way is kept, and what is asked for passes policies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from crawls import crawled
from sites.raw_server import serving

from warcmill.crawl.books.files import Folders
from warcmill.crawl.control.frontier import FrontierControl
from warcmill.crawl.control.messages import Subject
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.job.job import End, Retries
from warcmill.crawl.launch import database
from warcmill.crawl.launch.launch import Running
from warcmill.crawl.uri import Status

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
LATER = b"HTTP/1.1 503 Later\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nno"
Act = Callable[[FrontierControl, Subject], Awaitable[object]]


def steered(tmp_path: Path, act: Act, answer: bytes) -> tuple[End, list[str]]:
    """Crawl one page, and act on it while it is fetched the first time. Return the paths that were asked for."""
    asked, control = list[str](), list[FrontierControl]()

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            asked.append(head.split()[1].decode())
            if asked[-1] == "/" and asked.count("/") == 1:
                host = head.partition(b"Host: ")[2].partition(b"\r\n")[0].decode()
                await act(control[0], Subject(key=f"http://{host}/"))
            writer.write(OK if asked[-1] != "/" or asked.count("/") > 1 else answer)

    def opened(running: Running) -> None:
        control.append(FrontierControl(running.books.frontier))

    async def scenario() -> End:
        async with serving(answered) as server:
            job = crawled.job(server.port, "a.example", robots=False, retries=Retries(3, 0.01))
            return (await crawled.whole(tmp_path, job, opened))[0]

    return asyncio.run(scenario()), asked


def states_of(tmp_path: Path) -> list[Status]:
    """The status of the page in the database, and in one that is rebuilt from the journal."""

    async def look(path: Path) -> Status:
        frontier = SqliteFrontier(path)
        uri = crawled.lines(tmp_path)[-1].uri
        found = (await frontier.list(keys=[uri])).uris
        await frontier.close()
        return found[0].status

    async def both() -> list[Status]:
        path, folders = crawled.places(tmp_path).database("news"), crawled.places(tmp_path).folders(crawled.LAUNCH)
        before = await look(path)
        await database.rebuild(path, crawled.LAUNCH.id, Folders(folders.warcs, folders.logs))
        return [before, await look(path)]

    return asyncio.run(both())


VERBS = {"suspend": FrontierControl.suspend, "resume": FrontierControl.release, "remove": FrontierControl.remove}


@pytest.mark.parametrize("verb", VERBS)
def test_an_answer_is_kept_whatever_is_asked_for_while_it_comes(tmp_path: Path, verb: str) -> None:
    end, asked = steered(tmp_path, VERBS[verb], OK)
    assert (end, asked) == (End.EMPTY, ["/"])
    assert [line.status for line in crawled.lines(tmp_path)][-1:] == [200]
    assert crawled.unbalanced(tmp_path) == []
    assert states_of(tmp_path) == [Status.PARSED] * 2


@pytest.mark.parametrize(
    ("verb", "times", "status"),
    [("suspend", 1, Status.SUSPENDED), ("resume", 2, Status.PARSED), ("remove", 1, Status.REMOVED)],
)
def test_what_is_asked_for_while_a_page_is_fetched_in_vain_takes_effect_after_it(
    tmp_path: Path, verb: str, times: int, status: Status
) -> None:
    end, asked = steered(tmp_path, VERBS[verb], LATER)
    assert (end, asked) == (End.EMPTY, ["/"] * times)
    assert [line.status for line in crawled.lines(tmp_path) if line.status != 1001] == [503, 200][:times]
    assert crawled.unbalanced(tmp_path) == []
    assert states_of(tmp_path) == [status] * 2
