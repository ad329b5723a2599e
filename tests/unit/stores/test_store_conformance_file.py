"""The conformance suite over the file store: a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from storing.in_folder import InFolder
from storing.store_conformance import *  # noqa: F403 - the tests of every store

from warcmill.stores import sentinel
from warcmill.stores.file import FileStore


class Folder(InFolder):
    """A folder, and an outage: its disk is not mounted."""

    def __init__(self, base: Path) -> None:
        self.base = base
        sentinel.adopt({"store": base})

    def open(self) -> FileStore:
        return FileStore("store", self.base)

    @contextmanager
    def outage(self) -> Iterator[None]:
        away = self.base.with_name("away")
        self.base.rename(away)
        yield
        away.rename(self.base)


@pytest.fixture
def there(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "store")
