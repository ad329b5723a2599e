"""The answer of `warcmill status`: each launch of some days by its steps, and the dues of no launch. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, timedelta

from msgspec import Struct

from warcmill.audit.answers import dues
from warcmill.audit.answers.dues import Dues
from warcmill.audit.answers.line import AuditedLine, away_json, each_once
from warcmill.audit.gaps import Gap
from warcmill.audit.progress_grid import Cells, LaunchGrid, grid, totals
from warcmill.errors import Unavailable
from warcmill.launches.discovery import Discovery
from warcmill.markers.locks import scans_at_work
from warcmill.model import Json, Launch

Looked = Callable[[Sequence[Launch]], str]
"""When the copies outside of these launches were last looked at, in words; '' where nothing was handed over."""


class LineStatus(Struct, frozen=True):
    """The launches of some days. `grids` are all of them, `shown` those that were asked for.

    `scans` are the running ones, by name and process id; `unkept` are archived launches that are in no backup.
    """

    first: date
    end: date  # not included
    discovered: Discovery
    grids: list[LaunchGrid]
    shown: list[LaunchGrid]
    scans: list[tuple[str, int]]
    due: Dues
    unkept: list[Gap]
    looked: str
    away: tuple[Unavailable, ...]  # roots that did not answer

    @property
    def is_away(self) -> bool:
        """True if a root, or a folder in one, did not answer: the answer is incomplete."""
        return bool(self.away or any(one.unavailable for one in self.grids))

    def json(self) -> dict[str, Json]:
        """The answer. Its totals are of all launches, also those that are not shown."""
        everything = totals(self.grids)
        return {
            **days(self.first, self.end),
            "totals": {
                **{word.replace(" ", "_"): number for word, number in everything.launches.items()},
                "stages": everything.stages,
                "cells": {step: {"done": done, "of": of} for step, (done, of) in everything.cells.items()},
            },
            "away": away_json(self.away),
            "scans": [{"name": name, "pid": pid} for name, pid in self.scans],
            "launches": [of_grid(one) for one in self.shown],
            "outside": self.looked,
            "of_no_launch": dues.as_list(self.due.gaps),
            "no_backup": [str(gap.launch) for gap in self.unkept],
        }


def days(first: date, end: date) -> dict[str, Json]:
    """The first and the last day of an interval, both included; `end` is not."""
    return {"first_day": str(first), "last_day": str(end - timedelta(days=1))}


def read(
    line: AuditedLine, first: date, end: date, job: str | None = None, *, trouble: bool = False, looked: Looked | None
) -> LineStatus:
    """Read the markers of the launches from `first` up to, not including, `end`: of all jobs or of one.

    `trouble`: show only those that need an operator.
    """
    discovered = line.discover(first, end)
    launches = [launch for launch in discovered.launches if job in (None, launch.job)]
    grids = [grid(line.state, line.roots, launch, line.wanted) for launch in launches]
    shown = [one for one in grids if one.word == "in trouble"] if trouble else grids
    due = dues.of_days(line, first, end)
    due.gaps = [gap for gap in due.gaps if job in (None, gap.job)]
    unkept = due.unkept(line, launches) or due.never_kept(line, first, job)
    outside = looked(launches) if looked else ""
    of_launches = (error for one in grids for error in one.away)
    away = each_once((*discovered.unreachable, *of_launches, *line.away()))
    return LineStatus(first, end, discovered, grids, shown, scans_at_work(line.state), due, unkept, outside, away)


def of_grid(grid: LaunchGrid) -> dict[str, Json]:
    """One launch in the answer."""
    return {
        "job": grid.launch.job,
        "launch_id": grid.launch.id,
        "ended": grid.ended,
        "error": grid.error,
        "not_got": list(grid.lost),
        **({"cut": grid.cut} if grid.cut else {}),
        **({"history": grid.history} if grid.history else {}),
        "away": [error.what for error in grid.away],
        "vitals": grid.vitals.json() if grid.vitals else None,
        "cells": _cells(grid.cells),
        "stages": [{"stage": str(stage), "cells": _cells(cells)} for stage, cells in grid.stages],
    }


def _cells(cells: Cells) -> dict[str, Json]:
    return {step: {"mark": str(cell.mark), "done": cell.done, "of": cell.of} for step, cell in cells.items()}
