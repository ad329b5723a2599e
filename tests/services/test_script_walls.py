"""The walls around scripts, by bubblewrap: what a hostile script reaches, and what it costs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from servers import packages
from warcmill.errors import BadConfig
from warcmill.scripts.walled import walls
from warcmill.scripts.walled.asking import CallbackOutcome, ScriptAsker, ScriptText

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
    def strays(self):
        os.chdir("/usr")
        open("/tmp/left", "w").write("x")
        return 1
    def devices(self):
        open("/dev/null", "w").write("x")
        for folder in ("/dev", "/dev/shm"):
            try: open(f"{folder}/x", "w")
            except OSError: pass
            else: return folder
        return "closed"
    def namespaces(self):
        kernel = __import__("ctypes").CDLL(None)
        made = [flag for flag in (0x10000000, 0x20000, 0x40000000) if kernel.unshare(flag) == 0]
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        first = open("/proc/self/oom_score_adj").read().strip()
        return {"made": made, "rights": status["CapEff"].strip(), "first": first}
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


ALONE = {
    "devices": ["closed"],
    "namespaces": [{"made": [], "rights": "0" * 16, "first": "1000"}],
    "strays": [1],
    "page": [{"title": "T", "left": []}],
    "files": [{"here": [], "environment": ["LANG", "PWD"], "user": walls.NOBODY}],
}


def test_a_script_makes_no_walls_of_its_own_and_leaves_nothing() -> None:
    async def work(asker: ScriptAsker) -> dict[str, list[Any]]:
        return {name: (await called(asker, name)).results for name in ALONE}

    assert with_asker(work) == ALONE


AS_USER = """
import asyncio, json, sys
from warcmill.scripts.walled import walls
from warcmill.scripts.walled.asking import ScriptAsker, ScriptText
async def main(text, names):
    walls.check(walls=True)
    asker, found = ScriptAsker(script_walls=True), {}
    for name in names:
        task = {"project": "shop", "taskid": "1", "url": "u", "process": {"callback": name}}
        fields = {"status_code": 200, "url": "u"}
        found[name] = (await asker.run(ScriptText("shop", {"shop": text}), task, fields, b"<title>T</title>")).results
    asker.close()
    print(json.dumps(found))
asyncio.run(main(sys.argv[1], sys.argv[2:]))
"""


def test_the_walls_stand_for_a_user_as_for_root(tmp_path: Path) -> None:
    text = SCRIPT.replace("FOLDER", __file__)
    program = [sys.executable, "-c", AS_USER, text, *ALONE, "forks"]
    done = subprocess.run([*as_user(tmp_path), *program], capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("forks")[0]["made"] < 64
    assert found == ALONE


def as_user(folder: Path) -> list[str]:
    """The words before a command that has it run as a user, who sees Python and this program even where they are in a
    folder of root's."""
    if os.geteuid():
        return []
    steps, paths = [], sorted({sys.base_prefix, sys.prefix, str(Path(walls.__file__).parents[2])})
    for number, path in enumerate(paths):
        (folder / str(number)).mkdir()
        steps.append(f"mount --bind {path} {folder / str(number)}")
    parents = dict.fromkeys(above for path in paths for above in reversed(Path(path).parents))
    closed = [above for above in parents if not above.stat().st_mode & 0o001]
    steps += [f"mount -t tmpfs -o mode=755 none {above}" for above in closed]
    for number, path in enumerate(paths):
        steps.append(f"mkdir -p {path} && mount --bind {folder / str(number)} {path}")
    steps.append('exec setpriv --reuid 12345 --regid 12345 --clear-groups "$@"')
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", "\n".join(steps), "sh"]


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
