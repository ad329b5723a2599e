"""A crawl whose terminal is gone: the same command finds it again, on a real terminal and off one, and brings it in."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import preloaded
import pytest
from sites.several_hosts import Page, page, serve
from waiting import wait_for

from warcmill.crawl.control import control
from warcmill.crawl.launch import folders, job_log
from warcmill.crawl.launch.folders import CONTROL

JOB, PAGES = "a-example", 60
CTRL_C = b"\x03"
ASKED = "leave it running, or stop it? [leave/stop] "


@pytest.fixture(scope="module")
def words() -> Iterator[tuple[str, ...]]:
    site = {("a.example", f"/{n or ''}"): page([f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES], "/i.png")
            for n in range(PAGES)}  # fmt: skip
    site["a.example", "/i.png"] = Page(b"png", "image/png")
    with serve(site) as port:
        inside = ("--allow-private", "127.0.0.0/8", "--no-delay", "--resolve", "a.example=127.0.0.1")
        yield ("crawl", f"http://a.example:{port}/", *inside)


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "LUIGI_CONFIG_PATH"}


class Terminal:
    """A command in the foreground of a terminal of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.text = ""
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(sys.executable, [sys.executable, "-P", "-m", "commands.main", *words], environment())

    def until(self, words: str) -> None:
        """Wait until the terminal shows these words."""
        while words not in self.text:
            assert self._read(), self.text

    def types(self, keys: bytes) -> None:
        os.write(self._file, keys)

    def closes(self) -> None:
        """The window is closed, or the connection is lost."""
        os.close(self._file)
        os.waitpid(self.pid, 0)

    def ends(self) -> int:
        """Wait for the end; return the exit code."""
        while self._read():
            pass
        os.close(self._file)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        try:
            data = os.read(self._file, 1 << 16)
        except OSError:  # the other side is closed
            return False
        self.text += data.decode()
        return bool(data)


def state_of(folder: Path) -> Path:
    return folder / "archive/jobs" / JOB / "state"


def launches(folder: Path) -> list[str]:
    return sorted(one.name for one in (folder / "archive/output/warcs" / JOB).iterdir())


def is_brought_in(folder: Path) -> bool:
    done = preloaded.run("commands.main", "why", JOB, env=environment(), folder=folder)
    return "nothing is missing" in done.stdout


def left_alone(folder: Path, words: tuple[str, ...]) -> str:
    """Begin a crawl, and lose its terminal; it waits, paused. Return its launch."""
    terminal = Terminal(folder, *words)
    terminal.until(" queued")
    control.ask(state_of(folder) / CONTROL, "pause")
    terminal.closes()
    holder = folders.holder(state_of(folder))
    assert holder
    return holder.launch


def resumed(folder: Path) -> None:
    control.ask(state_of(folder) / CONTROL, "resume")


def test_off_a_terminal_it_names_what_watches_and_what_stops(tmp_path: Path, words: tuple[str, ...]) -> None:
    launch = left_alone(tmp_path, words)
    done = preloaded.run("commands.main", *words, env=environment(), folder=tmp_path)
    assert done.returncode == 5
    for part in (f"launch {launch} runs since 20", " documents, ", f"job {JOB} watch;", f"pulse stop {JOB}\n"):
        assert part in done.stderr, done.stderr
    assert preloaded.run("commands.main", "pulse", "stop", JOB, env=environment(), folder=tmp_path).returncode == 0
    done = preloaded.run("commands.main", *words, env=environment(), folder=tmp_path)
    assert (done.returncode, "continues from cp" in done.stdout) == (0, True), done.stderr
    assert is_brought_in(tmp_path)


