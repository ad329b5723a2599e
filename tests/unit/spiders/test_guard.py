"""The guard of a project's code: what it raises, and the pages at which the process has died."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from warcmill.crawl.uri import Uri, make
from warcmill.spiders.guard import NAME, CodeExit, CodeGuard

PAGE, OTHER = make("http://windmills.example/"), make("http://windmills.example/2")


def guard(folder: Path) -> CodeGuard:
    return CodeGuard("mills", folder, lambda *_: None)


def died_at(folder: Path, uri: Uri) -> CodeGuard:
    """The guard of the process after one that has died at a page."""
    left = []

    async def code() -> None:
        left.append((folder / NAME).read_bytes())

    asyncio.run(_run(guard(folder), uri, code()))
    (folder / NAME).write_bytes(left[0])
    return guard(folder)


async def _run(guarded: CodeGuard, uri: Uri, code: Awaitable[None]) -> None:
    await guarded.run(uri, code)


def test_deaths_are_counted_by_page_until_it_is_done_with(tmp_path: Path) -> None:
    for number in (1, 2):
        assert died_at(tmp_path, PAGE).deaths(PAGE) == number
    found = died_at(tmp_path, OTHER)
    assert (found.deaths(PAGE), found.deaths(OTHER)) == (2, 1)
    found.forget(PAGE)
    found = guard(tmp_path)  # ended while no code ran
    assert (found.deaths(PAGE), found.deaths(OTHER)) == (0, 1)


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
