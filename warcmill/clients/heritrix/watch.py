"""Read the state of a Heritrix engine and its jobs, and wait for it. Changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar
from urllib.parse import quote

from warcmill.clients.heritrix import log as heritrix_log
from warcmill.clients.heritrix import xml
from warcmill.clients.heritrix.http import EngineHttp
from warcmill.clients.heritrix.xml import EngineStatus, Job, JobState
from warcmill.errors import BadInput, Conflict, NotReady, Unavailable
from warcmill.formats.joblog import Event
from warcmill.model import parse_job

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

    def job(self, name: str) -> Job | None:
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
        return heritrix_log.launch_id(self._log(name)) or heritrix_log.launch_id(self._log(name, LONG_TAIL))

    def wait(self, name: str, states: frozenset[JobState], seconds: float | None = None) -> Job:
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
        return (*heritrix_log.complaints(log[launched[-1] if launched else 0 :]), *self.alerts(name))

    def _known(self, name: str) -> Job:
        job = self.job(name)
        if job is None:
            raise NotReady(self._what(name), "the engine has no such job; create it first")
        return job

    def _log(self, name: str, last: int = LOG_TAIL) -> tuple[Event, ...]:
        """The end of the job's job.log; empty if it has none yet."""
        return heritrix_log.parse(self._tail(f"{job_path(name)}/jobdir/job.log", last))

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
        seen: Callable[[Job], T | None],
        *,
        before: Sequence[Event] | None = None,
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
    ) -> Job:
        """Wait until the job is in one of `states`; `Conflict` if it is UNBUILT or FINISHED instead."""

        def reached(job: Job) -> Job | None:
            if job.state in states:
                return job
            torn_down = job.state is JobState.FINISHED and JobState.UNBUILT in states
            if job.state in (JobState.UNBUILT, JobState.FINISHED) and not torn_down:
                raise Conflict(self._what(name), f"it is {job.state} ({job.description}) before it could {aim}")
            return None

        return self._until(name, aim, reached, lost=lost, seconds=seconds)

    def _refuse_complaint(self, name: str, aim: str, job: Job, before: Sequence[Event]) -> None:
        """Raise `BadInput` with the engine's words if it logged a SEVERE error, or discarded the launch."""
        new = heritrix_log.since(before, self._log(name))
        # `Finished: CREATED`: its configuration is invalid. No job is FINISHED before it is built or launched.
        if heritrix_log.is_grave(new) or job.state is JobState.FINISHED:
            words = "; ".join(heritrix_log.complaints(new)) or job.description
            raise BadInput(self._what(name), f"the engine could not {aim} it: {words}")

    def _shown(self, job: Job) -> str:
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
