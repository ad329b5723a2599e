"""Read from a job's job.log what the engine's XML lacks: the launch id, successful checkpoints, complaints."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Final

from warcmill.errors import BadInput
from warcmill.formats.joblog import Event, events
from warcmill.model import Stage, parse_stamp

_STATES: Final = frozenset({"PREPARING", "PAUSED", "RUNNING", "PAUSING", "EMPTY", "STOPPING", "FINISHED"})
_GRAVE: Final = frozenset({"WARNING", "SEVERE"})
# Errors of HTTP requests, ours or a browser's: the engine writes them to the job's log, but they concern no crawl.
_NOISE: Final = re.compile(r"error caught (in server resource|by status service)|should have an entity")


def parse(log: bytes) -> tuple[Event, ...]:
    """The events of a log or of its end; a first line that is cut is no event."""
    return tuple(events(io.BytesIO(log)))


def since(before: Sequence[Event], now: Sequence[Event]) -> tuple[Event, ...]:
    """The events of `now` that are newer than those of `before`; all, if the two do not overlap."""
    if not before or before[-1] not in now:
        return tuple(now)
    last = len(now) - 1 - now[::-1].index(before[-1])
    return tuple(now[last + 1 :])


def launch_id(log: Sequence[Event]) -> str | None:
    """The newest launch in the log; None if it names none."""
    for event in reversed(log):
        if event.word in _STATES and _is_stamp(event.subject):
            return event.subject
    return None


def checkpoints(log: Sequence[Event]) -> tuple[str, ...]:
    """The names of successful checkpoints, oldest first; the engine logs no others."""
    return tuple(event.subject for event in log if event.word == "CHECKPOINTED" and _is_stage(event.subject))


def complaints(log: Sequence[Event]) -> tuple[str, ...]:
    """The messages of level WARNING and SEVERE, each once, oldest first."""
    grave = (event for event in log if event.level in _GRAVE and not _is_noise(event))
    return tuple(dict.fromkeys(f"{event.level} {event.word} {event.subject}"[:600] for event in grave))


def is_grave(log: Sequence[Event]) -> bool:
    """True if there is a message of level SEVERE."""
    return any(event.level == "SEVERE" and not _is_noise(event) for event in log)


def _is_noise(event: Event) -> bool:
    return bool(_NOISE.search(f"{event.word} {event.subject}"))


def _is_stamp(text: str) -> bool:
    try:
        parse_stamp(text)
    except BadInput:
        return False
    return True


def _is_stage(text: str) -> bool:
    try:
        return not Stage.parse(text).is_final
    except BadInput:
        return False
