"""The SQLite frontier: all that any frontier must do, and what is its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from frontier_conformance import *  # noqa: F403

from warcmill.crawl.frontier_sqlite import SqliteFrontier


class Here:
    """A frontier in a folder."""

    def __init__(self, folder: Path) -> None:
        self.now, self._folder, self._open = START, folder, []  # noqa: F405

    def open(self) -> SqliteFrontier:
        self.close()
        return self._opened(self._folder / "books.sqlite")

    def open_snapshot(self, path: Path) -> SqliteFrontier:
        return self._opened(path)

    def new_path(self) -> Path:
        return self._folder / "copy.sqlite"

    def close(self) -> None:
        while self._open:
            run(self._open.pop().close())  # noqa: F405

    def _opened(self, path: Path) -> SqliteFrontier:
        frontier = SqliteFrontier(path, now=lambda: self.now)
        self._open.append(frontier)
        return frontier


@pytest.fixture
def there(tmp_path: Path) -> Here:
    here = Here(tmp_path)
    yield here
    here.close()
