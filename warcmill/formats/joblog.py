"""Heritrix's job.log: what happened to a job or a launch, an event a line.

    2026-11-21T08:22:03.458Z INFO CHECKPOINTED cp00001-20261121082203

Lines of another shape (the rest of a message, a stack trace, a cut line) are
no events and are passed over: a missing event is never taken for a proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from warcmill.formats.loglines import blocks

_EVENT = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)"
    rb" (SEVERE|WARNING|INFO|CONFIG|FINE|FINER|FINEST)"
    rb" ([^\s\x00-\x1f]++)[ ]*([^\x00-\x1f]*)\r?"
)


@dataclass(frozen=True, slots=True)
class Event:
    """`word` is what happened (PREPARING, CHECKPOINTED, FINISHED), `subject` to which launch or checkpoint.

    Messages in prose (`Job launched`) are split the same way: word `Job`, subject `launched`.
    """

    time: str
    level: str
    word: str
    subject: str


def events(stream: BinaryIO) -> Iterator[Event]:
    """The events of a job.log in its order; never raises for what the log holds.

    A last line without a newline is not yet an event: its subject may be cut.
    """
    for lines in blocks(stream):
        for line in lines:
            if found := _EVENT.fullmatch(line):
                yield Event(*(part.decode("utf-8", "backslashreplace").rstrip() for part in found.groups()))
