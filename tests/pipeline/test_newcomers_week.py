"""A newcomer's week on two sites: two crawls of one host, Ctrl-C, a killed terminal, `--limit`, a dead seed that heals,
a takedown, a restore. No command that is printed fails, and nothing is green that is cut or missing."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import shlex
import shutil
import signal
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import preloaded
import pytest
from sites.several_hosts import Page, page, serve

from warcmill.crawl.launch import folders

PAGES = 40
DOORS = ("/door.html", "/garden.html")  # the second is linked from the first
HERE = [
    "--allow-private", "127.0.0.0/8", "--no-delay", "--resolve", "herring.example=127.0.0.1",
    "--resolve", "mill.example=127.0.0.1",
]  # fmt: skip
_COMMAND = re.compile(r"(?:^|[\s'`(:>])(warcmill [a-z][^'`\n]*)")
# What a command is not run for: it waits for a person, or serves until it is stopped.
ENDLESS = {"serve", "watch"}


class Museum(dict[tuple[str, str], Page]):
    """The sites. Two pages do not answer while their door is shut, so that a crawl does not end."""

    door = threading.Event()

    def get(self, key: tuple[str, str], default: Any = None) -> Any:  # type: ignore[override]
        if key[1] in DOORS:
            self.door.wait()
        return super().get(key, default)


class Week:
    """The folder of a newcomer, who has set nothing up, and the sites; each answer of a command is looked through."""

    def __init__(self, folder: Path, port: int, web: Museum) -> None:
        self.folder, self.port, self.web = folder, port, web
        self.env = {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}
        self.env |= {"COLUMNS": "200"}

    @property
    def herring(self) -> str:
        return f"http://herring.example:{self.port}"

    @property
    def mill(self) -> str:
        return f"http://mill.example:{self.port}"

    def run(self, *words: str) -> tuple[int, str]:
        """Run a command; return its code, and all that it printed."""
        done = preloaded.run("commands.main", *words, env=self.env, folder=self.folder)
        told = done.stdout + done.stderr
        assert "Traceback" not in told, told
        assert done.returncode not in (2, 70), f"{words}: {told}"
        return done.returncode, told

    def crawl(self, url: str, *words: str) -> tuple[int, str]:
        return self.run("crawl", url, *HERE, *words)

    def follow(self, told: str) -> list[str]:
        """Run each command that was printed, as it was printed; return them."""
        found = list(dict.fromkeys(one.strip(" .;,)") for one in _COMMAND.findall(told)))
        for command in found:
            words = shlex.split(command)[1:]
            if ENDLESS.isdisjoint(words) and "LAUNCH" not in command and "NAME" not in command:
                self.run(*words)
        return found

    def begun(self, *words: str) -> tuple[preloaded.Process, int]:
        """A crawl on a terminal of its own."""
        ours, theirs = pty.openpty()
        process = preloaded.start(
            "commands.main", "crawl", *words, *HERE, env=self.env, folder=self.folder, out=theirs, err=theirs
        )
        os.close(theirs)
        return process, ours

    def until_it_has_fetched(self, job: str, pages: int) -> None:
        deadline = time.monotonic() + 300
        while self.logged(job) < pages:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def until_it_runs(self, job: str) -> None:
        deadline = time.monotonic() + 300
        while not ((holder := folders.holder(self.folder / "archive/jobs" / job / "state")) and holder.launch):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def logged(self, job: str) -> int:
        logs = (self.folder / "archive/output/logs" / job).rglob("crawl.log*")
        return sum(path.read_bytes().count(b"\n") for path in logs)

    def until_it_has_ended(self, job: str) -> None:
        deadline = time.monotonic() + 300
        while folders.holder(self.folder / "archive/jobs" / job / "state"):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def latest(self, job: str) -> str:
        return max(path.name for path in (self.folder / "archive/output/logs" / job).iterdir())

    def wacz_urls(self, job: str) -> set[str]:
        """The URLs of the pages and captures of a job's WACZ."""
        code, told = self.run("wacz", job)
        assert code == 0, told
        (path,) = self.folder.glob(f"{job}-2*.wacz")
        with zipfile.ZipFile(path) as packed:
            (index,) = (name for name in packed.namelist() if name.endswith((".cdx", ".cdxj", ".cdx.gz")))
            lines = packed.read(index)
        path.unlink()
        lines = gzip.decompress(lines) if index.endswith(".gz") else lines
        return {json.loads(line.split(b" ", 2)[2])["url"] for line in lines.splitlines()}

    def missed(self, job: str) -> list[str]:
        code, told = self.run("report", job, "--missed", "--json")
        assert code in (0, 1), told
        return [one["url"] for one in json.loads(told)["missed"]]