def test_on_a_terminal_it_is_attached_to_left_and_watched_to_its_end(tmp_path: Path, words: tuple[str, ...]) -> None:
    launch = left_alone(tmp_path, words)
    for keys in (b"leave\n", b"what\n\n", CTRL_C):
        terminal = Terminal(tmp_path, *words)
        terminal.until(f"{JOB}: attached; Ctrl-C asks")
        terminal.until(" queued, ")
        terminal.types(CTRL_C)
        terminal.until(ASKED)
        terminal.types(keys)
        assert terminal.ends() == 130
        assert "it runs on; the same command finds it again" in terminal.text, terminal.text
        assert f"launch {launch} runs since" in terminal.text
    terminal = Terminal(tmp_path, *words)
    terminal.until("attached")
    resumed(tmp_path)
    assert terminal.ends() == 0, terminal.text
    assert launches(tmp_path) == [launch]
    assert is_brought_in(tmp_path)


def test_stopped_where_it_is_attached_to_it_has_a_checkpoint(tmp_path: Path, words: tuple[str, ...]) -> None:
    launch = left_alone(tmp_path, words)
    terminal = Terminal(tmp_path, *words)
    terminal.until(" queued, ")
    terminal.types(CTRL_C)
    terminal.until(ASKED)
    terminal.types(b"stop\n")
    assert terminal.ends() == 130, terminal.text
    assert "the same command continues" in terminal.text
    last = job_log.last(state_of(tmp_path).parent)
    assert last
    assert (last.launch, last.ended, bool(last.checkpoint)) == (launch, True, True)


def test_one_that_ended_while_nobody_watched_is_brought_in_and_not_crawled_anew(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    launch = left_alone(tmp_path, words)
    resumed(tmp_path)
    wait_for(lambda: folders.holder(state_of(tmp_path)) is None)
    assert not is_brought_in(tmp_path)
    done = preloaded.run("commands.main", *words, env=environment(), folder=tmp_path)
    assert (done.returncode, f"launch {launch} has ended while nobody watched" in done.stderr) == (0, True), done.stderr
    assert launches(tmp_path) == [launch]
    assert is_brought_in(tmp_path)
    assert not (state_of(tmp_path) / "asked.json").exists()
    assert preloaded.run("commands.main", *words, env=environment(), folder=tmp_path).returncode == 0
    assert len(launches(tmp_path)) == 2


def test_a_launch_of_a_day_before_that_nobody_brought_in_is_scanned_too(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert preloaded.run("commands.main", *words, "--no-line", env=environment(), folder=tmp_path).returncode == 0
    (state_of(tmp_path) / "asked.json").write_text(json.dumps({"launches": ["20261101080000"], "unseen": True}))
    done = preloaded.run("commands.main", *words, env=environment(), folder=tmp_path)
    assert (done.returncode, "scan 2026-11-01-" in done.stdout) == (0, True), done.stdout


@pytest.mark.parametrize("gone", [f"jobs/{JOB}", "jobs", ""])
def test_a_job_that_is_removed_while_it_is_attached_to_is_named(
    tmp_path: Path, words: tuple[str, ...], gone: str
) -> None:
    left_alone(tmp_path, words)
    holder = folders.holder(state_of(tmp_path))
    assert holder
    terminal = Terminal(tmp_path, *words)
    terminal.until(" queued, ")
    shutil.rmtree(tmp_path / "archive" / gone)
    assert terminal.ends() in (3, 4), terminal.text
    assert "Traceback" not in terminal.text, terminal.text
    assert "archive" in terminal.text.rpartition(" queued")[2], terminal.text
    wait_for(lambda: not Path(f"/proc/{holder.pid}/exe").exists())


def test_the_line_is_not_left_undone_when_the_terminal_dies_in_the_scan(tmp_path: Path, words: tuple[str, ...]) -> None:
    terminal = Terminal(tmp_path, *words)
    terminal.until("launch 20")
    wait_for(lambda: folders.holder(state_of(tmp_path)) is None)
    terminal.closes()
    done = subprocess.run(
        [Path(sys.executable).with_name("warcmill"), *words], cwd=tmp_path, env=environment(), check=False
    )
    assert (done.returncode, is_brought_in(tmp_path)) == (0, True)
