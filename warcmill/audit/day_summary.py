"""The summary of a day: `{state}/{YYYY-MM}/status.{YYYY-MM-DD}.json`, for programs and people without Warcmill.

A report, not evidence. It is replaced atomically, and may be deleted.
Keys:

    day         the UTC day of the launches' ids
    written     when a scan wrote it, UTC; one of an earlier Warcmill lacks it, and warcs, bytes, files, state, marks
    basis       changes when a marker of a launch comes or goes; then the file is rewritten
    away        roots that did not answer: launches that are only there are not listed; usually []
    launches    one object each, by launch id:
      job, launch_id
      warcs, bytes   the WARCs of its stages, as they were listed
      files     for each step that works on files and has left a marker: the warcs and bytes that it has done
      ended     how the launch ended: finished, superseded, closed, confirmed; "" while it runs
      state     done, cut short, waiting, running or in trouble
      cut       only where the crawl was cut short: by what, and how much of it waits
      marks     the state of each step: of one of stages the worst of them
      steps     the state of each step of the whole launch
      stages    for each stage (checkpoint or final) the state of its steps: done, failed, refused (done,
                and found files that are wrong for good), stale, partial, waiting, not due
      counts    refused, failed, unnamed, absent, stale, accepted
      troubles  what an operator has to look at: kind (refused, failed, stale, virus, got nothing, dead seed, untried
                seed, target without a page, no seed list), task, name, why
      away      only when a root did not answer: why; then the rest is as the markers alone have it
      error     only when the launch could not be read: why; then only job and launch_id stand beside it
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Generic, TypeGuard, TypeVar

from msgspec import Struct

from warcmill import chain, errors, layout
from warcmill.audit import findings, gaps, progress_grid, remedies, survey
from warcmill.audit.gaps import Gap
from warcmill.audit.progress_grid import TROUBLES, WORDS, Cell, LaunchGrid, Mark, merged
from warcmill.audit.survey import Survey
from warcmill.base import clock
from warcmill.chain import Wanted
from warcmill.errors import NotReady, Unavailable, WarcmillError
from warcmill.launches import discovery
from warcmill.launches.roots import RootMap
from warcmill.markers.decisions import ACCEPTED, FOLDER
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, JsonObject, Launch, Stage

log = logging.getLogger(__name__)
LARGEST = 64 << 20  # bytes; no summary is larger
MOST_SEEDS = 10  # a launch may have lost 100,000
ABSENT, DAMAGED = (
    "no scan of this day has written it",
    "it is cut, or is no summary of this day: the next scan replaces it",
)
_MARKS = {str(mark): mark for mark in Mark}
_MONTH, _NAME = re.compile(r"[0-9]{4}-[0-9]{2}"), re.compile(r"status\.([0-9]{4}-[0-9]{2}-[0-9]{2})\.json")
Made = TypeVar("Made")


class ScannedDays(Struct, frozen=True):
    """The result of a scan: its days (`end` is exclusive), their launches, and the days that had something to do."""

    first: date
    end: date
    launches: tuple[Launch, ...]
    busy: frozenset[date]


def path(day: date) -> str:
    """The path of a day's summary in the state root."""
    return f"{clock.month(day)}/status.{day}.json"


def rewrite(state: MarkerStore, rootmap: RootMap, scanned: ScannedDays, wanted: Wanted) -> None:
    """Rewrite the summary of every day that had something to do, or whose markers have changed since."""
    scanned_days = _by_day(scanned.launches)
    bases = {day: basis(state, launches, wanted) for day, launches in scanned_days.items()}
    todo = [day for day in scanned_days if day in scanned.busy or not _is_current(state, day, bases[day])]
    if not todo:
        return
    found = survey.find(state, rootmap, scanned.first, scanned.end)
    known = _by_day(found.launches)
    away: list[Json] = [str(error) for error in found.unreachable]
    for day in todo:
        launches: list[Json] = [of_launch(state, rootmap, launch, wanted) for launch in known[day]]
        summary: JsonObject = {"day": str(day), "basis": bases[day], "away": away, "launches": launches}
        summary["written"] = clock.now()
        state.store.sweep(path(day).rpartition("/")[0])  # what a killed scan left half-written
        state.store.replace(path(day), json.dumps(summary, ensure_ascii=False, sort_keys=True, indent=1).encode())