@pytest.fixture
def week(tmp_path: Path) -> Iterator[Week]:
    links = [f"/articles/{n}.html" for n in range(PAGES)]
    web = Museum()
    web["herring.example", "/"] = page([*links, DOORS[0]], "/boat.png")
    web["herring.example", "/boat.png"] = Page(b"png", "image/png")
    web["herring.example", DOORS[0]], web["herring.example", DOORS[1]] = page([DOORS[1]]), page([])
    for n, link in enumerate(links):
        web["herring.example", link] = page(["/"], filler=n)
    web["mill.example", "/tower.html"] = page([])
    web.door.set()
    with serve(web) as port:
        yield Week(tmp_path, port, web)


def printed(terminal: int) -> str:
    """What is printed to a terminal until nobody has it open any more."""
    told = b""
    with suppress(OSError):
        while piece := os.read(terminal, 1 << 16):
            told += piece
    return told.decode()


def test_a_newcomers_week(week: Week) -> None:
    # Monday: the site is crawled, and shall be each day.
    code, told = week.crawl(f"{week.herring}/")
    assert code == 0, told
    assert week.run("schedule", f"{week.herring}/", "daily")[0] == 0
    papers = {path: path.read_bytes() for path in (week.folder / "archive/jobs/herring-example").glob("*.t*")}

    # One article of the same host is another job; the scheduled one is as it was.
    code, told = week.crawl(f"{week.herring}/articles/1.html", "--scope", "page")
    assert (code, "herring-example-2" in told.splitlines()[0]) == (0, True), told
    assert {path: path.read_bytes() for path in papers} == papers

    # Tuesday: a limit, and the rest.
    web = week.web
    code, told = week.crawl(f"{week.mill}/tower.html", "--job", "short", "--limit", "1", "--scope", "page")
    assert code == 0, told
    code, told = week.crawl(f"{week.herring}/", "--job", "limited", "--limit", "5")
    assert code in (0, 1), told
    assert "ended by --limit: 5 of " in told, told
    assert "nothing is missing" not in told
    launch = week.latest("limited")
    for verb in (["why", "limited", launch], ["report", "limited", launch]):
        assert "ended by --limit: 5 of " in week.run(*verb)[1]
    week.follow(told)
    code, told = week.crawl(f"{week.herring}/", "--job", "limited")
    assert code == 0, told
    assert week.wacz_urls("limited") >= {f"{week.herring}/", f"{week.herring}/articles/{PAGES - 1}.html"}

    # Wednesday: Ctrl-C, then the terminal is killed; the crawl is found again.
    web.door.clear()
    process, terminal = week.begun(f"{week.herring}/", "--job", "broken")
    with process, closing(os.fdopen(terminal)):
        week.until_it_has_fetched("broken", 8)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        web.door.set()
        told = printed(terminal)
    assert (process.returncode, "the same command continues" in told) == (130, True), told
    web.door.clear()
    process, terminal = week.begun(f"{week.herring}/", "--job", "broken")
    with process, closing(os.fdopen(terminal)):
        week.until_it_runs("broken")
        process.kill()
    code, told = week.crawl(f"{week.herring}/", "--job", "broken")
    assert (code, "warcmill job broken watch" in told, "warcmill pulse stop broken" in told) == (5, True, True), told
    web.door.set()
    week.until_it_has_ended("broken")
    day = f"{launch[:4]}-{launch[4:6]}-{launch[6:8]}"
    code, told = week.run("scan", day)
    assert code == 0, told
    assert week.wacz_urls("broken") >= {f"{week.herring}/", f"{week.herring}/boat.png"}
    code, told = week.run("report", "broken")
    assert "untried" not in told, told

    # Thursday: a seed is dead, and heals.
    del web["mill.example", "/tower.html"]
    code, told = week.crawl(f"{week.mill}/tower.html", "--job", "mill")
    assert code == 1, told
    assert week.missed("mill") == [f"{week.mill}/tower.html"]
    week.follow(told)
    web["mill.example", "/tower.html"] = page([])
    code, told = week.crawl(f"{week.mill}/tower.html", "--job", "mill")
    assert code == 0, told
    code, told = week.run("reconcile")
    assert (code, "no gap" in told) == (0, True), told

    # Friday: a page is taken down.
    code, told = week.run("versions", "hide", f"{week.herring}/articles/3.html", "--reason", "its author asked for it")
    assert code == 0, told
    week.follow(told)
    assert f"{week.herring}/articles/3.html" not in week.run("search", f"{week.herring}/articles/3.html")[1]
    assert f"{week.herring}/articles/4.html" in week.run("search", f"{week.herring}/articles/4.html")[1]

    # Saturday: the state is lost, and restored.
    code, told = week.run("backup")
    assert code == 0, told
    before = json.loads(week.run("status", "--json")[1])["launches"]
    shutil.move(week.folder / "archive/state", week.folder / "lost")
    code, told = week.run("reconcile")
    assert (code, "Mount the disk" in told, "warcmill init" in told) == (4, True, False), told
    code, told = week.run("restore", "--new-state")
    assert code == 0, told
    assert json.loads(week.run("status", "--json")[1])["launches"] == before
    assert f"{week.herring}/articles/3.html" not in week.run("search", f"{week.herring}/articles/3.html")[1]
    code, told = week.run("reconcile")
    assert (code, "no gap" in told) == (0, True), told
