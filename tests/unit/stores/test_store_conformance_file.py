"""The conformance suite over the file store: a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from store_conformance import *  # noqa: F403 - the tests of every store

from warcmill.layout import SENTINEL
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore


class Folder:
    """A folder, and an outage: its disk is not mounted."""

    def __init__(self, base: Path) -> None:
        self.base = base
        sentinel.adopt({"store": base})

    def open(self) -> FileStore:
        return FileStore("store", self.base)

    def files(self) -> dict[str, bytes]:
        found = {str(path.relative_to(self.base)): path for path in self.base.rglob("*") if path.is_file()}
        return {name: path.read_bytes() for name, path in found.items() if name != SENTINEL}

    def write(self, path: str, data: bytes) -> None:
        target = self.base / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    def delete(self, path: str) -> None:
        (self.base / path).unlink()

    def many(self, folder: str, count: int) -> list[str]:
        (self.base / folder).mkdir(parents=True)
        names = [f"{number:05}.warc.gz" for number in range(count)]
        for name in names:
            (self.base / folder / name).touch()
        return names

    @contextmanager
    def outage(self) -> Iterator[None]:
        away = self.base.with_name("away")
        self.base.rename(away)
        yield
        away.rename(self.base)


@pytest.fixture
def there(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "store")
