"""warcmill status: how far each launch has come, drawn to be read."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from commands.arguments import Interval, add_interval, add_json, last_days
from commands.show import as_json, console, days_json, heading, lines, styled, tell_away
from tasks.step import open_line
from warcmill import survey
from warcmill.grid import STEPS, Cell, Cells, LaunchGrid, Mark, grid
from warcmill.model import Json

SUMMARY = "show how far each launch has come, stage by day"
DAYS = 7
EPILOG = f"""\
examples:
  warcmill status
  warcmill status 2016-10
  warcmill status 2016-10 --json | jq -r '.launches[] | select(.cells.verify.mark != "done") | .launch_id'

Without INTERVAL: the last {DAYS} days (UTC), today included. A row a launch, by day; a
column a step. A number such as 2/3 tells that 2 of the launch's 3 stages that are
due have come that far. Markers are read, files are not: 'warcmill reconcile' compares with the
disk, 'warcmill verify' reads the archive again.

--json: {{"first_day", "last_day", "launches": [{{"job", "launch_id", "ended": "" while it
runs, "error", "vitals": {{"began", "last_sign", "log"}} while it runs, else null,
"cells": {{step: {{"mark", "done", "of"}}}}, "stages": [{{"stage", "cells"}}]}}]}};
done and of count stages in the launch's cells, files in a stage's. Marks: done, partial,
failed, waiting, refused, stale, not due.

exit codes: 0 shown, 2 usage, 3 configuration, 4 a disk or a folder did not answer
"""
SIGNS: dict[Mark, tuple[str, str]] = {
    Mark.DONE: ("✔", "green"),
    Mark.PARTIAL: ("◐", "yellow"),
    Mark.WAITING: ("○", "cyan"),
    Mark.FAILED: ("✘", "bold red"),
    Mark.REFUSED: ("!", "bold magenta"),
    Mark.STALE: ("↻", "bold yellow"),
    Mark.NOT_DUE: ("·", "dim"),
}
HEADS = {
    "assemble": "assem-\nble",
    "process": "pro-\ncess",
    "checksum": "check-\nsum",
    "verify": "veri-\nfy",
    "read-back": "read-\nback",
    "retire": "re-\ntire",
}
OPTIONAL = ("read-back", "retire")
TROUBLES = (Mark.FAILED, Mark.REFUSED, Mark.STALE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[INTERVAL], --json."""
    add_interval(parser, nargs="?")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Glance at every launch of the interval; print."""
    line = open_line()
    days: Interval = args.interval or last_days(DAYS, datetime.now(UTC).date())
    found = survey.find(line.state, line.sites, days.first, days.end)
    grids = [grid(line.state, line.sites, launch) for launch in found.launches]
    if args.json:
        print(as_json({**days_json(days), "launches": [_json(one) for one in grids]}))
    else:
        show(console(), days, grids)
    return 4 if tell_away(found) or any(one.unavailable for one in grids) else 0


def show(target: Console, days: Interval, grids: list[LaunchGrid]) -> None:
    """The grid, what its signs mean, and where to look next."""
    lines(target, heading(days, len(grids)))
    if grids:
        target.print(table(grids))
        lines(target, legend())
    lines(target, *_next(grids))


def table(grids: list[LaunchGrid]) -> Table:
    """A row a launch, under its day."""
    shown = [step for step in STEPS if step not in OPTIONAL or any(_began(one, step) for one in grids)]
    made = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    made.add_column("\nday, launch", overflow="fold", header_style="bold")
    made.add_column("\nended", no_wrap=True)
    made.add_column("sta-\nges", justify="right", no_wrap=True)
    for step in shown:
        made.add_column(HEADS.get(step, f"\n{step}"), no_wrap=True)
    for day, group in groupby(grids, key=lambda one: one.launch.day):
        made.add_row(Text(f"{day:%Y-%m-%d %a}", style="bold"))
        for one in group:
            made.add_row(
                f" {one.launch}", _ended(one), str(len(one.stages)), *(sign(one.cells.get(step)) for step in shown)
            )
    return made


def _began(one: LaunchGrid, step: str) -> bool:
    return step in one.cells and one.cells[step].mark is not Mark.NOT_DUE


def _ended(one: LaunchGrid) -> Text:
    if one.error:
        return Text("unreadable", style="bold red")
    return Text(one.ended) if one.ended else Text("running", style="cyan")


def sign(cell: Cell | None) -> Text:
    """A cell as its sign; with n/m where some of a launch's stages are not done."""
    if cell is None:
        return Text("")
    mark, style = SIGNS[cell.mark]
    number = f" {cell.done}/{cell.of}" if cell.done < cell.of and cell.of > 1 else ""
    return Text(f"{mark}{number}", style=style)


def legend() -> Text:
    """What each sign means."""
    words = [part for mark, (text, style) in SIGNS.items() for part in ((text, style), f" {mark}   ")]
    return Text.assemble("\n", *words)


def _next(grids: list[LaunchGrid]) -> Iterator[Text | str]:
    """The launches that need somebody, each with the command that tells why."""
    for one in grids:
        if one.error:
            yield styled(f"{one.launch}: {one.error}", "red")
    for one in grids:
        if one.vitals:
            yield styled(f"{one.launch}: {one.vitals.text(datetime.now(UTC))}", "cyan")
    bad = [one for one in grids if any(cell.mark in TROUBLES for cell in one.cells.values())]
    if bad:
        yield Text("\nto see what is wrong and what to do:", style="bold")
        yield from (f"  warcmill why {one.launch.job} {one.launch.id}" for one in bad)


def _json(one: LaunchGrid) -> dict[str, Json]:
    return {
        "job": one.launch.job,
        "launch_id": one.launch.id,
        "ended": one.ended,
        "error": one.error,
        "vitals": one.vitals.json() if one.vitals else None,
        "cells": _cells(one.cells),
        "stages": [{"stage": str(stage), "cells": _cells(cells)} for stage, cells in one.stages],
    }


def _cells(cells: Cells) -> dict[str, Json]:
    return {step: {"mark": str(cell.mark), "done": cell.done, "of": cell.of} for step, cell in cells.items()}
