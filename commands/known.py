"""List jobs, launches and stages for tab completion: without Luigi, without a network, from folders on this host.

A folder that cannot be read offers nothing. A job on another host is offered only once a scan has left a marker of it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tasks.config import folders
from warcmill import layout
from warcmill.errors import BadInput
from warcmill.model import FINAL, Launch, parse_job

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")


class Known:
    """The names found in the state root and in the engines' job folders."""

    def __init__(self) -> None:
        self._state, self._engines = folders.state_and_jobs()

    def months(self) -> list[str]:
        """The months that have a marker: `2016-10`."""
        return [name for name in _folders(self._state) if _MONTH.fullmatch(name)] if self._state else []

    def jobs(self) -> list[str]:
        """The names of all jobs."""
        return sorted({name for folder in self._job_parents() for name in _folders(folder) if _is_job(name)})

    def launches(self, job: str) -> list[str]:
        """The ids of a job's launches."""
        if not _is_job(job):
            return []
        names = {name for folder in self._job_parents() for name in _folders(folder / job)}
        return sorted(name for name in names if len(name) == 14 and name.isdigit())

    def stages(self, job: str, launch_id: str) -> list[str]:
        """The stages of a launch that have a marker, and `final`."""
        try:
            folder = layout.state_folder(Launch.parse(job, launch_id))
        except BadInput:
            return []
        names = _names(self._state / folder) if self._state else []
        keys = filter(None, map(layout.parse_marker_name, names))
        return sorted({str(FINAL), *(params["stage"] for key in keys if "stage" in (params := dict(key.params)))})

    def _job_parents(self) -> Iterator[Path]:
        """The folders that hold one folder a job."""
        yield from self._engines
        if self._state:
            yield from (self._state / month for month in self.months())


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _folders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except OSError:
        return []


def _is_job(name: str) -> bool:
    try:
        return bool(parse_job(name)) and not layout.NEVER_A_LAUNCH.fullmatch(name)
    except BadInput:
        return False
