"""The schedule of a job in luigi.cfg, [job.NAME]: written, or taken away, for verbs and pages. Writes luigi.cfg.

Stands alone, as `warcmill schedule` and the pages write it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from commands.console import luigi_cfg
from tasks.config import engines
from warcmill.base import clock
from warcmill.base.schedule import LONGEST, Schedule, newest_due
from warcmill.errors import BadConfig
from warcmill.model import stamp_time

Show = Callable[[str], object]
_EACH_MONTH = 28  # the last day that each month has


def now() -> datetime:
    """The start of a schedule that begins now."""
    return stamp_time(clock.stamp()).replace(second=0)


def write(config: Path, job: str, wanted: Schedule, show: Show) -> None:
    """Write when a job is due, and show it; what is past is not owed by the new schedule."""
    now, section, frequency = wanted.start, f"job.{job}", wanted.frequency
    start = now
    if job in engines.scheduled():
        before = engines.schedule_of(job)
        _refuse_elsewhere(config, section)
        if before.frequency == frequency and (before.at, before.zone) == (wanted.at, wanted.zone):
            show(f"{job}: crawled {before.words} already, since {clock.text(before.start)}")
            return
        if not wanted.at:
            start = newest_due(before, now) or before.start
    keys = {"frequency": str(frequency).lower(), "start": clock.text(start), "at": wanted.at}
    keys["zone"] = wanted.zone if wanted.at and wanted.zone != "UTC" else ""
    luigi_cfg.edit(config, lambda text: luigi_cfg.scheduled(text, job, keys))
    first = clock.text(next(wanted.due(now, now + LONGEST))) if wanted.at else keys["start"]
    show(f"{job}: crawled {wanted.words}, first due {first}: [{section}] of {config}")
    day = start.astimezone(ZoneInfo(wanted.zone)).day
    if frequency.months and day > _EACH_MONTH:
        show(f"{job}: in a month without a day {day} it is due on the last day")


def remove(config: Path, job: str, show: Show) -> None:
    """Take the schedule of a job away."""
    if job not in engines.scheduled():
        show(f"{job}: it is not scheduled")
        return
    _refuse_elsewhere(config, f"job.{job}")
    luigi_cfg.edit(config, lambda text: luigi_cfg.unscheduled(text, job))
    show(f"{job}: no longer scheduled; what is archived stays")


def _refuse_elsewhere(config: Path, section: str) -> None:
    """BadConfig for a section of another file that Luigi reads."""
    if section not in luigi_cfg.parsed(luigi_cfg.read(config)):
        raise BadConfig(f"[{section}]", f"is not in {config}, but in another file that Luigi reads; edit it there")
