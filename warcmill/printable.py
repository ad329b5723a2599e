"""One escaping for all that is printed or logged: names come from outside, and a terminal obeys what it is sent."""

from __future__ import annotations

import logging
import re

_LAST_BYTES = re.compile("[\udc80-\udcff]")  # how Python writes a byte that is not UTF-8
INDENT = "    "


def printable(text: str) -> str:
    """A text on one line of a terminal: what would move the cursor, hide, or turn the reading around is escaped."""
    if text.isprintable():
        return text
    raw = _LAST_BYTES.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in raw)


def printable_lines(text: str) -> str:
    """A text of several lines, each escaped; from the second on indented, so that none passes for a line of ours."""
    return f"\n{INDENT}".join(map(printable, text.split("\n"))).replace(f"\n{INDENT}\n", "\n\n")


def escape_last_resort() -> None:
    """Escape also what is logged while no logging is set up, which Python prints as it is."""
    if logging.lastResort:
        logging.lastResort.setFormatter(PrintableFormatter())


class PrintableFormatter(logging.Formatter):
    """Escapes all of a record: one line for a message of ours, indented lines for a traceback or what Luigi says."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if not record.name.startswith("luigi"):
            message = printable(message)
        plain = logging.makeLogRecord({**record.__dict__, "msg": message, "args": None, "exc_text": None})
        return printable_lines(super().format(plain).rstrip("\n"))
