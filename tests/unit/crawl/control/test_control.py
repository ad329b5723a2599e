"""The control socket: what it asks of a crawl, and what hinders it not."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from warcmill.crawl.control import control, messages
from warcmill.crawl.control.control import Control, reachable
from warcmill.crawl.control.frontier import FrontierControl
from warcmill.crawl.control.messages import LINE, MOST
from warcmill.crawl.frontier.sqlite import SqliteFrontier
from warcmill.errors import BadInput, Conflict, NotReady, Unavailable, WarcmillError
from warcmill.model import Json


class Crawl(FrontierControl):
    """A crawl that only notes what it is asked for; its frontier is real."""

    def __init__(self, frontier: SqliteFrontier) -> None:
        super().__init__(frontier)
        self.frontier, self.asked = frontier, list[str]()
        self.ticks = self.looks = 0

    async def state(self) -> Mapping[str, Json]:
        self.looks += 1
        return {"state": "RUNNING", "ticks": self.ticks}

    async def pause(self) -> None:
        self.asked.append("pause")

    async def proceed(self) -> None:
        self.asked.append("proceed")

    async def checkpoint(self) -> str:
        return "cp00001-20261121081902"

    async def stop(self) -> None:
        raise RuntimeError("a bug")

    async def work(self) -> None:
        """What a crawl does beside."""
        while True:
            self.ticks += 1
            await asyncio.sleep(0)


def deep(tmp_path: Path) -> Path:
    """A path that is too long for a socket's address."""
    folder = tmp_path / ("d" * 100) / "state"
    folder.mkdir(parents=True)
    return folder / "control.sock"


@asynccontextmanager
async def listening(tmp_path: Path) -> AsyncIterator[tuple[Path, Crawl]]:
    path, frontier = deep(tmp_path), SqliteFrontier(tmp_path / "f.sqlite")
    crawl = Crawl(frontier)
    server = Control(path, crawl)
    await server.open()
    try:
        yield path, crawl
    finally:
        await server.close()
        await frontier.close()
    assert not path.exists()


def with_crawl(tmp_path: Path, act: Callable[[Path, Crawl], Awaitable[None]]) -> None:
    async def run() -> None:
        async with listening(tmp_path) as (path, crawl):
            await act(path, crawl)

    asyncio.run(run())


async def asked(path: Path, verb: str, **fields: Json) -> Any:
    return await asyncio.to_thread(control.ask, path, verb, 20.0, **fields)


async def raw(path: Path, data: bytes) -> list[dict[str, Any]]:
    """What is answered to these bytes, until the crawl hangs up or takes a second to say more."""
    with reachable(path) as name:
        reader, writer = await asyncio.open_unix_connection(name, limit=LINE * 4)
    writer.write(data)
    writer.write_eof()
    with closing(writer):
        return [json.loads(line) for line in (await reader.read()).splitlines()]


def test_a_socket_of_any_depth_that_is_its_owner_s_alone(tmp_path: Path) -> None:
    async def act(path: Path, crawl: Crawl) -> None:
        assert len(str(path)) > 108
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert (await asked(path, "state"))["state"] == "RUNNING"
        assert await asked(path, "checkpoint") == {"checkpoint": "cp00001-20261121081902"}
        await asked(path, "pause")
        await asked(path, "resume")
        assert crawl.asked == ["pause", "proceed"]

    with_crawl(tmp_path, act)


def test_uris_are_added_each_with_its_answer(tmp_path: Path) -> None:
    async def act(path: Path, crawl: Crawl) -> None:
        found = await asked(path, "add", crawl="c", uris=[
            "https://a.example/#x", "https://a.example/", "ftp://a.example/", 5,
            {"uri": "https://b.example/", "hops": "LP"},
            {"uri": "https://b.example/", "key": "k", "priority": -2, "payload": {"age": "1d"}},
            {"uri": "https://b.example/2", "payload": "x" * 70_000},
            {"uri": "https://b.example/3", "not_before": "2099-01-01T00:00:00Z"},
            {"uri": "https://b.example/4", "not_before": "soon"},
            {"uri": "https://b.example/5", "payload": {"fetch": {"method": "CONNECT"}}},
            "dns:b.example",
        ])  # fmt: skip
        assert [one["answer"] for one in found["answers"]] == [
            "new",
            "seen",
            *["refused"] * 3,
            "new",
            "refused",
            "new",
            *["refused"] * 3,
        ]
        whys = [one.get("why", "") for one in found["answers"]]
        assert "is not fetched" in whys[2]
        assert "neither a text" in whys[3]
        assert "'hops'" in whys[4]
        assert "payload is larger" in whys[6]
        assert "no time such as" in whys[8]
        assert "'method' is no HTTP method" in whys[9]
        assert "asks for names itself" in whys[10]
        assert (await asked(path, "get", crawl="c", uri="https://b.example/3"))["not_before"] == "2099-01-01T00:00:00Z"
        got = await asked(path, "get", crawl="c", key="k")
        assert got == {"uri": "https://b.example/", "key": "k", "crawl": "c", "queue": "b.example", "priority": -2,
                       "status": "Scheduled", "payload": '{"age":"1d"}'}  # fmt: skip
        assert (await asked(path, "list", crawl="c", limit=1))["uris"][0]["uri"] == "https://a.example/"
        assert await asked(path, "get", uri="https://never.example/") == {}

    with_crawl(tmp_path, act)


