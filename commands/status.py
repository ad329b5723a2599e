"""warcmill status: how far each launch has come, drawn to be read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from commands.arguments import Interval, add_interval, add_json, job, last_days
from commands.grid_table import legend, table
from commands.show import as_json, console, days_json, heading, lines, styled, tell_away
from tasks.step import open_line
from warcmill import survey
from warcmill.grid import TROUBLES, Cells, LaunchGrid, grid, totals
from warcmill.locks import scans_at_work
from warcmill.model import Json
from warcmill.nearest import did_you_mean

SUMMARY = "show how far each launch has come, stage by day"
DAYS = 7
EPILOG = f"""\
examples:
  warcmill status
  warcmill status 2016-10
  warcmill status 2016-10 --job daily --trouble
  warcmill status 2016-10 --json | jq -r '.launches[] | select(.cells.verify.mark != "done") | .launch_id'

Without INTERVAL: the last {DAYS} days (UTC), today included. A row a launch, by day; a
column a step. A number such as 2/3 tells that 2 of the launch's 3 stages that are
due have come that far. The first line counts the launches: done, waiting (ended, and not
all done), running, in trouble (something failed, is refused or stale); the last row the
stages. Scans that are at work are named. Markers are read, files are not: 'warcmill
reconcile' compares with the disk, 'warcmill verify' reads the archive again.

--json: {{"first_day", "last_day", "totals": {{"done", "waiting", "running", "in_trouble":
launches, "stages", "cells": {{step: {{"done", "of"}}}}}}, "scans": [{{"name", "pid"}}],
"launches": [{{"job", "launch_id", "ended": "" while it runs, "error",
"vitals": {{"began", "last_sign", "log"}} while it runs, else null,
"cells": {{step: {{"mark", "done", "of"}}}}, "stages": [{{"stage", "cells"}}]}}]}};
done and of count stages in the launch's cells, files in a stage's. Marks: done, partial,
failed, waiting, refused, stale, not due.

exit codes: 0 shown, 2 usage, 3 configuration, 4 a disk or a folder did not answer
"""
Scans = list[tuple[str, int]]  # by name, each with its process


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """[INTERVAL], --job, --trouble, --json."""
    add_interval(parser, nargs="?")
    parser.add_argument("--job", type=job, metavar="JOB", help="the launches of this job alone")
    parser.add_argument("--trouble", action="store_true", help="those alone that somebody has to look at")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Glance at every launch of the interval; print."""
    line = open_line()
    days: Interval = args.interval or last_days(DAYS, datetime.now(UTC).date())
    found = survey.find(line.state, line.sites, days.first, days.end)
    launches = [one for one in found.launches if args.job in (None, one.job)]
    if args.job and not launches:
        tell_no_job(args.job, (one.job for one in found.launches))
    grids = [grid(line.state, line.sites, launch, line.settings.wanted()) for launch in launches]
    shown = [one for one in grids if one.word == "in trouble"] if args.trouble else grids
    scans = scans_at_work(line.state)
    if args.json:
        print(as_json(document(days, grids, shown, scans)))
    else:
        show(console(), days, grids, shown, scans)
    return 4 if tell_away(found) or any(one.unavailable for one in grids) else 0


def tell_no_job(name: str, known: Iterable[str]) -> None:
    """Say, on stderr, that these days have no launch of a job; a name that is close may be meant."""
    print(f"warcmill status: no launch of job '{name}' in these days{did_you_mean(name, known)}", file=sys.stderr)


def show(target: Console, days: Interval, grids: list[LaunchGrid], shown: list[LaunchGrid], scans: Scans) -> None:
    """The grid, what its signs mean, and where to look next."""
    everything = totals(grids)
    words = ", ".join(f"{number} {word}" for word, number in everything.launches.items() if number)
    lines(target, heading(days, len(grids)) + (f", {words}" if words else ""))
    for name, pid in scans:
        lines(target, Text(f"at work: {name}, process {pid}", style="cyan"))
    if shown:
        for text in table(target, shown, totals(shown)):
            print(text)
        lines(target, legend())
    lines(target, *_next(shown))


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


def document(days: Interval, grids: list[LaunchGrid], shown: list[LaunchGrid], scans: Scans) -> dict[str, Json]:
    """The same for machines; the totals are of all launches, also of those that are not shown."""
    everything = totals(grids)
    return {
        **days_json(days),
        "totals": {
            **{word.replace(" ", "_"): number for word, number in everything.launches.items()},
            "stages": everything.stages,
            "cells": {step: {"done": done, "of": of} for step, (done, of) in everything.cells.items()},
        },
        "scans": [{"name": name, "pid": pid} for name, pid in scans],
        "launches": [_json(one) for one in shown],
    }


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
