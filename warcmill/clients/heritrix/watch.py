"""The state of a Heritrix engine and its jobs, read and waited for. Changes nothing.

The launch id, successful checkpoints and complaints are read from a job's job.log: the engine's XML lacks them.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar
from urllib.parse import quote

from warcmill.clients.heritrix import xml
from warcmill.clients.heritrix.http import EngineHttp
from warcmill.clients.heritrix.xml import EngineJob, EngineStatus, JobState
from warcmill.errors import BadInput, Conflict, NotReady, Unavailable
from warcmill.formats.logs.joblog import JobEvent, events
from warcmill.model import Stage, parse_job, parse_stamp

POLL_SECONDS: Final = 0.2
LOG_TAIL: Final = 64 * 1024
LONG_TAIL: Final = 8 * 1024 * 1024
XML_LIMIT: Final = 4 * 1024 * 1024

T = TypeVar("T")


class Watch:
    """One engine, read only. `patience` limits the wait for an action's effect, in seconds."""

    def __init__(self, wire: EngineHttp, *, patience: float = 120) -> None:
        self._wire, self._patience = wire, patience

    def close(self) -> None:
        """Close the kept connections."""
        self._wire.close()

    def engine(self) -> EngineStatus:
        """The engine's status: version, heap, jobs."""
        answer = self._wire.get(limit=XML_LIMIT)
        if answer.status != 200:
            raise self._unexpected(f"GET / was answered {answer.status}")
        return xml.parse_engine(answer.body, self._wire.url)

    def job(self, name: str) -> EngineJob | None:
        """The job's current state; None if the engine has no such job."""
        path = job_path(name)
        answer = self._wire.get(path, limit=XML_LIMIT)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise self._unexpected(f"GET {path} was answered {answer.status}")
        return xml.parse_job(answer.body, self._wire.url + path)

    def launch_id(self, name: str) -> str | None:
        """The id of the job's newest launch, running or not; None if it was never launched."""
        # The longer tail is rarely needed: after weeks with many stack traces since the last change of state.
        return launch_id(self._log(name)) or launch_id(self._log(name, LONG_TAIL))

    def wait(self, name: str, states: frozenset[JobState], seconds: float | None = None) -> EngineJob:
        """Wait until the job is in one of `states`; `Conflict` if it ended otherwise, `NotReady` at the time limit."""
        return self._reach(name, f"come to {either(states)}", states, seconds=seconds)

    def alerts(self, name: str, lines: int = 20) -> tuple[str, ...]:
        """The last `lines` of the launch's alerts.log without stack traces; empty if the engine counts no alert."""
        job = self._known(name)
        if not job.alerts or job.alert_log is None or "${" in job.alert_log:
            return ()
        text = self._tail("/anypath" + quote(job.alert_log)).decode("utf-8", "replace")
        alerts = [line[:600] for line in text.splitlines() if line.strip() and not line[0].isspace()]
        return tuple(alerts[-lines:])

    def last_words(self, name: str) -> tuple[str, ...]:
        """The engine's complaints since the job's newest launch began: warnings, errors, alerts."""
        log = self._log(name)
        launched = [number for number, event in enumerate(log) if event.word == "PREPARING"]
        return (*complaints(log[launched[-1] if launched else 0 :]), *self.alerts(name))

    def _known(self, name: str) -> EngineJob:
        job = self.job(name)
        if job is None:
            raise NotReady(self._what(name), "the engine has no such job; create it first")
        return job

    def _log(self, name: str, last: int = LOG_TAIL) -> tuple[JobEvent, ...]:
        """The end of the job's job.log; empty if it has none yet."""
        return parse(self._tail(f"{job_path(name)}/jobdir/job.log", last))

    def _tail(self, path: str, last: int = LOG_TAIL) -> bytes:
        answer = self._wire.read(path, last=last)
        if answer.status in (200, 206):
            return answer.body[-last:]
        if answer.status == 404:
            return b""
        raise self._unexpected(f"GET {path} was answered {answer.status}")

    def _until(
        self,
        name: str,
        aim: str,
        seen: Callable[[EngineJob], T | None],
        *,
        before: Sequence[JobEvent] | None = None,
        lost: Unavailable | None = None,
        seconds: float | None = None,
    ) -> T:
        """Poll the job until `seen` returns the effect of an action.

        `before` is the log before the action: a new complaint in it is `BadInput`. At the time limit it raises
        `lost`, the error with which the action's answer was lost, or else `NotReady`.
        """
        deadline = time.monotonic() + (self._patience if seconds is None else seconds)
        while True:
            job = self._known(name)
            effect = seen(job)
            if effect is not None:
                return effect
            if before is not None:
                self._refuse_complaint(name, aim, job, before)
            if time.monotonic() > deadline:
                raise lost or NotReady(self._what(name), f"it did not {aim} in time, it is {self._shown(job)}")
            time.sleep(POLL_SECONDS)

    def _reach(
        self,
        name: str,
        aim: str,
        states: frozenset[JobState],
        *,
        lost: Unavailable | None = None,
        seconds: float | None = None,
    ) -> EngineJob:
        """Wait until the job is in one of `states`; `Conflict` if it is UNBUILT or FINISHED instead."""

        def reached(job: EngineJob) -> EngineJob | None:
            if job.state in states:
                return job
            torn_down = job.state is JobState.FINISHED and JobState.UNBUILT in states
            if job.state in (JobState.UNBUILT, JobState.FINISHED) and not torn_down:
                raise Conflict(self._what(name), f"it is {job.state} ({job.description}) before it could {aim}")
            return None

        return self._until(name, aim, reached, lost=lost, seconds=seconds)

    def _refuse_complaint(self, name: str, aim: str, job: EngineJob, before: Sequence[JobEvent]) -> None:
        """Raise `BadInput` with the engine's words if it logged a SEVERE error, or discarded the launch."""
        new = since(before, self._log(name))
        # `Finished: CREATED`: its configuration is invalid. No job is FINISHED before it is built or launched.
        if is_grave(new) or job.state is JobState.FINISHED:
            words = "; ".join(complaints(new)) or job.description
            raise BadInput(self._what(name), f"the engine could not {aim} it: {words}")

    def _shown(self, job: EngineJob) -> str:
        words = "; ".join(self.last_words(job.name)[-3:])
        return f"{job.state} ({job.description})" + (f". The engine said: {words}" if words else "")

    def _what(self, name: str) -> str:
        return f"job {name} at {self._wire.url}"

    def _unexpected(self, why: str) -> Unavailable:
        return Unavailable(f"the engine at {self._wire.url}", why)


