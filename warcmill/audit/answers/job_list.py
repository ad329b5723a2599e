"""The answer of `warcmill jobs`: all jobs at a glance, the days on which they are due, the time that the disks last.

Reads the state alone. The bytes of a launch come from the summary of its day. Of the newest launch of a job one marker
a stage is read, where its summary has it done; all of its markers, where not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from msgspec import Struct

from warcmill import chain, layout
from warcmill.audit import due_crawls, gaps, survey
from warcmill.audit.answers import days, dues, health, jobs
from warcmill.audit.answers.attention import DUE_DAYS
from warcmill.audit.answers.days import LaunchOfDay
from warcmill.audit.answers.jobs import RunningNow
from warcmill.audit.answers.line import AuditedLine, JobEngine
from warcmill.audit.due_crawls import Days, JobGap
from warcmill.audit.findings import KINDS
from warcmill.audit.progress_grid import TROUBLES, Mark, of_survey
from warcmill.base import clock
from warcmill.base.schedule import Schedule
from warcmill.crawl.job import values
from warcmill.crawl.job.values import CONFIGURATION
from warcmill.errors import BadConfig, BadInput, Foreign, NotReady, WarcmillError
from warcmill.formats.logs.crawllog import is_got
from warcmill.markers import editions
from warcmill.markers.editions import JobEditions
from warcmill.markers.facts.output import Assembled
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch, stamp_time

PAST = 30  # launches of a job
DAYS = 28  # from today on, of which the calendar has what is due
PACE_DAYS = 30  # before today, whose launches are the pace at which disks fill
GROWING = ("output", "store")  # the roots into which each WARC is written once
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_DAY, _SECOND = timedelta(days=1), timedelta(seconds=1)
_LIST = chain.by_word(chain.ROWS)["assemble"].task
_LOOKUP = 1  # the status of a line of crawl.log that is a lookup in the DNS
_NEAR = 1 << 30  # bytes by which the room of one disk may change while it is asked for twice


class AboutJob(Struct, frozen=True):
    """A job as the newest edition of its papers describes it. `wrong`: why it cannot be read; '' if it can.
    `is_deleted`: that edition has no paper."""

    title: str = ""
    tags: tuple[str, ...] = ()
    owner: str = ""
    wrong: str = ""
    is_deleted: bool = False


class NewestLaunch(Struct, frozen=True):
    """The newest launch of a job. `got` and `not_got` count the URLs in its logs by their answers, `bytes` those of its
    WARCs; None where no marker has them. `findings`: those besides lost seeds that need a person. `error`: why it
    cannot be read."""

    launch: Launch
    mark: Mark
    ended: str = ""
    got: int | None = None
    not_got: int | None = None
    bytes: int | None = None
    seeds_not_got: int = 0
    findings: int = 0
    error: str = ""

    @property
    def in_words(self) -> str:
        """Its numbers and its end, in one line."""
        if self.error:
            return self.error
        counts = f"{self.got:,} got, {self.not_got:,} not got, {self.bytes:,} bytes" if self.got is not None else ""
        return ", ".join(filter(None, (counts, self.ended)))

    def json(self) -> dict[str, Json]:
        """The launch for programs."""
        names = ("ended", "got", "not_got", "bytes", "seeds_not_got", "findings", "error")
        return {"launch_id": self.launch.id, "state": str(self.mark), **{name: getattr(self, name) for name in names}}


class ListedJob(Struct, frozen=True):
    """A job. `next_due`: None if it is never due. `owed`: due crawls of the last days that never ran. `past`: the
    newest launches, the newest first, each as the summary of its day has it; None where none has."""

    job: str
    about: AboutJob
    engine: JobEngine | None
    schedule: Schedule | None
    next_due: datetime | None
    owed: tuple[JobGap, ...]
    newest: NewestLaunch | None
    past: Mapping[str, LaunchOfDay | None]
    crawl: RunningNow | None

    @property
    def may_run(self) -> bool:
        """True if a crawl of it was running, or a launch of an engine that is controlled here has no end yet."""
        has_no_end = self.newest is not None and self.newest.mark is Mark.RUNNING
        return self.crawl is not None or bool(has_no_end and self.engine and self.engine.driven)

    @property
    def next_utc(self) -> str:
        """The time at which it is due next, UTC text; '' if it is never due."""
        return clock.text(self.next_due) if self.next_due else ""

    @property
    def next_there(self) -> str:
        """The time at which it is due next, by the clocks of its own zone; '' where these are UTC."""
        return there(self.schedule, self.next_due) if self.schedule and self.next_due else ""

    @property
    def older_findings(self) -> int:
        """The findings of the launches before the newest one, as their summaries have them."""
        older = (one for launch_id, one in self.past.items() if not self.newest or launch_id != self.newest.launch.id)
        return sum(one.troubles for one in older if one)

    @property
    def needs(self) -> list[str]:
        """The numbers of all that needs a person, in words; without those that are 0."""
        newest = self.newest
        return [
            f"{number:,} {what}"
            for number, what in (
                (newest.seeds_not_got if newest else 0, "seeds or targets not got"),
                (newest.findings if newest else 0, "other findings of the newest launch"),
                (self.older_findings, "findings of launches before it"),
                (len(self.owed), "due crawls never ran"),
            )
            if number
        ]

    def has(self, words: Sequence[str]) -> bool:
        """True if each word is in its name, title, tags or owner."""
        text = " ".join((self.job, self.about.title, *self.about.tags, self.about.owner)).casefold()
        return all(word.casefold() in text for word in words)

    def json(self) -> dict[str, Json]:
        """The job for programs."""
        engine, schedule = self.engine or JobEngine(""), self.schedule
        return {
            "job": self.job, "title": self.about.title, "tags": [*self.about.tags], "owner": self.about.owner,
            "wrong": self.about.wrong,
            "engine": engine.section, "kind": engine.kind, "driven": engine.driven,
            "frequency": str(schedule.frequency) if schedule else "", "zone": schedule.zone if schedule else "",
            "next_due": self.next_utc, "next_due_there": self.next_there,
            "owed": dues.as_list(self.owed), "newest": self.newest.json() if self.newest else None,
            "older_findings": self.older_findings,
            "past": [
                {"launch_id": launch_id, "state": str(one.mark) if one else "", "bytes": one.bytes if one else None}
                for launch_id, one in self.past.items()
            ],
            "crawl": self.crawl.json() if self.crawl else None,
        }  # fmt: skip


class DiskRoom(Struct, frozen=True):
    """The room of a disk, when it was asked. `days`: how long it lasts at `a_day` bytes, None without a pace: the
    `launches` of the days from `first` on."""

    roots: tuple[str, ...]
    free: int
    asked: str
    first: str = ""
    launches: int = 0
    a_day: int = 0

    @property
    def days(self) -> int | None:
        """The days until it is full at this pace; None where there is no pace."""
        return self.free // self.a_day if self.a_day else None

    @property
    def in_words(self) -> str:
        """The time that it lasts, and the launches whose pace that is."""
        if self.days is None:
            return "how long that lasts is not known: scans have seen no launches of more than a day"
        pace = f"{self.a_day:,} bytes a day, by {self.launches:,} launches since {self.first}"
        return f"full in {self.days:,} days at {pace}"

    def json(self) -> dict[str, Json]:
        """The disk for programs."""
        return {
            "roots": [*self.roots], "bytes_free": self.free, "asked": self.asked, "first_day": self.first,
            "launches": self.launches, "bytes_a_day": self.a_day, "days": self.days,
        }  # fmt: skip


class JobList(Struct, frozen=True):
    """All jobs by name, those that were deleted too. `wrong`: the sections of luigi.cfg that cannot be read."""

    jobs: tuple[ListedJob, ...]
    disks: tuple[DiskRoom, ...]
    wrong: tuple[str, ...]

    @property
    def deleted(self) -> list[str]:
        """The names of the jobs that were deleted."""
        return [one.job for one in self.jobs if one.about.is_deleted]

    @property
    def tags(self) -> list[str]:
        """All tags, in order."""
        return sorted({tag for one in self.jobs for tag in one.about.tags}, key=lambda tag: (tag.casefold(), tag))

    def chosen(self, words: str = "", tag: str = "") -> list[ListedJob]:
        """The jobs that have these words and this tag, but for those that were deleted."""
        wanted = words.split()
        return [
            one for one in self.jobs
            if one.has(wanted) and tag in ("", *one.about.tags) and not one.about.is_deleted
        ]  # fmt: skip

    def json(self, shown: Iterable[ListedJob]) -> dict[str, Json]:
        """The answer, with some of the jobs."""
        listed: list[Json] = [one.json() for one in shown]
        disks: list[Json] = [one.json() for one in self.disks]
        return {"jobs": listed, "deleted": [*self.deleted], "disks": disks, "wrong": [*self.wrong]}


class DueJob(Struct, frozen=True):
    """A job on a day: `first` due at this time, and so many `times`. `there`: the first by the clocks of its zone."""

    job: str
    title: str
    first: datetime
    there: str
    times: int

    @property
    def in_words(self) -> str:
        """The rest of its line: the time there, and how often it is due on that day."""
        more = f"{self.times} times from then on" if self.times > 1 else ""
        return "".join(f", {text}" for text in (self.there, more) if text)

    def json(self) -> dict[str, Json]:
        """The job for programs."""
        return {
            "job": self.job, "title": self.title, "first": clock.text(self.first), "there": self.there,
            "times": self.times,
        }  # fmt: skip


def read(line: AuditedLine) -> JobList:
    """All jobs, and the room of the disks."""
    now = stamp_time(clock.stamp())
    past = {job: [*islice(line.state.launches(job), PAST)] for job in line.state.jobs()}
    pace = {now.date() - timedelta(days=number) for number in range(PACE_DAYS + 1)}
    rows = _days(line.state, pace | {one.day for launches in past.values() for one in launches})
    summed = {(one.job, one.id): one for row in rows.values() for of_job in row.jobs.values() for one in of_job}
    accepted, found = dues.accepted_dues(line.state), list[ListedJob]()
    crawls = {one.job: one for one in jobs.running_crawls(line.state)}
    week, with_papers = now - DUE_DAYS * _DAY, {*editions.jobs_in(line.state.store)}
    for job in sorted({*line.engines, *line.schedules, *past}):
        schedule = line.schedules.get(job)
        owed = tuple[JobGap, ...]()
        if schedule:
            owed = due_crawls.find(line.state, job, schedule, Days(week, now + _SECOND, now), accepted.get(job, ()))
        of_job = {one.id: summed.get((job, one.id)) for one in past.get(job, ())}
        newest = _newest(line, past[job][0], of_job[past[job][0].id]) if of_job else None
        told = about(line.state, job) if job in with_papers else AboutJob()
        coming = jobs.coming(schedule, now) if schedule else None
        crawl = crawls.get(job)
        engine = line.engines.get(job)
        found.append(ListedJob(job, told, engine, schedule, coming, owed, newest, of_job, crawl))
    of_pace = [one for day in pace & {*rows} for of_job in rows[day].jobs.values() for one in of_job]
    return JobList(tuple(found), tuple(_disks(line.state, of_pace, now)), tuple(map(str, line.wrong)))


def calendar(listed: Iterable[ListedJob], now: datetime) -> dict[date, list[DueJob]]:
    """The next days, in UTC, each with the jobs that are due from now on, by time."""
    first = now.date()
    found: dict[date, list[DueJob]] = {first + timedelta(days=number): [] for number in range(DAYS)}
    end = datetime.combine(first + timedelta(days=DAYS), time(), UTC)
    for one in listed:
        if one.schedule:
            for moment, times in _by_day(one.schedule, now, end):
                due = DueJob(one.job, one.about.title, moment, there(one.schedule, moment), times)
                found[moment.date()].append(due)
    for of_day in found.values():
        of_day.sort(key=lambda due: (due.first, due.job))
    return found


def calendar_json(found: Mapping[date, Sequence[DueJob]]) -> dict[str, Json]:
    """The calendar for programs."""
    return {"days": [{"day": str(day), "due": [one.json() for one in of_day]} for day, of_day in found.items()]}


def there(schedule: Schedule, moment: datetime) -> str:
    """A time by the clocks of a schedule's zone: `2026-12-01 02:00 Europe/Berlin`; '' where these are UTC."""
    if schedule.zone == "UTC":
        return ""
    local = moment.astimezone(ZoneInfo(schedule.zone))
    return f"{local.date()} {local:%H:%M} {schedule.zone}"


