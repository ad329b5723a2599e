"""What a URI goes through, and the one table of the moves between."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Where a URI stands."""

    CREATED = "Created"
    SCHEDULED = "Scheduled"
    SUSPENDED = "Suspended"
    DOWNLOADING = "Downloading"
    PARSING = "Parsing"
    PARSED = "Parsed"
    FAILED = "Failed"
    REMOVED = "Removed"

    __hash__ = str.__hash__  # that of an enum is a function of Python, and every move looks its statuses up


S = Status
MOVES: dict[Status, frozenset[Status]] = {
    S.CREATED: frozenset({S.SCHEDULED, S.SUSPENDED, S.FAILED, S.REMOVED}),
    S.SCHEDULED: frozenset({S.DOWNLOADING, S.SUSPENDED, S.FAILED, S.REMOVED}),
    S.SUSPENDED: frozenset({S.SCHEDULED, S.REMOVED}),
    # Back to Scheduled: it is tried again, or deferred. To Parsed: its holder had nothing to parse.
    S.DOWNLOADING: frozenset({S.PARSING, S.PARSED, S.SCHEDULED, S.SUSPENDED, S.FAILED, S.REMOVED}),
    S.PARSING: frozenset({S.PARSED, S.FAILED}),
    # Scheduled once more: it is visited again, or a person asks for it.
    S.PARSED: frozenset({S.SCHEDULED, S.REMOVED}),
    S.FAILED: frozenset({S.SCHEDULED, S.REMOVED}),
    S.REMOVED: frozenset(),
}
"""From each status to those that may follow."""

DONE = frozenset({S.PARSED, S.FAILED, S.REMOVED})
"""With these a visit ends."""