def job_path(name: str) -> str:
    """The path of a job, below the engine's URL."""
    return f"/job/{parse_job(name)}"


def either(states: frozenset[JobState]) -> str:
    """The names of states for a message: `A or B`."""
    return " or ".join(sorted(states))


_STATES: Final = frozenset({"PREPARING", "PAUSED", "RUNNING", "PAUSING", "EMPTY", "STOPPING", "FINISHED"})
_GRAVE: Final = frozenset({"WARNING", "SEVERE"})
# Errors of HTTP requests, ours or a browser's: the engine writes them to the job's log, but they concern no crawl.
_NOISE: Final = re.compile(r"error caught (in server resource|by status service)|should have an entity")


def parse(log: bytes) -> tuple[JobEvent, ...]:
    """The events of a log or of its end; a first line that is cut is not an event."""
    return tuple(events(io.BytesIO(log)))


def since(before: Sequence[JobEvent], now: Sequence[JobEvent]) -> tuple[JobEvent, ...]:
    """The events of `now` that are newer than those of `before`; all, if the two do not overlap."""
    if not before or before[-1] not in now:
        return tuple(now)
    last = len(now) - 1 - now[::-1].index(before[-1])
    return tuple(now[last + 1 :])


def launch_id(log: Sequence[JobEvent]) -> str | None:
    """The newest launch in the log; None if it names none."""
    for event in reversed(log):
        if event.word in _STATES and _is_stamp(event.subject):
            return event.subject
    return None


def checkpoints(log: Sequence[JobEvent]) -> tuple[str, ...]:
    """The names of successful checkpoints, oldest first; the engine logs no others."""
    return tuple(event.subject for event in log if event.word == "CHECKPOINTED" and _is_stage(event.subject))


def complaints(log: Sequence[JobEvent]) -> tuple[str, ...]:
    """The messages of level WARNING and SEVERE, each once, oldest first."""
    grave = (event for event in log if event.level in _GRAVE and not _is_noise(event))
    return tuple(dict.fromkeys(f"{event.level} {event.word} {event.subject}"[:600] for event in grave))


def is_grave(log: Sequence[JobEvent]) -> bool:
    """True if there is a message of level SEVERE."""
    return any(event.level == "SEVERE" and not _is_noise(event) for event in log)


def _is_noise(event: JobEvent) -> bool:
    return bool(_NOISE.search(f"{event.word} {event.subject}"))


def _is_stamp(text: str) -> bool:
    try:
        parse_stamp(text)
    except BadInput:
        return False
    return True


def _is_stage(text: str) -> bool:
    try:
        return not Stage.parse(text).is_final
    except BadInput:
        return False
