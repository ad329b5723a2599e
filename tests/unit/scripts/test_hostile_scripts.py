"""Scripts that break their process, or try to break that of others: each fails alone, and for a reason."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_for

from warcmill.scripts.task import made
from warcmill.scripts.visit import ScriptDesk
from warcmill.scripts.walled import walls
from warcmill.scripts.walled.asking import CallbackOutcome, ScriptAbout, ScriptAsker, ScriptText

HEAD = "import builtins, json, os, sys, threading, time\nfrom pyspider.libs.base_handler import *\n"
GOOD = """\
class Handler(BaseHandler):
    def page(self, response):
        print("hello")
        bytes(500 << 20)
        return {"title": response.doc("title").text(), "text": json.dumps([1]), "threads": threading.active_count()}
"""


def script(body: str, head: str = HEAD) -> str:
    return f"{head}class Handler(BaseHandler):\n" + "".join(f"    {line}\n" for line in body.splitlines())


def asked(text: str, limit: float = 5) -> tuple[ScriptAbout, CallbackOutcome, CallbackOutcome]:
    """The words of a script, the outcome of its callback, and that of a good script after it."""

    async def whole() -> tuple[ScriptAbout, CallbackOutcome, CallbackOutcome]:
        asker = ScriptAsker(script_walls=False)
        try:
            texts = {"bad": text, "good": HEAD + GOOD}
            task: dict[str, Any] = {
                "taskid": "1",
                "url": "u",
                "process": {"callback": "page", "process_time_limit": limit},
            }
            fields, body = {"status_code": 200, "url": "u"}, b"<title>T</title>"
            about = await asker.about(ScriptText("bad", texts))
            bad = await asker.run(ScriptText("bad", texts), {**task, "project": "bad"}, fields, body)
            good = await asker.run(ScriptText("good", texts), {**task, "project": "good"}, fields, body)
            return about, bad, good
        finally:
            asker.close()

    return asyncio.run(whole())


SOCKET = """\
def page(self, response):
    for one in range(3, 40):
        try: os.write(one, bytes(9) + b'{}')
        except OSError: pass
    return 1"""
FAULTS = [
    ("def page(self, response): builtins.print = None; sys.stdout = None; return 1", ""),
    ("def page(self, response): json.loads = None; return 1", ""),
    ("def page(self, response): json.dumps = lambda *a, **k: 'x'; return 1", "its process answered garbage"),
    ("def page(self, response): os.closerange(3, 99)", "its process died"),
    ("def page(self, response):\n    os.closerange(3, 99)\n    while True: pass", "its process has closed its socket"),
    ("def page(self, response): bytes(10 << 30)", "MemoryError"),
    ("def page(self, response): return [bytes(1 << 20) for _ in range(10 << 10)]", "MemoryError"),
    ("def page(self, response: pass", "SyntaxError"),
    (SOCKET, "its process"),
    ("def page(self, response): self.crawl('http://a.example/', headers=self, data=object())", "TypeError"),
    ("def page(self, response): os.kill(os.getpid(), 15)", "its process has closed its socket, or was ended by a"),
    ("def page(self, response): os._exit(3)", "its process died: exit code 3"),
    ("def page(self, response):\n    threading.Thread(target=lambda: time.sleep(99)).start()\n    return 1", ""),
    ("kept = []\ndef page(self, response):\n    self.kept.append(bytes(700 << 20))\n    return 1", ""),
    ("def __init__(self): 1 / 0\ndef page(self, response): pass", "ZeroDivisionError"),
    ("def __init__(self, more): pass\ndef page(self, response): pass", "TypeError"),
    ("def get_taskid(self, task): 1 / 0\ndef page(self, response): self.crawl('http://b.example/')", "ZeroDivision"),
    ("def on_result(self, result): 1 / 0\ndef page(self, response): return 1", "ZeroDivisionError"),
    ("def __getattr__(self, name): raise KeyError(name)\ndef page(self, response): return 1", ""),
    ("@property\ndef price(self): 1 / 0\ndef page(self, response): return 1", ""),
    ("async def page(self, response): return 1", "TypeError: self.page() is async"),
    ("crawl_config = None\ndef page(self, response): self.crawl('http://b.example/')", "TypeError"),
    ("def page(self, response): self.send_message(None, b'x', url=None); return 1", ""),
    ("def page(self, response): print('\\ud800'); return 1", ""),
    ("def page(self, response):\n    class Bad(Exception): __str__ = lambda self: 1 / 0\n    raise Bad()", "Bad: "),
]  # fmt: skip


@pytest.mark.parametrize(("body", "why"), FAULTS)
def test_a_script_fails_alone(body: str, why: str) -> None:
    _, bad, good = asked(script(body))
    assert bad.why.startswith(why), bad.why
    assert why or (bad.why, bad.results) == ("", [1])
    assert (good.why, good.log) == ("", "hello\n")
    assert good.results == [{"title": "T", "text": "[1]", "threads": 1}], "it finds nothing of the one before"


def test_what_was_made_beside_a_result_without_a_form_counts() -> None:
    body = "    self.crawl('http://b.example/')\n    a = []\n    a.append(a)\n    yield 1\n    yield a"
    _, bad, _ = asked(script(f"def page(self, response):\n{body}"))
    assert (bad.why[:6], len(bad.follows), bad.results) == ("NoForm", 1, [1])


def test_a_callback_that_catches_the_bound_of_follows_makes_no_more() -> None:
    body = ("def page(self, response):\n    for n in range(120_000):\n        try: self.crawl(f'http://b.example/{n}')\n"
            "        except Exception: pass")  # fmt: skip
    _, bad, good = asked(script(body), 30)
    assert (bad.why, len(bad.follows), good.why) == ("", 100_000, "")


def test_a_script_that_its_job_lacks_is_missing_as_in_python() -> None:
    optional = "try:\n    from projects import gone\nexcept ImportError:\n    gone = 5\n"
    caught = "try:\n    from projects import good\nexcept:\n    good = 5\n"
    page = "def page(self, response): return [gone, hasattr(good, 'Handler')]"
    assert asked(script(page, HEAD + optional + caught))[1].results == [[5, True]]
    about, _, _ = asked(script("def page(self, response): pass", HEAD + "from projects import gone\n"))
    assert about.why == "ModuleNotFoundError: its job has no script 'gone'"


def test_a_script_is_a_module_as_any_other() -> None:
    head = (
        "from __future__ import annotations\nimport io, sys\nfrom dataclasses import dataclass\n"
        "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf8')\n@dataclass\nclass Price:\n    cents: int\n"
        "from pyspider.libs.base_handler import *\n"
    )
    body = "def page(self, response):\n    sys.stdout.buffer.write(b'in bytes')\n    return Price(1).cents"
    _, bad, _ = asked(script(body, head))
    assert (bad.why, bad.results, bad.log) == ("", [1], "in bytes")


def test_a_process_that_was_killed_in_a_callback_is_asked_again(tmp_path: Path) -> None:
    place = tmp_path / "pid"
    body = (
        f"def page(self, response):\n    is_first = not os.path.exists({str(place)!r})\n"
        f"    if is_first:\n        open({str(place)!r}, 'w').write(str(os.getpid()))\n        time.sleep(20)\n"
        "    return 1"
    )

    def kill() -> None:
        wait_for(lambda: place.exists() and place.read_text(), "the callback runs")
        os.kill(int(place.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    _, bad, good = asked(script(body), 25)
    killer.join()
    assert (bad.why, bad.results, good.why) == ("", [1], "")


@pytest.mark.parametrize("walled", [False, True])
def test_what_no_signal_reaches_is_ended_with_its_reason(walled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walls, "LIMITS", walls.LIMITS.__class__(2, 20, 1 << 30, walls.SCRATCH, 64))
    if walled:  # as bubblewrap says how its process ended
        command = walls.command(walls=False)
        way = "import subprocess, sys; sys.exit(128 - min(0, subprocess.call(sys.argv[1:], stdin=0)))"
        monkeypatch.setattr(walls, "command", lambda **_: (sys.executable, "-c", way, *command))
    _, bad, good = asked(script("def page(self, response): sum(range(10**12))"), 1)
    assert (bad.why, good.why) == ("timeout: over 2 s of CPU time", "")


def test_scripts_that_are_stopped_hold_no_memory() -> None:
    def held(pids: list[int]) -> int:
        here = [Path(f"/proc/{pid}/statm") for pid in pids]
        return sum(int(one.read_text().split()[1]) for one in here if one.exists())

    async def whole() -> None:
        asker = ScriptAsker(script_walls=False)
        try:
            text = ScriptText("big", {"big": script("memory = 'sdfg' * (50 << 20)\ndef page(self, response): pass")})
            assert (await asker.about(text)).why == ""
            pids = [worker.pid for worker in asker._workers.all]
            assert held(pids) * os.sysconf("SC_PAGE_SIZE") > 200 << 20
            asker.free()
            assert held(pids) == 0
            assert (await asker.about(text)).why == "", "another process takes its place"
        finally:
            asker.close()

    asyncio.run(whole())


def test_a_follow_that_is_known_is_offered_again_only_if_it_asks_for_that() -> None:
    desk = ScriptDesk(None, None, None, print)  # type: ignore[arg-type]
    task: dict[str, Any] = {"url": "http://a.example/", "taskid": "1"}
    desk.note_seen(made("shop", task, None))
    for schedule in ({}, None, {"age": -1, "priority": 2, "exetime": 5, "retries": 1, "itag": None}):
        assert desk.has_seen("shop", {**task, "schedule": schedule})
    for schedule in ({"age": 0}, {"age": 60}, {"itag": "2"}, {"force_update": True}, {"cancel": True}, 5, [1]):
        assert not desk.has_seen("shop", {**task, "schedule": schedule})
    assert not desk.has_seen("shop", {**task, "taskid": ["1"]})
    assert not desk.has_seen("news", task)
    desk.forget("shop")
    assert not desk.has_seen("shop", task)
