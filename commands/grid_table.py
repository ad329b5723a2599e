"""The grid of `warcmill status`, drawn: a line a launch, under its day. Thousands are drawn in the time of a few."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import groupby

from rich.console import Console
from rich.text import Text

from commands.show import printable
from warcmill import chain
from warcmill.grid import Cell, LaunchGrid, Mark, Totals

SIGNS: dict[Mark, tuple[str, str]] = {
    Mark.DONE: ("✔", "green"),
    Mark.PARTIAL: ("◐", "yellow"),
    Mark.WAITING: ("○", "cyan"),
    Mark.FAILED: ("✘", "bold red"),
    Mark.REFUSED: ("!", "bold magenta"),
    Mark.STALE: ("↻", "bold yellow"),
    Mark.NOT_DUE: ("·", "dim"),
}
FOLDED = "   "  # before the id of a launch whose job stands on a line of its own
SHORTEST = 17  # columns: a folded id

Shown = tuple[str, str]  # a text and its style


def table(target: Console, grids: list[LaunchGrid], everything: Totals) -> Iterator[str]:
    """The lines of the grid, the totals under it; a name that is too long for the terminal is folded at its `/`."""
    columns = [row for row in chain.steps(chain.ROWS) if row.due == chain.ALWAYS or _is_met(grids, row.word)]
    steps = [row.word for row in columns]
    heads = [("", "ended"), ("sta-", "ges"), *(tuple(row.head.split("_")) for row in columns)]
    rows = [_row(one, steps) for one in grids]
    total = _total(everything, steps)
    wide = [max(len(text) for text, _ in column) for column in zip(*rows, total, strict=True)]
    wide = [max(width, *map(len, head)) for width, head in zip(wide, heads, strict=True)]
    first = _width(target.width - sum(wide) - len(wide), [one.launch.job for one in grids])
    painted = _painter(target)

    def line(name: str, style: str, cells: list[Shown]) -> str:
        words = [painted(*cell, width) for cell, width in zip(cells, wide, strict=True)]
        return " ".join([painted(name, style, first), *words]).rstrip()

    for number, title in enumerate(("", "day, launch")):
        yield line(title, "bold", [(head[number], "bold") for head in heads])
    by_day = groupby(zip(grids, rows, strict=True), key=lambda pair: pair[0].launch.id[:8])
    for _, group in by_day:
        for place, (one, cells) in enumerate(group):
            if place == 0:
                yield painted(f"{one.launch.day:%Y-%m-%d %a}", "bold", 0)
            name = f" {one.launch}"
            if len(name) > first:
                yield f" {one.launch.job}/"
                name = FOLDED + one.launch.id
            yield line(name, "", cells)
    if len(grids) > 1:
        yield line("total", "bold", total)


def _width(room: int, jobs: list[str]) -> int:
    """How wide the names are: as the longest that there is room for."""
    lengths = [len(job) + len(" /20161019234428") for job in jobs]
    return max([SHORTEST, *(length for length in lengths if length <= room)])


def _row(one: LaunchGrid, steps: list[str]) -> list[Shown]:
    return [_ended(one), (f"{len(one.stages):>4}", ""), *(sign(one.cells.get(step)) for step in steps)]


def _total(everything: Totals, steps: list[str]) -> list[Shown]:
    numbers = (everything.cells[step] for step in steps)
    done = [(str(of) if done == of else f"{done}/{of}", "green" if done == of else "yellow") for done, of in numbers]
    return [("", ""), (f"{everything.stages:>4}", ""), *done]


def _is_met(grids: list[LaunchGrid], step: str) -> bool:
    """Whether some launch has a step to show that not all go through."""
    return any(step in one.cells and one.cells[step].mark is not Mark.NOT_DUE for one in grids)


def _ended(one: LaunchGrid) -> Shown:
    if one.error:
        return "unreadable", "bold red"
    return (printable(one.ended), "") if one.ended else ("running", "cyan")


def sign(cell: Cell | None) -> Shown:
    """A cell as its sign; with n/m where some of a launch's stages are not done."""
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
    """A text in its style, as this console shows it, filled up to a width: each is drawn once, then remembered."""

    @cache
    def paint(text: str, style: str, width: int) -> str:
        with target.capture() as shown:
            target.print(Text(text, style=style), end="", soft_wrap=True)
        return shown.get() + " " * (width - len(text))

    def painted(text: str, style: str, width: int) -> str:
        return paint(text, style, width) if style else text.ljust(width)

    return painted