def test_a_uri_or_a_site_is_suspended_released_and_removed(tmp_path: Path) -> None:
    async def act(path: Path, crawl: Crawl) -> None:
        await asked(path, "add", uris=[f"https://a.example/{n}" for n in range(3)] + ["https://b.example:8443/"])
        assert await asked(path, "suspend", uri="https://a.example/0#f") == {"changed": 1}
        assert (await asked(path, "get", uri="https://a.example/0"))["status"] == "Suspended"
        assert await asked(path, "resume", uri="https://a.example/0") == {"changed": 1}
        assert await asked(path, "suspend", uri="https://never.example/") == {"changed": 0}
        await asked(path, "suspend", site="a.example")
        assert [one.uri.queue for one in await crawl.frontier.lease("h", 9)] == ["b.example:8443"]
        await asked(path, "resume", site="https://A.example/x")
        assert len(await crawl.frontier.lease("h", 9)) == 1
        assert await asked(path, "remove", uri="https://a.example/1") == {"removed": 1}
        assert await asked(path, "remove", site="a.example") == {"removed": 2}
        assert await asked(path, "add", uris=["https://a.example/2"]) == {
            "answers": [{"uri": "https://a.example/2", "answer": "seen"}]
        }

    with_crawl(tmp_path, act)


def test_rates_are_set_and_taken_away(tmp_path: Path) -> None:
    async def act(path: Path, crawl: Crawl) -> None:
        await asked(path, "add", uris=[f"https://a.example/{n}" for n in range(3)])
        await asked(path, "rate", site="a.example", at_once=2)
        assert len(await crawl.frontier.lease("h", 9)) == 2
        assert await asked(path, "rate", site="a.example", none=True) == {"site": "a.example"}
        assert await asked(path, "rate", site="https://A.example./", at_once=3) == {"site": "a.example"}
        assert len(await crawl.frontier.lease("h", 9)) == 1
        for wrong in ({}, {"hits": 0}, {"window": -1}, {"none": True, "hits": 1}):
            with pytest.raises(BadInput):
                await asked(path, "rate", **wrong)

    with_crawl(tmp_path, act)


@pytest.mark.parametrize(("verb", "fields", "why"), [
    ("suspend", {}, "name a URI"), ("remove", {"uri": "https://a.example/", "site": "a"}, "name one of"),
    ("get", {"uri": "mailto:x"}, "is not fetched"), ("suspend", {"site": "a b c<"}, "not a URI"),
    ("add", {}, "no 'uris'"),
    ("add", {"uris": ["x"] * (MOST + 1)}, "is the limit"), ("list", {"limit": 0}, "'limit' is 1 to"),
    ("list", {"limit": True}, "wrong type"), ("state", {"x": 1}, "it has no 'x'"), ("reboot", {}, "no 'verb' of state"),
    ("list", {"after": 1 << 63}, "'after' is a text that is not UTF-8, or a number of more than 64 bits"),
    ("list", {"crawl": "\udcff"}, "'crawl' is"), ("get", {"key": "\ud800"}, "'key' is"),
    ("rate", {"at_once": 1 << 64}, "'at_once' is"), ("rate", {"site": "a b c<", "hits": 1}, "not a URI"),
])  # fmt: skip
def test_a_wrong_request_is_refused_by_name(tmp_path: Path, verb: str, fields: dict[str, Any], why: str) -> None:
    async def act(path: Path, crawl: Crawl) -> None:
        with pytest.raises(BadInput, match=why):
            await asked(path, verb, **fields)
        assert (await asked(path, "list"))["uris"] == []  # its books are as before

    with_crawl(tmp_path, act)


def test_garbage_oversize_and_half_lines_are_refused_and_the_crawl_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(path: Path, crawl: Crawl) -> None:
        for garbage in (b"\x00\xff\n", b"[]\n", b'"state"\n', b'{"verb": ["state"]}\n', b"[" * 100_000 + b"\n", b"\n"):
            (one, two) = await raw(path, garbage + b'{"verb": "state"}\n')
            assert (one["ok"], two["ok"]) == (False, True), garbage
        (long,) = await raw(path, b"x" * (LINE + 10) + b'\n{"verb": "state"}\n')
        assert "longer than" in long["why"]
        (half,) = await raw(path, b'{"verb": "sta')
        assert "no end" in half["why"]
        with monkeypatch.context() as short, reachable(path) as name:
            short.setattr(control, "SECONDS", 0.05)
            reader, writer = await asyncio.open_unix_connection(name)
            writer.write(b'{"verb"')
            assert "no whole line came" in json.loads(await reader.readline())["why"]
            writer.close()
        assert (await asked(path, "state"))["state"] == "RUNNING"

    with_crawl(tmp_path, act)


