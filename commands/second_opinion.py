"""Where the verdict of our gate on a WARC differs from what warcio finds in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warcmill.formats.warc.gate import Verdict
from warcmill.formats.warc.second_opinion import Opinion, Problem

NOTHING_WRONG = "nothing wrong"


@dataclass(frozen=True, slots=True)
class Difference:
    """One point on which the two disagree. `offset` in bytes; None: the file as a whole."""

    offset: int | None
    record: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        where = "" if self.offset is None else f" at offset {self.offset}"
        return f"{where}{self.record and f', {self.record}'}: the gate: {self.ours}; warcio: {self.theirs}"


def differences(verdict: Verdict, other: Opinion) -> tuple[Difference, ...]:
    """Where the two differ, in file order. The gate reads nothing after a record that it refuses."""
    if verdict.ok:
        return (*_unseen(other.problems), *_uncounted(verdict, other))
    if verdict.offset is None:
        return () if other.problems else (Difference(None, "", verdict.why, NOTHING_WRONG),)
    before = _unseen([problem for problem in other.problems if problem.offset < verdict.offset])
    if any(problem.offset >= verdict.offset for problem in other.problems):
        return tuple(before)
    return (*before, Difference(verdict.offset, "", verdict.why, NOTHING_WRONG))


def _unseen(problems: list[Problem] | tuple[Problem, ...]) -> Iterator[Difference]:
    for problem in problems:
        yield Difference(problem.offset, problem.record, NOTHING_WRONG, problem.why)


def _uncounted(verdict: Verdict, other: Opinion) -> Iterator[Difference]:
    if other.records != verdict.records and not other.problems:
        yield Difference(None, "", f"{verdict.records} records", f"{other.records} records")
