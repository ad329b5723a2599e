"""The SQLite frontier: all that any frontier must do, and what is its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawls.frontier_conformance import *  # noqa: F403 - the tests of every frontier
from crawls.frontier_conformance import START, lease, names, offer, run

from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.crawl.uri import make


class Here:
    """A frontier in a folder."""

    def __init__(self, folder: Path) -> None:
        self.now, self._folder, self._open = START, folder, []

    def open(self) -> SqliteFrontier:
        self.close()
        return self._opened(self._folder / "books.sqlite")

    def open_snapshot(self, path: Path) -> SqliteFrontier:
        return self._opened(path)

    def new_path(self) -> Path:
        return self._folder / "copy.sqlite"

    def close(self) -> None:
        while self._open:
            run(self._open.pop().close())

    def _opened(self, path: Path) -> SqliteFrontier:
        frontier = SqliteFrontier(path, now=lambda: self.now)
        self._open.append(frontier)
        return frontier


@pytest.fixture
def there(tmp_path: Path) -> Here:
    here = Here(tmp_path)
    yield here
    here.close()


def _steps(frontier: SqliteFrontier, crawl: str) -> tuple[int, int]:
    """How many steps SQLite makes to count a crawl of 20 URIs, and to purge it."""
    run(frontier.offer([make(f"http://h{n}.example/", crawl=crawl) for n in range(20)]))
    made = []
    frontier.db.set_progress_handler(lambda: made.append(None), 10)
    run(frontier.count(crawl))
    counted = len(made)
    assert run(frontier.purge(crawl)) == 20
    frontier.db.set_progress_handler(None, 0)
    return counted, len(made) - counted


def test_a_crawl_is_counted_and_purged_without_walking_the_rest(there: Here) -> None:
    frontier = there.open()
    alone = _steps(frontier, "first")
    run(frontier.offer([make(f"http://h{n % 50}.example/{n}", crawl="rest") for n in range(2000)]))
    beside = _steps(frontier, "second")
    assert all(more <= 2 * few + 10 for few, more in zip(alone, beside, strict=True)), (alone, beside)


def test_a_database_of_the_schema_before_is_renewed_when_it_is_opened(there: Here) -> None:
    frontier = there.open()
    offer(frontier, "a/1", "b/1")
    frontier.db.execute("ALTER TABLE waiting DROP COLUMN spider")
    frontier.db.execute("PRAGMA user_version=3")
    assert names(lease(there.open())) == ["a/1", "b/1"]
    offer(there.open(), "c/1", spider="s")
    assert names(lease(there.open(), spider="s")) == ["c/1"]