def _by_day(schedule: Schedule, now: datetime, end: datetime) -> Iterator[tuple[datetime, int]]:
    """The first due time of each day, and how many that day has."""
    hours = schedule.frequency.hours
    if not 0 < hours < 24:
        yield from Counter(schedule.due(now - _SECOND, end - _SECOND)).items()
        return
    begin = now
    while begin < end:  # the times of a day are counted, not walked through: an hourly job has 672
        until = min(datetime.combine(begin.date() + _DAY, time(), UTC), schedule.end or end)
        first = next(schedule.due(begin - _SECOND, until - _SECOND), None)
        if first:
            yield first, 1 + (until - _SECOND - first) // timedelta(hours=hours)
        begin = datetime.combine(begin.date() + _DAY, time(), UTC)


def _days(state: MarkerStore, wanted: Iterable[date]) -> dict[date, days.DayOfJobs]:
    """The summaries of these days that there are."""
    names: dict[str, frozenset[str]] = {}
    found = {}
    for day in sorted(wanted):
        month = clock.month(day)
        if month not in names:
            names[month] = frozenset(state.store.names(month))
        found[day] = days.of_day(state, day, names[month])
    return found


def about(state: MarkerStore, job: str) -> AboutJob:
    """A job as the newest edition of its papers describes it."""
    of_job = JobEditions(state.store, lambda: state.store, job)  # reading asks no store
    try:
        newest = of_job.newest()
        if newest is None or not newest.papers:
            return AboutJob(is_deleted=newest is not None)
        data = of_job.text(newest.number, CONFIGURATION) if newest.digest(CONFIGURATION) else b""
        return AboutJob(*values.about(values.toml_of(data)))
    except (BadConfig, BadInput, NotReady) as error:
        return AboutJob(wrong=str(error))


