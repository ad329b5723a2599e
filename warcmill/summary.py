"""The summary of a day: `{state}/{YYYY-MM}/status.{YYYY-MM-DD}.json`, for whoever has no Warcmill at hand.

A report, not evidence: it is rewritten, whole or not at all, and may be deleted.
Keys:

    day         the UTC day of the launches' ids
    basis       changes when a marker of a launch comes or goes; the file is rewritten when it does
    away        roots that did not answer: launches that lie there alone are not among these; [] as a rule
    launches    one object each, by launch id:
      job, launch_id
      ended     how the launch ended: finished, superseded, closed, confirmed; "" while it runs
      steps     each step of the whole launch, and what it has come to
      stages    for each stage (checkpoint or final) the same of its steps: done, failed, refused (done,
                and found files that are wrong for good), stale, partial, waiting, not due
      counts    refused, failed, unnamed, absent, stale, accepted
      troubles  what an operator has to look at: kind (refused, failed, stale, got nothing), task, name, why
      error     only when the launch could not be looked at: why; then there is none of the others
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from warcmill import chain, errors, gaps, grid, layout, survey
from warcmill.chain import Wanted
from warcmill.errors import NotReady, WarcmillError
from warcmill.gaps import Gap
from warcmill.grid import Cell, LaunchGrid, Mark
from warcmill.model import Json, Launch, Stage
from warcmill.sites import Sites
from warcmill.state import State
from warcmill.survey import Survey

log = logging.getLogger(__name__)
Document = dict[str, Json]
LARGEST = 64 << 20  # bytes; a larger file was not written here


@dataclass(frozen=True, slots=True)
class Scanned:
    """What a scan found: its days, the launches on them, and the days on which there was something to do."""

    first: date
    end: date
    launches: tuple[Launch, ...]
    busy: frozenset[date]


def path(day: date) -> str:
    """Where the summary of a day lies in the state root."""
    return f"{day:%Y-%m}/status.{day}.json"


def rewrite(state: State, sites: Sites, scanned: Scanned, wanted: Wanted) -> None:
    """Rewrite the summary of every day that was worked on, or on which a marker has come or gone since."""
    on_disk = _by_day(scanned.launches)
    bases = {day: basis(state, launches, wanted) for day, launches in on_disk.items()}
    todo = [day for day in on_disk if day in scanned.busy or not _is_current(read(state, day), bases[day])]
    if not todo:
        return
    found = survey.find(state, sites, scanned.first, scanned.end)
    known = _by_day(found.launches)
    away: list[Json] = [str(error) for error in found.away]
    for day in todo:
        launches: list[Json] = [of_launch(state, sites, launch, wanted) for launch in known[day]]
        document: Document = {"day": str(day), "basis": bases[day], "away": away, "launches": launches}
        state.store.sweep(path(day).rpartition("/")[0])  # what a killed scan left half-written
        state.store.replace(path(day), json.dumps(document, ensure_ascii=False, sort_keys=True, indent=1).encode())


def _is_current(found: Document, now: str) -> bool:
    """Whether a summary tells what the markers do; one that could not look at a launch, or a root, is made again."""
    launches = found.get("launches")
    blind = any(isinstance(one, dict) and "error" in one for one in (launches if isinstance(launches, list) else []))
    return found.get("basis") == now and found.get("away") == [] and not blind


def _by_day(launches: Iterable[Launch]) -> dict[date, list[Launch]]:
    days: dict[date, list[Launch]] = defaultdict(list)
    for launch in launches:
        days[launch.day].append(launch)
    return days


def basis(state: State, launches: Iterable[Launch], wanted: Wanted) -> str:
    """What changes when a marker of these launches comes or goes, or a step becomes due: it costs one look at each
    folder, no reading."""
    digest = hashlib.sha256()
    for launch in launches:
        on = [row.word for row in chain.ROWS if row.due in wanted and chain.is_wanted(row, launch, wanted)]
        digest.update("".join(f"{word}\n" for word in on).encode())
        try:
            found = os.stat(f"{state.store.base}/{layout.state_folder(launch)}")
        except FileNotFoundError:
            digest.update(f"{launch} -\n".encode())
        else:
            digest.update(f"{launch} {found.st_ino} {found.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def read(state: State, day: date) -> Document:
    """The summary of a day; empty when there is none, or when it is not what is written here."""
    try:
        with state.store.open(path(day)) as file:
            document = json.loads(file.read(LARGEST))
    except (NotReady, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def of_launch(state: State, sites: Sites, launch: Launch, wanted: Wanted) -> Document:
    """One launch; an error that hinders the look stands in its place."""
    head: Document = {"job": launch.job, "launch_id": launch.id}
    try:
        return head | of_survey(survey.glance(state, sites.of(launch.job), launch, wanted))
    except WarcmillError as error:
        return head | {"error": str(error)}
    except Exception as fault:  # a fault in Warcmill, met at one launch, hides no other
        log.exception("%s", launch)
        return head | {"error": errors.told(fault)}


def of_survey(seen: Survey) -> Document:
    """What was seen of a launch, as plain data."""
    drawn = grid.of_survey(seen)
    open_gaps, accepted = gaps.find(seen)
    troubles = [*_found(seen, open_gaps), *_failed(seen, drawn)]
    kinds = [gap.kind for gap in (*open_gaps, *accepted)]
    return {
        "ended": drawn.ended,
        "steps": {step: str(cell.mark) for step, cell in _of_launch(drawn)},
        "stages": {str(stage): {step: str(cell.mark) for step, cell in cells.items()} for stage, cells in drawn.stages},
        "counts": {
            "accepted": len(accepted),
            "failed": sum(one["kind"] == "failed" for one in troubles),
            **{kind: kinds.count(kind) for kind in ("refused", "unnamed", "absent", "stale")},
        },
        "troubles": list(troubles),
    }


def _found(seen: Survey, found: Iterable[Gap]) -> Iterator[Document]:
    for gap in found:
        if gap.kind == "refused":
            yield {"kind": "refused", "task": _refused_by(seen, gap), "name": gap.name, "why": gap.why}
        elif gap.kind == "got nothing":
            yield {"kind": "got nothing", "task": seen.key("process").task, "name": gap.name, "why": gap.why}
        elif gap.kind == "stale" and (key := layout.parse_marker_name(gap.name)):
            yield {"kind": "stale", "task": key.task, "name": gap.name, "why": gap.why}


def _refused_by(seen: Survey, gap: Gap) -> str:
    """The task that judged a file last."""
    stage = Stage.parse(gap.stage)
    judges = (row for row in chain.of_stage(chain.ROWS) if row.judges and gap.name in seen.items(row.word, stage))
    return [row.task for row in judges][-1]


def _of_launch(drawn: LaunchGrid) -> list[tuple[str, Cell]]:
    """The steps of the whole launch."""
    rows = chain.by_word(chain.ROWS)
    return [(step, cell) for step, cell in drawn.cells.items() if rows[step].scope == "launch"]


def _failed(seen: Survey, drawn: LaunchGrid) -> Iterator[Document]:
    of_launch = [(step, None, cell) for step, cell in _of_launch(drawn)]
    of_stages = [(step, stage, cell) for stage, cells in drawn.stages for step, cell in cells.items()]
    for step, stage, cell in (*of_launch, *of_stages):
        if cell.mark is Mark.FAILED:
            key = seen.key(step, stage)
            name = layout.marker_name(key)
            why = seen.unsound[name].why if name in seen.unsound else gaps.tried(seen.attempts.get(key, ()))
            yield {"kind": "failed", "task": key.task, "name": name, "why": why}
