"""What tells whether a launch that runs is alive: its age, and the last sign of its engine. Reads only.

A sign proves nothing about an end: a paused crawl is silent, and silence closes no launch. It is told, so that
somebody looks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from warcmill.errors import NotReady
from warcmill.launches import Engines, Listing
from warcmill.model import FINAL, FileRef, Json, Launch, stamp_time

TAIL = 1 << 16  # bytes at a log's end that are read
_WRITTEN = "%Y-%m-%dT%H:%M:%SZ"
_TIME = re.compile(rb"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Vitals:
    """Since when a launch runs, its engine's last sign ('' for none: then it counts from the beginning), and when."""

    began: datetime
    log: str
    last: datetime

    def silence(self, now: datetime) -> timedelta:
        """For how long nothing was heard."""
        return max(now - self.last, timedelta())

    def text(self, now: datetime) -> str:
        """Both, in words."""
        age = f"running for {span(now - self.began)}"
        if not self.log:
            return f"{age}; its engine has given no sign since"
        return f"{age}; its engine's last sign was {span(self.silence(now))} ago ({self._last}, {self.log})"

    def json(self) -> dict[str, Json]:
        """For machines."""
        return {"began": f"{self.began:{_WRITTEN}}", "last_sign": self._last, "log": self.log}

    @property
    def _last(self) -> str:
        return f"{self.last:{_WRITTEN}}"


def of(engines: Engines, launch: Launch, listing: Listing) -> Vitals:
    """Read the ends of the logs that a running launch writes."""
    began = stamp_time(launch.id)
    own = [file for file in listing.job_files if file.name == "job.log"]
    signs = [(time, file.name) for file in (*listing.logs.get(FINAL, ()), *own) for time in _last_time(engines, file)]
    last, log = max(signs, default=(began, ""))
    return Vitals(began, log, last)


def _last_time(engines: Engines, file: FileRef) -> Iterator[datetime]:
    """The time of a log's last line that begins with one; none when it has no such line, or was renamed since."""
    if file.name.endswith(".gz"):
        return
    try:
        with engines.root(file.root).open(file.path, max(file.size - TAIL, 0)) as stream:
            times = _TIME.findall(stream.read(TAIL))
    except NotReady:
        return
    if times:
        try:
            yield datetime.fromisoformat(f"{times[-1].decode()}+00:00")
        except ValueError:
            return  # digits that are no time: a cut or foreign line


def span(length: timedelta) -> str:
    """A length of time in two units at most."""
    minutes = max(int(length.total_seconds()), 0) // 60
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours // 24} d {hours % 24} h" if hours >= 24 else f"{hours} h {minutes % 60} min"
