"""Results and messages of every verb: printable text, and one form of JSON. Control characters are escaped."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from warcmill.base.escapes import printable, table_cell
from warcmill.model import Json

if TYPE_CHECKING:
    from commands.console.arguments import Interval


def heading(days: Interval, launches: int) -> str:
    """The days, and how many launches."""
    note = f" ({days.note})" if days.note else ""
    return f"first day {days.first}, last day {days.last}{note}: {counted(launches, 'launch', 'launches')}"


def counted(number: int, one: str, more: str) -> str:
    """A number and its noun: `1 launch`, `2,000 launches`."""
    return f"{number:,} {one if number == 1 else more}"


def as_json(answer: dict[str, Json]) -> str:
    """An answer as JSON: sorted keys, no floats, ASCII only."""
    return json.dumps(answer, sort_keys=True, indent=1).replace("\x7f", "\\u007f")


def days_json(days: Interval) -> dict[str, Json]:
    """The first and the last day of an interval, both included."""
    return {"first_day": str(days.first), "last_day": str(days.last)}


def write_rows(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print rows as CSV, each as it comes. No cell is a formula of a spreadsheet, or a command of a terminal."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([table_cell(cell) for cell in row] for row in rows)


def out(*texts: str) -> None:
    """Print results on stdout, one line per text."""
    for text in texts:
        print(printable(text), flush=True)


def err(*texts: str) -> None:
    """Print messages that are not results on stderr, one line per text."""
    for text in texts:
        print(printable(text), file=sys.stderr, flush=True)


def in_words(names: Iterable[str], last_by: str = "and") -> str:
    """Names as a phrase: `copy, verify and retire`."""
    *most, last = names
    return f"{', '.join(most)} {last_by} {last}" if most else last


def silence(stream: TextIO) -> None:
    """Its reader has gone: send what is still buffered nowhere, so that Python ends without a complaint."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
