"""warcmill doctor: check that what writes Parquet is installed, where [columns] is on."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.config import columns, switches
from warcmill.audit.health import Check, Level
from warcmill.errors import BadConfig


def check_columns() -> Iterator[Check]:
    """Check [columns]; nothing where it is off."""
    try:
        if switches.read(columns.SWITCH) is None:
            return
        yield Check("columns", Level.OK, f"{columns.check_installed()} writes them")
    except BadConfig as error:
        yield Check("columns", Level.FAIL, str(error), "without it no scan starts")
