"""Control Heritrix 3 by its REST interface (3.13).

The engine answers every POST with 303, even if nothing happened. So no answer is trusted: each action reads the job's
state, refuses if it does not fit, acts, and waits, within limits, until the job's XML and job.log show the effect. If
an answer is lost or late, the action succeeded if its effect appears; else it is `Unavailable`.

    UNBUILT --build--> READY --launch--> PAUSED <--pause, unpause--> RUNNING --> EMPTY --> STOPPING --> FINISHED
       ^-----------------------------------------teardown-----------------------------------------------'
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

from warcmill.clients.heritrix import watch, xml
from warcmill.clients.heritrix.http import READ_SECONDS, EngineHttp
from warcmill.clients.heritrix.watch import POLL_SECONDS, Watch, either, job_path
from warcmill.clients.heritrix.xml import ACTIVE, EngineJob, JobState
from warcmill.errors import BadInput, Conflict, Mismatch, NotReady, Unavailable
from warcmill.model import parse_job

CONFIGURATION: Final = "crawler-beans.cxml"
# After the engine's answer the effect of an action appears within this time.
SEEN_SECONDS: Final = 5
# Check and act in one step inside the engine: a crawl can end between a check and an action from outside, and a
# finished job that is paused shows PAUSING for ever.
_GUARDED: Final = """def now = job.crawlController?.state?.name() ?: 'UNBUILT'
if (now in [{states}]) {{ {call}; rawOut.print('asked') }} else {{ rawOut.print(now) }}"""
# The engine shows RUNNING as soon as it resumes; its frontier follows later. If it is paused before that, the frontier
# never reports that it has paused, and the job shows PAUSING for ever: resume such a job, to pause it again.
_PAUSE: Final = """def now = job.crawlController?.state?.name() ?: 'UNBUILT'
def frontier = job.crawlController?.frontier?.lastReachedState?.name()
if (now == 'RUNNING' && frontier == 'RUN') { job.crawlController.requestCrawlPause(); now = 'PAUSING' }
else if (now == 'PAUSING' && frontier == 'PAUSE') { job.crawlController.requestCrawlResume(); now = 'RUNNING' }
rawOut.print(now)"""


class Heritrix(Watch):
    """One engine. `answer_seconds` limits the wait for one answer, `patience` (seconds) that for an action's effect.

    Every method may also raise what `EngineHttp` raises.
    """

    def __init__(self, wire: EngineHttp, *, answer_seconds: float = READ_SECONDS, patience: float = 120) -> None:
        super().__init__(wire, patience=patience)
        self._answer_seconds = answer_seconds

    @classmethod
    def at(cls, url: str, user: str, password: str, certificate: Path | str) -> Heritrix:
        """The engine at `https://HOST:PORT/engine`, its certificate pinned by a PEM file or a sha256 fingerprint."""
        return cls(EngineHttp(url, user, password, certificate))

    def create(self, name: str) -> bool:
        """Create a job with the engine's default profile. False if it exists already; then nothing changes."""
        if self.job(name) is None:
            self._post("", action="rescan")  # finds a folder that the engine has not noticed yet
        if self.job(name) is not None:
            return False
        lost = self._post("", action="create", createpath=parse_job(name))
        deadline = time.monotonic() + (self._patience if lost else SEEN_SECONDS)
        while self.job(name) is None:
            if time.monotonic() > deadline:
                raise lost or NotReady(self._what(name), "the engine did not create it; see its log")
            time.sleep(POLL_SECONDS)
        return True

    def put(self, name: str, file: str, body: bytes) -> None:
        """Write a file into the job's folder and read it back; Mismatch if it differs. A built job does not change."""
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", file):
            raise BadInput(file, "not a name for a file of a job: letters, digits, '.', '_', '-'")
        self._known(name)
        path = f"{job_path(name)}/jobdir/{file}"
        status = self._wire.put(path, body).status
        if status not in (200, 201, 204):
            raise self._unexpected(f"PUT {path} was answered {status}")
        stored = self._wire.read(path)
        if stored.body != body:
            raise Mismatch(f"{path}, read back", f"{len(body)} bytes as written", f"{len(stored.body)} other bytes")

    def get(self, name: str, file: str) -> bytes:
        """Read a file of the job's folder; `NotReady` if there is none."""
        self._known(name)
        path = f"{job_path(name)}/jobdir/{file}"
        answer = self._wire.read(path)
        if answer.status == 404:
            raise NotReady(f"{file} of {self._what(name)}", "it is not there")
        if answer.status != 200:
            raise self._unexpected(f"GET {path} was answered {answer.status}")
        return answer.body

    def build(self, name: str) -> EngineJob:
        """UNBUILT -> READY; success if READY already. `BadInput` quotes why the configuration cannot be built."""
        job = self._in_state(name, "build", JobState.UNBUILT, JobState.READY)
        if job.state is JobState.READY:
            return job
        before = self._log(name)
        lost = self._post(job_path(name), action="build")

        def ready(job: EngineJob) -> EngineJob | None:
            return job if job.state is JobState.READY else None

        return self._until(name, "build", ready, before=before, lost=lost)

    def launch(self, name: str, checkpoint: str | None = None) -> str:
        """Build the job if need be, launch it, fresh or from a checkpoint, and return the launch id.

        `Conflict` if it runs, or has ended and was not torn down; `NotReady` if the engine does not offer the
        checkpoint: it offers only complete ones.
        """
        self._in_state(name, "launch", JobState.UNBUILT, JobState.READY)
        offered = self.build(name).checkpoints
        if checkpoint is not None and checkpoint not in offered:
            raise NotReady(f"checkpoint {checkpoint}", f"{self._what(name)} offers {', '.join(offered) or 'none'}")
        before = self._log(name)
        old = self.launch_id(name)
        lost = self._post(job_path(name), action="launch", **({"checkpoint": checkpoint} if checkpoint else {}))

        def launched(job: EngineJob) -> str | None:
            new = self.launch_id(name)
            waiting = job.state in (JobState.UNBUILT, JobState.READY, JobState.PREPARING)
            return None if waiting or new == old else new

        return self._until(name, "launch", launched, before=before, lost=lost)

    def pause(self, name: str) -> EngineJob:
        """RUNNING -> PAUSED, after busy threads have finished; success if PAUSED already. Never pauses an ended job."""
        self._in_state(name, "pause", JobState.RUNNING, JobState.PAUSING, JobState.PAUSED)
        self._until(name, "pause", lambda job: job.state is JobState.PAUSED or self._request_pause(name) or None)
        return self._reach(name, "pause", frozenset({JobState.PAUSED}))

    def unpause(self, name: str) -> EngineJob:
        """PAUSED -> RUNNING, or a later state: a small crawl may have ended when this returns."""
        job = self._in_state(name, "unpause", JobState.PAUSED, JobState.PAUSING, JobState.RUNNING)
        lost = None if job.state is JobState.RUNNING else self._post(job_path(name), action="unpause")
        onward = frozenset({JobState.RUNNING, JobState.EMPTY, JobState.STOPPING, JobState.FINISHED})
        return self._reach(name, "unpause", onward, lost=lost)

    def checkpoint(self, name: str) -> str:
        """Take a checkpoint of a RUNNING or PAUSED job; return its name, `cp00001-20161020204551`.

        `NotReady` if the engine took none, as when nothing has happened since the last one.
        """
        self._in_state(name, "checkpoint", JobState.RUNNING, JobState.PAUSED)
        before = self._log(name)
        lost = self._guarded(name, "job.checkpointService.requestCrawlCheckpoint()", "RUNNING", "PAUSED")

        def taken(_: EngineJob) -> str | None:
            new = watch.checkpoints(watch.since(before, self._log(name)))
            return new[-1] if new else None

        aim = "take a checkpoint (it takes none if nothing happened since the last)"
        return self._until(name, aim, taken, lost=lost, seconds=self._patience if lost else SEEN_SECONDS)

    def terminate(self, name: str) -> EngineJob:
        """Any active state -> FINISHED, with its reports written; success if FINISHED already."""
        job = self._in_state(name, "terminate", *ACTIVE, JobState.FINISHED)
        lost = None if job.state is JobState.FINISHED else self._post(job_path(name), action="terminate")
        return self._reach(name, "terminate", frozenset({JobState.FINISHED}), lost=lost)

    def teardown(self, name: str) -> EngineJob:
        """FINISHED or READY -> UNBUILT; success if UNBUILT already. Terminate a running crawl first."""
        job = self._in_state(name, "teardown", JobState.UNBUILT, JobState.READY, JobState.FINISHED)
        lost = None if job.state is JobState.UNBUILT else self._post(job_path(name), action="teardown")
        return self._reach(name, "teardown", frozenset({JobState.UNBUILT}), lost=lost)

    def script(self, name: str, source: str) -> str:
        """Run Groovy in the engine (`job`, `appCtx`, `rawOut`) on a built job; return what it prints to `rawOut`."""
        self._in_state(name, "script", *frozenset(JobState) - {JobState.UNBUILT})
        return self._script(name, source)

    def _in_state(self, name: str, action: str, *states: JobState) -> EngineJob:
        """The job, if it is in one of `states`; else `Conflict`."""
        job = self._known(name)
        if job.state not in states:
            launch = f", launch {self.launch_id(name)}" if job.launches else ""
            why = f"it is {job.state} ({job.description}){launch}; to {action} it must be {either(frozenset(states))}"
            raise Conflict(self._what(name), f"{why}. Nothing was changed")
        return job

    def _post(self, path: str, **fields: str) -> Unavailable | None:
        """Request an action. Returns the error if the answer was lost: then the effect decides."""
        try:
            answer = self._wire.post(path, fields, self._answer_seconds)
        except Unavailable as lost:
            return lost
        if answer.status >= 400:
            raise self._unexpected(f"{fields.get('action', 'script')} was answered {answer.status}")
        return None

    def _request_pause(self, name: str) -> bool:
        """Request a pause. False if it is too soon, or the answer was lost: request it again."""
        try:
            state = self._script(name, _PAUSE)
        except Unavailable:
            return False  # if the engine is gone, the next look raises
        if state not in (JobState.RUNNING, JobState.PAUSING, JobState.PAUSED):
            raise Conflict(self._what(name), f"it is {state} by now, no longer RUNNING. Nothing was changed")
        return state != JobState.RUNNING

    def _guarded(self, name: str, call: str, *states: str) -> Unavailable | None:
        """Run `call` in the engine if the crawl is in one of `states` at that moment; else `Conflict`.

        Returns the error if the answer was lost.
        """
        source = _GUARDED.format(states=", ".join(f"'{state}'" for state in states), call=call)
        try:
            state = self._script(name, source)
        except Unavailable as lost:
            return lost
        if state != "asked":
            raise Conflict(
                self._what(name), f"it is {state} by now, no longer {' or '.join(states)}. Nothing was changed"
            )
        return None

    def _script(self, name: str, source: str) -> str:
        path = f"{job_path(name)}/script"
        answer = self._wire.post(path, {"engine": "groovy", "script": source}, self._answer_seconds)
        if answer.status != 200:
            raise self._unexpected(f"a script was answered {answer.status}")
        result = xml.parse_script(answer.body, self._wire.url + path)
        if result.exception is not None:
            raise BadInput(f"a script in {self._what(name)}", result.exception[:2000])
        return result.output
