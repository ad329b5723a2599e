"""The document of a job: schedule, engine, due crawls, feed, launches, and the running crawl. Reads the state alone.

No engine is asked: the figures of a running crawl are those of `status/now.json`, and as old as `asked` tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from warcmill import layout
from warcmill.audit import due_crawls
from warcmill.audit.documents import dues, health
from warcmill.audit.documents.line import AuditedLine, JobEngine
from warcmill.audit.due_crawls import Days, JobGap
from warcmill.base import clock
from warcmill.base.schedule import Schedule
from warcmill.errors import BadInput
from warcmill.markers.facts import Fed
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch, parse_job, stamp_time

OWED_DAYS = 60  # before today, in which due crawls without a launch are looked for
LONGEST = timedelta(days=366 * 2)  # from now, in which the next due time of any schedule lies
_MONTH, _FEED = re.compile(r"[0-9]{4}-[0-9]{2}"), layout.feed_key("x", "20161019234428").task


@dataclass(frozen=True, slots=True)
class ReadFeed:
    """The feed of the newest due crawl that has one: its source, and its targets, in all, of the job, and faulty."""

    due: str
    source: str
    targets: int
    of_job: int
    faulty: tuple[str, ...]

    def json(self) -> dict[str, Json]:
        """The feed in the document."""
        return {
            "due": clock.stamp_text(self.due),
            "source": self.source,
            "targets": self.targets,
            "of_job": self.of_job,
            "faulty": [*self.faulty],
        }


@dataclass(frozen=True, slots=True)
class LineJob:
    """A job. `owed`: due crawls of the last days that never ran; `skipped`: those that were accepted.

    `launches` are all that have a folder in the state, newest first. `crawl`: the running one, as its engine reported
    it when it was `asked`; None if none runs.
    """

    job: str
    engine: JobEngine | None
    schedule: Schedule | None
    next_due: str
    owed: tuple[JobGap, ...]
    skipped: tuple[JobGap, ...]
    feed: ReadFeed | None
    launches: tuple[Launch, ...]
    crawl: dict[str, Json] | None
    asked: str

    def json(self, most: int | None = None) -> dict[str, Json]:
        """The document, with at most `most` launches."""
        return {
            "job": self.job,
            "engine": self.engine.section if self.engine else "",
            "kind": self.engine.kind if self.engine else "",
            "driven": bool(self.engine and self.engine.driven),
            "frequency": str(self.schedule.frequency) if self.schedule else "",
            "start": clock.text(self.schedule.start) if self.schedule else "",
            "next_due": self.next_due,
            "owed": dues.as_list(self.owed),
            "skipped": dues.as_list(self.skipped),
            "feed": self.feed.json() if self.feed else None,
            "launches": [launch.id for launch in self.launches[:most]],
            "crawl": self.crawl,
            "asked": self.asked,
        }


def names(line: AuditedLine) -> list[str]:
    """All jobs: those of luigi.cfg, and those that have a folder in the state."""
    return sorted({*line.engines, *line.schedules, *_in_state(line.state)})


def read(line: AuditedLine, job: str) -> LineJob:
    """All that the state knows of a job; BadInput if there is no such job."""
    if job not in line.engines and job not in line.schedules and job not in _in_state(line.state):
        raise BadInput(job, "there is no such job: luigi.cfg has none of this name, and no launch of it has a marker")
    now, schedule = stamp_time(clock.stamp()), line.schedules.get(job)
    coming = next(schedule.due(now, now + LONGEST), None) if schedule else None
    due = _dues(line, job, now)
    found = health.read(line.state)
    return LineJob(
        job,
        line.engines.get(job),
        schedule,
        clock.text(coming) if coming else "",
        tuple(due.gaps),
        tuple(due.accepted),
        _feed(line.state, job),
        tuple(_launches(line.state, job)),
        _crawl(found, job),
        str(found.get("written", "")),
    )


def _dues(line: AuditedLine, job: str, now: datetime) -> dues.Dues:
    """The due crawls of the last days that never ran, and those that were accepted as skipped."""
    schedule = line.schedules.get(job)
    found = dues.Dues()
    if schedule:
        days = Days(now - timedelta(days=OWED_DAYS), now, now)
        accepted = dues.accepted_dues(line.state).get(job, {})
        found.gaps += due_crawls.find(line.state, job, schedule, days, accepted)
        found.accepted += (
            JobGap(job, due_crawls.NOT_LAUNCHED, due, why, "")
            for due, why in sorted(accepted.items())
            if days.first <= stamp_time(due) < days.end
        )
    return found


def _months(state: MarkerStore) -> list[str]:
    """The months of the state, the newest first."""
    return sorted((name for name in state.store.names("") if _MONTH.fullmatch(name)), reverse=True)


def _in_state(state: MarkerStore) -> Iterator[str]:
    """The jobs that have a folder in the state."""
    for name in {name for month in _months(state) for name in state.store.names(month)}:
        try:
            yield parse_job(name)
        except BadInput:
            continue  # the summary of a day


def _launches(state: MarkerStore, job: str) -> Iterator[Launch]:
    for month in _months(state):
        for name in sorted(state.store.names(f"{month}/{job}"), reverse=True):
            try:
                yield Launch.parse(job, name)
            except BadInput:
                continue  # a marker of a due crawl


def _feed(state: MarkerStore, job: str) -> ReadFeed | None:
    """The newest feed; None if no due crawl has one. One that does not fit is passed over: `status` names it."""
    for month in _months(state):
        keys = filter(None, map(layout.parse_marker_name, state.store.names(f"{month}/{job}")))
        for key in sorted((key for key in keys if key.task == _FEED and key["job"] == job), reverse=True):
            marker = state.read(key)
            try:
                fed = Fed.from_claim(marker.claim) if marker else None
            except BadInput:
                continue
            if fed:
                return ReadFeed(key["due"], fed.source, fed.counts["targets"], fed.counts["of_job"], fed.faulty)
    return None


def _crawl(found: dict[str, Json], job: str) -> dict[str, Json] | None:
    crawls = found.get("crawls")
    of_job = (
        (one for one in crawls if isinstance(one, dict) and one.get("job") == job) if isinstance(crawls, list) else ()
    )
    return next(iter(of_job), None)
