"""The status grid as data: for every launch and stage what each step has come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from warcmill import chain, gaps, layout, survey, vitals
from warcmill.attempts import Attempt
from warcmill.chain import Row, Wanted
from warcmill.errors import Unavailable, WarcmillError
from warcmill.ledger import settled
from warcmill.model import Key, Launch, Outcome, Stage
from warcmill.sites import Sites
from warcmill.state import State
from warcmill.survey import Survey
from warcmill.vitals import Vitals


class Mark(StrEnum):
    """What a step has come to. The worst comes first."""

    FAILED = "failed"
    STALE = "stale"  # done with something that is no longer the current
    REFUSED = "refused"  # done, and found WARCs whose bytes are wrong for good
    PARTIAL = "partial"
    WAITING = "waiting"
    DONE = "done"
    NOT_DUE = "not due"  # the crawl has not come that far; or an optional step


HAS_MARKER = (Mark.DONE, Mark.REFUSED, Mark.STALE)
TROUBLES = (Mark.FAILED, Mark.REFUSED, Mark.STALE)


@dataclass(frozen=True, slots=True)
class Cell:
    """One step: `done` of so many files of a stage; or of so many stages of a launch, of those that are due."""

    mark: Mark
    done: int = 0
    of: int = 0


_WHOLE, _NOT_DUE = Cell(Mark.DONE, 1, 1), Cell(Mark.NOT_DUE)  # what nearly all cells of a month are
Cells = Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class LaunchGrid:
    """One launch. `error`: it could not be looked at; `unavailable`: because a disk did not answer."""

    launch: Launch
    ended: str
    cells: Cells
    stages: tuple[tuple[Stage, Cells], ...]
    error: str = ""
    unavailable: bool = False
    vitals: Vitals | None = None  # of one that runs

    @property
    def word(self) -> str:
        """Where it stands, as totals count it: one of WORDS."""
        if self.error or any(cell.mark in TROUBLES for cell in self.cells.values()):
            return "in trouble"
        if not self.ended:
            return "running"
        done = all(cell.mark in (Mark.DONE, Mark.NOT_DUE) for cell in self.cells.values())
        return "done" if done else "waiting"


WORDS = ("done", "waiting", "running", "in trouble")


@dataclass(frozen=True, slots=True)
class Totals:
    """Many launches: how many there are of each word; and of each step, in how many stages it is done, of those due."""

    launches: Mapping[str, int]
    stages: int
    cells: Mapping[str, tuple[int, int]]


def totals(grids: Iterable[LaunchGrid]) -> Totals:
    """The totals of some launches."""
    steps = chain.by_word(chain.ROWS)
    grids = tuple(grids)
    launches, stages, met = dict.fromkeys(WORDS, 0), 0, {step for one in grids for step in one.cells}
    unswitched = chain.unswitched(chain.ROWS)
    cells = {word: (0, 0) for word, row in steps.items() if row.head and (row in unswitched or word in met)}
    for one in grids:
        launches[one.word] += 1
        stages += len(one.stages)
        for step, cell in one.cells.items():
            due = int(cell.mark is not Mark.NOT_DUE)
            done, of = (cell.done, cell.of) if steps[step].scope == "stage" else (int(cell.mark in HAS_MARKER), due)
            cells[step] = cells[step][0] + done, cells[step][1] + of
    return Totals(launches, stages, cells)


def grid(state: State, sites: Sites, launch: Launch, wanted: Wanted) -> LaunchGrid:
    """The grid of one launch; its error, if any, is in it and hides no other launch."""
    try:
        seen = survey.glance(state, sites.of(launch.job), launch, wanted)
        runs = None if seen.ended else vitals.of(sites.of(launch.job), launch, seen.listing)
        return replace(of_survey(seen), vitals=runs)
    except WarcmillError as error:
        return LaunchGrid(launch, "", {}, (), str(error), isinstance(error, Unavailable))


def of_survey(seen: Survey) -> LaunchGrid:
    """The grid of what was seen of a launch."""
    stale, rows = gaps.stale(seen), seen.rows()
    stages = tuple(
        (stage, {row.word: _cell(seen, row, stage, stale) for row in rows if row.scope == "stage"})
        for stage in seen.stages
    )
    cells = {
        row.word: together(each[row.word] for _, each in stages)
        if row.scope == "stage"
        else _cell(seen, row, None, stale)
        for row in rows
    }
    return LaunchGrid(seen.launch, seen.ended, cells, stages)


def together(cells: Iterable[Cell]) -> Cell:
    """The cells of all stages as one: the worst mark, and how many of those that are due are done."""
    due = [cell.mark for cell in cells if cell.mark is not Mark.NOT_DUE]
    done = sum(mark in HAS_MARKER for mark in due)
    worst = next((mark for mark in Mark if mark in due), Mark.NOT_DUE)
    if worst is Mark.WAITING and done:
        worst = Mark.PARTIAL
    return Cell(worst, done, len(due))


def _cell(seen: Survey, step: Row, stage: Stage | None, stale: Mapping[Key, str]) -> Cell:
    key = seen.key(step.word, stage)
    if key in seen.markers:
        if key in stale:
            return Cell(Mark.STALE, 1, 1)
        return Cell(Mark.REFUSED, 1, 1) if stage and _refuses(seen, step, stage, key) else _WHOLE
    if layout.marker_name(key) in seen.unsound:
        return Cell(Mark.FAILED, 0, 1)
    attempts = seen.attempts.get(key, ())
    return _tried(seen, step, stage, attempts) if attempts or seen.due(step.word, stage) else _NOT_DUE


def _tried(seen: Survey, step: Row, stage: Stage | None, attempts: tuple[Attempt, ...]) -> Cell:
    """A step that is due, or was tried, and has left no marker: how far its attempts have come."""
    if not attempts or _was_early(attempts[-1]):
        return Cell(Mark.WAITING, 0, 1)
    mark = Mark.FAILED if attempts[-1].error else Mark.PARTIAL
    return Cell(mark, len(settled(attempts)), _files(seen, step, stage) if stage else 1)


def _was_early(attempt: Attempt) -> bool:
    """Whether the attempt ended because the crawl had not come that far."""
    return any(line.get("kind") == "NotReady" for line in attempt.lines)


def _files(seen: Survey, step: Row, stage: Stage) -> int:
    """How many files a step has to do: those that the step before left."""
    before = seen.marker(step.after, stage) if step.after else None
    return len(before.claim.outputs or before.claim.items) if before else 1


def _refuses(seen: Survey, step: Row, stage: Stage, key: Key) -> bool:
    """Whether this step found WARCs wrong, and no operator has taken note of them."""
    if not step.judges or all(item.outcome is not Outcome.REFUSED for item in seen.markers[key].claim.items):
        return False
    items = seen.items(step.word, stage)
    return any(item.outcome is Outcome.REFUSED and not gaps.is_accepted(seen, path) for path, item in items.items())
