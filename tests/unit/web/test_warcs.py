"""The server of WARCs for replay, asked over a socket: ranges of a store, for who has the key."""

from __future__ import annotations

import http.client
import io
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import pytest

from warcmill.errors import Unavailable
from warcmill.stores import Stat, Store, sentinel
from warcmill.stores.file import FileStore
from warcmill.web import warcs
from warcmill.web.request import GUARDS

DATA = bytes(range(256)) * 1_000
NAME = "daily/20161019234428/%C3%BC~crawler+1@x=y.warc.gz"  # as a store writes a name that is not plain


@dataclass
class Asked:
    """A running server; its address, and the store's folder."""

    address: str
    base: Path

    def get(self, path: str, key: str | None = None, method: str = "GET", **headers: str) -> tuple[int, bytes, str]:
        """The status, the body and the range of an answer, by default with the key."""
        parts = urlsplit(self.address)
        login = f"pywb:{parts.password if key is None else key}"
        headers = {"Authorization": f"Basic {b64encode(login.encode()).decode()}", **headers}
        with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=300)) as connection:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            assert {*GUARDS.items()} <= {(name.title(), text) for name, text in answer.getheaders()}
            return answer.status, answer.read(), answer.headers.get("Content-Range", "")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Asked]:
    """Over a folder with one WARC, and what is not for replay beside it."""
    sentinel.adopt({"store": tmp_path / "store"})
    for path in (f"warcs/{NAME}", "logs/secret.zip"):
        (tmp_path / "store" / path).parent.mkdir(parents=True)
        (tmp_path / "store" / path).write_bytes(DATA)
    with warcs.serving(lambda: FileStore("store", tmp_path / "store")) as address:
        yield Asked(address, tmp_path / "store")


@pytest.mark.parametrize(
    ("asked", "status", "first", "last"),
    [("", 200, 0, 255_999), ("bytes=0-0", 206, 0, 0), ("bytes=100-70099", 206, 100, 70_099),
     ("bytes=255990-", 206, 255_990, 255_999), ("bytes=255990-999999999", 206, 255_990, 255_999)],
)  # fmt: skip
def test_ranges_of_a_warc(server: Asked, asked: str, status: int, first: int, last: int) -> None:
    got = server.get(f"/warcs/{NAME}", Range=asked) if asked else server.get(f"/warcs/{NAME}")
    assert got == (status, DATA[first : last + 1], f"bytes {first}-{last}/256000" if asked else "")


@pytest.mark.parametrize(
    ("path", "status"),
    [(f"/warcs/{NAME}.gone", 404), ("/warcs/daily", 404), ("/warcs/", 404), ("/logs/secret.zip", 404),
     ("/warcs/../logs/secret.zip", 404), ("/warcs/%2e%2e/logs/secret.zip", 404), ("/warcs//etc/passwd", 404),
     ("/", 404), ("/search", 404)],
)  # fmt: skip
def test_only_warcs_are_served(server: Asked, path: str, status: int) -> None:
    assert server.get(path)[0] == status


def test_past_its_end_there_is_nothing(server: Asked) -> None:
    assert server.get(f"/warcs/{NAME}", Range="bytes=256000-")[0] == 416


@pytest.mark.parametrize("key", ["", "wrong", "\xff"])
def test_without_the_key_nothing_is_read(server: Asked, key: str) -> None:
    assert server.get(f"/warcs/{NAME}", key)[:2] == (403, b"this server is for replay alone\n")
    assert server.get(f"/warcs/{NAME}", Authorization="")[0] == 403


def test_nothing_is_written(server: Asked) -> None:
    assert {server.get(f"/warcs/{NAME}", method=method)[0] for method in ("PUT", "POST", "DELETE")} == {404}
    assert (server.base / "warcs" / NAME).read_bytes() == DATA


def test_a_store_that_is_away_is_no_absence(server: Asked) -> None:
    server.base.rename(server.base.with_name("away"))
    assert server.get(f"/warcs/{NAME}")[0] == 503


class Breaking(FileStore):
    """Stands for a store that is lost while a WARC is sent, which no folder can be made to show."""

    def open(self, path: str, start: int = 0) -> BinaryIO:
        class Broken(io.BytesIO):
            def read(self, size: int | None = -1, /) -> bytes:
                if self.tell():
                    raise Unavailable("the store", "it is gone")
                return super().read(1_000)

        return Broken(DATA)


def test_an_outage_on_the_way_cuts_the_answer(tmp_path: Path, server: Asked) -> None:
    store: Store = Breaking("store", server.base)
    assert isinstance(store.stat(f"warcs/{NAME}"), Stat)
    with warcs.serving(lambda: store) as address, pytest.raises(http.client.IncompleteRead):
        Asked(address, tmp_path).get(f"/warcs/{NAME}")
