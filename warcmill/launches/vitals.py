"""Report the age of a running launch, and the last sign of its engine. Reads only.

Silence is no proof of an end: a paused crawl is silent too, so it ends no launch. It is reported so that an
operator looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from warcmill.base import clock
from warcmill.errors import NotReady
from warcmill.launches.listing import Listing
from warcmill.launches.roots import JobRoots
from warcmill.model import FINAL, FileRef, Json, Launch, stamp_time

TAIL = 1 << 16  # bytes that are read of a log's end
_TIME = re.compile(rb"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Vitals:
    """When a launch began, the log with its engine's last sign, and its time. Without a sign `log` is '' and `last`
    is `began`."""

    began: datetime
    log: str
    last: datetime

    def silence(self, now: datetime) -> timedelta:
        """Return the time since the last sign."""
        return max(now - self.last, timedelta())

    def text(self, now: datetime) -> str:
        """Return the age and the last sign in words."""
        age = f"running for {span(now - self.began)}"
        if not self.log:
            return f"{age}; its engine has given no sign since"
        return f"{age}; its engine's last sign was {span(self.silence(now))} ago ({self._last}, {self.log})"

    def json(self) -> dict[str, Json]:
        """Return the members that `--json` and reports have."""
        return {"began": clock.text(self.began), "last_sign": self._last, "log": self.log}

    @property
    def _last(self) -> str:
        return clock.text(self.last)


def of(roots: JobRoots, launch: Launch, listing: Listing) -> Vitals:
    """Return the vitals of a running launch, from the ends of the logs that it writes."""
    began = stamp_time(launch.id)
    own = [file for file in listing.job_files if file.name == "job.log"]
    signs = [(time, file.name) for file in (*listing.logs.get(FINAL, ()), *own) for time in _last_time(roots, file)]
    last, log = max(signs, default=(began, ""))
    return Vitals(began, log, last)


def _last_time(roots: JobRoots, file: FileRef) -> Iterator[datetime]:
    """Yield the time of a log's last line that begins with one; nothing without such a line, or after a rename."""
    if file.name.endswith(".gz"):
        return
    try:
        with roots.root(file.root).open(file.path, max(file.size - TAIL, 0)) as stream:
            times = _TIME.findall(stream.read(TAIL))
    except NotReady:
        return
    if times:
        try:
            yield datetime.fromisoformat(f"{times[-1].decode()}+00:00")
        except ValueError:
            return  # digits that are not a time: a cut or foreign line


def span(length: timedelta) -> str:
    """Return a length of time in words, with at most two units."""
    minutes = max(int(length.total_seconds()), 0) // 60
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours // 24} d {hours % 24} h" if hours >= 24 else f"{hours} h {minutes % 60} min"
