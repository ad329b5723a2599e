"""The newest launch of a job, and how far it came: as its job.log says it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from warcmill.base import disk
from warcmill.crawl.job_log import NAME, Word
from warcmill.errors import Unavailable
from warcmill.formats import joblog

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


def _after(found: Last | None, event: joblog.Event) -> Last | None:
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
