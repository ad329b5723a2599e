"""The answer of the days of an archive by its jobs, as scans have summed them up. Reads only.

It is made of the summaries of the days alone, and a process that asks again reads those that have changed. Markers that
came since the last scan are not in it: `written` says when each day was summed up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, timedelta
from itertools import chain as chained
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from warcmill.audit import day_summary
from warcmill.audit.answers.line import AuditedLine
from warcmill.audit.answers.status import days as interval
from warcmill.audit.day_summary import DaySummary, KeptByDay
from warcmill.audit.progress_grid import Mark, grid, mark_of
from warcmill.base import clock
from warcmill.errors import BadInput
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch

Summed = Mapping[str, Json]  # a launch in a summary


class LaunchOfDay(NamedTuple):  # cheap to make: a year has thousands
    """A launch in the summary of its day. `warcs` and `bytes` are 0 where the summary does not have them."""

    job: str
    id: str
    mark: Mark
    ended: str
    warcs: int
    bytes: int
    troubles: int
    accepted: int = 0


class DayOfJobs(Struct, frozen=True):
    """A day: the launches of each job, and when it was summed up. `why`: why it was not; `away`: roots that were."""

    day: date
    jobs: Mapping[str, Sequence[LaunchOfDay]]
    written: str
    away: tuple[str, ...]
    why: str

    def json(self) -> dict[str, Json]:
        """The day for programs."""
        return {
            "day": str(self.day),
            "written": self.written,
            "away": [*self.away],
            "why": self.why,
            "jobs": {job: [_json(one) for one in launches] for job, launches in self.jobs.items()},
        }


def _json(one: LaunchOfDay) -> Json:
    return {"launch_id": one.id, "state": str(one.mark), "ended": one.ended, "warcs": one.warcs, "bytes": one.bytes,
            "troubles": one.troubles}  # fmt: skip


def read(state: MarkerStore, first: date, end: date, job: str = "", mark: str = "") -> list[DayOfJobs]:
    """The days from `first` up to, not including, `end`, the newest first: of all jobs and states, or of one."""
    days = [first + timedelta(days=number) for number in range((end - first).days)][::-1]
    names = {month: state.store.names(month) for month in {clock.month(day) for day in days}}
    rows = [of_day(state, day, names[clock.month(day)]) for day in days]
    return [_only(row, job, mark) for row in rows] if job or mark else rows


def of_day(state: MarkerStore, day: date, there: Collection[str]) -> DayOfJobs:
    """A day as its summary has it; `there` are the names in the folder of its month."""
    if day_summary.path(day).rpartition("/")[2] not in there:
        return of_summary(DaySummary(day, why=day_summary.ABSENT))
    return KEPT.of_day(state, day)


def of_summary(summary: DaySummary) -> DayOfJobs:
    """A day as its summary has it."""
    jobs: dict[str, list[LaunchOfDay]] = {}
    for one in map(launch_of, summary.launches):
        jobs.setdefault(one.job, []).append(one)
    return DayOfJobs(summary.day, jobs, summary.written, summary.away, summary.why)


KEPT = KeptByDay(of_summary)


def _only(row: DayOfJobs, job: str, mark: str) -> DayOfJobs:
    """A day with the launches of one job, or in one state, alone."""
    names = [name for name in row.jobs if job in ("", name)]
    chosen = {name: [one for one in row.jobs[name] if mark in ("", one.mark)] for name in names}
    return replace(row, jobs={name: launches for name, launches in chosen.items() if launches})


def launch_of(summed: Summed) -> LaunchOfDay:
    """A launch as its summary has it; one that could not be read has no steps."""
    ended, troubles, counts = summed.get("ended"), summed.get("troubles"), summed.get("counts")
    return LaunchOfDay(
        str(summed["job"]),
        str(summed["launch_id"]),
        Mark.FAILED if not ended and "away" in summed else _mark(summed, bool(ended)),
        ended if isinstance(ended, str) else "",
        _number(summed.get("warcs")),
        _number(summed.get("bytes")),
        len(troubles) if isinstance(troubles, list) else 0,
        _number(counts.get("accepted")) if isinstance(counts, dict) else 0,
    )


def _mark(summed: Any, has_ended: bool) -> Mark:
    try:
        rows = (summed["steps"], *summed["stages"].values())
        mark = mark_of(frozenset(chained.from_iterable(map(dict.values, rows))), has_ended)
        return Mark.CUT if mark is Mark.DONE and summed.get("cut") else mark
    except (KeyError, AttributeError, TypeError):
        return Mark.FAILED


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0


class FoundLaunches(Struct, frozen=True):
    """Launches, the newest first, each as its summary has it; None for those that no scan has seen yet.

    `written`: when the last of their days was summed up; '' if none was. `away`: roots that did not answer then.
    `broken`: summaries that cannot be read.
    """

    launches: Mapping[Launch, LaunchOfDay | None]
    written: str
    away: tuple[str, ...]
    broken: tuple[str, ...]


def find(line: AuditedLine, first: date, end: date, job: str = "", mark: str = "") -> FoundLaunches:
    """The launches of these days: those in summaries, and those with markers.

    With `mark`, the markers of those that no scan has seen yet are read.
    """
    rows = read(line.state, first, end)
    every = (one for row in rows for launches in row.jobs.values() for one in launches)
    summed = {Launch(one.job, one.id): one for one in every if _is_launch(one)}
    unseen = [one for one in line.discover(first, end).launches if one not in summed]
    found: dict[Launch, LaunchOfDay | None] = {**summed, **dict.fromkeys(unseen)}
    asked = {
        one: found[one]
        for one in sorted(found, key=lambda one: (one.id, one.job), reverse=True)
        if job in ("", one.job) and (not mark or mark == _mark_now(line, one, found[one]))
    }
    return FoundLaunches(
        asked,
        max((row.written for row in rows), default=""),
        tuple(dict.fromkeys(why for row in rows for why in row.away)),
        tuple(f"{day_summary.path(row.day)}: {row.why}" for row in rows if row.why == day_summary.DAMAGED),
    )


def _is_launch(one: LaunchOfDay) -> bool:
    try:
        return bool(Launch.parse(one.job, one.id))
    except BadInput:
        return False


def _mark_now(line: AuditedLine, one: Launch, summed: LaunchOfDay | None) -> Mark:
    return summed.mark if summed else grid(line.state, None, one, line.wanted).mark


def jobs_of(rows: Iterable[DayOfJobs]) -> list[str]:
    """The jobs of some days, in order."""
    return sorted({job for row in rows for job in row.jobs})


def answer(first: date, end: date, rows: Iterable[DayOfJobs]) -> dict[str, Json]:
    """The answer of some days."""
    return {**interval(first, end), "days": [row.json() for row in rows]}
