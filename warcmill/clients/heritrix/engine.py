"""Heritrix as an `Engine` of the line."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from warcmill.clients.engine import CrawlProgress, JobStatus
from warcmill.clients.heritrix.rest import CONFIGURATION, Heritrix
from warcmill.clients.heritrix.xml import ACTIVE, JobState
from warcmill.errors import BadConfig, BadInput, NotReady
from warcmill.formats import profile

log = logging.getLogger(__name__)
LAST_WORDS: Final = 3
MIB: Final = 1 << 20
# The states of a launch after its preparation: waiting, crawling, or ended.
_LAUNCHED: Final = ACTIVE - {JobState.PREPARING} | {JobState.FINISHED}


class HeritrixEngine:
    """An `Engine` over the client of one Heritrix."""

    kind = "heritrix"

    def __init__(self, client: Heritrix) -> None:
        self._client = client

    def close(self) -> None:
        """Close the connections to it."""
        self._client.close()

    def about(self) -> str:
        """Its version, its heap and its number of jobs."""
        status = self._client.engine()
        heap = f"{status.heap_used // MIB} of {status.heap_max // MIB} MiB of heap used"
        return f"Heritrix {status.version}, {heap}, {len(status.jobs)} jobs"

    def progress(self, job: str) -> CrawlProgress | None:
        """The job's figures; None if the engine has no such job."""
        status = self._client.job(job)
        if status is None:
            return None
        return CrawlProgress(
            status.state in ACTIVE,
            self._client.launch_id(job) or "",
            str(status.state),
            status.downloaded,
            status.queued,
            status.per_minute,
            status.kib_per_second,
            status.alerts,
            tuple(self._client.last_words(job)[-LAST_WORDS:]),
        )

    def look(self, job: str) -> JobStatus:
        """The job's current status; a job that the engine does not know has never run."""
        status = self._client.job(job)
        if status is None:
            return JobStatus(False, "", "the engine has no such job")
        complaints = "; ".join(self._client.last_words(job)[-LAST_WORDS:])
        words = f"{status.state}, {status.description}" + (f"; the engine said: {complaints}" if complaints else "")
        running = status.state in ACTIVE
        continues = status.resumed_from or "" if running else ""
        return JobStatus(running, self._client.launch_id(job) or "", words, continues)

    def configure(self, job: str, files: Mapping[str, bytes]) -> None:
        """Write the files of a job; create it if need be. `start` then builds the job from them."""
        self._client.create(job)
        for name, data in files.items():
            self._client.put(job, name, data)

    def resumable(self, job: str, checkpoints: Sequence[str]) -> str:  # noqa: ARG002 - as the protocol has it
        """The first: Heritrix itself reads what it resumes."""
        return next(iter(checkpoints), "")

    def follows(self, job: str) -> str:  # noqa: ARG002 - as the protocol has it
        """Nothing: a launch of Heritrix continues a checkpoint, or begins afresh."""
        return ""

    def is_endless(self, job: str) -> bool:  # noqa: ARG002 - as the protocol has it
        """Never: a launch of Heritrix ends when nothing waits."""
        return False

    def start(self, job: str, checkpoint: str = "", follows: str = "") -> str:
        """Launch the job, fresh or from a checkpoint, wait until it crawls, and return the launch id.

        Conflict if it runs already; BadInput quotes why the engine cannot build or launch it, or that it follows no
        launch. BadConfig, with nothing done, if its configuration would lose pages that have changed.
        """
        if follows:
            raise BadInput(f"{job} {follows}", "Heritrix follows no launch; start from a checkpoint, or afresh")
        self._refuse_losing(job)
        status = self._client.job(job)
        if status and status.state in (JobState.READY, JobState.FINISHED):
            self._client.teardown(job)  # so that it is built from its current configuration
        launch = self._client.launch(job, checkpoint or None)
        self.proceed(job)
        return launch

    def _refuse_losing(self, job: str) -> None:
        """Raise BadConfig if the configuration loses changed pages: they cannot be crawled again."""
        where = f"{CONFIGURATION} of job {job}"
        try:
            loss = profile.loss(self._client.get(job, CONFIGURATION), where)
        except (BadInput, NotReady) as error:  # a job's configuration may have another name
            log.warning("%s; it was not checked for faults that lose pages", error)
            return
        if loss:
            raise BadConfig(where, loss)

    def proceed(self, job: str) -> None:
        """Make a launch crawl that waits after its preparation. Does nothing to one that crawls or has ended."""
        status = self._client.job(job)
        if status is None or status.state not in ACTIVE:
            return
        if self._client.wait(job, _LAUNCHED).state is JobState.PAUSED:
            self._client.unpause(job)

    def checkpoint(self, job: str) -> str:
        """Take a checkpoint, wait until job.log has it, and return its name. NotReady if the job does not run."""
        status = self._client.job(job)
        if status is None or status.state not in ACTIVE:
            raise NotReady(f"a checkpoint of {job}", "the job does not run")
        return self._client.checkpoint(job)

    def stop(self, job: str) -> None:
        """Terminate the launch, then tear the job down, so that all its files are closed."""
        status = self._client.job(job)
        if status is None:
            return
        if status.state in ACTIVE:
            self._client.terminate(job)
        self._client.teardown(job)
