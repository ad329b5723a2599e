"""warcmill doctor: check the clamd of [viruses], where one is configured."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.config import switches, viruses
from warcmill.audit import health_clamd
from warcmill.audit.health import Check, Level
from warcmill.errors import BadConfig


def check_viruses() -> Iterator[Check]:
    """Check [viruses]; nothing where it is not used."""
    if not viruses.is_configured():
        return
    try:
        switch, scanner = switches.read("viruses"), viruses.scanner()
    except BadConfig as error:
        yield Check(health_clamd.NAME, Level.FAIL, str(error), "correct luigi.cfg")
        return
    if switch is None:
        todo = "set [viruses] since to a day, or remove clamd"
        yield Check(health_clamd.NAME, Level.WARN, "the scan is off: since is not set", todo)
    limits = scanner.limits
    yield from health_clamd.check_clamd(scanner.clamd, limits.stream_max_length, limits.max_file_size)
