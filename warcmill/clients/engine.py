"""The operations that the line needs of any crawl engine: start, look, checkpoint, stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct


class JobStatus(Struct, frozen=True):
    """A job as its engine reports it: the running launch, or else the last one; '' if there was none.

    `words` are the engine's own, for messages: its state, and an alert or exception if there is one.
    `continues` is the checkpoint from which a running launch was resumed; '' for a fresh one.
    `died`: the last launch has not ended, but nothing crawls it any more; the engine's `stop` ends it cleanly. `code`
    is then the exit code of the error that ended it, 0 if that is not known.
    """

    running: bool
    launch_id: str
    words: str = ""
    continues: str = ""
    died: bool = False
    code: int = 0


class CrawlProgress(Struct, frozen=True):
    """The progress of a job's newest launch in its engine's own figures; 0 also for a figure that it does not report.

    `done` and `queued` count URIs. `state` is the engine's word, `said` its complaints since the launch began,
    newest last.
    """

    running: bool
    launch_id: str
    state: str
    done: int
    queued: int
    per_minute: int
    kib_per_second: int
    alerts: int
    said: tuple[str, ...] = ()


class Engine(Protocol):
    """An engine. Every method may raise Unavailable: it did not answer, so the outcome is unknown."""

    @property
    def kind(self) -> str:
        """Its kind, as `[engine.NAME] kind` has it."""
        ...

    def about(self) -> str:
        """Describe it for people: name, version, load. Success also proves that the login works."""
        ...

    def progress(self, job: str) -> CrawlProgress | None:
        """Return the job's progress; None if the engine has no such job."""
        ...

    def look(self, job: str) -> JobStatus:
        """Return the job's current status."""
        ...

    def configure(self, job: str, files: Mapping[str, bytes]) -> None:
        """Write the files of a job that does not run; create the job if the engine has none. Safe to repeat."""
        ...

    def resumable(self, job: str, checkpoints: Sequence[str]) -> str:
        """Return the first of these checkpoints from which a launch can be resumed; '' if there is none.

        One that is damaged is passed over, and logged.
        """
        ...

    def follows(self, job: str) -> str:
        """Return the launch that the job's next one follows: it takes over what waits there. '' if it begins afresh."""
        ...

    def is_endless(self, job: str) -> bool:
        """Return whether a launch of the job ends only when it is stopped: it may have nothing to do."""
        ...

    def start(self, job: str, checkpoint: str = "", follows: str = "") -> str:
        """Launch the job, wait until it crawls, and return the launch id.

        Fresh, from a checkpoint, or after the launch that `follows` returned. Conflict if it runs already.
        """
        ...

    def proceed(self, job: str) -> None:
        """Make a launch crawl that an interrupted start left waiting.

        Does nothing to a launch that crawls or has ended.
        """
        ...

    def checkpoint(self, job: str) -> str:
        """Take a checkpoint, wait until it is complete, and return its name. NotReady if the job does not run."""
        ...

    def stop(self, job: str) -> None:
        """End the launch and wait until its files are closed. Does nothing to a job that does not run."""
        ...

    def close(self) -> None:
        """Close the connections to it."""
        ...
