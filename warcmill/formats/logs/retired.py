"""The report `retired-workers.txt` of a launch: the workers that were declared dead while they had files open. Pure.

    [#visits] [worker] [host] [time] [reason]
    12 w2 node7.example 2026-11-21T08:20:11Z its disk is broken

`visits`: those that it has made since its last stage, and of which only its disk has files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from warcmill.errors import BadInput

RETIRED = "retired-workers.txt"
_HEAD = "[#visits] [worker] [host] [time] [reason]\n"
_ROW = re.compile(r"(\d{1,18}) (\S+) \S* \S+ .+")


def write(rows: Iterable[tuple[int, str, str, str, str]]) -> bytes:
    """Return the report; each row has the visits, worker, host, time and reason."""
    return (_HEAD + "".join(" ".join(map(str, row)) + "\n" for row in rows)).encode()


def lost_visits(data: bytes, path: str) -> dict[str, int]:
    """Return the visits by worker, of those that have lost some. BadInput, with `path`, for another kind of file."""
    head, *lines = data.decode("utf-8", "replace").splitlines(keepends=True) or [""]
    rows = [_ROW.fullmatch(line.rstrip("\n")) for line in lines]
    if head != _HEAD or not all(rows):
        number = 1 if head != _HEAD else rows.index(None) + 2
        raise BadInput(path, f"line {number} is not as the crawler wrote it; put the report back, or move it away")
    return {row[2]: int(row[1]) for row in rows if row and int(row[1])}
