"""Read the state and job folders from luigi.cfg without importing Luigi: fast enough for tab completion."""

from __future__ import annotations

import os
from configparser import ConfigParser, Error
from pathlib import Path


def config_file() -> str:
    """The path of the luigi.cfg that Luigi reads."""
    return os.environ.get("LUIGI_CONFIG_PATH") or "luigi.cfg"


def state_and_jobs() -> tuple[Path | None, list[Path]]:
    """The state folder, None if it is not set, and the folders of engines' jobs. A file that cannot be read has none.

    Job folders on another host (sftp://) are left out.
    """
    config = ConfigParser(interpolation=None, strict=False)
    try:
        config.read(config_file(), encoding="utf-8")
    except (Error, UnicodeDecodeError):
        config.clear()
    state = config.get("warcmill", "state", fallback="")
    engines = [(name, "job_files") for name in config.sections() if name.startswith("engine.")]
    engines.append(("engine.imported", "output"))
    places = (
        os.path.expandvars(config.get(section, key, fallback="")) for section, key in [("warcmill", "jobs"), *engines]
    )
    return Path(os.path.expandvars(state)) if state else None, [Path(place) for place in places if place[:1] == "/"]
