"""The verbs of who watches a crawl: its newest pages, what it fetches, its hosts; asked by the socket while it runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from crawls import crawled
from sites.raw_server import serving

from warcmill.crawl.control import control
from warcmill.crawl.control.control import Control
from warcmill.crawl.job.job import Ceilings
from warcmill.crawl.launch.launch import Running
from warcmill.crawl.launch.session import Session
from warcmill.errors import BadInput

PAGE = b"<a href=/1>1</a><a href=/2>2</a><a href=http://b.example/>b</a><img src=/i.png>"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
VERBS = ("state", "recent", "active", "hosts")


def test_a_crawl_answers_who_watches_it(tmp_path: Path) -> None:
    found = dict[str, Any]()

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split()[1].decode()
            if path == "/1":
                control_ = Control(tmp_path / "control.sock", opened[0])
                await control_.open()
                for verb in VERBS:
                    found[verb] = await asyncio.to_thread(control.ask, tmp_path / "control.sock", verb, 20.0)
                with pytest.raises(BadInput):
                    await asyncio.to_thread(control.ask, tmp_path / "control.sock", "recent", 20.0, limit=5)
                await control_.close()
            kind, body = (b"image/png", b"x") if path == "/i.png" else (b"text/html", PAGE if path == "/" else b"ok")
            writer.write(OK % (kind, len(body), body))

    opened = list[Session]()

    def begun(running: Running) -> None:
        opened.append(Session(running))

    async def scenario() -> None:
        async with serving(answered) as server:
            ceilings = Ceilings(documents=100)
            job = crawled.job(server.port, "a.example", robots=False, workers=1, ceilings=ceilings)
            await crawled.whole(tmp_path, job, begun)
            found["port"] = server.port

    asyncio.run(scenario())
    site = f"http://a.example:{found['port']}"
    assert found["state"]["ceilings"] == {"documents": 100}
    pages = found["recent"]["pages"]
    assert [(one["uri"], one["status"], one["type"]) for one in pages] == [(f"{site}/", 200, "text/html")]
    assert pages[0]["size"] == len(PAGE)
    assert (found["active"]["number"], found["active"]["elsewhere"]) == (1, 0)
    assert [(one["uri"], one["tries"]) for one in found["active"]["uris"]] == [(f"{site}/1", 1)]
    rows = {one["host"]: one for one in found["hosts"]["hosts"]}
    assert (found["hosts"]["whole"], found["hosts"]["why"], found["hosts"]["counted"]) == (True, "", 2)
    row = rows["a.example"]
    assert (row["waiting"], row["failed"], row["status"]) == (2, 0, 200)  # /1 is under way, /2 waits
    assert row["done"] >= 1
