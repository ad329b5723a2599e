"""warcmill accept JOB DUE: a crawl that was due, or will be, is meant to be skipped. A decision: it has no launch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

from commands.console.arguments import Interval
from commands.console.show import err, out
from commands.owed import accepted_dues, of_days
from tasks.config import engines
from tasks.step import OpenRoots
from warcmill import layout
from warcmill.audit import due_crawls
from warcmill.errors import BadInput, Conflict
from warcmill.markers import decisions
from warcmill.model import parse_job, parse_stamp, stamp_time

Crawl = tuple[str, str]  # a job and a due time
_SECOND = timedelta(seconds=1)


def named(words: Sequence[str]) -> list[Crawl]:
    """The due crawls that words name: JOB DUE...; none if they name something else."""
    try:
        job, dues = parse_job(words[0]), [parse_stamp(word) for word in words[1:]]
    except BadInput:
        return []
    return [(job, due) for due in dues]


def in_days(line: OpenRoots, days: Interval) -> list[Crawl]:
    """The crawls that were due in some days and have no launch."""
    gaps = of_days(line, days.first, days.end).gaps
    return [(gap.job, gap.name) for gap in gaps if gap.kind == due_crawls.NOT_LAUNCHED]


def accept(line: OpenRoots, crawls: Iterable[Crawl], reason: str) -> int:
    """Decide that these crawls are skipped, all or none; a scan then starts none of them. Return the exit code."""
    known, accepted = engines.schedules()[0], accepted_dues(line)
    asked = list(crawls)
    for job, due in asked:
        moment, schedule = stamp_time(due), known.get(job)
        if line.state.holds(layout.due_key(job, due)):
            err(f"warcmill accept: nothing was accepted: the crawl of {job} due {due} was launched")
            return 1
        if not schedule or not list(schedule.due(moment - _SECOND, moment)):
            why = f"[job.{job}] has no crawl due then" if schedule else f"luigi.cfg has no [job.{job}]"
            err(f"warcmill accept: nothing was accepted: {why}: {due}")
            return 1
        before = accepted.get(job, {}).get(due, reason)
        if before != reason:
            raise Conflict(f"{job} {due}", f"accepted already, for another reason: {before}")
    skipped = [due_crawls.skip(job, due, reason) for job, due in asked]
    decisions.make_all(line.state.store, lambda: line.store, decisions.ACCEPTED, skipped)
    out(*(f"accepted: {job} {due} is skipped" for job, due in asked))
    return 0
