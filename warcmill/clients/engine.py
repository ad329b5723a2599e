"""What the line asks of a crawl engine, whichever it is: start, look, checkpoint, stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Seen:
    """A job as its engine tells it: the launch that runs, or else the last one; '' when there was none.

    `words` are the engine's own, for messages: its state, and an alert or exception if there is one.
    `continues` is the checkpoint that a running launch was resumed from; '' for a fresh one.
    """

    running: bool
    launch_id: str
    words: str = ""
    continues: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job's newest launch is, in its engine's own figures; 0 is also what the engine does not say.

    `state` is the engine's word, `said` what it complained of since the launch began, the newest last.
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
    """An engine. Every method may raise Unavailable: it did not answer, and nothing may be concluded from it."""

    def about(self) -> str:
        """What it is, for people: name, version, how busy. It answers, and knows us."""
        ...

    def progress(self, job: str) -> Progress | None:
        """How far the job is; None: the engine has no such job."""
        ...

    def look(self, job: str) -> Seen:
        """The job as it is now."""
        ...

    def configure(self, job: str, files: Mapping[str, bytes]) -> None:
        """Write the files of a job that does not run, making it if the engine has no such job. Safe to repeat."""
        ...

    def start(self, job: str, checkpoint: str = "") -> str:
        """Launch the job, fresh or from a checkpoint, and wait until it crawls; the launch id.

        Conflict when it runs already.
        """
        ...

    def proceed(self, job: str) -> None:
        """See that a launch that was begun crawls: one that a dead start left waiting goes on.

        Does nothing to one that crawls or has ended.
        """
        ...

    def checkpoint(self, job: str) -> str:
        """Take a checkpoint and wait until it is done; its name. NotReady when the job does not run."""
        ...

    def stop(self, job: str) -> None:
        """End the launch and wait until its files are closed. Does nothing to a job that does not run."""
        ...

    def close(self) -> None:
        """Let go of the connections to it."""
        ...
