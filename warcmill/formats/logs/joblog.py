"""Heritrix's job.log: the events of a job and its launches, one a line. Pure.

    2026-11-21T08:22:03.458Z INFO CHECKPOINTED cp00001-20261121082203

Lines of another shape (the rest of a message, a stack trace, a cut line) are skipped: nothing may be concluded from an
event that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from msgspec import Struct

from warcmill.formats.logs.crawllog import blocks

_EVENT = re.compile(
    rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)"
    rb" (SEVERE|WARNING|INFO|CONFIG|FINE|FINER|FINEST)"
    rb" ([^\s\x00-\x1f]++)[ ]*([^\x00-\x1f]*)\r?"
)


class JobEvent(Struct, frozen=True):
    """`word` is what happened (PREPARING, CHECKPOINTED, FINISHED), `subject` the launch or checkpoint.

    Messages in prose (`Job launched`) are split likewise: word `Job`, subject `launched`.
    """

    time: str
    level: str
    word: str
    subject: str


def events(stream: BinaryIO) -> Iterator[JobEvent]:
    """Yield the events of a job.log in its order. Raises for no content.

    A last line without a newline is not an event yet: its subject may be cut.
    """
    for lines in blocks(stream):
        for line in lines:
            if match := _EVENT.fullmatch(line):
                yield JobEvent(*(part.decode("utf-8", "backslashreplace").rstrip() for part in match.groups()))
