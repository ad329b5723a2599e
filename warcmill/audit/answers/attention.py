"""The answer of the things that need a person, each with the command to type next, and of the newest launches.

It reads the state alone: the summaries of the last days that scans have summed up, then the markers of the launches
that were in trouble there, and of those that no scan has seen yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from msgspec import Struct

from warcmill.audit import day_summary, gaps
from warcmill.audit.answers import days, dues, health, jobs
from warcmill.audit.answers.days import FoundLaunches, LaunchOfDay
from warcmill.audit.answers.line import AuditedLine
from warcmill.audit.due_crawls import JobGap
from warcmill.audit.gaps import Gap
from warcmill.audit.health import Level
from warcmill.audit.progress_grid import TROUBLES, Mark, grid, of_survey
from warcmill.audit.survey import look
from warcmill.base import clock
from warcmill.errors import WarcmillError
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch

DAYS = 31  # with a summary, that are looked at
DUE_DAYS = 7  # of which due crawls without a launch are listed
TROUBLED = 10  # launches that are shown with their gaps
EACH = 3  # gaps that are shown of one
NEWEST = 10
_MONTH = re.compile(r"[1-9][0-9]{3}-(0[1-9]|1[0-2])")


class TroubledLaunch(Struct, frozen=True):
    """A launch that needs a person: the first gaps, and how many more there are. `error`: why it cannot be read."""

    launch: Launch
    mark: Mark
    gaps: tuple[Gap, ...]
    more: int
    error: str = ""

    def json(self) -> dict[str, Json]:
        """The launch for programs."""
        return {
            "job": self.launch.job,
            "launch_id": self.launch.id,
            "state": str(self.mark),
            "error": self.error,
            "gaps": [gap.json() for gap in self.gaps],
            "more": self.more,
        }


class SilentPart(Struct, frozen=True):
    """An engine, a root or a server that did not answer when `warcmill health` asked it; or a disk that is full."""

    kind: str
    name: str
    why: str
    todo: str
    asked: str  # when, UTC

    def __str__(self) -> str:
        return f"{self.kind} {self.name}, asked at {self.asked}: {self.why}"

    def json(self) -> dict[str, Json]:
        """The part for programs."""
        return {"kind": self.kind, "name": self.name, "why": self.why, "todo": self.todo, "asked": self.asked}


def silent(state: MarkerStore) -> Iterator[SilentPart]:
    """The parts that did not answer, and the full disks, as the newest report of the line's health has them."""
    found = health.read(state)
    written = str(found.get("written", ""))
    for one in _objects(found.get("asked")):
        if one.get("answered") is False:
            kind, name, why, todo = (str(one.get(field, "")) for field in ("kind", "name", "why", "todo"))
            yield SilentPart(kind, name, why, todo, written)
    for one in _objects(found.get("roots")):
        if one.get("level") == Level.FAIL and isinstance(free := one.get("bytes_free"), int):
            yield SilentPart(
                "root", str(one.get("root", "")), f"{free:,} bytes are free on its disk", "make room", written
            )


