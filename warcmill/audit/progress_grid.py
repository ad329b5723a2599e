"""The status grid as data: the state of each step, for every launch and stage."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from warcmill import chain, layout
from warcmill.audit import findings, gaps, survey
from warcmill.audit.survey import Survey
from warcmill.chain import Row, Wanted
from warcmill.errors import Unavailable, WarcmillError
from warcmill.launches.roots import RootMap
from warcmill.launches.view import Vitals, vitals
from warcmill.markers.attempts import Attempt, settled
from warcmill.markers.state import MarkerStore
from warcmill.model import Key, Launch, Outcome, Stage


class Mark(StrEnum):
    """The state of a step, a launch or a file: its word, and the shape beside it in terminal, page and picture.

    The worst comes first.
    """

    shape: str

    FAILED = "failed", "✘"
    STALE = "stale", "↻"  # done with an input that is no longer current
    REFUSED = "refused", "!"  # done; found WARCs whose bytes are wrong for good
    CUT = "cut short", "✂"  # a crawl of which more waits; its steps are done
    PARTIAL = "partial", "◐"
    RUNNING = "running", "▶"  # a crawl; no step is
    WAITING = "waiting", "○"
    DONE = "done", "✔"
    NOT_DUE = "not due", "·"  # the crawl is not that far; or the step is optional

    def __new__(cls, word: str, shape: str) -> Self:
        """Make the member that is equal to its word."""
        member = str.__new__(cls, word)
        member._value_, member.shape = word, shape
        return member


LEGEND = (
    *(Mark.DONE, Mark.CUT, Mark.PARTIAL, Mark.WAITING, Mark.RUNNING),
    *(Mark.FAILED, Mark.REFUSED, Mark.STALE, Mark.NOT_DUE),
)
STYLES = {  # on a terminal
    Mark.DONE: "green",
    Mark.PARTIAL: "yellow",
    Mark.CUT: "yellow",
    Mark.WAITING: "cyan",
    Mark.RUNNING: "cyan",
    Mark.FAILED: "bold red",
    Mark.REFUSED: "bold magenta",
    Mark.STALE: "bold yellow",
    Mark.NOT_DUE: "dim",
}
HAS_MARKER = (Mark.DONE, Mark.REFUSED, Mark.STALE)
TROUBLES = (Mark.FAILED, Mark.REFUSED, Mark.STALE)


class Cell(Struct, frozen=True):
    """One step: `done` of `of` files of a stage, or of `of` due stages of a launch."""

    mark: Mark
    done: int = 0
    of: int = 0


_WHOLE, _NOT_DUE = Cell(Mark.DONE, 1, 1), Cell(Mark.NOT_DUE)  # shared: nearly all cells of a month
Cells = Mapping[str, Cell]


class LaunchGrid(Struct, frozen=True):
    """One launch. `error`: why it could not be read; `unavailable`: a disk did not answer. `away`: the roots that did
    not, of a launch whose markers alone were read."""

    launch: Launch
    ended: str
    cells: Cells
    stages: tuple[tuple[Stage, Cells], ...]
    error: str = ""
    unavailable: bool = False
    vitals: Vitals | None = None  # of a running launch
    lost: tuple[str, ...] = ()  # the seeds and targets that were not got, and are not accepted
    cut: str = ""  # how the crawl was cut short, in words
    history: str = ""  # of a package index: the older releases that wait for later launches, in words
    accepted: int = 0  # findings that an operator has accepted
    away: tuple[Unavailable, ...] = ()

    @property
    def is_end_unknown(self) -> bool:
        """True if only a root that is away can show whether it has ended."""
        return bool(self.away) and not self.ended

    @property
    def word(self) -> str:
        """The state of the launch in the totals: one of WORDS, or 'cut short'."""
        if self.error or self.is_end_unknown or any(cell.mark in TROUBLES for cell in self.cells.values()):
            return "in trouble"
        if not self.ended:
            return "running"
        if not all(cell.mark in (Mark.DONE, Mark.NOT_DUE) for cell in self.cells.values()):
            return "waiting"
        return str(Mark.CUT) if self.cut else "done"

    @property
    def mark(self) -> Mark:
        """The one mark of the launch."""
        if self.error or self.is_end_unknown:
            return Mark.FAILED
        mark = mark_of(frozenset(cell.mark for cell in self.cells.values()), bool(self.ended))
        return Mark.CUT if mark is Mark.DONE and self.cut else mark


WORDS = ("done", "waiting", "running", "in trouble")
"""The states of a launch that are always counted; 'cut short' is counted where there is one."""


class Totals(Struct, frozen=True):
    """Many launches: how many are in each state of WORDS; for each step, how many cells are done, and due."""

    launches: Mapping[str, int]
    stages: int
    cells: Mapping[str, tuple[int, int]]


def totals(grids: Iterable[LaunchGrid]) -> Totals:
    """The totals of some launches."""
    steps = chain.by_word(chain.ROWS)
    grids = tuple(grids)
    launches, stages, met = dict.fromkeys(WORDS, 0), 0, {step for grid in grids for step in grid.cells}
    unswitched = chain.unswitched(chain.ROWS)
    cells = {word: (0, 0) for word, row in steps.items() if row.head and (row in unswitched or word in met)}
    for grid in grids:
        launches[grid.word] = launches.get(grid.word, 0) + 1
        stages += len(grid.stages)
        for step, cell in grid.cells.items():
            due = int(cell.mark is not Mark.NOT_DUE)
            done, of = (cell.done, cell.of) if steps[step].scope == "stage" else (int(cell.mark in HAS_MARKER), due)
            cells[step] = cells[step][0] + done, cells[step][1] + of
    return Totals(launches, stages, cells)


def grid(state: MarkerStore, rootmap: RootMap | None, launch: Launch, wanted: Wanted) -> LaunchGrid:
    """The grid of one launch. A WarcmillError becomes its `error`, so that it hides no other launch.

    `rootmap` None: by its markers alone, whatever the disks hold.
    """
    try:
        seen = survey.look(state, rootmap, launch, wanted, on_disk=False)
        is_running = not (seen.away or seen.ended or seen.is_imported)
        running = vitals(rootmap.of(launch.job), launch, seen.listing) if rootmap and is_running else None
        return replace(of_survey(seen), vitals=running)
    except WarcmillError as error:
        return LaunchGrid(launch, "", {}, (), str(error), isinstance(error, Unavailable))


def of_survey(seen: Survey) -> LaunchGrid:
    """The grid of a launch, as the survey saw it."""
    stale, rows = gaps.stale(seen), seen.rows()
    stages = tuple(
        (stage, {row.word: _cell(seen, row, stage, stale) for row in rows if row.scope == "stage"})
        for stage in seen.stages
    )
    cells = {
        row.word: merge(each[row.word] for _, each in stages) if row.scope == "stage" else _cell(seen, row, None, stale)
        for row in rows
    }
    lost = tuple(one.name for one in findings.still_open(seen))
    accepted = sum(key.task == "operator.Accept" for key in seen.markers) + len(seen.accepted_seeds)
    cut = seen.cut.text if seen.cut else ""
    return LaunchGrid(
        seen.launch, seen.ended, cells, stages, unavailable=bool(seen.away), lost=lost, cut=cut, accepted=accepted,
        away=seen.away, history=seen.history,
    )  # fmt: skip


def merge(cells: Iterable[Cell]) -> Cell:
    """Merge the cells of all stages into one: the worst mark, and how many of the due ones are done."""
    due = [cell.mark for cell in cells if cell.mark is not Mark.NOT_DUE]
    if all(mark is Mark.DONE for mark in due):  # as nearly all are
        return Cell(Mark.DONE, len(due), len(due)) if due else _NOT_DUE
    return Cell(merged(due), sum(mark in HAS_MARKER for mark in due), len(due))


def merged(marks: Collection[Mark]) -> Mark:
    """The mark of a step of a launch, from those of its stages: the worst of those that are due."""
    worst = next((mark for mark in Mark if mark in marks), Mark.NOT_DUE)
    return Mark.PARTIAL if worst is Mark.WAITING and any(mark in HAS_MARKER for mark in marks) else worst


def _cell(seen: Survey, step: Row, stage: Stage | None, stale: Mapping[Key, str]) -> Cell:
    key = seen.key(step.word, stage)
    if key in seen.markers:
        if key in stale:
            return Cell(Mark.STALE, 1, 1)
        is_lost = step.word == findings.WORD and findings.still_open(seen)
        return Cell(Mark.REFUSED, 1, 1) if is_lost or (stage and _refuses(seen, step, stage, key)) else _WHOLE
    if layout.marker_name(key) in seen.unsound:
        return Cell(Mark.FAILED, 0, 1)
    if stage and seen.is_covered(step.word, stage):
        return _NOT_DUE  # an attempt at it was refused
    attempts = seen.attempts.get(key, ())
    return _tried(seen, step, stage, attempts) if attempts or seen.due(step.word, stage) else _NOT_DUE


def _tried(seen: Survey, step: Row, stage: Stage | None, attempts: tuple[Attempt, ...]) -> Cell:
    """The cell of a step that is due, or was tried, and has no marker: how far its attempts are."""
    if not attempts or attempts[-1].was_early:
        return Cell(Mark.WAITING, 0, 1)
    mark = Mark.FAILED if attempts[-1].error else Mark.PARTIAL
    return Cell(mark, len(settled(attempts)), _files(seen, step, stage) if stage else 1)


def _files(seen: Survey, step: Row, stage: Stage) -> int:
    """The number of files that a step works on: those that the step before it left."""
    before = seen.marker(step.after, stage) if step.after else None
    return len(before.claim.outputs or before.claim.items) if before else 1


def _refuses(seen: Survey, step: Row, stage: Stage, key: Key) -> bool:
    """True if this step refused WARCs that no operator has accepted."""
    if not step.judges or all(item.outcome is not Outcome.REFUSED for item in seen.markers[key].claim.items):
        return False
    items = seen.items(step.word, stage)
    return any(item.outcome is Outcome.REFUSED and not gaps.is_accepted(seen, path) for path, item in items.items())


@lru_cache
def mark_of(marks: frozenset[str], has_ended: bool) -> Mark:
    """The one mark of a launch, from those of its steps: the worst trouble, else how far it is."""
    if trouble := next((mark for mark in Mark if mark in TROUBLES and mark in marks), None):
        return trouble
    if not has_ended:
        return Mark.RUNNING
    if marks <= {Mark.DONE, Mark.NOT_DUE}:
        return Mark.DONE
    return Mark.PARTIAL if Mark.DONE in marks else Mark.WAITING
