"""warcmill status: show how far each launch has come, one line a launch under its day. Reads markers only.

Its drawing is fast also for thousands of launches.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cache, partial
from itertools import groupby

from rich.console import Console
from rich.text import Text

from commands.console import gaps, last_look
from commands.console.arguments import LAST, Interval, add_interval, add_json, job
from commands.console.launches import point_to, report_away, report_unreachable
from commands.console.show import as_json, heading
from commands.console.terminal import console, lines, styled
from tasks.audited import audited
from tasks.line import open_line
from warcmill import chain
from warcmill.audit import findings
from warcmill.audit.answers import status
from warcmill.audit.due_crawls import in_groups
from warcmill.audit.progress_grid import LEGEND, STYLES, TROUBLES, Cell, LaunchGrid, Mark, Totals, totals
from warcmill.base.escapes import did_you_mean, printable

SUMMARY = "show how far each launch has come, by day"
EPILOG = f"""\
examples:
  warcmill status
  warcmill status 2016-10
  warcmill status 2016-10 --job daily --trouble
  warcmill status 2016-10 --json | jq -r '.launches[] | select(.cells.verify.mark != "done") | .launch_id'

Without INTERVAL: the last {LAST} days (UTC), including today. One row per launch, by day;
one column per step. 2/3 means that 2 of the launch's 3 due stages have come that far.
The first line counts the launches: done, waiting (ended, not all done), running, in
trouble (something failed, is refused or stale), cut short (all is done, and more of the
crawl waits: by what it was ended, and how much waits, is below). The last row counts the stages. Running
scans are named. Last come the archived launches that are in no backup a day later, and
the crawls that were due in these days and have no launch; and when the copies outside
were last looked at by 'warcmill verify --outside', or that they never were. Reads
markers, not files: 'warcmill reconcile' compares with the disk, 'warcmill verify' reads
the archive again.

--json: {{"first_day", "last_day", "totals": {{"done", "waiting", "running", "in_trouble":
launches, "stages", "cells": {{step: {{"done", "of"}}}}}}, "scans": [{{"name", "pid"}}],
"of_no_launch": [{{"job", "kind", "name", "why", "todo"}}: due crawls without a launch],
"no_backup": [JOB/LAUNCH, archived for more than a day],
"away": [{{"what", "why", "todo"}}: roots that did not answer],
"outside": when the copies outside were last looked at, "" where nothing was handed over,
"launches": [{{"job", "launch_id", "ended": "" while it runs, "error", "not_got": [seed],
"cut": how it was cut short, "history": older releases of packages that wait for later
launches, each only where it is so,
"away": [root that did not answer: then all the rest is of its markers alone],
"vitals": {{"began", "last_sign", "log"}} while it runs, else null,
"cells": {{step: {{"mark", "done", "of"}}}}, "stages": [{{"stage", "cells"}}]}}]}};
done and of count stages in the launch's cells, files in a stage's. Marks: done, partial,
failed, waiting, refused, stale, not due.

A root that does not answer is named, with the command that helps: of launches there, all
that their markers show is shown.

