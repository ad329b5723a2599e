"""The guard of a project's code: what it raises, and the pages at which the process has died."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from waiting import wait_for

from warcmill.crawl.uri import Uri, make
from warcmill.spiders import guard as guarding
from warcmill.spiders.guard import NAME, CodeExit, CodeGuard

PAGE, OTHER = make("http://windmills.example/"), make("http://windmills.example/2")


def guard(folder: Path) -> CodeGuard:
    return CodeGuard("mills", folder, lambda *_: None)


def died_at(folder: Path, uri: Uri, end: Callable[[], object] = lambda: os._exit(1)) -> CodeGuard:
    """The guard of the process after one that has ended, in this way, while code ran for a page."""

    async def code() -> None:
        end()

    async def whole() -> None:
        guarded = guard(folder)
        guarded.begin()
        await _run(guarded, uri, code())
        guarded.end()

    if not (process := os.fork()):
        leave = os._exit
        asyncio.run(whole())
        leave(0)
    os.waitpid(process, 0)
    return guard(folder)


async def _run(guarded: CodeGuard, uri: Uri, code: Awaitable[None]) -> None:
    await guarded.run(uri, code)


def test_deaths_are_counted_by_page_until_it_is_done_with(tmp_path: Path) -> None:
    for number in (1, 2):
        assert died_at(tmp_path, PAGE).deaths(PAGE) == number
    found = died_at(tmp_path, OTHER)
    assert (found.deaths(PAGE), found.deaths(OTHER)) == (2, 1)
    found.forget(PAGE)
    found = died_at(tmp_path, PAGE, lambda: None)  # ended while no code ran
    assert (found.deaths(PAGE), found.deaths(OTHER)) == (0, 1)


def _in_a_child() -> None:
    """End a process that the code has forked; then this one is killed from outside."""
    if not (process := os.fork()):
        os._exit(3)
    os.waitpid(process, 0)
    _killed()


def _killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("end", "deaths"),
    [
        (lambda: ctypes.string_at(0), 1),
        (os.abort, 1),
        (_killed, 0),
        (_in_a_child, 0),
        (lambda: os.kill(os.getpid(), signal.SIGTERM), 0),
    ],
    ids=["segmentation fault", "abort", "kill -9", "kill -9 after a child", "SIGTERM"],
)
def test_only_a_death_of_its_own_counts_against_the_page(
    end: Callable[[], object], deaths: int, tmp_path: Path
) -> None:
    before = died_at(tmp_path, PAGE)
    assert before.deaths(PAGE) == 1
    assert died_at(tmp_path, PAGE, end).deaths(PAGE) == 1 + deaths


def test_a_kill_for_want_of_memory_counts_against_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system counts its kills; a test cannot have it make one."""
    monkeypatch.setattr(guarding, "VMSTAT", vmstat := tmp_path / "vmstat")
    vmstat.write_text("nr_free_pages 9\noom_kill 4\n")

    def is_killed() -> None:
        vmstat.write_text("nr_free_pages 1\noom_kill 5\n")
        _killed()

    assert died_at(tmp_path, PAGE, is_killed).deaths(PAGE) == 1
    assert died_at(tmp_path, PAGE, _killed).deaths(PAGE) == 1, "there was none since"


def test_code_that_was_killed_as_it_did_not_let_go_of_the_loop_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarding, "STANDS", 0.02)
    monkeypatch.setattr(guarding, "LOOK", 0.01)

    def stands() -> None:
        cause = tmp_path / guarding.CAUSE
        wait_for(lambda: "does not let go" in cause.read_text())
        _killed()

    assert died_at(tmp_path, PAGE, stands).deaths(PAGE) == 1


def test_a_page_is_named_only_while_its_code_runs_and_not_while_it_awaits(tmp_path: Path) -> None:
    made, seen = guard(tmp_path), list[tuple[bool, bool]]()

    def look(step: int) -> None:
        seen.append((step == 0, any((tmp_path / NAME).read_bytes())))

    async def code() -> None:
        look(0)
        await asyncio.sleep(0)
        look(0)

    async def whole() -> None:
        task = asyncio.ensure_future(_run(made, PAGE, code()))
        await asyncio.sleep(0)
        look(1)
        await task
        look(1)

    asyncio.run(whole())
    assert all(is_running == is_named for is_running, is_named in seen)
    assert len(seen) == 4


async def _exits() -> None:
    raise SystemExit(3)


async def _closes() -> None:
    raise GeneratorExit


async def _awaits_what_is_cancelled() -> None:
    task = asyncio.ensure_future(asyncio.sleep(60))
    task.cancel()
    await task


@pytest.mark.parametrize("code", [_exits, _closes, _awaits_what_is_cancelled])
def test_what_is_no_error_becomes_one(code: Callable[[], Awaitable[None]], tmp_path: Path) -> None:
    with pytest.raises(CodeExit, match="the code of spider mills has"):
        asyncio.run(_run(guard(tmp_path), PAGE, code()))


def test_code_that_is_cancelled_ends_as_that(tmp_path: Path) -> None:
    async def whole() -> bool:
        task = asyncio.ensure_future(_run(guard(tmp_path), PAGE, asyncio.sleep(60)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(whole())
