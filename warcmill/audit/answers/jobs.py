"""The answer of a job: schedule, engine, due crawls, feed, launches, and the running crawl. Reads the state alone.

No engine is asked: the figures of a running crawl come from `status/now.json`, whose age is in `asked`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from warcmill import layout
from warcmill.audit import due_crawls
from warcmill.audit.answers import dues, health
from warcmill.audit.answers.line import AuditedLine, JobEngine
from warcmill.audit.due_crawls import Days, JobGap
from warcmill.audit.progress_grid import LaunchGrid, grid
from warcmill.base import clock
from warcmill.base.schedule import Schedule, newest_due
from warcmill.errors import BadInput, Foreign, NotReady
from warcmill.markers.facts.pulse import Fed, Launched, Started
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Json, Launch, Window, stamp_time

OWED_DAYS = 60  # before today, in which due crawls without a launch are looked for
NEWEST = 20  # launches that the answer has
LONGEST = timedelta(days=366 * 2)  # from now, in which the next due time of any schedule lies
HEAD = 16_384  # bytes of a feed as it was read
_FEED = layout.feed_key("x", "20161019234428").task
_FIGURES = ("done", "queued", "per_minute", "kib_per_second", "alerts")
_SECOND = timedelta(seconds=1)


class ReadFeed(Struct, frozen=True):
    """The feed of the newest due crawl that has one: its source, and its targets, in all, of the job, and faulty."""

    due: str
    read: str
    source: str
    targets: int
    of_job: int
    faulty: tuple[str, ...]
    kept: FileRef

    def json(self) -> dict[str, Json]:
        """The feed in the answer."""
        return {
            "due": clock.stamp_text(self.due),
            "read": self.read,
            "source": self.source,
            "targets": self.targets,
            "of_job": self.of_job,
            "faulty": [*self.faulty],
            "sha512": self.kept.sha512,
        }


class RunningNow(Struct, frozen=True):
    """A running crawl, as its engine reported it when it was `asked`. `done` and `queued` count URIs."""

    job: str
    launch_id: str
    state: str
    done: int
    queued: int
    per_minute: int
    kib_per_second: int
    alerts: int
    said: tuple[str, ...]
    asked: str

    def json(self) -> dict[str, Json]:
        """The crawl in an answer."""
        return {**asdict(self), "said": [*self.said]}


class LineJob(Struct, frozen=True):
    """A job. `owed`: due crawls of the last days that never ran; `skipped`: those that were accepted.

    `last_due` and `next_due`: UTC text, or ''; `launched`: the launch of the last due crawl. `launches` are
    the newest of all that have a folder in the state, `total` is their number. `windows`: the serials of those launches
    that are of a package index, by launch id. `crawl`: None if none runs.
    """

    job: str
    engine: JobEngine | None
    schedule: Schedule | None
    last_due: str
    launched: str
    next_due: str
    owed: tuple[JobGap, ...]
    skipped: tuple[JobGap, ...]
    feed: ReadFeed | None
    launches: tuple[LaunchGrid, ...]
    windows: Mapping[str, Window]
    total: int
    crawl: RunningNow | None
    asked: str

    @property
    def newest(self) -> LaunchGrid | None:
        """The newest launch."""
        return next(iter(self.launches), None)

    @property
    def may_run(self) -> bool:
        """True if a crawl of it was running, or a launch of an engine that is controlled here has no end yet."""
        newest = self.newest
        has_no_end = newest is not None and not newest.ended and not newest.error
        return self.crawl is not None or bool(has_no_end and self.engine and self.engine.driven)

    def json(self) -> dict[str, Json]:
        """The answer."""
        return {
            "job": self.job,
            "engine": self.engine.section if self.engine else "",
            "kind": self.engine.kind if self.engine else "",
            "driven": bool(self.engine and self.engine.driven),
            "frequency": str(self.schedule.frequency) if self.schedule else "",
            "start": clock.text(self.schedule.start) if self.schedule else "",
            "last_due": self.last_due,
            "launched": self.launched,
            "next_due": self.next_due,
            "owed": dues.as_list(self.owed),
            "skipped": dues.as_list(self.skipped),
            "feed": self.feed.json() if self.feed else None,
            "launches": [
                {
                    "launch_id": one.launch.id,
                    "state": str(one.mark),
                    "ended": one.ended,
                    "error": one.error,
                    "serials": str(self.windows.get(one.launch.id, "")),
                }
                for one in self.launches
            ],
            "total": self.total,
            "crawl": self.crawl.json() if self.crawl else None,
            "asked": self.asked,
        }


def names(line: AuditedLine) -> list[str]:
    """All jobs: those of luigi.cfg, and those that have a folder in the state."""
    return sorted({*line.engines, *line.schedules, *line.state.jobs()})


def read(line: AuditedLine, job: str, most: int = NEWEST) -> LineJob:
    """All that the state knows of a job, with its newest launches; BadInput if there is no such job."""
    if job not in line.engines and job not in line.schedules and job not in line.state.jobs():
        raise BadInput(job, "there is no such job: luigi.cfg has none of this name, and no launch of it has a marker")
    now, schedule = stamp_time(clock.stamp()), line.schedules.get(job)
    last = newest_due(schedule, now) if schedule else None
    following = coming(schedule, now) if schedule else None
    due, launches = _dues(line, job, now), [*line.state.launches(job)]
    return LineJob(
        job,
        line.engines.get(job),
        schedule,
        clock.text(last) if last else "",
        _launched(line.state, job, clock.digits(last)) if last else "",
        clock.text(following) if following else "",
        tuple(due.gaps),
        tuple(due.accepted),
        _feed(line.state, job),
        tuple(grid(line.state, None, launch, line.wanted) for launch in launches[:most]),
        {one.id: window for one in launches[:most] if (window := _window(line.state, one))},
        len(launches),
        next((one for one in running_crawls(line.state) if one.job == job), None),
        asked(line.state),
    )


def coming(schedule: Schedule, now: datetime) -> datetime | None:
    """The next due time; None if there is none in the next two years, nor in the two after its start."""
    return next(schedule.due(now, max(now, schedule.start) + LONGEST), None)


def asked(state: MarkerStore) -> str:
    """When engines were last asked, UTC; '' if they never were."""
    text = health.read(state).get("written")
    return text if isinstance(text, str) else ""


def has_ended(line: AuditedLine, launch: Launch) -> bool:
    """True if the engine of a launch answered since it began, and does not run it: no step has seen its end yet."""
    found, engine = health.read(line.state), line.engines.get(launch.job)
    outcomes = found.get("asked")
    if engine is None or not engine.driven or not isinstance(outcomes, list):
        return False
    name = engine.section.removeprefix("engine.")
    answered = any(
        isinstance(one, dict) and one.get("kind") == "engine" and one.get("name") in (name, engine.section)
        and one.get("answered") is True for one in outcomes
    )  # fmt: skip
    is_newer = asked(line.state) > clock.stamp_text(launch.id)
    return answered and is_newer and all(one.launch_id != launch.id for one in running_crawls(line.state))


def running_crawls(state: MarkerStore) -> list[RunningNow]:
    """The crawls that ran when engines were last asked, by job. Any of them may have ended since."""
    found: Any = health.read(state)
    listed, written = found.get("crawls"), found.get("written")
    crawls = (_crawl(one, written) for one in (listed if isinstance(listed, list) else ()))
    return sorted((one for one in crawls if one), key=lambda one: one.job)


def _crawl(found: Any, written: Any) -> RunningNow | None:
    """A crawl of a report; None for an invalid one, as the report may be of another version, or torn."""
    if not isinstance(found, dict):
        return None
    texts: dict[str, Any] = {name: found.get(name) for name in ("job", "launch_id", "state")}
    numbers: dict[str, Any] = {name: found.get(name) for name in _FIGURES}
    said = found.get("said")
    if not all(isinstance(text, str) for text in (*texts.values(), written)):
        return None
    if not all(type(number) is int for number in numbers.values()):
        return None
    heard = tuple(text for text in said if isinstance(text, str)) if isinstance(said, list) else ()
    return RunningNow(**texts, **numbers, said=heard, asked=written)


def head(state: MarkerStore, feed: ReadFeed) -> str:
    """The first lines of a feed that was read; '' if its file is gone."""
    try:
        with state.store.open(feed.kept.path) as file:
            data = file.read(HEAD + 1)
    except NotReady:
        return ""
    whole = data if len(data) <= HEAD else data[:HEAD].rpartition(b"\n")[0] or data[:HEAD]
    return whole.decode("utf-8", "replace")


def _dues(line: AuditedLine, job: str, now: datetime) -> dues.Dues:
    """The due crawls of the last days that never ran, and those that were accepted as skipped."""
    schedule = line.schedules.get(job)
    found = dues.Dues()
    if schedule:
        days = Days(now - timedelta(days=OWED_DAYS), now + _SECOND, now)
        accepted = dues.accepted_dues(line.state).get(job, {})
        found.gaps += due_crawls.find(line.state, job, schedule, days, accepted)
        found.accepted += (
            JobGap(job, due_crawls.NOT_LAUNCHED, due, why, "")
            for due, why in sorted(accepted.items())
            if days.first <= stamp_time(due) < days.end
        )
    return found


def _feed(state: MarkerStore, job: str) -> ReadFeed | None:
    """The newest feed; None if no due crawl has one. One that does not fit is passed over: `status` names it."""
    for month in state.months():
        keys = filter(None, map(layout.parse_marker_name, state.store.names(f"{month}/{job}")))
        for key in sorted((key for key in keys if key.task == _FEED and key["job"] == job), reverse=True):
            marker = state.read(key)
            try:
                fed = Fed.from_claim(marker.claim) if marker else None
            except BadInput:
                continue
            if fed:
                counts, read = fed.counts, marker.run.finished if marker else ""
                return ReadFeed(key["due"], read, fed.source, counts["targets"], counts["of_job"], fed.faulty, fed.kept)
    return None


def _window(state: MarkerStore, launch: Launch) -> Window | None:
    """The serials that a launch of a package index is about, by its feed; None for others, and by an unfit marker."""
    try:
        started = state.read(layout.key("pulse.Started", launch))
        due = Started.from_claim(started.claim).due if started else ""
        fed = state.read(layout.feed_key(launch.job, due)) if due else None
        return Fed.from_claim(fed.claim).window if fed else None
    except (BadInput, Foreign):
        return None


def _launched(state: MarkerStore, job: str, due: str) -> str:
    """The launch that a due crawl got; '' without one, and where its marker is unfit."""
    marker = state.read(layout.due_key(job, due))
    try:
        return Launched.from_claim(marker.claim).launch.id if marker else ""
    except BadInput:
        return ""
