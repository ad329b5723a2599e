"""job.log, the job's and the launch's own, written as Heritrix does; `formats.logs.joblog` describes and reads it.

A launch goes through these words:

    Job instantiated, Job launched            in the job's alone
    PREPARING, PAUSED, RUNNING                it begins
    PAUSING, PAUSED, RUNNING                  a person pauses it, and resumes it
    CHECKPOINTED cp00001-20261121082203       after all of the checkpoint is durable
    STOPPING, EMPTY                           EMPTY: nothing was left to fetch
    FINISHED                                  after all files of the launch are closed
    BROKE-OFF ID CODE WHY                     its process ends by an error, with this exit code
    Job instance discarded                    in the job's alone

`last` reads the newest launch of a job from it, and how far that came.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from warcmill.base import disk
from warcmill.crawl.durable import Appended, is_cut
from warcmill.errors import Unavailable
from warcmill.formats.logs import joblog
from warcmill.formats.logs.crawllog import moment
from warcmill.model import Launch, Stage

NAME = "job.log"


class Word(StrEnum):
    """An event in the life of a launch."""

    PREPARING = "PREPARING"
    PAUSED = "PAUSED"
    RUNNING = "RUNNING"
    PAUSING = "PAUSING"
    STOPPING = "STOPPING"
    EMPTY = "EMPTY"
    FINISHED = "FINISHED"
    BROKE_OFF = "BROKE-OFF"


class JobLog:
    """The job.log of a job, in folder `job`, and of its launch, in `own`. Each line is durable when the call returns.

    The job's comes first: with a line in the launch's own, the line in the job's is there too.
    """

    def __init__(self, job: Path, own: Path, launch: Launch, now: Callable[[], float] = time.time) -> None:
        self._job, self._own, self._launch, self._now = job / NAME, own / NAME, launch, now

    def launched(self) -> None:
        """The launch begins: the first two lines, and PREPARING."""
        for text in ("Job instantiated", "Job launched"):
            _append([self._job], self._line(text))
        self.write(Word.PREPARING)

    def write(self, word: Word) -> None:
        """Something happened to the launch."""
        _append([self._job, self._own], self._line(f"{word} {self._launch.id}"))

    def checkpointed(self, stage: Stage) -> None:
        """A checkpoint is whole."""
        _append([self._job, self._own], self._line(f"CHECKPOINTED {stage}"))

    def warn(self, text: str) -> None:
        """Report a fault to those who read the job's log, on one line."""
        plain = "".join(char if char.isprintable() else " " for char in text)
        _append([self._job], self._line(plain, "WARNING"))

    def broke_off(self, code: int, why: str) -> None:
        """The process ends by an error; the next start or stop closes the launch."""
        plain = "".join(char if char.isprintable() else " " for char in why)
        _append([self._job, self._own], self._line(f"{Word.BROKE_OFF} {self._launch.id} {code} {plain}", "SEVERE"))

    def finished(self) -> None:
        """The launch has ended, and all its files are closed."""
        self.write(Word.FINISHED)
        _append([self._job], self._line("Job instance discarded"))

    def _line(self, text: str, level: str = "INFO") -> bytes:
        return f"{moment(self._now())} {level} {text}\n".encode("utf-8", "backslashreplace")


def _append(paths: list[Path], line: bytes) -> None:
    for path in paths:
        file = Appended(path)
        try:
            file.append(b"\n" + line if is_cut(path) else line)
            file.sync()
        finally:
            file.close()


_WORDS = frozenset(Word)
_CHECKPOINTED = "CHECKPOINTED"


class Last(NamedTuple):
    """A launch: its id, the last word about it, its newest checkpoint, and whether nothing was left to fetch. If it
    broke off: why, and the exit code of its process."""

    launch: str
    word: str
    checkpoint: str = ""
    empty: bool = False
    why: str = ""
    code: int = 0

    @property
    def ended(self) -> bool:
        """True if all its files are closed."""
        return self.word == Word.FINISHED


def last(job: Path) -> Last | None:
    """The newest launch of the job in a folder; None when it was never launched."""
    found: Last | None = None
    try:
        with (job / NAME).open("rb") as stream:
            for event in joblog.events(stream):
                found = _after(found, event)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Unavailable(str(job / NAME), disk.reason(error, job / NAME)) from error
    return found


def _after(found: Last | None, event: joblog.JobEvent) -> Last | None:
    if event.word == Word.PREPARING:
        return Last(event.subject, event.word)
    if found is None:
        return None
    if event.word == _CHECKPOINTED:
        return found._replace(checkpoint=event.subject)
    if event.word == Word.BROKE_OFF:
        launch, _, rest = event.subject.partition(" ")
        code, _, why = rest.partition(" ")
        is_ours = launch == found.launch and code.isdecimal()
        return found._replace(why=why, code=int(code)) if is_ours else found
    if event.word in _WORDS and event.subject == found.launch:
        return found._replace(word=event.word, empty=found.empty or event.word == Word.EMPTY)
    return found
