"""The switches of steps that not every launch goes through: `since` and `jobs` in a section of the switch's name."""

from __future__ import annotations

from datetime import date

from tasks.config import sections
from warcmill.chain import Switch
from warcmill.errors import BadConfig

SWITCHES = ("viruses", "index", "text", "columns")


def wanted() -> dict[str, Switch]:
    """The switches that are on, or BadConfig."""
    return {name: switch for name in SWITCHES if (switch := read(name))}


def read(section: str) -> Switch | None:
    """The switch of a section; None when its `since` is not set."""
    since, jobs = sections.value(section, "since"), sections.value(section, "jobs")
    if since:
        return Switch(_day(since, section), frozenset(sections.names(jobs, f"[{section}] jobs")) if jobs else None)
    if jobs:
        raise BadConfig(f"[{section}] jobs", "is set without since, which switches the step on: set it to a day")
    return None


def _day(text: str, section: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise BadConfig(f"[{section}] since", f"is {text!r}; a day such as 2016-10-19, of the launches' ids") from error