def _newest(line: AuditedLine, launch: Launch, summed: LaunchOfDay | None) -> NewestLaunch:
    if summed and summed.mark is Mark.DONE:
        return NewestLaunch(launch, summed.mark, summed.ended, *_sums(_assembled(line.state, launch)))
    try:
        seen = survey.look(line.state, None, launch, line.wanted)
        grid, (open_gaps, _) = of_survey(seen), gaps.find(seen)
    except WarcmillError as error:
        return NewestLaunch(launch, Mark.FAILED, error=str(error))
    mark, ended = grid.mark, grid.cut or grid.ended
    if mark is Mark.RUNNING and jobs.has_ended(line, launch):
        mark, ended = Mark.WAITING, "its crawl has ended, and waits for a scan"
    sums = _sums(fact for fact in seen.facts.values() if isinstance(fact, Assembled))
    findings = sum(gap.kind not in KINDS and gaps.mark_of(seen, gap) in TROUBLES for gap in open_gaps)
    return NewestLaunch(launch, mark, ended, *sums, len(grid.lost), findings)


def _assembled(state: MarkerStore, launch: Launch) -> Iterator[Assembled]:
    """The facts of the lists of each stage; a marker that cannot be read is a gap of its own."""
    keys = map(layout.parse_marker_name, state.store.names(layout.state_folder(launch)))
    for key in keys:
        if key and key.task == _LIST:
            try:
                yield Assembled.from_claim(state.record(key).claim)
            except (BadInput, Foreign, NotReady):
                continue


