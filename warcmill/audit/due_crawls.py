"""Crawls that were due and have no launch: by a job's schedule, its 00.due markers and its attempts. Reads only.

A start takes its time: cron has to look, and a launch that runs is stopped first. So a crawl counts as missed an hour
after it was due; at once, if a try to start it has failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

from msgspec import Struct

from warcmill import layout
from warcmill.base import clock
from warcmill.base.schedule import Schedule, newest_due
from warcmill.errors import BadInput
from warcmill.markers.attempts import Attempts
from warcmill.markers.decisions import RecordedDecision
from warcmill.markers.facts.output import Stopped
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Key, Launch, stamp_time

NOT_LAUNCHED: Final = "not launched"
LOST_LAUNCH: Final = "lost launch"
DUE: Final = "due"  # the kind of thing that a decision accepts
GRACE = timedelta(hours=1)
NAMED_ALONE = 3  # of more crawls in a row that were missed for one reason, the first, the last and the number are shown
_SECOND = timedelta(seconds=1)


class JobGap(Struct, frozen=True, order=True):
    """A gap of no launch: of a job, or of the archive where `job` is ''. `todo` is the command to type next."""

    job: str
    kind: str
    name: str
    why: str
    todo: str


class Days(Struct, frozen=True):
    """The due times to look at: from `first` up to, not including, `end`; and what time it is."""

    first: datetime
    end: datetime
    now: datetime


def accepted(made: Iterable[RecordedDecision]) -> dict[str, dict[str, str]]:
    """The due crawls that decisions of the kind `accepted` rule to be skipped: the reason, by job and due time."""
    found: dict[str, dict[str, str]] = {}
    for decision in made:
        job, due, reason = (decision.facts.get(name) for name in ("job", "due", "reason"))
        if decision.facts.get("kind") == DUE and isinstance(job, str) and isinstance(due, str):
            found.setdefault(job, {})[due] = str(reason)
    return found


def skip(job: str, due: str, reason: str) -> dict[str, Json]:
    """The facts of the decision that a due crawl is to be skipped."""
    return {"due": due, "job": job, "kind": DUE, "name": due, "reason": reason}


def find(
    state: MarkerStore, job: str, schedule: Schedule, days: Days, accepted: Collection[str] = ()
) -> tuple[JobGap, ...]:
    """A gap for each crawl of a job that was due in some days and was not launched, nor accepted: 14 digits each."""
    moments = schedule.due(days.first - _SECOND, min(days.now, days.end - _SECOND))
    dues = [due for due in map(clock.digits, moments) if due not in accepted]
    newest = newest_due(schedule, days.now)
    known = _Folders(state, job)
    missed = (due for due in dues if not known.has(due))
    is_newest = clock.digits(newest) if newest else ""
    if schedule.waits:
        missed = (due for due in missed if not _passed_over(state, job, due, is_newest=due == is_newest))
    gaps = (_gap(state, job, due, is_newest=due == is_newest, tries=known.tries(due)) for due in missed)
    return tuple(gap for gap, has_failed in gaps if has_failed or days.now - stamp_time(gap.name) > GRACE)


def _gap(state: MarkerStore, job: str, due: str, *, is_newest: bool, tries: Collection[Key]) -> tuple[JobGap, bool]:
    """The gap of a due crawl without a launch, and whether a try to start it has failed. `tries`: the steps of its
    start that have attempts."""
    # Only the newest is started: after an outage a crawl runs once, not once for each missed time.
    todo = f"warcmill pulse start {job}" if is_newest else f"warcmill accept {job} {due} --reason TEXT"
    why, has_failed = _why(state, job, due, tries, is_newest)
    return JobGap(job, NOT_LAUNCHED, due, why, todo), has_failed


def _why(state: MarkerStore, job: str, due: str, tries: Collection[Key], is_newest: bool) -> tuple[str, bool]:
    for key, what in ((layout.due_key(job, due), "start"), (layout.feed_key(job, due), "feed")):
        last = Attempts(state, key).earlier()[-1:] if key in tries else []
        if last and last[0].error:
            return f"its {what} failed: {last[0].error}", True
        if last and what == "start":
            return "its start was cut short, or is under way; the same command completes it", False
    if not is_newest:
        return "no scan started it before the next one was due: was pulse.ScanForLaunches run by cron?", False
    unstopped = _unstopped(state, job, due)
    return unstopped or "no scan has started it: is pulse.ScanForLaunches run by cron?", bool(unstopped)


def _passed_over(state: MarkerStore, job: str, due: str, *, is_newest: bool) -> bool:
    """True if a launch ran when a crawl was due that waits for it. Once it has ended, the newest one is due."""
    launch = _before(state, job, due)
    if launch is None:
        return False
    stopped = state.read(layout.step("stop", launch))
    if stopped is None:
        return True
    try:
        finished, then = Stopped.from_claim(stopped.claim).finished, clock.stamp_text(due)
    except BadInput:  # the survey shows this marker as broken
        return False
    return not is_newest and finished[: len(then) - 1] >= then[:-1]


def _unstopped(state: MarkerStore, job: str, due: str) -> str:
    """Why the launch before a due crawl could not be stopped, which its start waits for; '' if that was not tried."""
    if launch := _before(state, job, due):
        key = layout.key("pulse.StopJob", launch)
        last = Attempts(state, key).earlier()[-1:]
        if last and last[0].error and not state.holds(key):
            return f"the launch before it, {launch.id}, could not be stopped: {last[0].error}"
    return ""


def _before(state: MarkerStore, job: str, due: str) -> Launch | None:
    """The newest launch that has markers and is older than a due time, of that month and the one before."""
    month = stamp_time(due).date().replace(day=1)
    for folder in (clock.month(month), clock.month(month - timedelta(days=1))):
        launches = [name for name in state.store.names(f"{folder}/{job}") if name.isdecimal() and name < due]
        if launches:
            return Launch.parse(job, max(launches))
    return None


class _Folders:
    """The names in the folders of a job's due crawls, each month read once: years of them are asked for."""

    def __init__(self, state: MarkerStore, job: str) -> None:
        self._state, self._job = state, job
        self._markers, self._tries = dict[str, frozenset[str]](), dict[str, dict[str, list[Key]]]()

    def has(self, due: str) -> bool:
        """True if a due crawl has its sound 00.due."""
        key = layout.due_key(self._job, due)
        folder = layout.folder_of(key)
        if folder not in self._markers:
            self._markers[folder] = frozenset(self._state.store.names(folder))
        return layout.marker_name(key) in self._markers[folder] and self._state.holds(key)

    def tries(self, due: str) -> list[Key]:
        """The steps of a start that have attempts."""
        folder = layout.attempts_folder(layout.folder_of(layout.due_key(self._job, due)))
        if folder not in self._tries:
            keys = set(filter(None, map(layout.parse_attempt_name, self._state.store.names(folder))))
            self._tries[folder] = {}
            for key in keys:
                self._tries[folder].setdefault(dict(key.params).get("due", ""), []).append(key)
        return self._tries[folder].get(due, [])


def look_at(gap: JobGap) -> str:
    """The command that explains a gap of no launch."""
    if gap.kind == LOST_LAUNCH:
        return f"warcmill reconcile {stamp_time(gap.name).date()}"
    return f"warcmill why {gap.job} {gap.name}" if gap.kind == NOT_LAUNCHED else "warcmill doctor"


def in_groups(gaps: Iterable[JobGap]) -> Iterator[JobGap]:
    """Gaps as a person reads them: many crawls of a job in a row that were missed for one reason become one line."""
    for (job, kind, why), group in groupby(gaps, key=lambda gap: (gap.job, gap.kind, gap.why)):
        alike = list(group)
        if kind != NOT_LAUNCHED or len(alike) <= NAMED_ALONE:
            yield from alike
            continue
        first, last = alike[0].name, alike[-1].name
        end = stamp_time(last).date() + timedelta(days=1)
        todo = f"warcmill accept --kind '{NOT_LAUNCHED}' {stamp_time(first).date()}-{end} --reason TEXT"
        yield JobGap(job, kind, f"{first} to {last}, {len(alike)} of them", why, todo)