def _is_current(state: MarkerStore, day: date, now: str) -> bool:
    """True if a summary fits the markers. One that lacks a launch or a root because of an error never does."""
    summary = read(state, day)
    if any(_may_be_healed(state, day, one) for one in parse(json.dumps(summary).encode(), day).launches):
        return False
    launches = summary.get("launches")
    known = launches if isinstance(launches, list) else []
    failed = any(isinstance(launch, dict) and ("error" in launch or "away" in launch) for launch in known)
    return summary.get("basis") == now and summary.get("away") == [] and not failed


def _may_be_healed(state: MarkerStore, day: date, launch: JsonObject) -> bool:
    """True if a launch of a summary missed something, and a later one of its job has left a marker since."""
    troubles = launch.get("troubles")
    kinds = {one.get("kind") for one in troubles if isinstance(one, dict)} if isinstance(troubles, list) else set()
    if not launch.get("cut") and not kinds.intersection(findings.HEALS):
        return False
    newest = next(discovery.of_job(state, str(launch["job"])), None)
    if newest is None or newest.id <= str(launch["launch_id"]):
        return False
    changed, written = (os.stat(f"{state.store.base}/{one}") for one in (layout.state_folder(newest), path(day)))
    return changed.st_mtime_ns > written.st_mtime_ns


def _by_day(launches: Iterable[Launch]) -> dict[date, list[Launch]]:
    days: dict[date, list[Launch]] = defaultdict(list)
    for launch in launches:
        days[launch.day].append(launch)
    return days


