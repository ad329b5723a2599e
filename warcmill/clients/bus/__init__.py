"""Messages by topics, between applications and Warcmill: append, read from a kept place on, commit.

`Bus` is the protocol; `spool` implements it in files of one machine, `kafka` by a cluster of Kafka, and `opening`
chooses one. A message is bytes without a line break: JSON, if who sent it was right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol

from msgspec import Struct

from warcmill.errors import BadConfig, BadInput, Unavailable

LONGEST: Final = 10 << 20
"""Bytes of a message."""

SECONDS: Final = 30
"""For which a bus may be silent before that is an error."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,248}")


class TooLong(BadInput):
    """A message that the bus does not take, as it is too long. A shorter one may pass."""


class BusRefused(Unavailable):
    """A bus that is there, and does not take us, or this: a setting is to be corrected, here or there. A role tries
    again, as for any that is away: what it reads from files it reads anew."""

    exit_code = BadConfig.exit_code

    def __init__(self, what: str, why: str) -> None:
        super().__init__(what, why)
        self.args = (f"{what} {why}",)


class Message(Struct, frozen=True):
    """A message, and its place in its topic, for people: two never have the same."""

    topic: str
    place: str
    value: bytes


class TopicReader(Protocol):
    """Reads a topic for a group. Of a group's readers each message is given to one, as long as all live."""

    def read(self, most: int, seconds: float) -> list[Message]:
        """Return up to `most` messages, in the order of their places; wait so long until there is one.

        Unavailable when the bus does not answer: read again later.
        """

    def commit(self) -> None:
        """Keep the place behind all that was read, durable: the group's next reader begins there.

        Messages that were read and not committed are read again after a death, perhaps by another reader.
        """

    def close(self) -> None:
        """Close the reader; the group's place is the one that was committed."""


class Bus(Protocol):
    """Topics, each made by its first message or reader."""

    def append(self, topic: str, values: Sequence[bytes]) -> None:
        """Append messages, in their order, durable when this returns. Safe from several processes and threads.

        BadInput for a topic or message that no bus can have, before any is appended; TooLong; Unavailable when they
        are not durable. After an error some may be there: append all again, as readers expect repeats.
        """

    def reader(self, topic: str, group: str | None, *, from_end: bool = False) -> TopicReader:
        """Return a reader that continues at the group's place; a group without one begins at the topic's first message,
        or at its end. Without a group no place is kept, and others are not kept from reading.

        Unavailable when the bus does not answer, and with `from_end` when the end cannot be found in time.
        """

    def topics(self) -> list[str]:
        """Return the topics' names, sorted."""

    def close(self) -> None:
        """Send what is left, and close the connection; readers are closed by themselves."""


def check_name(kind: str, name: str) -> None:
    """Raise BadInput for a name of a topic or group that a bus cannot have; `kind` is which of them it is."""
    if not _NAME.fullmatch(name):
        raise BadInput(f"{kind} {name[:60]!a}", "take 1 to 249 of A-Z a-z 0-9 . _ -, the first of them no dot")


def check_values(topic: str, values: Sequence[bytes]) -> None:
    """Raise BadInput or TooLong for messages that a bus cannot have."""
    check_name("topic", topic)
    for value in values:
        if b"\n" in value:
            raise BadInput(f"topic {topic}", "a message has a line break; write its JSON in one line")
        if len(value) > LONGEST:
            raise TooLong(f"topic {topic}", f"a message has {len(value):,} bytes, {LONGEST:,} are the most")
