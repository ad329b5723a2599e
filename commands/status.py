"""warcmill status: show how far each launch has come."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from commands import owed, verify_outside
from commands.arguments import LAST, Interval, add_interval, add_json, job
from commands.grid_table import legend, table
from commands.newest import point_to
from commands.reconcile import gap_lines
from commands.show import as_json, console, days_json, heading, lines, report_unreachable, styled
from tasks.step import open_line
from warcmill.audit import lost_seeds, survey
from warcmill.audit.progress_grid import TROUBLES, Cells, LaunchGrid, grid, totals
from warcmill.base.nearest import did_you_mean
from warcmill.markers.locks import scans_at_work
from warcmill.model import Json

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
trouble (something failed, is refused or stale). The last row counts the stages. Running
scans are named. Last come the archived launches that are in no backup a day later, and
the crawls that were due in these days and have no launch; and when the copies outside
were last looked at by 'warcmill verify --outside', or that they never were. Reads
markers, not files: 'warcmill reconcile' compares with the disk, 'warcmill verify' reads
the archive again.

--json: {{"first_day", "last_day", "totals": {{"done", "waiting", "running", "in_trouble":
launches, "stages", "cells": {{step: {{"done", "of"}}}}}}, "scans": [{{"name", "pid"}}],
"of_no_launch": [{{"job", "kind", "name", "why", "todo"}}: due crawls without a launch],
"no_backup": [JOB/LAUNCH, archived for more than a day],
"outside": when the copies outside were last looked at, "" where nothing was handed over,
"launches": [{{"job", "launch_id", "ended": "" while it runs, "error", "not_got": [seed],
"vitals": {{"began", "last_sign", "log"}} while it runs, else null,
"cells": {{step: {{"mark", "done", "of"}}}}, "stages": [{{"stage", "cells"}}]}}]}};
done and of count stages in the launch's cells, files in a stage's. Marks: done, partial,
failed, waiting, refused, stale, not due.

exit codes: 0 shown, 2 usage, 3 configuration, 4 a disk or a folder did not answer
"""
Scans = list[tuple[str, int]]  # name and process id


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
    discovered = survey.find(line.state, line.rootmap, days.first, days.end)
    point_to(line, discovered.launches, "status")
    launches = [launch for launch in discovered.launches if args.job in (None, launch.job)]
    if args.job and not launches:
        report_no_job(args.job, (launch.job for launch in discovered.launches))
    grids = [grid(line.state, line.rootmap, launch, line.wanted) for launch in launches]
    shown = [grid for grid in grids if grid.word == "in trouble"] if args.trouble else grids
    scans = scans_at_work(line.state)
    due = owed.of_days(line, days.first, days.end)
    due.gaps = [gap for gap in due.gaps if args.job in (None, gap.job)]
    unkept = due.unkept(line, launches)
    outside = verify_outside.last_time(line, launches)
    if args.json:
        of_no_launch, no_backup = owed.as_list(due.gaps), [str(gap.launch) for gap in unkept]
        shown_grids = document(days, grids, shown, scans) | {"outside": outside}
        print(as_json({**shown_grids, "of_no_launch": of_no_launch, "no_backup": [*no_backup]}))
    else:
        show(console(), days, grids, shown, scans)
        lines(console(), *gap_lines(unkept), *owed.texts(due.gaps))
        lines(console(), *([outside] if outside else []))
    away = report_unreachable(discovered) or due.report_away()
    return 4 if away or any(grid.unavailable for grid in grids) else 0


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
        lines(target, legend())
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
            yield styled(f"{row.launch}: {lost_seeds.in_words([*row.lost])}", "red")
    bad = [grid for grid in grids if any(cell.mark in TROUBLES for cell in grid.cells.values())]
    if bad:
        yield Text("\nto see what is wrong and what to do:", style="bold")
        yield from (f"  warcmill why {grid.launch.job} {grid.launch.id}" for grid in bad)


def document(days: Interval, grids: list[LaunchGrid], shown: list[LaunchGrid], scans: Scans) -> dict[str, Json]:
    """The JSON document; its totals are of all launches, also those that are not shown."""
    everything = totals(grids)
    return {
        **days_json(days),
        "totals": {
            **{word.replace(" ", "_"): number for word, number in everything.launches.items()},
            "stages": everything.stages,
            "cells": {step: {"done": done, "of": of} for step, (done, of) in everything.cells.items()},
        },
        "scans": [{"name": name, "pid": pid} for name, pid in scans],
        "launches": [_json(grid) for grid in shown],
    }


def _json(grid: LaunchGrid) -> dict[str, Json]:
    return {
        "job": grid.launch.job,
        "launch_id": grid.launch.id,
        "ended": grid.ended,
        "error": grid.error,
        "not_got": list(grid.lost),
        "vitals": grid.vitals.json() if grid.vitals else None,
        "cells": _cells(grid.cells),
        "stages": [{"stage": str(stage), "cells": _cells(cells)} for stage, cells in grid.stages],
    }


def _cells(cells: Cells) -> dict[str, Json]:
    return {step: {"mark": str(cell.mark), "done": cell.done, "of": cell.of} for step, cell in cells.items()}
