"""warcmill doctor: check that what is due is launched, that a job takes each target of the feed, and the backups."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby

from commands import owed
from commands.show import counted
from tasks.config import feed as feeds
from tasks.step import OpenRoots, open_line
from warcmill.audit.backups import NO_BACKUP
from warcmill.audit.due_crawls import NOT_LAUNCHED, JobGap
from warcmill.audit.health import Check, Level
from warcmill.base import clock
from warcmill.errors import BadConfig, Unavailable, WarcmillError
from warcmill.launches.recorded import with_markers
from warcmill.model import stamp_time
from warcmill.pulse import feed

SHOWN = 3  # targets of a frequency
DAYS = 60  # as many as config/crontab scans and backs up


def check_owed() -> Iterator[Check]:
    """Due crawls since each schedule began, decisions, and the backups of the last days' launches."""
    try:
        line = open_line()
        due = owed.of_days(line, *owed.EVER)
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


def _backups(line: OpenRoots, due: owed.Owed) -> Iterator[Check]:
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
