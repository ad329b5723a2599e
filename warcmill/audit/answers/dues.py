"""The dues of an archive beside its launches: crawls that were due, launches that are lost, and backups. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Final

from msgspec import Struct, field

from warcmill import layout
from warcmill.audit import due_crawls
from warcmill.audit.answers.line import AuditedLine
from warcmill.audit.due_crawls import LOST_LAUNCH, Days, JobGap
from warcmill.audit.gaps import Gap
from warcmill.audit.reconciliation import unkept_decisions, unkept_editions, unkept_launch
from warcmill.backup import backup
from warcmill.base import clock
from warcmill.errors import BadInput, Unavailable
from warcmill.launches.discovery import of_job, with_markers
from warcmill.launches.view import job_log
from warcmill.markers import decisions, editions
from warcmill.markers.attempts import Attempts
from warcmill.markers.decisions import RecordedDecision
from warcmill.markers.facts.pulse import Launched
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch, parse_job, stamp_time

SET_BACK: Final = "set back"
MOST_LOST = 20  # lost launches of a job that one gap names
_SECOND = timedelta(seconds=1)


class Dues(Struct):
    """The gaps of no launch, and the due crawls that an operator has accepted as skipped.

    `away`: the store did not answer, so it is unknown which backups are in it; or None. `misconfigured`: luigi.cfg has
    a schedule that cannot be read, so it is unknown when its job was due.
    """

    gaps: list[JobGap] = field(default_factory=list)
    accepted: list[JobGap] = field(default_factory=list)
    away: Unavailable | None = None
    misconfigured: bool = False

    def unkept(self, line: AuditedLine, launches: Iterable[Launch]) -> list[Gap]:
        """The gaps of these launches that are in no backup."""
        now = stamp_time(clock.stamp())
        if line.is_state_alone:
            return []
        try:
            return [gap for launch in launches for gap in unkept_launch(line.state, line.store, launch, now)]
        except Unavailable as error:
            self.away = error
            return []

    def never_kept(self, line: AuditedLine, first: date, job: str | None) -> list[Gap]:
        """The gap of the oldest launch before a day, where no backup of any launch ever ran."""
        if line.is_state_alone:
            return []
        try:
            if backup.has_any(line.store):
                return []
            earlier = (one for one in with_markers(line.state, date(1970, 1, 1), first) if job in (None, one.job))
            oldest = sorted(earlier, key=lambda one: one.id)
            return next(filter(None, (self.unkept(line, [launch]) for launch in oldest)), [])
        except Unavailable as error:
            self.away = error
            return []


def lost(line: AuditedLine, first: date, end: date) -> dict[str, list[Launch]]:
    """The launches of some days that only the job.log of their job has, by job, and that nobody has accepted.

    Their folders went before a step saw them. Those before the first launch of the job that is known are of a time
    before this archive. A job of a root that does not answer is left out.
    """
    found: dict[str, list[Launch]] = {}
    accepted = _accepted_lost(line.state)
    span = clock.day_digits(first), clock.day_digits(end)
    for job in () if line.is_state_alone else sorted(_jobs_on_disk(line)):
        with suppress(Unavailable):
            roots = line.rootmap.of(job)
            begun = [event.subject for event in job_log(roots, f"{job}/job.log") if event.word == "PREPARING"]
            ids = {one for one in begun if span[0] <= one[:8] < span[1]} - accepted.get(job, set())
            launches = [launch for launch in map(partial(_launch, job), sorted(ids)) if launch]
            gone = [launch for launch in launches if not _is_known(line, launch)]
            if not gone:
                continue
            known = [one.id for one in of_job(line.state, job)] + [entry.name for entry in roots.jobs.list(job)]
            oldest = min((one for one in known if _launch(job, one)), default="~")
            if those := [launch for launch in gone if launch.id > oldest]:
                found[job] = those
    return found


def _jobs_on_disk(line: AuditedLine) -> set[str]:
    jobs = set[str]()
    for section in line.rootmap.all():
        with suppress(Unavailable):
            for entry in line.rootmap.open("jobs", section.jobs).list(""):
                with suppress(BadInput):
                    jobs |= {parse_job(entry.name)} if entry.kind == "folder" else set()
    return jobs


def _launch(job: str, launch_id: str) -> Launch | None:
    try:
        return Launch.parse(job, launch_id)
    except BadInput:
        return None  # of an engine whose launches have other names; or `latest`


def _is_known(line: AuditedLine, launch: Launch) -> bool:
    """True if the state, or a root of its job, has a folder of the launch."""
    roots = line.rootmap.of(launch.job)
    if line.state.store.names(layout.state_folder(launch)) or roots.jobs.stat(str(launch)):
        return True
    return any(store.stat(known.folder(kind, launch)) for store, known in roots.sources() for kind in layout.KINDS)


def _lost_gaps(line: AuditedLine, first: date, end: date) -> Iterator[JobGap]:
    """A gap for each job that has lost launches."""
    for job, launches in lost(line, first, end).items():
        ids = [launch.id for launch in launches]
        more = "" if len(ids) == 1 else f", and so did {len(ids) - 1} more, up to {ids[-1]}"
        why = f"its job's job.log has that it began{more}; no folder of it is left, and no step has seen one"
        yield JobGap(job, LOST_LAUNCH, ids[0], why, f"warcmill accept {job} {' '.join(ids[:MOST_LOST])} --reason TEXT")


def accept_lost(launch: Launch, reason: str) -> dict[str, Json]:
    """The facts of the decision that a launch is lost for good."""
    return {"job": launch.job, "kind": LOST_LAUNCH, "launch_id": launch.id, "name": launch.id, "reason": reason}


def _accepted_lost(state: MarkerStore) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for decision in decisions.readable(state.store, decisions.ACCEPTED)[0]:
        if decision.facts.get("kind") == LOST_LAUNCH:
            found.setdefault(str(decision.facts.get("job")), set()).add(str(decision.facts.get("launch_id")))
    return found


def with_lost(line: AuditedLine, first: date, end: date) -> Dues:
    """The dues of some days, with the launches that are lost."""
    found = of_days(line, first, end)
    found.gaps += _lost_gaps(line, first, end)
    return found


def of_days(line: AuditedLine, first: date, end: date) -> Dues:
    """The crawls that were due from `first` up to, not including, `end`, by the schedules of all jobs; and what else is
    due now, whatever the days: decisions in the store, the newest versions of the indexes."""
    unreadable = [JobGap("", "unreadable", error.key, error.why, "correct it in luigi.cfg") for error in line.wrong]
    dues = Dues(unreadable, misconfigured=bool(unreadable))
    begin, stop = (datetime.combine(day, time(), UTC) for day in (first, end))
    days = Days(begin, stop, now=stamp_time(clock.stamp()))
    accepted = due_crawls.accepted(_decisions(line, dues, days.now))
    _editions(line, dues, days.now)
    for job, schedule in line.schedules.items():
        of_job = accepted.get(job, {})
        dues.gaps += due_crawls.find(line.state, job, schedule, days, of_job)
        dues.accepted += (
            JobGap(job, due_crawls.NOT_LAUNCHED, due, why, "")
            for due, why in sorted(of_job.items())
            if days.first <= stamp_time(due) < days.end
        )
    dues.gaps += _set_back(line)
    return dues


def _set_back(line: AuditedLine) -> Iterator[JobGap]:
    """A gap for each index whose current version is not its newest. An index that is away is named elsewhere."""
    from warcmill.versions.inputs import FOLDER  # noqa: PLC0415 of the index alone
    from warcmill.versions.publication import CURRENT, set_back  # noqa: PLC0415

    try:
        index = line.open_index() if line.open_index and not line.is_state_alone else None
        known = line.state.store.names(FOLDER) if index else ()
        for name in sorted(known):
            if index and (why := set_back(line.state.store, index, name)):
                yield JobGap("", SET_BACK, f"index:{FOLDER}/{name}/{CURRENT}", why, "warcmill scan")
    except Unavailable:
        return


def _decisions(line: AuditedLine, dues: Dues, now: datetime) -> list[RecordedDecision]:
    """The decisions on findings. The faults of any of them, and those of their backups, are added to the dues."""
    accepted, wrong = decisions.readable(line.state.store, decisions.ACCEPTED)  # also of a damaged one
    made = list(accepted)
    try:
        made = [*decisions.read(line.state.store, decisions.ACCESS), *made]
    except BadInput as error:
        wrong.insert(0, error)
    dues.gaps += (JobGap("", "unreadable", error.path, error.why, "warcmill restore") for error in wrong)
    try:
        dues.gaps += unkept_decisions(line.store, made, now) if made and not line.is_state_alone else ()
    except Unavailable as error:
        dues.away = error
    return accepted


def _editions(line: AuditedLine, dues: Dues, now: datetime) -> None:
    """Add the faults of the editions of jobs' papers, and those of their backups, to the dues."""
    for job in editions.jobs_in(line.state.store):
        of_job = editions.JobEditions(line.state.store, lambda: line.store, job)
        try:
            of_job.newest()
            dues.gaps += () if line.is_state_alone else unkept_editions(line.store, of_job, now)
        except BadInput as error:
            dues.gaps.append(JobGap("", "unreadable", error.path, error.why, "warcmill restore"))
        except Unavailable as error:
            dues.away = error


