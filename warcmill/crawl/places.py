"""The roots that a job of the built-in crawler writes to: folders of this host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warcmill.crawl import launch_folders
from warcmill.crawl.launch_folders import LaunchFolders
from warcmill.layout import OutputLayout
from warcmill.model import Launch

DATABASE, SCRATCH = "books.sqlite", "scratch"


@dataclass(frozen=True, slots=True)
class Places:
    """The roots `output` and `jobs`, and how the first is laid out."""

    output: Path
    jobs: Path
    layout: OutputLayout = OutputLayout.KIND_FIRST

    @property
    def roots(self) -> tuple[Path, Path]:
        """Both folders."""
        return self.output, self.jobs

    def folders(self, launch: Launch) -> LaunchFolders:
        """The folders of a launch."""
        return launch_folders.of(self.output, self.jobs, self.layout, launch)

    def job(self, name: str) -> Path:
        """The folder of a job."""
        return self.jobs / name

    def state(self, name: str) -> Path:
        """The folder of what a job keeps for itself."""
        return launch_folders.state_of(self.jobs, name)

    def database(self, name: str) -> Path:
        """The database of a job's books."""
        return self.state(name) / DATABASE

    def scratch(self, name: str) -> Path:
        """The folder of answers that are too long for memory."""
        return self.job(name) / SCRATCH

    def require(self) -> None:
        """Raise Unavailable or BadConfig unless both disks are there: nothing may be written beside them."""
        launch_folders.require_root(self.output, "output")
        launch_folders.require_root(self.jobs, "jobs")
