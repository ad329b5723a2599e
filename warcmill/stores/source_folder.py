"""A folder of WARCs that no engine of the line wrote, to be read once: without a sentinel, and no link is followed."""

from __future__ import annotations

from pathlib import Path

from warcmill.errors import Unavailable
from warcmill.stores.engine_folder import EngineFolder
from warcmill.stores.links import Links


class SourceFolder(EngineFolder):
    """The folder `base`. Each folder in it is opened from there on, so that a link put in its place leads nowhere."""

    def __init__(self, base: Path) -> None:
        super().__init__("output", base, Links())

    def where(self, path: str) -> str:
        """Return a path as messages show it."""
        return f"{self.base}/{path}"

    def _check_sentinel(self) -> None:
        if not self.base.is_dir():
            raise Unavailable(str(self.base), "there is no such folder; mount its disk, or correct the path")
