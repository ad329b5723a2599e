"""A crawl of a real site that is killed anywhere goes on from its books: nothing is fetched twice, nothing is lost."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import crawled
import killed_books
import pytest
from killed_books import Kill
from several_hosts import Page, page, serve

from warcmill.crawl.opening import open_launch

HOSTS = ("a.example", "b.example", "c.example")
PAGES = 15
KILLS = 20


def web() -> dict[tuple[str, str], Page]:
    """Three hosts with pages that link to the next ones."""
    found = {
        (host, f"/{n}"): page([f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES], filler=n * 40)
        for host in HOSTS
        for n in range(PAGES)
    }
    return {
        **found,
        **{(host, "/"): page(["/0"]) for host in HOSTS},
        **{(host, "/robots.txt"): Page(b"User-agent: *\nDisallow: /none\n", "text/plain") for host in HOSTS},
    }


def expected() -> set[str]:
    paths = ["", "robots.txt", *map(str, range(PAGES))]
    return {f"http://{host}/{path}" for host in HOSTS for path in paths} | {f"dns:{host}" for host in HOSTS}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serve(web()) as port:
        yield port


def crawling(port: int) -> Callable[[Path], Coroutine[Any, Any, None]]:
    """Crawl to the end, from whatever is there."""

    async def crawl(folder: Path) -> None:
        job = crawled.job(port, *HOSTS, warc_size=10_000)
        running = await open_launch(crawled.places(folder), job, crawled.LAUNCH)
        await running.close(await running.crawl())

    return crawl


@pytest.fixture(scope="module")
def names(port: int, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The calls that touch the disk, of a crawl that nothing disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    assert killed_books.run(folder, None, folder / "trace", crawling(port)) == 0
    assert wrong(folder) == []
    return (folder / "trace").read_text().splitlines()


def wrong(folder: Path) -> list[str]:
    """What is wrong with a crawl that has ended."""
    logged = Counter(crawled.plain(line.uri) for line in crawled.lines(folder))
    return [
        *crawled.unbalanced(folder),
        *(f"{uri} was lost" for uri in expected() - logged.keys()),
        *(f"{uri} is not of the web" for uri in logged.keys() - expected()),
        *(f"{uri} is logged {n} times" for uri, n in logged.items() if n > 1),
        *(f"{path.name} is open" for path in crawled.warcs(folder) if path.name.endswith(".open")),
    ]


@pytest.mark.parametrize("number", range(KILLS))
def test_a_kill_loses_nothing_and_repeats_nothing(names: list[str], port: int, tmp_path: Path, number: int) -> None:
    at = random.Random(number).randrange(len(names) * number // KILLS, len(names) * (number + 1) // KILLS)
    status = killed_books.run(tmp_path, Kill(at, half=number % 2 == 0), None, crawling(port))
    assert status in (0, -signal.SIGKILL)
    assert killed_books.run(tmp_path, None, None, crawling(port)) == 0
    assert wrong(tmp_path) == [], names[at]
