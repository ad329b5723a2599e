"""The times that a page is opened anew, by what each attempt brings, and which of them are alone."""

from __future__ import annotations

import asyncio

import pytest

from warcmill.crawl.render import BROWSER_ENDED, CRASHED, MEMORY, RenderedPage, RenderFailed, Result, anew

PAGE = RenderedPage(b"<p>done</p>", "http://a.example/")
SHARED, ALONE = False, True


def attempts(whys: list[str]) -> tuple[list[bool], Result]:
    """The attempts that are made, True for one that is alone, and the result; a page that is there after these."""
    made, left = list[bool](), iter([RenderFailed(why) for why in whys])

    async def attempt(alone: bool) -> Result:
        made.append(alone)
        return next(left, PAGE)

    return made, asyncio.run(anew(attempt))


@pytest.mark.parametrize(
    ("whys", "made"),
    [
        ([], [SHARED]),
        ([BROWSER_ENDED], [SHARED, SHARED]),
        ([BROWSER_ENDED] * 3, [SHARED, SHARED, SHARED, ALONE]),
        ([CRASHED], [SHARED, ALONE]),
        ([MEMORY], [SHARED, ALONE]),
        ([CRASHED, BROWSER_ENDED, MEMORY], [SHARED, ALONE, SHARED, ALONE]),
    ],
)
def test_a_page_is_opened_anew_after_what_may_be_the_fault_of_others(whys: list[str], made: list[bool]) -> None:
    assert attempts(whys) == (made, PAGE)


@pytest.mark.parametrize(
    ("whys", "made"),
    [
        ([BROWSER_ENDED] * 9, [SHARED, SHARED, SHARED, ALONE]),
        ([CRASHED] * 9, [SHARED, ALONE]),
        ([MEMORY] * 9, [SHARED, ALONE]),
        (["hung"] * 9, [SHARED]),
        (["domTooLong"] * 9, [SHARED]),
        ([BROWSER_ENDED, "notLoaded"], [SHARED, SHARED]),
    ],
)
def test_what_is_its_own_fault_or_does_not_end_is_its_result(whys: list[str], made: list[bool]) -> None:
    assert attempts(whys) == (made, RenderFailed(whys[-1]))
