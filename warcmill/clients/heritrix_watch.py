"""Looking at a Heritrix engine and its jobs, and waiting for them: nothing here changes anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar
from urllib.parse import quote

from warcmill.clients import heritrix_log, heritrix_xml
from warcmill.clients.heritrix_http import Wire
from warcmill.clients.heritrix_xml import Engine, Job, State
from warcmill.errors import BadInput, Conflict, NotReady, Unavailable
from warcmill.formats.joblog import Event
from warcmill.model import parse_job

POLL_SECONDS: Final = 0.2
LOG_TAIL: Final = 64 * 1024
LONG_TAIL: Final = 8 * 1024 * 1024
XML_LIMIT: Final = 4 * 1024 * 1024

T = TypeVar("T")


class Watch:
    """One engine, read only. `patience` bounds, in seconds, the wait for an action's effect."""

    def __init__(self, wire: Wire, *, patience: float = 120) -> None:
        self._wire, self._patience = wire, patience

    def close(self) -> None:
        """Close the kept connections."""
        self._wire.close()

    def engine(self) -> Engine:
        """The engine itself: version, heap, jobs."""
        answer = self._wire.get(limit=XML_LIMIT)
        if answer.status != 200:
            raise self._odd(f"GET / was answered {answer.status}")
        return heritrix_xml.parse_engine(answer.body, self._wire.url)

    def job(self, name: str) -> Job | None:
        """The job as it is now; None: the engine has no such job."""
        path = job_path(name)
        answer = self._wire.get(path, limit=XML_LIMIT)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise self._odd(f"GET {path} was answered {answer.status}")
        return heritrix_xml.parse_job(answer.body, self._wire.url + path)

    def launch_id(self, name: str) -> str | None:
        """The id of the job's newest launch, running or not; None: it was never launched."""
        # Rarely far back: a launch of weeks may have had many stack traces since its last change of state.
        return heritrix_log.launch_id(self._log(name)) or heritrix_log.launch_id(self._log(name, LONG_TAIL))

    def wait(self, name: str, states: frozenset[State], seconds: float | None = None) -> Job:
        """Until the job is in one of `states`; `Conflict` if it ended otherwise, `NotReady` when time is over."""
        return self._reach(name, f"come to {either(states)}", states, seconds=seconds)

    def alerts(self, name: str, lines: int = 20) -> tuple[str, ...]:
        """The end of the launch's alerts.log, newest last, no stack traces; empty if the engine counts no alert."""
        job = self._known(name)
        if not job.alerts or job.alert_log is None or "${" in job.alert_log:
            return ()
        text = self._tail("/anypath" + quote(job.alert_log)).decode("utf-8", "replace")
        said = [line[:600] for line in text.splitlines() if line.strip() and not line[0].isspace()]
        return tuple(said[-lines:])

    def last_words(self, name: str) -> tuple[str, ...]:
        """What the engine complained of since the job's newest launch began: warnings, errors, alerts."""
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
        raise self._odd(f"GET {path} was answered {answer.status}")

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
        """Look until `seen` finds the effect of an action; `before` is the log before it, `lost` its lost answer."""
        deadline = time.monotonic() + (self._patience if seconds is None else seconds)
        while True:
            job = self._known(name)
            found = seen(job)
            if found is not None:
                return found
            if before is not None:
                self._refuse_complaint(name, aim, job, before)
            if time.monotonic() > deadline:
                raise lost or NotReady(self._what(name), f"it did not {aim} in time, it is {self._shown(job)}")
            time.sleep(POLL_SECONDS)

    def _reach(
        self,
        name: str,
        aim: str,
        states: frozenset[State],
        *,
        lost: Unavailable | None = None,
        seconds: float | None = None,
    ) -> Job:
        """Until the job is in one of `states`; `Conflict` if it is where no crawl goes on from by itself."""

        def reached(job: Job) -> Job | None:
            if job.state in states:
                return job
            torn_down = job.state is State.FINISHED and State.UNBUILT in states
            if job.state in (State.UNBUILT, State.FINISHED) and not torn_down:
                raise Conflict(self._what(name), f"it is {job.state} ({job.description}) before it could {aim}")
            return None

        return self._until(name, aim, reached, lost=lost, seconds=seconds)

    def _refuse_complaint(self, name: str, aim: str, job: Job, before: Sequence[Event]) -> None:
        """`BadInput`, in the engine's words, if it said at level SEVERE why, or discarded the launch."""
        new = heritrix_log.since(before, self._log(name))
        # `Finished: CREATED`: its values do not validate. No job is FINISHED already when it is built or launched.
        if heritrix_log.is_grave(new) or job.state is State.FINISHED:
            words = "; ".join(heritrix_log.complaints(new)) or job.description
            raise BadInput(self._what(name), f"the engine could not {aim} it: {words}")

    def _shown(self, job: Job) -> str:
        words = "; ".join(self.last_words(job.name)[-3:])
        return f"{job.state} ({job.description})" + (f". The engine said: {words}" if words else "")

    def _what(self, name: str) -> str:
        return f"job {name} at {self._wire.url}"

    def _odd(self, why: str) -> Unavailable:
        return Unavailable(f"the engine at {self._wire.url}", why)


def job_path(name: str) -> str:
    """Where a job is, below the engine."""
    return f"/job/{parse_job(name)}"


def either(states: frozenset[State]) -> str:
    """Names of states, for a message."""
    return " or ".join(sorted(states))
