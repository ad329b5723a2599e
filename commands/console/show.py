"""Results and messages of every verb: printable text, one console, one form of JSON. Control characters are escaped."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from commands.console.arguments import Interval
from warcmill.audit import remedies
from warcmill.base.escapes import printable
from warcmill.errors import Unavailable
from warcmill.launches.discovery import Discovery
from warcmill.model import Json

WIDTH = 100  # columns, without a terminal
NARROWEST = 80  # below this rich cuts numbers; a terminal only wraps lines


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """As all else that is printed: `commands.main` ends with 141. Rich would end with 1, which means a gap."""
        raise BrokenPipeError


def console() -> Console:
    """The console for results: colours on a terminal, plain text elsewhere. No text is read as markup."""
    target = _Console(markup=False, emoji=False, highlight=False)
    target.width = max(target.width, NARROWEST) if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH
    return target


def styled(text: str, style: str = "") -> Text:
    """A text from outside, escaped, for rich."""
    return Text(printable(text), style=style)


def lines(target: Console, *texts: Text | str) -> None:
    """Print lines without wrapping them, so that a name or a command can be copied."""
    for text in texts:
        target.print(styled(text) if isinstance(text, str) else text, soft_wrap=True)


def report_unreachable(discovered: Discovery) -> bool:
    """Report on stderr the roots that did not answer or hold no launch; return whether one did not answer.

    Then the list of launches is incomplete.
    """
    for bare in discovered.bare:
        print(printable(bare.text), file=sys.stderr)
    for error in discovered.unreachable:
        err(f"{error}; launches only there are not listed")
    return bool(discovered.unreachable)


def report_away(away: Iterable[Unavailable]) -> bool:
    """Report on stderr the roots that do not answer, each with what to do; return whether there is one."""
    known = list(away)
    for error in known:
        err(f"{error}", f"  -> {remedies.ROOT}")
    return bool(known)


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