def basis(state: MarkerStore, launches: Iterable[Launch], wanted: Wanted) -> str:
    """A digest that changes when a marker of these launches comes or goes, or a step becomes due.

    It costs one stat per launch, and reads no file.
    """
    digest = hashlib.sha256(f"{state.store.changed(f'{FOLDER}/{ACCEPTED}')}\n".encode())
    for launch in launches:
        on = [row for row in chain.ROWS if row.due in wanted and chain.is_wanted(row, launch, wanted)]
        digest.update("".join(f"{row.word}{_stages(row, wanted)}\n" for row in on).encode())
        try:
            folder = os.stat(f"{state.store.base}/{layout.state_folder(launch)}")
        except FileNotFoundError:
            digest.update(f"{launch} -\n".encode())
        else:
            digest.update(f"{launch} {folder.st_ino} {folder.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _stages(row: chain.Row, wanted: Wanted) -> str:
    """Of which stages a step of SIPs is due."""
    return " final" if row.by_sip and wanted[row.due].final_only else ""


def read(state: MarkerStore, day: date) -> JsonObject:
    """The summary of a day; empty when there is none, or when the file is not a JSON object."""
    try:
        with state.store.open(path(day)) as file:
            summary = json.loads(file.read(LARGEST))
    except (NotReady, ValueError, RecursionError):
        return {}
    return summary if isinstance(summary, dict) else {}


class DaySummary(Struct, frozen=True):
    """The summary of a day as it was read. `written`: when, UTC; '' if that is not known. `why`: why there is none.

    Each launch is an object of the file that has at least the texts `job` and `launch_id`.
    """

    day: date
    launches: tuple[JsonObject, ...] = ()
    written: str = ""
    away: tuple[str, ...] = ()
    why: str = ""


class KeptByDay(Generic[Made]):
    """Values made of the summaries of days, each anew once its file has changed: for a process that asks again."""

    def __init__(self, make: Callable[[DaySummary], Made]) -> None:
        self._make = make
        self._kept: dict[tuple[Path, date], tuple[tuple[int, int], Made]] = {}

    def of_day(self, state: MarkerStore, day: date) -> Made:
        """The value of a day. Unavailable if the state does not answer."""
        stamp = state.store.changed(path(day))
        kept = self._kept.get((state.store.base, day))
        if kept is None or kept[0] != stamp:
            kept = self._kept[state.store.base, day] = stamp, self._make(read_day(state, day))
        return kept[1]

    def forget(self) -> None:
        """Read all days again."""
        self._kept.clear()


def days(state: MarkerStore, first: date, end: date) -> Iterator[DaySummary]:
    """The summaries of the days from `first` up to, not including, `end`, one after another, also those that lack.

    It costs the reading of the files. Unavailable when the state is away.
    """
    month, names = "", frozenset[str]()
    for day in (first + timedelta(days=number) for number in range((end - first).days)):
        if clock.month(day) != month:
            month = clock.month(day)
            names = frozenset(state.store.names(month))
        yield read_day(state, day) if path(day).rpartition("/")[2] in names else DaySummary(day, why=ABSENT)


def known_days(state: MarkerStore) -> list[date]:
    """The days that have a summary, in order."""
    months = sorted(name for name in state.store.names("") if _MONTH.fullmatch(name))
    names = (name for month in months for name in state.store.names(month))
    days = (_day(match[1]) for name in names if (match := _NAME.fullmatch(name)))
    return sorted(day for day in days if day)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_day(state: MarkerStore, day: date) -> DaySummary:
    """The summary of a day, as `days` has it."""
    try:
        return parse(state.store.read(path(day), LARGEST), day)
    except NotReady:
        return DaySummary(day, why=ABSENT)
    except Unavailable:
        if (found := state.store.stat(path(day))) and found.kind != "file":
            return DaySummary(day, why=DAMAGED)
        raise


def parse(data: bytes, day: date) -> DaySummary:
    """The summary in the bytes of its file. Pure."""
    try:
        summary = json.loads(data)
    except (ValueError, RecursionError):
        return DaySummary(day, why=DAMAGED)
    found = summary.get("launches") if isinstance(summary, dict) else None
    if not isinstance(found, list) or summary.get("day") != str(day):
        return DaySummary(day, why=DAMAGED)
    launches = tuple([one for one in found if _is_launch(one)])
    written, away = summary.get("written"), summary.get("away")
    return DaySummary(
        day,
        launches,
        written if isinstance(written, str) else "",
        tuple(map(str, away)) if isinstance(away, list) else (),
    )


def _is_launch(one: Json) -> TypeGuard[JsonObject]:
    return isinstance(one, dict) and type(one.get("job")) is type(one.get("launch_id")) is str


def marks_of(launch: JsonObject) -> dict[str, Mark]:
    """The mark of each step of a launch in a summary; a step of stages has the worst of these. None if unreadable."""
    known = launch.get("marks")
    if isinstance(known, dict):
        return {step: _mark(mark) for step, mark in known.items()}
    found = {step: _mark(mark) for step, mark in _object(launch.get("steps")).items()}
    stages = [_object(stage) for stage in _object(launch.get("stages")).values()]
    for step in {step for stage in stages for step in stage}:
        found[step] = merged([_mark(stage[step]) for stage in stages if step in stage])
    return found


def word_of(launch: JsonObject) -> str:
    """The state of a launch in a summary: one of `progress_grid.WORDS`, or 'cut short'."""
    known = launch.get("state")
    if isinstance(known, str) and known in (*WORDS, Mark.CUT):
        return known
    marks = set(marks_of(launch).values())
    if "error" in launch or marks.intersection(TROUBLES) or ("away" in launch and not launch.get("ended")):
        return "in trouble"
    if not launch.get("ended"):
        return "running"
    return "done" if marks <= {Mark.DONE, Mark.NOT_DUE} else "waiting"


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _mark(word: Json) -> Mark:
    return _MARKS.get(word, Mark.WAITING) if isinstance(word, str) else Mark.WAITING  # a word of a later Warcmill


def of_launch(state: MarkerStore, rootmap: RootMap, launch: Launch, wanted: Wanted) -> JsonObject:
    """One launch as the summary has it. When it cannot be read: job, launch_id and error."""
    head: JsonObject = {"job": launch.job, "launch_id": launch.id}
    try:
        seen = survey.look(state, rootmap, launch, wanted, on_disk=False)
        away = "; ".join(map(str, seen.away))
        return head | of_survey(seen) | ({"away": away} if away else {})
    except WarcmillError as error:
        return head | {"error": str(error)}
    except Exception as fault:  # a fault in Warcmill at one launch hides no other launch
        log.exception("%s", launch)
        return head | {"error": errors.describe(fault)}


def of_survey(seen: Survey) -> JsonObject:
    """A survey of a launch as plain data."""
    grid = progress_grid.of_survey(seen)
    open_gaps, accepted = gaps.find(seen)
    troubles = [*_of_gaps(seen, open_gaps), *_failed(seen, grid)]
    kinds = [gap.kind for gap in (*open_gaps, *accepted)]
    done = _files(seen)
    listed = done.get("assemble", {})
    return {
        "warcs": listed.get("warcs", 0),
        "bytes": listed.get("bytes", 0),
        "files": {step: {**numbers} for step, numbers in done.items()},
        "ended": grid.ended,
        "state": grid.word,
        **({"cut": grid.cut} if grid.cut else {}),
        "marks": {step: str(cell.mark) for step, cell in grid.cells.items()},
        "steps": {step: str(cell.mark) for step, cell in _of_launch(grid)},
        "stages": {str(stage): {step: str(cell.mark) for step, cell in cells.items()} for stage, cells in grid.stages},
        "counts": {
            "accepted": len(accepted),
            "failed": sum(trouble["kind"] == "failed" for trouble in troubles),
            **{kind: kinds.count(kind) for kind in ("refused", "unnamed", "absent", "stale")},
        },
        "troubles": list(troubles),
    }


def _files(seen: Survey) -> dict[str, dict[str, int]]:
    """The numbers and bytes of WARCs in the markers of each step that works on files."""
    done: dict[str, dict[str, int]] = {}
    for row in (row for row in seen.rows() if row.files and not row.by_sip):
        there = [stage for stage in seen.stages if seen.marker(row.word, stage)]
        sizes = [item.file.size for stage in there for item in seen.items(row.word, stage).values()]
        if there:
            done[row.word] = {"warcs": len(sizes), "bytes": sum(sizes)}
    return done


def _of_gaps(seen: Survey, open_gaps: Iterable[Gap]) -> Iterator[JsonObject]:
    yield from _of_seeds(seen, [gap for gap in open_gaps if gap.kind in findings.KINDS])
    for gap in open_gaps:
        if gap.kind == "refused":
            yield {"kind": "refused", "task": _refused_by(seen, gap), "name": gap.name, "why": gap.why}
        elif gap.kind == "got nothing":
            yield {"kind": "got nothing", "task": seen.key("process").task, "name": gap.name, "why": gap.why}
        elif gap.kind == "virus":
            yield {"kind": "virus", "task": seen.key("viruses").task, "name": gap.name, "why": gap.why}
        elif gap.kind == "stale" and (key := layout.parse_marker_name(gap.name)):
            yield {"kind": "stale", "task": key.task, "name": gap.name, "why": gap.why}


def _of_seeds(seen: Survey, lost: list[Gap]) -> Iterator[JsonObject]:
    """The first seeds that were not got; of more of them the last trouble gives the number."""
    task = seen.key(findings.WORD).task
    for gap in lost[:MOST_SEEDS]:
        yield {"kind": gap.kind, "task": task, "name": gap.name, "why": gap.why}
    if len(lost) > MOST_SEEDS:
        name = f"and {len(lost) - MOST_SEEDS} more"
        yield {"kind": lost[-1].kind, "task": task, "name": name, "why": remedies.report_seeds(seen.launch)}


def _refused_by(seen: Survey, gap: Gap) -> str:
    """The last task that judged the file."""
    stage = Stage.parse(gap.stage)
    judges = (row for row in chain.of_stage(chain.ROWS) if row.judges and gap.name in seen.items(row.word, stage))
    return [row.task for row in judges][-1]


def _of_launch(grid: LaunchGrid) -> list[tuple[str, Cell]]:
    """The steps of the whole launch."""
    rows = chain.by_word(chain.ROWS)
    return [(step, cell) for step, cell in grid.cells.items() if rows[step].scope == "launch"]


def _failed(seen: Survey, grid: LaunchGrid) -> Iterator[JsonObject]:
    of_launch = [(step, None, cell) for step, cell in _of_launch(grid)]
    of_stages = [(step, stage, cell) for stage, cells in grid.stages for step, cell in cells.items()]
    for step, stage, cell in (*of_launch, *of_stages):
        if cell.mark is Mark.FAILED:
            key = seen.key(step, stage)
            name = layout.marker_name(key)
            why = seen.unsound[name].why if name in seen.unsound else gaps.why_lacking(seen.attempts.get(key, ()))
            yield {"kind": "failed", "task": key.task, "name": name, "why": why}
