"""Heritrix as the line's engine: start, look, checkpoint, stop."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from warcmill.clients.engine import Progress, Seen
from warcmill.clients.heritrix import CONFIGURATION, Heritrix
from warcmill.clients.heritrix_xml import ACTIVE, State
from warcmill.errors import BadConfig, BadInput, NotReady
from warcmill.formats import recrawl

log = logging.getLogger(__name__)
LAST_WORDS: Final = 3
MIB: Final = 1 << 20
# Where a launch is, at the latest, once it has been prepared: waiting, crawling, or over already.
_LAUNCHED: Final = ACTIVE - {State.PREPARING} | {State.FINISHED}


class HeritrixEngine:
    """An `Engine` over the client of one Heritrix."""

    def __init__(self, client: Heritrix) -> None:
        self._client = client

    def close(self) -> None:
        """Let go of the connections to it."""
        self._client.close()

    def about(self) -> str:
        """Its version, its heap and how many jobs it has."""
        found = self._client.engine()
        heap = f"{found.heap_used // MIB} of {found.heap_max // MIB} MiB of heap used"
        return f"Heritrix {found.version}, {heap}, {len(found.jobs)} jobs"

    def progress(self, job: str) -> Progress | None:
        """The job's figures; None: the engine has no such job."""
        found = self._client.job(job)
        if found is None:
            return None
        return Progress(
            found.state in ACTIVE,
            self._client.launch_id(job) or "",
            str(found.state),
            found.downloaded,
            found.queued,
            found.per_minute,
            found.kib_per_second,
            found.alerts,
            tuple(self._client.last_words(job)[-LAST_WORDS:]),
        )

    def look(self, job: str) -> Seen:
        """The job as it is now; a job that the engine does not know has never run."""
        found = self._client.job(job)
        if found is None:
            return Seen(False, "", "the engine has no such job")
        said = "; ".join(self._client.last_words(job)[-LAST_WORDS:])
        words = f"{found.state}, {found.description}" + (f"; the engine said: {said}" if said else "")
        running = found.state in ACTIVE
        continues = found.resumed_from or "" if running else ""
        return Seen(running, self._client.launch_id(job) or "", words, continues)

    def configure(self, job: str, files: Mapping[str, bytes]) -> None:
        """Write the files of a job, making it if need be. `start` builds the job anew from them."""
        self._client.create(job)
        for name, data in files.items():
            self._client.put(job, name, data)

    def start(self, job: str, checkpoint: str = "") -> str:
        """Launch the job, fresh or from a checkpoint, and wait until it crawls; the launch id.

        Conflict when it runs already; BadInput quotes why the engine cannot build or launch it. BadConfig when its
        configuration would lose pages that have changed: then it is left as it is.
        """
        self._refuse_losing(job)
        found = self._client.job(job)
        if found and found.state in (State.READY, State.FINISHED):
            self._client.teardown(job)  # so that it is built from the configuration as it is now
        launch = self._client.launch(job, checkpoint or None)
        self.proceed(job)
        return launch

    def _refuse_losing(self, job: str) -> None:
        """Whoever wrote the configuration: what it loses cannot be crawled again."""
        where = f"{CONFIGURATION} of job {job}"
        try:
            loss = recrawl.loss(self._client.get(job, CONFIGURATION), where)
        except (BadInput, NotReady) as error:  # a job's configuration may have another name
            log.warning("%s; it was not looked at for what would lose pages", error)
            return
        if loss:
            raise BadConfig(where, loss)

    def proceed(self, job: str) -> None:
        """Let a launch that waits after its preparation crawl. Does nothing to one that crawls or has ended."""
        found = self._client.job(job)
        if found is None or found.state not in ACTIVE:
            return
        if self._client.wait(job, _LAUNCHED).state is State.PAUSED:
            self._client.unpause(job)

    def checkpoint(self, job: str) -> str:
        """Take a checkpoint and wait until job.log tells of it; its name. NotReady when the job does not run."""
        found = self._client.job(job)
        if found is None or found.state not in ACTIVE:
            raise NotReady(f"a checkpoint of {job}", "the job does not run")
        return self._client.checkpoint(job)

    def stop(self, job: str) -> None:
        """End the launch in order, then let go of the job, so that all its files are closed."""
        found = self._client.job(job)
        if found is None:
            return
        if found.state in ACTIVE:
            self._client.terminate(job)
        self._client.teardown(job)
