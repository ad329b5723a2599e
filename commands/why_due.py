"""warcmill why JOB DUE: which launch a due crawl got, or why it got none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from rich.text import Text

from commands import owed
from commands.console.show import as_json, console, lines, styled
from tasks.config import engines
from tasks.step import OpenRoots
from warcmill import layout
from warcmill.audit import due_crawls
from warcmill.audit.due_crawls import Days, JobGap
from warcmill.base import clock
from warcmill.markers.attempts import Attempts
from warcmill.markers.facts import Launched
from warcmill.model import Json, stamp_time

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class DueCrawl:
    """A due crawl: its launch, '' if it got none; why it was accepted as skipped, ''; its gap; errors of its start."""

    job: str
    due: str
    launch_id: str
    accepted: str
    gaps: tuple[JobGap, ...]
    errors: tuple[tuple[str, str], ...]  # by the path of the attempt


def run(line: OpenRoots, job: str, due: str, *, json: bool) -> int | None:
    """Print the answer and return its exit code; None if no crawl of the job was due at that time."""
    found = _look(line, job, due)
    if found is None:
        return None
    if json:
        print(as_json(_json(found)))
    else:
        lines(console(), *_texts(found))
    return int(bool(found.gaps))


def _look(line: OpenRoots, job: str, due: str) -> DueCrawl | None:
    marker, now, moment = line.state.read(layout.due_key(job, due)), stamp_time(clock.stamp()), stamp_time(due)
    keys = (layout.feed_key(job, due), layout.due_key(job, due))
    tried = [attempt for key in keys for attempt in Attempts(line.state, key).earlier()[-1:]]
    schedule = engines.schedules()[0].get(job)
    is_due = bool(schedule and list(schedule.due(moment - _SECOND, moment)))
    if not (marker or tried or is_due):
        return None
    launched = Launched.from_claim(marker.claim).launch.id if marker else ""
    accepted = owed.accepted_dues(line).get(job, {}).get(due, "")
    gaps: tuple[JobGap, ...] = ()
    if schedule and is_due and not launched and not accepted:
        gaps = due_crawls.find(line.state, job, schedule, Days(moment, moment + _SECOND, now))
    errors = tuple((attempt.path, attempt.error) for attempt in tried if attempt.error)
    return DueCrawl(job, due, launched, accepted, gaps, errors if not launched else ())


def _texts(found: DueCrawl) -> Iterator[Text]:
    head = f": due {clock.stamp_text(found.due)}, "
    state = f"launched as {found.launch_id}" if found.launch_id else "not launched"
    yield Text.assemble((f"{found.job} {found.due}", "bold"), head, state)
    yield from owed.texts(found.gaps)
    for path, error in found.errors:
        yield styled(f"  last attempt: state:{path}")
        if not any(error in gap.why for gap in found.gaps):
            yield styled(f"      {error}", "red")
    if found.launch_id:
        yield styled(f"  warcmill why {found.job} {found.launch_id} has the rest", "green")
    elif found.accepted:
        yield styled(f"  accepted as skipped: {found.accepted}", "dim")
    elif not found.gaps:
        yield Text("  nothing is missing by now", style="green")


def _json(found: DueCrawl) -> dict[str, Json]:
    return {
        "job": found.job,
        "due": found.due,
        "launch_id": found.launch_id,
        "accepted": found.accepted,
        "of_no_launch": owed.as_list(found.gaps),
        "attempts": [{"path": path, "error": error} for path, error in found.errors],
    }
