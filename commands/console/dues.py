"""The dues of an archive beside its launches: crawls that were due, and backups. Reads only.

Verbs print them, or accept a due crawl as skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time

from rich.text import Text

from commands.console.show import err, styled
from tasks.config import engines
from tasks.step import OpenRoots
from warcmill.audit import due_crawls
from warcmill.audit.due_crawls import Days, JobGap, in_groups
from warcmill.audit.gaps import Gap
from warcmill.audit.reconciliation import unkept_decisions, unkept_launch
from warcmill.base import clock
from warcmill.base.escapes import printable
from warcmill.errors import BadInput, Unavailable
from warcmill.markers import decisions
from warcmill.markers.decisions import RecordedDecision
from warcmill.model import Json, Launch, stamp_time


@dataclass
class Dues:
    """The gaps of no launch, and the due crawls that an operator has accepted as skipped.

    `away`: the store did not answer, so it is unknown which backups are in it; or None.
    """

    gaps: list[JobGap] = field(default_factory=list)
    accepted: list[JobGap] = field(default_factory=list)
    away: Unavailable | None = None

    def unkept(self, line: OpenRoots, launches: Iterable[Launch]) -> list[Gap]:
        """The gaps of these launches that are in no backup."""
        now = stamp_time(clock.stamp())
        try:
            return [gap for launch in launches for gap in unkept_launch(line.state, line.store, launch, now)]
        except Unavailable as error:
            self.away = error
            return []

    def report_away(self) -> bool:
        """Report on stderr that the store did not answer; return whether that is so."""
        if self.away:
            err(f"{self.away}; it is unknown which backups are in it")
        return self.away is not None


def of_days(line: OpenRoots, first: date, end: date) -> Dues:
    """The crawls that were due from `first` up to, not including, `end`, by the schedules of all jobs."""
    schedules, wrong = engines.schedules()
    dues = Dues([JobGap("", "unreadable", error.key, error.why, "correct it in luigi.cfg") for error in wrong])
    begin, stop = (datetime.combine(day, time(), UTC) for day in (first, end))
    days = Days(begin, stop, now=stamp_time(clock.stamp()))
    accepted = due_crawls.accepted(_decisions(line, dues, days.now))
    for job, schedule in schedules.items():
        of_job = accepted.get(job, {})
        dues.gaps += due_crawls.find(line.state, job, schedule, days, of_job)
        dues.accepted += (
            JobGap(job, due_crawls.NOT_LAUNCHED, due, why, "")
            for due, why in sorted(of_job.items())
            if days.first <= stamp_time(due) < days.end
        )
    return dues


def _decisions(line: OpenRoots, dues: Dues, now: datetime) -> list[RecordedDecision]:
    """The decisions on findings. The faults of any of them, and those of their backups, are added to the dues."""
    accepted, wrong = decisions.readable(line.state.store, decisions.ACCEPTED)  # also of a damaged one
    made = list(accepted)
    try:
        made = [*decisions.read(line.state.store, decisions.ACCESS), *made]
    except BadInput as error:
        wrong.insert(0, error)
    dues.gaps += (JobGap("", "unreadable", error.path, error.why, "warcmill restore") for error in wrong)
    try:
        dues.gaps += unkept_decisions(line.store, made, now) if made else ()
    except Unavailable as error:
        dues.away = error
    return accepted


def accepted_dues(line: OpenRoots) -> Mapping[str, Mapping[str, str]]:
    """The due crawls that were accepted as skipped: the reason, by job and due time. A damaged decision skips none."""
    return due_crawls.accepted(decisions.readable(line.state.store, decisions.ACCEPTED)[0])


def texts(gaps: Iterable[JobGap]) -> Iterator[Text]:
    """Each gap of no launch, grouped by kind, cause and remedy, as those of launches are."""
    alike: dict[tuple[str, str, str], list[JobGap]] = {}
    for gap in in_groups(gaps):
        alike.setdefault((gap.kind, gap.why, gap.todo), []).append(gap)
    for (kind, why, todo), group in alike.items():
        yield Text.assemble((f"  {kind}", "bold red"), f": {printable(why)}")
        for gap in group:
            yield Text.assemble("      ", f"{gap.job} " if gap.job else "", (printable(gap.name), "bold"))
        yield styled(f"      -> {todo}", "cyan")


def as_list(gaps: Iterable[JobGap]) -> list[Json]:
    """These gaps for the JSON document."""
    return [{name: getattr(gap, name) for name in ("job", "kind", "name", "why", "todo")} for gap in gaps]
