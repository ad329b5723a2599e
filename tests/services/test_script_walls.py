"""The walls around scripts, by bubblewrap: what a hostile script reaches, and what it costs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from servers import packages
from warcmill.errors import BadConfig
from warcmill.scripts import walls
from warcmill.scripts.asking import CallbackOutcome, ScriptAsker, ScriptText

SCRIPT = """
import os, socket, subprocess
from pyspider.libs.base_handler import *

class Handler(BaseHandler):
    def page(self, response):
        return {"title": response.doc("title").text(), "left": os.listdir("/tmp")}
    def network(self):
        return socket.getaddrinfo("example.org", 80)
    def port(self):
        socket.create_connection(("127.0.0.1", PORT), 5)
    def files(self):
        return {"here": [path for path in ("/etc/passwd", "/root/.ssh", "/home", "FOLDER") if os.path.exists(path)],
                "environment": sorted(os.environ), "user": os.getuid()}
    def home(self):
        open(os.path.join(os.path.dirname(json_file()), "x"), "w")
    def scratch(self):
        open("/tmp/x", "w").write("x" * 1000)
        return {"n": len(open("/tmp/x").read())}
    def disk(self):
        for number in range(5):
            open(f"/tmp/{number}", "wb").write(b"x" * (15 << 20))
    def forks(self):
        made = 0
        try:
            while made < 500:
                if os.fork() == 0:
                    os.pause() if hasattr(os, "pause") else __import__("signal").pause()
                made += 1
        except OSError:
            return {"made": made}
    def processes(self):
        return {"pids": [name for name in os.listdir("/proc") if name.isdigit()]}
    def memory(self):
        b"x" * (10 << 30)
    def ends(self):
        os._exit(3)
    def writes(self):
        for number in range(3, 20):
            try: os.write(number, b"garbage" * 100)
            except OSError: pass
    def deaf(self):
        while True:
            try:
                while True: pass
            except BaseException: pass

def json_file():
    import json
    return json.__file__
"""
WALLS = packages.program("bwrap", "bubblewrap")


async def called(asker: ScriptAsker, callback: str, seconds: float = 20) -> CallbackOutcome:
    text = SCRIPT.replace("PORT", "9").replace("FOLDER", __file__)
    task = {
        "project": "shop",
        "taskid": "1",
        "url": "u",
        "process": {"callback": callback, "process_time_limit": seconds},
    }
    return await asker.run(
        ScriptText("shop", {"shop": text}), task, {"status_code": 200, "url": "u"}, b"<title>T</title>"
    )


def with_asker(work: Any) -> Any:
    async def whole() -> Any:
        asker = ScriptAsker(script_walls=True)
        try:
            return await work(asker)
        finally:
            asker.close()

    made: Coroutine[Any, Any, Any] = whole()
    return asyncio.run(made)


def test_the_walls_stand_here() -> None:
    walls.check(walls=True)


@pytest.mark.parametrize(
    ("callback", "why"),
    [
        ("network", "gaierror"),
        ("port", "ConnectionRefusedError"),
        ("home", "OSError: [Errno 30] Read-only file system"),
        ("disk", "OSError: [Errno 28] No space left on device"),
        ("memory", "MemoryError"),
        ("ends", "its process died: exit code 3"),
        ("writes", "its "),
    ],
)
def test_a_callback_that_reaches_for_more_fails_alone(callback: str, why: str) -> None:
    async def work(asker: ScriptAsker) -> tuple[CallbackOutcome, CallbackOutcome]:
        return await called(asker, callback), await called(asker, "page")

    failed, after = with_asker(work)
    assert failed.why.startswith(why), failed.why
    assert (after.why, after.results) == ("", [{"title": "T", "left": []}]), "the next one finds nothing of it"


def test_a_script_sees_nothing_of_the_machine() -> None:
    found = with_asker(lambda asker: called(asker, "files")).results
    assert found == [{"here": [], "environment": ["LANG", "PWD"], "user": walls.NOBODY}]
    assert with_asker(lambda asker: called(asker, "scratch")).results == [{"n": 1000}]


def test_a_fork_bomb_is_bounded_and_gone_afterwards() -> None:
    async def work(asker: ScriptAsker) -> tuple[CallbackOutcome, CallbackOutcome]:
        return await called(asker, "forks"), await called(asker, "processes")

    forks, after = with_asker(work)
    assert forks.results[0]["made"] < 64
    assert len(after.results[0]["pids"]) <= 3


def test_a_callback_that_hears_nothing_costs_its_own_process() -> None:
    async def work(asker: ScriptAsker) -> list[CallbackOutcome]:
        deaf = asyncio.create_task(called(asker, "deaf", 1))
        others = [await called(asker, "page") for _ in range(5)]
        return [*others, await deaf]

    *others, deaf = with_asker(work)
    assert [one.why for one in others] == [""] * 5
    assert "timeout" in deaf.why


def test_without_the_program_the_walls_are_refused_with_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(BadConfig, match="install the package bubblewrap, or set 'walls = none'"):
        walls.check(walls=True)
