"""A launch in one sentence, as pages and verbs say it: its pages, what it lacks, its end, what needs you. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from warcmill.launches.cut_short import CutShort
from warcmill.markers.facts.output import Ended
from warcmill.reports.pages import ListSums

NOT_LISTED = "its pages are not listed yet"


class SaidPart(Struct, frozen=True):
    """A part of the sentence. `proof`: the list that proves its number: `pages`, `sites`, `not-got`, `end` or `gaps`.
    `before`: the words between the part before and this one."""

    text: str
    proof: str
    before: str = ", "


def parts(sums: ListSums | None, ended: str, cut: CutShort | None, need: int) -> Iterator[SaidPart]:
    """The parts. `sums`: None without a list of pages; `ended`: the end by its evidence, '' while the launch runs;
    `need`: the number of findings that need a person."""
    if sums:
        yield SaidPart(_counted(sums.pages, "page"), "pages", "")
        yield SaidPart(_counted(sums.sites, "site"), "sites", " of ")
        yield SaidPart(f"{sums.not_got:,} not got", "not-got")
    else:
        yield SaidPart(NOT_LISTED, "pages", "")
    yield SaidPart(_end(ended, cut), "end")
    if need:
        yield SaidPart(f"{need:,} {'needs' if need == 1 else 'need'} you", "gaps")


def sentence(sums: ListSums | None, ended: str, cut: CutShort | None, need: int) -> str:
    """The whole sentence."""
    return "".join(part.before + part.text for part in parts(sums, ended, cut, need))


def _end(ended: str, cut: CutShort | None) -> str:
    if cut:
        return cut.by
    words = {"": "running", Ended.IMPORTED: "imported", Ended.OPERATOR: "closed by a person"}
    return words.get(ended, "ended")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
