"""The line as luigi.cfg has it: its roots, each opened when it is first used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tasks.config.settings import Settings, settings
from warcmill.chain import Wanted
from warcmill.extracts.extracts import Extracts
from warcmill.launches.roots import JobRoots, RootMap
from warcmill.launches.view import LaunchView
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import Store


@dataclass(frozen=True)
class OpenRoots:
    """The open roots, for one run of a step; each is opened when first used."""

    settings: Settings
    state: MarkerStore

    @cached_property
    def rootmap(self) -> RootMap:
        return self.settings.rootmap()

    @cached_property
    def wanted(self) -> Wanted:
        """The switches that are on; or BadConfig. Read once: a scan asks for each of its launches."""
        return self.settings.wanted()

    def roots_of(self, job: str) -> JobRoots:
        """The roots of a job, or Unavailable."""
        return self.rootmap.of(job)

    def view(self, launch: Launch) -> LaunchView:
        """A new view of a launch; it opens no root before it needs one."""
        return LaunchView(self.state, launch, self.rootmap.of)

    @cached_property
    def store(self) -> Store:
        return self.settings.open_store()

    @cached_property
    def extracts(self) -> Extracts | None:
        """The extracts of the index root; None for a line without one."""
        return self.settings.open_extracts()


def open_line() -> OpenRoots:
    """The configured line, or Unavailable."""
    config = settings()
    return OpenRoots(config, config.open_state())
