"""Draw the grid of `warcmill status`: one line per launch, under its day. Fast also for thousands of launches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby

from rich.console import Console
from rich.text import Text

from commands.show import printable
from warcmill import chain
from warcmill.audit.progress_grid import Cell, LaunchGrid, Mark, Totals

SIGNS: dict[Mark, tuple[str, str]] = {
    Mark.DONE: ("✔", "green"),
    Mark.PARTIAL: ("◐", "yellow"),
    Mark.WAITING: ("○", "cyan"),
    Mark.FAILED: ("✘", "bold red"),
    Mark.REFUSED: ("!", "bold magenta"),
    Mark.STALE: ("↻", "bold yellow"),
    Mark.NOT_DUE: ("·", "dim"),
}
FOLDED = "   "  # before the id of a launch whose job is on its own line
SHORTEST = 17  # columns: a folded id

Shown = tuple[str, str]  # a text and its style


def table(target: Console, grids: list[LaunchGrid], everything: Totals) -> Iterator[str]:
    """The lines of the grid, then the totals. A name too wide for the terminal is broken at its `/`."""
    columns = [row for row in chain.steps(chain.ROWS) if row.due == chain.ALWAYS or _is_in_use(grids, row.word)]
    steps = [row.word for row in columns]
    heads = [("", "ended"), ("sta-", "ges"), *(tuple(row.head.split("_")) for row in columns)]
    rows = [_row(grid, steps) for grid in grids]
    total = _total(everything, steps)
    wide = [max(len(text) for text, _ in column) for column in zip(*rows, total, strict=True)]
    wide = [max(width, *map(len, head)) for width, head in zip(wide, heads, strict=True)]
    first = _width(target.width - sum(wide) - len(wide), [grid.launch.job for grid in grids])
    painted = _painter(target)

    def line(name: str, style: str, cells: list[Shown]) -> str:
        words = [painted(*cell, width) for cell, width in zip(cells, wide, strict=True)]
        return " ".join([painted(name, style, first), *words]).rstrip()

    for number, title in enumerate(("", "day, launch")):
        yield line(title, "bold", [(head[number], "bold") for head in heads])
    by_day = groupby(zip(grids, rows, strict=True), key=lambda pair: pair[0].launch.id[:8])
    for _, group in by_day:
        for place, (grid, cells) in enumerate(group):
            if place == 0:
                yield painted(f"{grid.launch.day} {grid.launch.day:%a}", "bold", 0)
            name = f" {grid.launch}"
            if len(name) > first:
                yield f" {grid.launch.job}/"
                name = FOLDED + grid.launch.id
            yield line(name, "", cells)
    if len(grids) > 1:
        yield line("total", "bold", total)


def _width(room: int, jobs: list[str]) -> int:
    """The width of the names column: the longest name that fits."""
    lengths = [len(job) + len(" /20161019234428") for job in jobs]
    return max([SHORTEST, *(length for length in lengths if length <= room)])


def _row(grid: LaunchGrid, steps: list[str]) -> list[Shown]:
    return [_ended(grid), (f"{len(grid.stages):>4}", ""), *(sign(grid.cells.get(step)) for step in steps)]


def _total(everything: Totals, steps: list[str]) -> list[Shown]:
    numbers = (everything.cells[step] for step in steps)
    done = [(str(of) if done == of else f"{done}/{of}", "green" if done == of else "yellow") for done, of in numbers]
    return [("", ""), (f"{everything.stages:>4}", ""), *done]


def _is_in_use(grids: list[LaunchGrid], step: str) -> bool:
    """True if some launch has something to show in a step that is not due for all."""
    return any(step in grid.cells and grid.cells[step].mark is not Mark.NOT_DUE for grid in grids)


def _ended(grid: LaunchGrid) -> Shown:
    if grid.error:
        return "unreadable", "bold red"
    return (printable(grid.ended), "") if grid.ended else ("running", "cyan")


def sign(cell: Cell | None) -> Shown:
    """A cell's sign, with n/m where some stages of a launch are not done."""
    if cell is None:
        return "", ""
    mark, style = SIGNS[cell.mark]
    number = f" {cell.done}/{cell.of}" if cell.done < cell.of and cell.of > 1 else ""
    return f"{mark}{number}", style


def legend() -> Text:
    """What each sign means."""
    words = (Text.assemble((text, style), f" {mark}") for mark, (text, style) in SIGNS.items())
    return Text("\n") + Text("   ").join(words)


def _painter(target: Console) -> Callable[[str, str, int], str]:
    """A function that styles a text for this console and pads it to a width. Each styled text is rendered once."""

    @cache
    def paint(text: str, style: str, width: int) -> str:
        with target.capture() as shown:
            target.print(Text(text, style=style), end="", soft_wrap=True)
        return shown.get() + " " * (width - len(text))

    def painted(text: str, style: str, width: int) -> str:
        return paint(text, style, width) if style else text.ljust(width)

    return painted