def accepted_dues(state: MarkerStore) -> Mapping[str, Mapping[str, str]]:
    """The due crawls that were accepted as skipped: the reason, by job and due time. A damaged decision skips none."""
    return due_crawls.accepted(decisions.readable(state.store, decisions.ACCEPTED)[0])


def as_list(gaps: Iterable[JobGap]) -> list[Json]:
    """These gaps for the answer."""
    return [{name: getattr(gap, name) for name in ("job", "kind", "name", "why", "todo")} for gap in gaps]


class DueExplanation(Struct, frozen=True):
    """A due crawl: its launch, '' if it got none; why it was accepted as skipped, ''; its gap; errors of its start."""

    job: str
    due: str
    launch_id: str
    accepted: str
    gaps: tuple[JobGap, ...]
    errors: tuple[tuple[str, str], ...]  # by the path of the attempt

    def json(self) -> dict[str, Json]:
        """The answer of `warcmill why JOB TIME`."""
        return {
            "job": self.job,
            "due": self.due,
            "launch_id": self.launch_id,
            "accepted": self.accepted,
            "of_no_launch": as_list(self.gaps),
            "attempts": [{"path": path, "error": error} for path, error in self.errors],
        }


def explain(line: AuditedLine, job: str, due: str) -> DueExplanation | None:
    """The launch that a due crawl got, or why it got none; None if no crawl of the job was due at that time."""
    marker, now, moment = line.state.read(layout.due_key(job, due)), stamp_time(clock.stamp()), stamp_time(due)
    keys = (layout.feed_key(job, due), layout.due_key(job, due))
    tried = [attempt for key in keys for attempt in Attempts(line.state, key).earlier()[-1:]]
    schedule = line.schedules.get(job)
    is_due = bool(schedule and list(schedule.due(moment - _SECOND, moment)))
    if not (marker or tried or is_due):
        return None
    launched = Launched.from_claim(marker.claim).launch.id if marker else ""
    accepted = accepted_dues(line.state).get(job, {}).get(due, "")
    open_gaps: tuple[JobGap, ...] = ()
    if schedule and is_due and not launched and not accepted:
        open_gaps = due_crawls.find(line.state, job, schedule, Days(moment, moment + _SECOND, now))
    errors = tuple((attempt.path, attempt.error) for attempt in tried if attempt.error)
    return DueExplanation(job, due, launched, accepted, open_gaps, errors if not launched else ())
