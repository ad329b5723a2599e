"""Times as the line writes them: UTC, whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """This moment, as `2016-10-19T23:44:28Z`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def stamp() -> str:
    """This moment in 14 digits, as launch ids are written."""
    return datetime.now(UTC).strftime("%Y%m%d%H%M%S")


def stamp_text(stamp: str) -> str:
    """14 (or more) digits as `2016-10-19T23:44:28Z`."""
    return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z"
