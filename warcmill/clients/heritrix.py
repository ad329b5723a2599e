"""Heritrix 3, driven by its REST interface (3.13).

Every POST is answered 303, whatever happened. So no answer is believed: each action reads the job's state first,
refuses what does not fit it, acts, and waits, bounded, until the job's own XML and job.log show the effect. An action
whose answer is lost or late is a success if its effect is seen, else `Unavailable`.

    UNBUILT --build--> READY --launch--> PAUSED <--pause, unpause--> RUNNING --> EMPTY --> STOPPING --> FINISHED
       ^-----------------------------------------teardown-----------------------------------------------'
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

from warcmill.clients import heritrix_log, heritrix_xml
from warcmill.clients.heritrix_http import READ_SECONDS, Wire
from warcmill.clients.heritrix_watch import POLL_SECONDS, Watch, either, job_path
from warcmill.clients.heritrix_xml import ACTIVE, Job, State
from warcmill.errors import BadInput, Conflict, Mismatch, NotReady, Unavailable
from warcmill.model import parse_job

CONFIGURATION: Final = "crawler-beans.cxml"
# Within this the effect of an action shows, once the engine has answered that it is done.
SEEN_SECONDS: Final = 5
# Asked and done in one step inside the engine: a crawl can end between a look and an action from outside, and a
# finished job that is paused says PAUSING for ever.
_GUARDED: Final = """def now = job.crawlController?.state?.name() ?: 'UNBUILT'
if (now in [{states}]) {{ {call}; rawOut.print('asked') }} else {{ rawOut.print(now) }}"""
# The engine says RUNNING as soon as it is told to go on; its frontier comes to it later. Paused before that, the
# frontier never notices that it ran, so never says that it has paused, and the job says PAUSING for ever: such a one
# is let go on, to be asked again.
_PAUSE: Final = """def now = job.crawlController?.state?.name() ?: 'UNBUILT'
def frontier = job.crawlController?.frontier?.lastReachedState?.name()
if (now == 'RUNNING' && frontier == 'RUN') { job.crawlController.requestCrawlPause(); now = 'PAUSING' }
else if (now == 'PAUSING' && frontier == 'PAUSE') { job.crawlController.requestCrawlResume(); now = 'RUNNING' }
rawOut.print(now)"""


class Heritrix(Watch):
    """One engine. `answer_seconds` bounds the wait for one answer, `patience` the wait for an action's effect."""

    def __init__(self, wire: Wire, *, answer_seconds: float = READ_SECONDS, patience: float = 120) -> None:
        super().__init__(wire, patience=patience)
        self._answer_seconds = answer_seconds

    @classmethod
    def at(cls, url: str, user: str, password: str, certificate: Path | str) -> Heritrix:
        """`url` is `https://HOST:PORT/engine`; the certificate is pinned, by its PEM file or its sha256 fingerprint."""
        return cls(Wire(url, user, password, certificate))

    def create(self, name: str) -> bool:
        """A job folder with the engine's default profile. False: there is such a job; nothing was changed."""
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
        """Write a file into the job's folder and read it back. A built job keeps what it was built with."""
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", file):
            raise BadInput(file, "not a name for a file of a job: letters, digits, '.', '_', '-'")
        self._known(name)
        path = f"{job_path(name)}/jobdir/{file}"
        status = self._wire.put(path, body).status
        if status not in (200, 201, 204):
            raise self._odd(f"PUT {path} was answered {status}")
        found = self._wire.read(path)
        if found.body != body:
            raise Mismatch(f"{path}, read back", f"{len(body)} bytes as written", f"{len(found.body)} other bytes")

    def get(self, name: str, file: str) -> bytes:
        """A file of the job's folder; `NotReady` if it is not there."""
        self._known(name)
        path = f"{job_path(name)}/jobdir/{file}"
        answer = self._wire.read(path)
        if answer.status == 404:
            raise NotReady(f"{file} of {self._what(name)}", "it is not there")
        if answer.status != 200:
            raise self._odd(f"GET {path} was answered {answer.status}")
        return answer.body

    def build(self, name: str) -> Job:
        """UNBUILT -> READY; READY already is success. `BadInput` quotes why the configuration cannot be built."""
        job = self._in_state(name, "build", State.UNBUILT, State.READY)
        if job.state is State.READY:
            return job
        before = self._log(name)
        lost = self._post(job_path(name), action="build")

        def ready(job: Job) -> Job | None:
            return job if job.state is State.READY else None

        return self._until(name, "build", ready, before=before, lost=lost)

    def launch(self, name: str, checkpoint: str | None = None) -> str:
        """Launch, fresh or from a checkpoint, building first if need be; returns the new launch's id.

        Refuses with `Conflict` a job that runs, or that ended and was not torn down; with `NotReady` a checkpoint
        that the engine does not offer, as it offers only whole ones.
        """
        self._in_state(name, "launch", State.UNBUILT, State.READY)
        offered = self.build(name).checkpoints
        if checkpoint is not None and checkpoint not in offered:
            raise NotReady(f"checkpoint {checkpoint}", f"{self._what(name)} offers {', '.join(offered) or 'none'}")
        before = self._log(name)
        old = self.launch_id(name)
        lost = self._post(job_path(name), action="launch", **({"checkpoint": checkpoint} if checkpoint else {}))

        def launched(job: Job) -> str | None:
            new = self.launch_id(name)
            waiting = job.state in (State.UNBUILT, State.READY, State.PREPARING)
            return None if waiting or new == old else new

        return self._until(name, "launch", launched, before=before, lost=lost)

    def pause(self, name: str) -> Job:
        """RUNNING -> PAUSED, once busy threads are done; PAUSED already is success. Never asked of an ended job."""
        self._in_state(name, "pause", State.RUNNING, State.PAUSING, State.PAUSED)
        self._until(name, "pause", lambda job: job.state is State.PAUSED or self._asked_to_pause(name) or None)
        return self._reach(name, "pause", frozenset({State.PAUSED}))

    def unpause(self, name: str) -> Job:
        """PAUSED -> RUNNING, and on: a small crawl may have ended when this returns."""
        job = self._in_state(name, "unpause", State.PAUSED, State.PAUSING, State.RUNNING)
        lost = None if job.state is State.RUNNING else self._post(job_path(name), action="unpause")
        onward = frozenset({State.RUNNING, State.EMPTY, State.STOPPING, State.FINISHED})
        return self._reach(name, "unpause", onward, lost=lost)

    def checkpoint(self, name: str) -> str:
        """Take a checkpoint of a RUNNING or PAUSED job; returns its name, `cp00001-20161020204551`.

        `NotReady` if the engine took none, as it does when nothing happened since the last.
        """
        self._in_state(name, "checkpoint", State.RUNNING, State.PAUSED)
        before = self._log(name)
        lost = self._guarded(name, "job.checkpointService.requestCrawlCheckpoint()", "RUNNING", "PAUSED")

        def taken(_: Job) -> str | None:
            new = heritrix_log.checkpoints(heritrix_log.since(before, self._log(name)))
            return new[-1] if new else None

        aim = "take a checkpoint (it takes none if nothing happened since the last)"
        return self._until(name, aim, taken, lost=lost, seconds=self._patience if lost else SEEN_SECONDS)

    def terminate(self, name: str) -> Job:
        """End the crawl in order, reports written: -> FINISHED. FINISHED already is success."""
        job = self._in_state(name, "terminate", *ACTIVE, State.FINISHED)
        lost = None if job.state is State.FINISHED else self._post(job_path(name), action="terminate")
        return self._reach(name, "terminate", frozenset({State.FINISHED}), lost=lost)

    def teardown(self, name: str) -> Job:
        """FINISHED or READY -> UNBUILT; UNBUILT already is success. A crawl that goes on is to be terminated first."""
        job = self._in_state(name, "teardown", State.UNBUILT, State.READY, State.FINISHED)
        lost = None if job.state is State.UNBUILT else self._post(job_path(name), action="teardown")
        return self._reach(name, "teardown", frozenset({State.UNBUILT}), lost=lost)

    def script(self, name: str, source: str) -> str:
        """Run Groovy in the engine (`job`, `appCtx`, `rawOut`) on a built job; returns what it printed to `rawOut`."""
        self._in_state(name, "script", *frozenset(State) - {State.UNBUILT})
        return self._script(name, source)

    def _in_state(self, name: str, action: str, *states: State) -> Job:
        """The job, if `action` fits its state; else `Conflict`: it was left as it is."""
        job = self._known(name)
        if job.state not in states:
            launch = f", launch {self.launch_id(name)}" if job.launches else ""
            why = f"it is {job.state} ({job.description}){launch}; to {action} it must be {either(frozenset(states))}"
            raise Conflict(self._what(name), f"{why}. Nothing was changed")
        return job

    def _post(self, path: str, **fields: str) -> Unavailable | None:
        """Ask for an action. What is returned is only how the answer was lost, if it was: the effect decides."""
        try:
            answer = self._wire.post(path, fields, self._answer_seconds)
        except Unavailable as lost:
            return lost
        if answer.status >= 400:
            raise self._odd(f"{fields.get('action', 'script')} was answered {answer.status}")
        return None

    def _asked_to_pause(self, name: str) -> bool:
        """Ask it to pause. False: it is too soon, or the answer was lost; asking again does no harm."""
        try:
            said = self._script(name, _PAUSE)
        except Unavailable:
            return False  # an engine that is gone is told by the next look
        if said not in (State.RUNNING, State.PAUSING, State.PAUSED):
            raise Conflict(self._what(name), f"it is {said} by now, no longer RUNNING. Nothing was changed")
        return said != State.RUNNING

    def _guarded(self, name: str, call: str, *states: str) -> Unavailable | None:
        """Run `call` in the engine if the crawl is in one of `states` at that very moment; else `Conflict`."""
        source = _GUARDED.format(states=", ".join(f"'{state}'" for state in states), call=call)
        try:
            said = self._script(name, source)
        except Unavailable as lost:
            return lost
        if said != "asked":
            raise Conflict(
                self._what(name), f"it is {said} by now, no longer {' or '.join(states)}. Nothing was changed"
            )
        return None

    def _script(self, name: str, source: str) -> str:
        path = f"{job_path(name)}/script"
        answer = self._wire.post(path, {"engine": "groovy", "script": source}, self._answer_seconds)
        if answer.status != 200:
            raise self._odd(f"a script was answered {answer.status}")
        done = heritrix_xml.parse_script(answer.body, self._wire.url + path)
        if done.exception is not None:
            raise BadInput(f"a script in {self._what(name)}", done.exception[:2000])
        return done.output
