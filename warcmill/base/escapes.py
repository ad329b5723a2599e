"""Text for a terminal or a log: names come from outside, and their control characters would act on a terminal. Pure."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

_LAST_BYTES = re.compile("[\udc80-\udcff]")  # how Python writes a byte that is not UTF-8
INDENT = "    "


def printable(text: str) -> str:
    """Escape a text for one line of a terminal: control, invisible and right-to-left characters."""
    if text.isprintable():
        return text
    raw = _LAST_BYTES.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", text)
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in raw)


def printable_lines(text: str) -> str:
    """Escape each line of a text; indent all but the first, so that none can pass for a log line of its own."""
    return f"\n{INDENT}".join(map(printable, text.split("\n"))).replace(f"\n{INDENT}\n", "\n\n")


def table_cell(value: object) -> object:
    """A value in a table of CSV: no text is a formula of a spreadsheet, or a command of a terminal."""
    text = printable(value) if isinstance(value, str) else value
    return f"'{text}" if isinstance(text, str) and text[:1] in ("=", "+", "-", "@") else text


def escape_last_resort() -> None:
    """Escape also what is logged before logging is set up, which Python prints as it is."""
    if logging.lastResort:
        logging.lastResort.setFormatter(PrintableFormatter())


class PrintableFormatter(logging.Formatter):
    """Escape a whole record: our messages become one line; Luigi's messages and tracebacks become indented lines."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if not record.name.startswith("luigi"):
            message = printable(message)
        plain = logging.makeLogRecord({**record.__dict__, "msg": message, "args": None, "exc_text": None})
        return printable_lines(super().format(plain).rstrip("\n"))


def nearest(typed: str, known: Iterable[str], alike: float = 0.6) -> str:
    """Return the most similar known name; '' if none reaches the similarity `alike` (difflib's ratio, 0 to 1)."""
    from difflib import get_close_matches  # noqa: PLC0415 needed only after a typing error

    return next(iter(get_close_matches(typed, sorted(set(known)), 1, alike)), "")


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'status'?` if a known name is similar; else ''."""
    suggestion = nearest(typed, known)
    return f"; did you mean '{suggestion}'?" if suggestion else ""