def _sums(stages: Iterable[Assembled]) -> tuple[int | None, int | None, int | None]:
    """The URLs of some stages that were got, and that were not; and the bytes of their WARCs. None of no stage."""
    codes, size, there_are = Counter[int](), 0, False
    for one in stages:
        there_are = True
        size += one.numbers["warc_bytes"]
        codes.update({int(code): number for code, number in one.tables["by_status"].items() if _is_number(code)})
    if not there_are:
        return None, None, None
    got = sum(number for code, number in codes.items() if is_got(code))
    return got, codes.total() - codes[_LOOKUP] - got, size


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _disks(state: MarkerStore, launches: Iterable[LaunchOfDay], now: datetime) -> Iterator[DiskRoom]:
    """The room of the disks into which WARCs are written, as the newest report of the line's health has it."""
    report, grown = health.read(state), [one for one in launches if one.bytes]
    begun = min((stamp_time(one.id) for one in grown), default=now)
    passed = min(now - begun, PACE_DAYS * _DAY) / _DAY
    is_known = passed >= 1  # a pace of some hours says nothing
    a_day = round(sum(one.bytes for one in grown) / passed) if is_known else 0
    pace = (str(begun.date()), len(grown)) if is_known else ("", 0)
    asked, rooms = str(report.get("written", "")), {root: room for root, *room in _rooms(report.get("roots"))}
    if len(rooms) == len(GROWING) and _is_one_disk(*rooms.values()):
        yield DiskRoom(tuple(rooms), min(free for free, _ in rooms.values()), asked, *pace, a_day * len(rooms))
        return
    for root, (free, _) in rooms.items():
        yield DiskRoom((root,), free, asked, *pace, a_day)


def _rooms(roots: Json) -> Iterator[tuple[str, int, int]]:
    for one in roots if isinstance(roots, list) else ():
        if isinstance(one, dict) and (root := one.get("root")) in GROWING:
            free, size = one.get("bytes_free"), one.get("bytes")
            if isinstance(free, int) and isinstance(size, int):
                yield str(root), free, size


def _is_one_disk(one: Sequence[int], other: Sequence[int]) -> bool:
    """True if two roots have the same size, and nearly the same room: then each WARC fills their disk twice."""
    return one[1] == other[1] and abs(one[0] - other[0]) < _NEAR