def _objects(value: Json) -> list[dict[str, Json]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


class NewestState(NamedTuple):
    """The state of one of the newest launches, as its own page has it; and what belongs to it, in words, '' for
    nothing: how it was cut short, or how many findings are accepted."""

    mark: Mark
    note: str = ""

    @classmethod
    def of(cls, mark: Mark, cut: str, accepted: int) -> NewestState:
        """The state, with its note."""
        return cls(mark, cut or (f"{accepted:,} accepted" if accepted else ""))


class Attention(Struct, frozen=True):
    """The answer. `others`: more launches in trouble. `found`: all launches of these days.

    `scanned`: when a scan last ended, UTC text; '' if none ever did.
    """

    first: date
    troubled: tuple[TroubledLaunch, ...]
    others: int
    of_no_launch: tuple[JobGap, ...]
    newest: Mapping[Launch, LaunchOfDay | None]
    states: Mapping[Launch, NewestState]
    found: FoundLaunches
    silent: tuple[SilentPart, ...]
    scanned: str

    @property
    def is_old(self) -> bool:
        """True if no scan has ended for some days: what came since then is not judged."""
        return self.scanned < clock.text(datetime.now(UTC) - health.UNSCANNED)

    def json(self) -> dict[str, Json]:
        """The answer."""
        return {
            "first_day": str(self.first),
            "written": self.found.written,
            "scanned": self.scanned,
            "away": [*self.found.away],
            "broken": [*self.found.broken],
            "silent": [one.json() for one in self.silent],
            "launches": [one.json() for one in self.troubled],
            "others": self.others,
            "of_no_launch": dues.as_list(self.of_no_launch),
            "newest": [
                {"job": one.job, "launch_id": one.id, "state": str(self.states[one].mark),
                 **({"note": self.states[one].note} if self.states[one].note else {}),
                 "warcs": summed.warcs if summed else None, "bytes": summed.bytes if summed else None}
                for one, summed in self.newest.items()
            ],
        }  # fmt: skip


def read(line: AuditedLine) -> Attention:
    """The troubles of the last days, and the newest launches."""
    today = datetime.now(UTC).date()
    begin, end = today - timedelta(days=DUE_DAYS - 1), today + timedelta(days=1)
    first = min([begin, *_last_days(line)])
    found = days.find(line, first, end)
    troubled, others = _in_trouble(line, found.launches)
    newest = {one: found.launches[one] for one in [*found.launches][:NEWEST]}
    states = {one: _state(line, one, summed) for one, summed in newest.items()}
    due = dues.of_days(line, begin, end)
    scanned = max(health.last_scan(line.state), found.written)
    answers = tuple(silent(line.state))
    return Attention(first, tuple(troubled), others, tuple(due.gaps), newest, states, found, answers, scanned)


def _state(line: AuditedLine, launch: Launch, summed: LaunchOfDay | None) -> NewestState:
    """The state of a launch by its summary where that has it done, else by its markers: something may have come since,
    such as an acceptance."""
    if summed and summed.mark is Mark.DONE:
        return NewestState.of(summed.mark, "", summed.accepted)
    now = grid(line.state, None, launch, line.wanted)
    if now.mark is Mark.RUNNING and jobs.has_ended(line, launch):
        return NewestState(Mark.WAITING, "its crawl has ended, and waits for a scan")
    return NewestState.of(now.mark, now.cut, now.accepted)


def _last_days(line: AuditedLine) -> Iterator[date]:
    """The first of the last days that have a summary, or, without any, of the last month that has a launch."""
    if known := day_summary.known_days(line.state)[-DAYS:]:
        yield known[0]
        return
    months = [name for name in line.state.store.names("") if _MONTH.fullmatch(name)]
    if months:
        yield date.fromisoformat(f"{max(months)}-01")


def _in_trouble(line: AuditedLine, found: Mapping[Launch, LaunchOfDay | None]) -> tuple[list[TroubledLaunch], int]:
    """The newest launches in trouble by their markers, and how many more there are by their summaries."""
    asked = [one for one, summed in found.items() if summed is None or summed.mark in TROUBLES]
    troubled = list[TroubledLaunch]()
    for place, one in enumerate(asked):
        if len(troubled) == TROUBLED:
            return troubled, sum(found[later] is not None for later in asked[place:])
        looked = _look(line, one)
        if looked.mark in TROUBLES:
            troubled.append(looked)
    return troubled, 0


def _look(line: AuditedLine, launch: Launch) -> TroubledLaunch:
    try:
        seen = look(line.state, None, launch, line.wanted)
    except WarcmillError as error:
        return TroubledLaunch(launch, Mark.FAILED, (), 0, str(error))
    open_gaps, _ = gaps.find(seen)
    needed = [gap for gap in open_gaps if gaps.mark_of(seen, gap) in TROUBLES]  # others only wait for their scan
    return TroubledLaunch(launch, of_survey(seen).mark, tuple(needed[:EACH]), max(0, len(needed) - EACH))
