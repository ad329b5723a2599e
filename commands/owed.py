"""What the archive owes beside its launches, as verbs report it: crawls that were due, and backups of decisions.

MERGED commands/owed.py: warcmill doctor: check that what is due is launched, that a job takes each target of the
feed, and the backups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import groupby

from rich.text import Text

from commands.console.show import counted, err, styled
from tasks.config import engines
from tasks.config import feed as feeds
from tasks.step import OpenRoots, open_line
from warcmill.audit import backups, due_crawls
from warcmill.audit.backups import NO_BACKUP
from warcmill.audit.due_crawls import NOT_LAUNCHED, Days, JobGap, in_groups
from warcmill.audit.gaps import Gap
from warcmill.audit.health import Check, Level
from warcmill.base import clock
from warcmill.base.printable import printable
from warcmill.errors import BadConfig, BadInput, Unavailable, WarcmillError
from warcmill.launches.discovery import with_markers
from warcmill.markers import decisions
from warcmill.markers.decisions import Decision
from warcmill.model import Json, Launch, stamp_time
from warcmill.pulse import feed

EVER = date(1970, 1, 1), date(9999, 12, 31)


@dataclass
class Owed:
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
            return [gap for launch in launches for gap in backups.of_launch(line.state, line.store, launch, now)]
        except Unavailable as error:
            self.away = error
            return []

    def report_away(self) -> bool:
        """Report on stderr that the store did not answer; return whether that is so."""
        if self.away:
            err(f"{self.away}; it is unknown which backups are in it")
        return self.away is not None


def of_days(line: OpenRoots, first: date, end: date) -> Owed:
    """What was due from `first` up to, not including, `end`, by the schedules of all jobs."""
    schedules, wrong = engines.schedules()
    owed = Owed([JobGap("", "unreadable", error.key, error.why, "correct it in luigi.cfg") for error in wrong])
    begin, stop = (datetime.combine(day, time(), UTC) for day in (first, end))
    days = Days(begin, stop, now=stamp_time(clock.stamp()))
    accepted = due_crawls.accepted(_decisions(line, owed, days.now))
    for job, schedule in schedules.items():
        of_job = accepted.get(job, {})
        owed.gaps += due_crawls.find(line.state, job, schedule, days, of_job)
        owed.accepted += (
            JobGap(job, due_crawls.NOT_LAUNCHED, due, why, "")
            for due, why in sorted(of_job.items())
            if days.first <= stamp_time(due) < days.end
        )
    return owed


def _decisions(line: OpenRoots, owed: Owed, now: datetime) -> list[Decision]:
    """The decisions on findings. What is wrong with any of them, or with their backups, is added to what is owed."""
    accepted, wrong = decisions.readable(line.state.store, decisions.ACCEPTED)  # what a damaged one accepts is named
    made = list(accepted)
    try:
        made = [*decisions.read(line.state.store, decisions.ACCESS), *made]
    except BadInput as error:
        wrong.insert(0, error)
    owed.gaps += (JobGap("", "unreadable", error.path, error.why, "warcmill restore") for error in wrong)
    try:
        owed.gaps += backups.of_decisions(line.store, made, now) if made else ()
    except Unavailable as error:
        owed.away = error
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


SHOWN = 3  # targets of a frequency
DAYS = 60  # as many as config/crontab scans and backs up


def check_owed() -> Iterator[Check]:
    """Due crawls since each schedule began, decisions, and the backups of the last days' launches."""
    try:
        line = open_line()
        due = of_days(line, *EVER)
    except (Unavailable, BadConfig):
        return  # reported with the root, or with the configuration
    except WarcmillError as error:
        yield Check(
            "due", Level.FAIL, f"{error}; what is due and not backed up is unknown", "look at what is named there"
        )
        return
    yield from _due(due.gaps)
    yield from _unanswered(line)
    yield from _backups(line, due)


def _due(gaps: list[JobGap]) -> Iterator[Check]:
    jobs = groupby((gap for gap in gaps if gap.kind == NOT_LAUNCHED), key=lambda gap: gap.job)
    for job, of_job in jobs:
        missed = list(of_job)
        first, last = (clock.stamp_text(gap.name) for gap in (missed[0], missed[-1]))
        span = f"the one due {last}" if len(missed) == 1 else f"{len(missed)} that were due, {first} to {last},"
        verb = "was" if len(missed) == 1 else "were"
        text = f"{span} {verb} not launched: {missed[-1].why}"
        yield Check(f"due {job}", Level.WARN, text, missed[-1].todo)
    for gap in gaps:
        if gap.kind != NOT_LAUNCHED:
            yield Check("backup" if gap.kind == NO_BACKUP else "due", Level.WARN, f"{gap.name}: {gap.why}", gap.todo)


def _unanswered(line: OpenRoots) -> Iterator[Check]:
    """Targets of the newest good feed that no job of [feed] ever crawls: none is due as often as they are."""
    try:
        found = feed.unanswered(line.state, [feeds.due_of(job, clock.stamp()) for job in feeds.jobs()])
    except BadConfig:
        return  # reported with the configuration
    except WarcmillError as error:
        yield Check("feed", Level.FAIL, f"{error}; the schedules of its targets are unknown", "look at what is named")
        return
    for frequency, targets in sorted(found.items(), key=str):
        more = f" and {len(targets) - SHOWN} more" if len(targets) > SHOWN else ""
        those = f"{counted(len(targets), 'target', 'targets')} of the feed: {', '.join(targets[:SHOWN])}{more}"
        todo = f"add a job to [feed] jobs whose [job.NAME] has frequency={frequency}"
        yield Check("feed", Level.WARN, f"no job crawls {frequency}, as is asked for {those}", todo)


def _backups(line: OpenRoots, due: Owed) -> Iterator[Check]:
    today = stamp_time(clock.stamp()).date()
    launches = sorted(with_markers(line.state, today - timedelta(days=DAYS), today + timedelta(days=1)))
    unkept = due.unkept(line, launches)
    if due.away:
        return  # reported with the root
    if unkept:
        those = counted(len(unkept), "archived launch", "archived launches")
        text = f"{those} of the last {DAYS} days, first {unkept[0].launch}: {unkept[0].why}"
        yield Check("backup", Level.WARN, text, unkept[0].todo)
    else:
        yield Check("backup", Level.OK, f"what was archived in the last {DAYS} days is in one, or is not a day old")
