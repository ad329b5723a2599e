"""Launches that broke off: started by StartJob, without an end, and no longer crawled, as after a reboot."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from warcmill import layout
from warcmill.base import clock
from warcmill.clients.engine import Engine
from warcmill.errors import BadInput, Conflict, NotReady
from warcmill.launches.roots import JobRoots
from warcmill.launches.view import LaunchView, job_log
from warcmill.markers.attempts import Attempts
from warcmill.markers.facts.pulse import Continued
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, stamp_time

MOST: Final = 5  # launches that one after another continue the same crawl within the window


class Newest(Struct, frozen=True):
    """The newest launch of a job, the time of the last line in its job.log, and whether nothing was left to fetch."""

    launch: Launch
    seen: datetime
    is_empty: bool


def due_of(launch: Launch) -> str:
    """The due time of the launch that continues a broken one: a second after that one's id, so no other has it."""
    return clock.digits(stamp_time(launch.id) + timedelta(seconds=1))


def last(roots: JobRoots, job: str) -> Newest | None:
    """The job's newest launch, whoever began it, by the job's own job.log; None without one."""
    launch, time, is_empty = "", "", False
    for event in job_log(roots, f"{job}/job.log"):
        if event.word == "PREPARING":
            launch, is_empty = event.subject, False
        time, is_empty = event.time, is_empty or event.word == "EMPTY"
    try:
        return Newest(Launch.parse(job, launch), datetime.fromisoformat(time), is_empty) if launch else None
    except BadInput:
        return None  # of an engine whose launches have other names


def newest(state: MarkerStore, roots: JobRoots, job: str) -> Newest | None:
    """The job's newest launch if StartJob began it and it shows no end, or if its continuation was begun; else None.

    It may still run: ask its engine.
    """
    found = last(roots, job)
    if found is None or not state.read(layout.key("pulse.Started", found.launch)):
        return None
    key = layout.due_key(job, due_of(found.launch))
    if state.holds(key):
        return None
    was_begun = bool(Attempts(state, key).earlier())
    return found if was_begun or not LaunchView.of(state, roots, found.launch).ended else None


def half_begun(state: MarkerStore, roots: JobRoots, job: str) -> Launch | None:
    """The launch whose continuation runs, or ran, but has no markers: the step that began it died. Else None."""
    every = _launches(roots, job)
    if len(every) < 2 or state.read(layout.key("pulse.Started", every[-1])):
        return None
    key = layout.due_key(job, due_of(every[-2]))
    intents = [one.after for attempt in Attempts(state, key).earlier() for one in attempt.launchings]
    return every[-2] if every[-2].id in intents and not state.holds(key) else None


def refuse_endless(state: MarkerStore, roots: JobRoots, launch: Launch, since: datetime) -> None:
    """Conflict if the launch is the last of MOST since a time, each of which continued the one before and broke."""
    chain, one = 0, launch
    while stamp_time(one.id) >= since:
        chain += 1
        before = LaunchView.of(state, roots, one).continues
        if before is None:
            return
        if chain >= MOST:
            why = f"it is the last of {MOST} launches that broke off one after another, so it is not continued"
            raise Conflict(str(launch), f"{why}; fix the cause, then run: warcmill pulse start {launch.job} --again")
        one = before.launch


def checkpoint(state: MarkerStore, roots: JobRoots, engine: Engine, launch: Launch) -> Continued:
    """The newest checkpoint that a launch can be continued from: its own, or the one that it continued itself.

    NotReady when there is none.
    """
    view = LaunchView.of(state, roots, launch)
    own, before = [Continued(launch, stage) for stage in view.checkpoints], view.continues
    every = [*own[::-1], *([before] if before else [])]
    valid = [one for one in every if roots.jobs.stat(f"{launch.job}/checkpoints/{one.checkpoint}/valid")]
    chosen = engine.resumable(launch.job, [str(one.checkpoint) for one in valid])
    for one in valid:
        if str(one.checkpoint) == chosen:
            return one
    why = "it broke off, and left no valid checkpoint to continue from; a fresh one begins when it is due, or by"
    raise NotReady(str(launch), f"{why}: warcmill pulse start {launch.job} --again")


def _launches(roots: JobRoots, job: str) -> list[Launch]:
    """The launches in the job's own job.log, in their order."""
    subjects = [event.subject for event in job_log(roots, f"{job}/job.log") if event.word == "PREPARING"]
    try:
        return [Launch.parse(job, subject) for subject in subjects]
    except BadInput:
        return []  # of an engine whose launches have other names
