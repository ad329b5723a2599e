"""The totals of many days, by their summaries: launches, gaps, WARCs and bytes by step, and what waits. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from warcmill.audit.day_summary import DaySummary, marks_of, word_of
from warcmill.audit.progress_grid import WORDS, Mark
from warcmill.model import Json, JsonObject

BACKLOG = (Mark.FAILED, Mark.PARTIAL, Mark.WAITING)  # due, and not done
Tally = Counter[tuple[str, str, str]]
"""Numbers by table, by its row (a state, a kind, a step), and by unit. A sum of tallies counts the days of each."""


def of_day(summary: DaySummary) -> Tally:
    """The numbers of a day."""
    tally = Tally()
    for launch in summary.launches:
        tally["launches", word_of(launch), ""] += 1
        for trouble in _list(launch.get("troubles")):
            if isinstance(trouble, dict):
                tally["gaps", str(trouble.get("kind")), ""] += 1
        done = _numbers(launch)
        for step, numbers in done.items():
            for unit in ("warcs", "bytes"):
                tally["files", step, unit] += numbers[unit]
        _count_backlog(tally, launch, done)
    return tally


def _count_backlog(tally: Tally, launch: JsonObject, done: dict[str, dict[str, int]]) -> None:
    of_files = done.get("assemble", {})
    for step, mark in marks_of(launch).items():
        if mark in BACKLOG:
            tally["backlog", step, "launches"] += 1
            for unit, number in of_files.items():
                tally["backlog", step, unit] += max(0, number - done.get(step, {}).get(unit, 0))


def _numbers(launch: JsonObject) -> dict[str, dict[str, int]]:
    """The WARCs and bytes of a launch by step; none of a summary that an earlier Warcmill wrote."""
    files = launch.get("files")
    found = files.items() if isinstance(files, dict) else ()
    return {
        step: {unit: _number(numbers.get(unit)) for unit in ("warcs", "bytes")}
        for step, numbers in found
        if isinstance(numbers, dict)
    }


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def answer(tallies: Iterable[Tally]) -> dict[str, Json]:
    """The sums as the tables `launches`, `gaps`, `files` and `backlog`."""
    total = Tally({("launches", word, ""): 0 for word in WORDS})
    for one in tallies:
        total.update(one)
    tables: dict[str, dict[str, Json]] = {"launches": {}, "gaps": {}, "files": {}, "backlog": {}}
    with_units: dict[tuple[str, str], dict[str, Json]] = {}
    for (table, row, unit), number in sorted(total.items()):
        if unit:
            with_units.setdefault((table, row), {})[unit] = number
        else:
            tables[table][row.replace(" ", "_") if table == "launches" else row] = number
    for (table, row), units in with_units.items():
        tables[table][row] = units
    return {**tables}
