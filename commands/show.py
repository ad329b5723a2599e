"""What verbs that look have in common: harmless text, one console, one shape of JSON."""

from __future__ import annotations

import json
import os
import sys

from rich.console import Console
from rich.text import Text

from commands.arguments import Interval
from commands.printing import err
from warcmill.model import Json
from warcmill.printable import printable as _escaped
from warcmill.sites import Found

WIDTH = 100  # columns, where there is no terminal to ask
printable = _escaped  # for the verbs, beside what they print with
NARROWEST = 80  # rich would cut numbers to fit less; a terminal only breaks the lines


def console() -> Console:
    """Results go here: colours on a terminal, plain text elsewhere. Nothing in a text is ever read as markup."""
    made = Console(markup=False, emoji=False, highlight=False)
    made.width = max(made.width, NARROWEST) if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH
    return made


def styled(text: str, style: str = "") -> Text:
    """A text from outside, as rich may show it."""
    return Text(printable(text), style=style)


def lines(target: Console, *texts: Text | str) -> None:
    """Print lines that are never broken, so that a name or a command can be copied."""
    for text in texts:
        target.print(styled(text) if isinstance(text, str) else text, soft_wrap=True)


def tell_away(found: Found) -> bool:
    """Name the roots that did not answer, or hold no launch, on stderr; whether one did not answer.

    What was listed is then not all.
    """
    for bare in found.bare:
        print(printable(bare.text), file=sys.stderr)
    for error in found.away:
        err(f"{error}; launches that lie there alone are not listed")
    return bool(found.away)


def heading(days: Interval, launches: int) -> str:
    """Which days, and how many launches."""
    note = f" ({days.note})" if days.note else ""
    return f"first day {days.first}, last day {days.last}{note}: {counted(launches, 'launch', 'launches')}"


def counted(number: int, one: str, more: str) -> str:
    """How many: `1 launch`, `2 launches`."""
    return f"{number} {one if number == 1 else more}"


def as_json(document: dict[str, Json]) -> str:
    """A document for machines: sorted keys, no floats, and what is not ASCII as JSON escapes it."""
    return json.dumps(document, sort_keys=True, indent=1).replace("\x7f", "\\u007f")


def days_json(days: Interval) -> dict[str, Json]:
    """The days of an interval, both ends included."""
    return {"first_day": str(days.first), "last_day": str(days.last)}
