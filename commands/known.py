"""Jobs and launches for tab completion, at once: folders as luigi.cfg names them, without Luigi and without a network.

What cannot be read offers nothing. A job on another host, of which no scan has left a marker, is not offered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from configparser import ConfigParser, Error
from pathlib import Path

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.model import FINAL, Launch, parse_job

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")


class Known:
    """The names that lie in the state root and in the engines' job folders."""

    def __init__(self) -> None:
        config = ConfigParser(interpolation=None, strict=False)
        try:
            config.read(os.environ.get("LUIGI_CONFIG_PATH") or "luigi.cfg", encoding="utf-8")
        except (Error, UnicodeDecodeError):
            config.clear()
        state = config.get("warcmill", "state", fallback="")
        self._state = Path(os.path.expandvars(state)) if state else None
        keys = [
            ("warcmill", "jobs"),
            *((name, "job_files") for name in config.sections() if name.startswith("engine.")),
        ]
        places = (os.path.expandvars(config.get(section, key, fallback="")) for section, key in keys)
        self._engines = [Path(place) for place in places if place.startswith("/")]

    def months(self) -> list[str]:
        """The months that have a marker: `2016-10`."""
        return [name for name in _folders(self._state) if _MONTH.fullmatch(name)] if self._state else []

    def jobs(self) -> list[str]:
        """The names of all jobs."""
        return sorted({name for folder in self._homes() for name in _folders(folder) if _is_job(name)})

    def launches(self, job: str) -> list[str]:
        """The ids of a job's launches."""
        found = {name for folder in self._homes() for name in _folders(folder / job)} if _is_job(job) else set()
        return sorted(name for name in found if len(name) == 14 and name.isdigit())

    def stages(self, job: str, launch_id: str) -> list[str]:
        """The stages of a launch that have a marker, and `final`."""
        try:
            folder = layout.state_folder(Launch.parse(job, launch_id))
        except BadInput:
            return []
        names = _names(self._state / folder) if self._state else []
        keys = filter(None, map(layout.parse_marker_name, names))
        return sorted({str(FINAL), *(params["stage"] for key in keys if "stage" in (params := dict(key.params)))})

    def _homes(self) -> Iterator[Path]:
        """The folders that hold a folder for each job."""
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
            return sorted(one.name for one in entries if one.is_dir())
    except OSError:
        return []


def _is_job(name: str) -> bool:
    try:
        return bool(parse_job(name)) and not layout.NEVER_A_LAUNCH.fullmatch(name)
    except BadInput:
        return False