exit codes: 0 shown, 2 usage, 3 configuration, 4 a disk or a folder did not answer
"""
Scans = list[tuple[str, int]]  # name and process id
FOLDED = "   "  # before the id of a launch whose job is on its own line
SHORTEST = 17  # columns: a folded id
StyledText = tuple[str, str]  # a text and its style


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[INTERVAL], --job, --trouble, --json."""
    add_interval(parser, optional=True)
    parser.add_argument("--job", type=job, metavar="JOB", help="only launches of this job")
    parser.add_argument("--trouble", action="store_true", help="only launches that need an operator")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Read the markers of every launch of the interval; print."""
    line = open_line()
    days: Interval = args.interval
    looked = partial(last_look.last_time, line)
    seen = status.read(audited(line), days.first, days.end, args.job, trouble=args.trouble, looked=looked)
    point_to(line, seen.discovered.launches, "status")
    if args.job and not seen.grids:
        report_no_job(args.job, (launch.job for launch in seen.discovered.launches))
    if args.json:
        print(as_json(seen.json()))
    else:
        show(console(), days, seen.grids, seen.shown, seen.scans)
        every = gaps.of_days(days)
        lines(console(), *gaps.texts(seen.unkept, every), *gaps.texts(in_groups(seen.due.gaps), every))
        lines(console(), *([seen.looked] if seen.looked else []))
    report_unreachable(seen.discovered)
    gaps.report_away(seen.due)
    report_away(seen.away)
    return 4 if seen.is_away else 0


def report_no_job(name: str, known: Iterable[str]) -> None:
    """Report on stderr that these days have no launch of a job; suggest one with a similar name."""
    print(f"warcmill status: no launch of job '{name}' in these days{did_you_mean(name, known)}", file=sys.stderr)


def show(target: Console, days: Interval, grids: list[LaunchGrid], shown: list[LaunchGrid], scans: Scans) -> None:
    """Print the grid, the legend, and what to look at next."""
    everything = totals(grids)
    words = ", ".join(f"{number} {word}" for word, number in everything.launches.items() if number)
    lines(target, heading(days, len(grids)) + (f", {words}" if words else ""))
    for name, pid in scans:
        lines(target, Text(f"running: {name}, process {pid}", style="cyan"))
    if shown:
        for text in table(target, shown, totals(shown)):
            print(text)
        lines(target, legend(has_cut=any(grid.cut for grid in shown)))
    lines(target, *_next(shown))


def _next(grids: list[LaunchGrid]) -> Iterator[Text | str]:
    """The launches that need an operator, each with the command that explains why."""
    for row in grids:
        if row.error:
            yield styled(f"{row.launch}: {row.error}", "red")
    for row in grids:
        if row.vitals:
            yield styled(f"{row.launch}: {row.vitals.text(datetime.now(UTC))}", "cyan")
    for row in grids:
        if row.lost:
            yield styled(f"{row.launch}: {findings.in_words([*row.lost])}", "red")
    yield from (styled(f"{row.launch}: {row.cut}", STYLES[Mark.CUT]) for row in grids if row.cut)
    yield from (styled(f"{row.launch}: waiting: {row.history}", "cyan") for row in grids if row.history)
    bad = [grid for grid in grids if any(cell.mark in TROUBLES for cell in grid.cells.values())]
    if bad:
        yield Text("\nto see what is wrong and what to do:", style="bold")
        yield from (f"  warcmill why {grid.launch.job} {grid.launch.id}" for grid in bad)


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

    def line(name: str, style: str, cells: list[StyledText]) -> str:
        words = [painted(*cell, width) for cell, width in zip(cells, wide, strict=True)]
        return " ".join([painted(name, style, first), *words]).rstrip()

    for number, title in enumerate(("", "day, launch")):
        yield line(title, "bold", [(head[number], "bold") for head in heads])
    by_day = groupby(zip(grids, rows, strict=True), key=lambda pair: pair[0].launch.id[:8])
    for _, group in by_day:
        for place, (row, cells) in enumerate(group):
            if place == 0:
                yield painted(f"{row.launch.day} {row.launch.day:%a}", "bold", 0)
            name = f" {row.launch}"
            if len(name) > first:
                yield f" {row.launch.job}/"
                name = FOLDED + row.launch.id
            yield line(name, "", cells)
    if len(grids) > 1:
        yield line("total", "bold", total)


def _width(room: int, jobs: list[str]) -> int:
    """The width of the names column: the longest name that fits."""
    lengths = [len(job) + len(" /20161019234428") for job in jobs]
    return max([SHORTEST, *(length for length in lengths if length <= room)])


def _row(grid: LaunchGrid, steps: list[str]) -> list[StyledText]:
    return [_ended(grid), (f"{len(grid.stages):>4}", ""), *(sign(grid.cells.get(step)) for step in steps)]


def _total(everything: Totals, steps: list[str]) -> list[StyledText]:
    numbers = (everything.cells[step] for step in steps)
    done = [(str(of) if done == of else f"{done}/{of}", "green" if done == of else "yellow") for done, of in numbers]
    return [("", ""), (f"{everything.stages:>4}", ""), *done]


def _is_in_use(grids: list[LaunchGrid], step: str) -> bool:
    """True if some launch has something to show in a step that is not due for all."""
    return any(step in grid.cells and grid.cells[step].mark is not Mark.NOT_DUE for grid in grids)


def _ended(grid: LaunchGrid) -> StyledText:
    if grid.error:
        return "unreadable", STYLES[Mark.FAILED]
    if grid.is_end_unknown:
        return "unknown", STYLES[Mark.WAITING]
    if grid.cut:
        return f"{Mark.CUT.shape} {Mark.CUT}", STYLES[Mark.CUT]
    return (printable(grid.ended), "") if grid.ended else (f"{Mark.RUNNING.shape} {Mark.RUNNING}", STYLES[Mark.RUNNING])


def sign(cell: Cell | None) -> StyledText:
    """A cell's sign, with n/m where some stages of a launch are not done."""
    if cell is None:
        return "", ""
    number = f" {cell.done}/{cell.of}" if cell.done < cell.of and cell.of > 1 else ""
    return f"{cell.mark.shape}{number}", STYLES[cell.mark]


def legend(*, has_cut: bool = False) -> Text:
    """The meaning of each sign. `has_cut`: also of a crawl that was cut short."""
    shown = (mark for mark in LEGEND if has_cut or mark is not Mark.CUT)
    words = (Text.assemble((mark.shape, STYLES[mark]), f" {mark}") for mark in shown)
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
