"""Open the bus of a configuration: `spool`, or `kafka://h1:9092,h2:9092`. Reads only."""

from __future__ import annotations

import re
from pathlib import Path

from warcmill.clients.bus import SECONDS, Bus
from warcmill.clients.bus.access import KafkaAccess
from warcmill.clients.bus.spool import DAYS, Spool
from warcmill.errors import BadConfig

_KAFKA = re.compile(
    r"kafka://((?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5}(?:,(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):\d{1,5})*)"
)


def open_bus(
    named: str, folder: Path, days: int = DAYS, seconds: float = SECONDS, access: KafkaAccess | None = None
) -> Bus:
    """Open a bus by its name; the spool's files are in `folder`, and kept for `days`; for so many `seconds` a Kafka may
    be silent, and `access` is the way to it. BadConfig for another name, or an access that is invalid."""
    if named == "spool":
        return Spool(folder, days)
    found = _KAFKA.fullmatch(named)
    if found is None and "@" in named:
        raise BadConfig(
            "[requests] bus", "has a user or a password in it: remove them, and set [kafka] user, password_file"
        )
    if found is None:
        raise BadConfig("[requests] bus", f"{named[:60]!a} is not a bus; set spool, or kafka://HOST:PORT,HOST:PORT")
    try:
        from warcmill.clients.bus.kafka import KafkaBus  # noqa: PLC0415 the extra need not be installed
    except ImportError as error:
        raise BadConfig(
            "[requests] bus", f"Kafka's client is not installed: pip install 'warcmill[kafka]' ({error})"
        ) from None
    return KafkaBus(found[1], seconds, access)