def test_a_flood_does_not_hinder_the_crawl_and_more_than_some_clients_are_refused(tmp_path: Path) -> None:
    async def act(path: Path, crawl: Crawl) -> None:
        work = asyncio.create_task(crawl.work())
        floods = []
        for _ in range(control.CLIENTS):
            with reachable(path) as name:
                reader, writer = await asyncio.open_unix_connection(name)
            writer.write(b'{"verb": "state"}\n' * 2000)
            floods.append((reader, writer))
        for reader, _ in floods:
            assert json.loads(await reader.readline())["ok"]
        with pytest.raises(Unavailable, match="16 programs are connected"):
            await asked(path, "state")
        before = crawl.ticks
        lines = [await reader.readline() for reader, _ in floods]
        assert all(lines)
        assert crawl.ticks - before > 20 * len(lines)  # the crawl has far more turns than the flood
        for _, writer in floods:
            writer.transport.abort()
        while True:
            try:
                await asked(path, "state")
                break
            except Unavailable:
                await asyncio.sleep(0)
        work.cancel()

    with_crawl(tmp_path, act)


def test_a_client_that_takes_no_answers_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "SECONDS", 0.2)
    monkeypatch.setattr(control, "EACH", 0.0)

    async def act(path: Path, crawl: Crawl) -> None:
        with socket.socket(socket.AF_UNIX) as idle, reachable(path) as name:
            idle.setblocking(False)
            await asyncio.get_running_loop().sock_connect(idle, name)
            await asyncio.get_running_loop().sock_sendall(idle, b'{"verb": "state"}\n')
            with pytest.raises(OSError, match=r"Broken pipe|reset"):
                await asyncio.get_running_loop().sock_sendall(idle, b'{"verb": "nothing of the sort"}\n' * 1_000_000)

    with_crawl(tmp_path, act)


def test_a_bug_in_a_verb_is_logged_and_ends_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def act(path: Path, crawl: Crawl) -> None:
        with caplog.at_level(logging.ERROR), pytest.raises(WarcmillError, match="unexpected RuntimeError: a bug"):
            await asked(path, "stop")
        assert "Traceback" in caplog.text
        assert (await asked(path, "state"))["state"] == "RUNNING"

    with_crawl(tmp_path, act)


def test_watch_reports_until_the_crawl_ends(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> list[Json]:
        path, frontier = deep(tmp_path), SqliteFrontier(tmp_path / "f.sqlite")
        crawl = Crawl(frontier)
        server = Control(path, crawl)
        await server.open()
        watching = asyncio.create_task(asyncio.to_thread(list, control.watch(path, 1)))
        while not crawl.looks:
            await asyncio.sleep(0.01)
        await server.close()
        await frontier.close()
        return await watching

    found = asyncio.run(run())
    assert found
    assert all(isinstance(one, dict) and one["state"] == "RUNNING" for one in found)
    assert "Traceback" not in caplog.text


def test_a_socket_that_a_dead_process_left_is_replaced_and_another_file_is_not(tmp_path: Path) -> None:
    path = deep(tmp_path)
    with socket.socket(socket.AF_UNIX) as dead, reachable(path) as name:
        dead.bind(name)
    with pytest.raises(NotReady, match="nothing listens on"):
        control.ask(path, "state")

    async def open_it() -> None:
        frontier = SqliteFrontier(tmp_path / "f.sqlite")
        server = Control(path, Crawl(frontier))
        try:
            await server.open()
            await asked(path, "state")
        finally:
            await server.close()
            await frontier.close()

    asyncio.run(open_it())
    path.write_text("a file of somebody")
    with pytest.raises(Conflict, match="it is not a socket"):
        asyncio.run(open_it())
    assert path.read_text() == "a file of somebody"


def test_where_no_crawl_runs_that_is_the_answer(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="job weekly is not ready: no crawl of it runs on this machine"):
        control.ask(tmp_path / "weekly/state/control.sock", "state")


def test_a_crawl_that_does_not_answer_is_unavailable(tmp_path: Path) -> None:
    path = deep(tmp_path)
    with socket.socket(socket.AF_UNIX) as silent, reachable(path) as name:
        silent.bind(name)
        silent.listen()
        with pytest.raises(Unavailable, match="what became of the request is not known"):
            control.ask(path, "stop", 0.05)


@pytest.mark.parametrize("line", [b"", b"[]", b'{"ok": false}', b"\xff"])
def test_what_is_no_answer_is_refused(line: bytes) -> None:
    with pytest.raises(BadInput, match="it is not the answer of a crawl"):
        messages.read_answer(line)
