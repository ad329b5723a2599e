"""The console for results: colours on a terminal, plain text elsewhere, by rich. Control characters are escaped.

`show` has what a verb prints without rich, which takes as long to import as a short verb to run.
"""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.text import Text

from warcmill.base.escapes import printable

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
