"""config/crontab as cron reads it, crontab(5): its variables, and its entries with the minutes at which each is due."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

CRONTAB = Path(__file__).parents[3] / "config" / "crontab"
# An entry behind a `#` is an example, to be taken by removing that.
_ENTRY = re.compile(r"^(# )?((?:[*/0-9,]+ ){5})(\S.*)$")
_VARIABLE = re.compile(r"^([A-Z_]+)=(.*)$")
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


@dataclass(frozen=True)
class Entry:
    """One line that cron runs: when, and the command as the shell gets it."""

    when: str
    command: str
    is_example: bool

    @cached_property
    def _fields(self) -> tuple[frozenset[int], ...]:
        minute, hour, *days = (_numbers(text, *span) for text, span in zip(self.when.split(), _RANGES, strict=True))
        assert self.when.split()[2:] == ["*", "*", "*"], f"{self.when}: days of month and week together mean 'or'"
        return (minute, hour, *days)

    def is_due(self, moment: datetime) -> bool:
        """Whether cron runs it in this minute, its clock being UTC."""
        minutes, hours, *_ = self._fields
        return moment.minute in minutes and moment.hour in hours

    @property
    def is_frequent(self) -> bool:
        """Whether it is run in every hour."""
        return len(self._fields[1]) == 24

    @property
    def name(self) -> str:
        """What it runs: `pulse start`, `scan`, `pulse.ScanForLaunches`."""
        found = re.search(r"\b(pulse (start|checkpoint|stop)|\w+\.(ScanForLaunches|BackupState))\b", self.command)
        return found[1] if found else "scan"


def entries() -> list[Entry]:
    """All of them, the examples too."""
    found = map(_ENTRY.match, CRONTAB.read_text("utf-8").splitlines())
    return [Entry(one[2].strip(), _command(one[3]), bool(one[1])) for one in found if one]


def variables(**paths: str) -> dict[str, str]:
    """The environment that cron gives to a command: next to nothing, and the crontab's own, with our paths for its."""
    given = {"LOGNAME": "archive", "PATH": "/usr/bin:/bin"}
    found = map(_VARIABLE.match, CRONTAB.read_text("utf-8").splitlines())
    own = {one[1]: one[2] for one in found if one}
    assert not set(paths) - set(own), "the crontab has no such variable"
    return {**given, **own, **paths}


def _command(text: str) -> str:
    """Cron ends a command at a percent sign that has no backslash before it."""
    assert "%" not in text.replace("\\%", ""), f"a bare % would end the command: {text}"
    return text.replace("\\%", "%")


def _numbers(text: str, first: int, last: int) -> frozenset[int]:
    """What a field names: `*`, `*/5`, `45`, `0,12,18`."""
    if text.startswith("*"):
        return frozenset(range(first, last + 1, int(text.removeprefix("*").removeprefix("/") or 1)))
    return frozenset(map(int, text.split(",")))
