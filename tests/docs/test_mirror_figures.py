"""The figures of what a mirror of PyPI takes: they follow from the inputs that the page has."""

from __future__ import annotations

import re

from operating.documented import PAGES

from warcmill.formats.pypi.zip_directory import TAIL
from warcmill.pypi.feed import SETTINGS

PAGE = PAGES["start/mirror-a-package-index.md"]
_row = re.compile(r"^\| (.+) \| (\d+) \|$", re.MULTILINE)
GB, HOUR, DAY = 10**9, 3600, 86_400


def given() -> dict[str, int]:
    return {name: int(number) for name, number in _row.findall(PAGE)}


def test_the_figures_follow_from_their_inputs() -> None:
    of = given()
    page, paper, end, sdist = (
        of[f"bytes of {what}"] for what in ("a page, packed", "a .metadata, packed", "the end of a wheel", "an sdist")
    )
    built = of["projects"] * of["newest releases with a wheel, of 100"] // 100
    wheels, ends = (built * of[f"{what} of such a release, times 10"] // 10 for what in ("wheels", "Python tags"))
    newest = (wheels, ends, of["projects"] - built)
    wheels = of["files"] * of["wheels, of 100 files"] // 100
    ends = wheels * (100 - of["wheels that share a Python tag with another, of 100"]) // 100
    every = (wheels, ends, (of["files"] - wheels) * of["sdists without a wheel, of 100"] // 100)

    def row(what: str, requests: int, size: int) -> str:
        seconds = requests / of["requests a second"]
        time = f"{seconds / HOUR:.0f} hours" if seconds < DAY else f"{seconds / DAY:.1f} days"
        return f"| {what} | {requests:,} | {size / GB:.0f} GB | {time} |"

    rows = [row("pages", of["projects"], of["projects"] * page)]
    for what, (papers, tails, sources) in (("newest releases", newest), ("all files", every)):
        size = papers * paper + tails * end + sources * sdist
        rows.append(row(what, papers + tails + sources, size))
    assert [one for one in rows if one not in PAGE] == []


def test_the_inputs_are_those_of_the_code() -> None:
    of, politeness = given(), SETTINGS["politeness"]
    assert isinstance(politeness, dict)
    assert of["bytes of the end of a wheel"] == TAIL
    assert politeness["at_once"] / politeness["least"] == of["requests a second"]
