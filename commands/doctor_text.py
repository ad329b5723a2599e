"""warcmill doctor: check that what extracts text is installed, where [text] is on."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.config import switches, text
from warcmill.audit.health import Check, Level
from warcmill.errors import BadConfig
from warcmill.formats.text import tools
from warcmill.formats.text.document import Kind


def check_text() -> Iterator[Check]:
    """Check [text]; nothing where it is off."""
    try:
        if switches.read(text.SWITCH) is None:
            return
        text.check_installed()
    except BadConfig as error:
        yield Check("text", Level.FAIL, str(error), "without it no scan starts")
    else:
        yield Check("text", Level.OK, f"{tools.tool_of(Kind.HTML)} and {tools.tool_of(Kind.PDF)} extract it")
