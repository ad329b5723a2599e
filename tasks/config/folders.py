"""Find luigi.cfg, and read the state and job folders from it, without importing Luigi: fast enough for completion."""

from __future__ import annotations

import os
from configparser import ConfigParser, Error
from pathlib import Path

VARIABLE = "LUIGI_CONFIG_PATH"
ARCHIVE = "archive"  # the folder that `warcmill crawl` makes
NO_ARCHIVE = (
    f"none is found: {VARIABLE} is not set, and there is neither ./luigi.cfg nor ./{ARCHIVE}/luigi.cfg."
    " 'warcmill crawl URL' makes one here; 'warcmill init FOLDER' makes one for the crawls of another engine"
)


def find() -> Path | None:
    """The luigi.cfg of the archive that a verb works on, also one that LUIGI_CONFIG_PATH names wrongly."""
    if path := os.environ.get(VARIABLE):
        return Path(path).absolute()
    places = (Path("luigi.cfg"), Path(ARCHIVE, "luigi.cfg"))
    return next((place.absolute() for place in places if os.path.isfile(place)), None)


def config_file() -> str:
    """The path of the luigi.cfg that Luigi reads."""
    return os.environ.get(VARIABLE) or "luigi.cfg"


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
