"""The line as luigi.cfg has it: its roots, its catalogue, and where SIPs go. Each is opened when it is first used."""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tasks.config import chains, engines
from tasks.config import feed as feeds
from tasks.config.settings import Settings, settings
from warcmill import layout
from warcmill.chain import Wanted
from warcmill.errors import BadConfig, NotReady
from warcmill.launches.roots import JobRoots, RootMap
from warcmill.launches.view import LaunchView
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import Store
from warcmill.stores.opening import open_folder, open_other, open_store

if TYPE_CHECKING:
    from warcmill.extracts.extracts import Extracts
    from warcmill.markers.papers import JobPapers
    from warcmill.package.catalogue import Catalogue
    from warcmill.pulse.feed_edits import JobFeed

MOST_TASKS = 1_000  # of one scan: Luigi's cost grows faster than the number of its pending tasks


class OpenRoots(Struct, frozen=True, dict=True):
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


def papers_of(line: OpenRoots, folder: Path, job: str) -> JobPapers:
    """The papers of a job in its folder, and their editions."""
    from warcmill.markers.editions import JobEditions  # most verbs look at no paper
    from warcmill.markers.papers import JobPapers

    return JobPapers(folder, JobEditions(line.state.store, lambda: line.store, job))


def feed_of(line: OpenRoots, job: str) -> JobFeed:
    """The feed of a job, as people edit it. NotReady for a job without one."""
    if not feeds.is_fed(job):
        raise NotReady(f"job {job}", "it crawls no feed: [feed] jobs of luigi.cfg has not its name")
    from warcmill.clients import feed_source
    from warcmill.markers.editions import FEED, JobEditions
    from warcmill.pulse import feed, feed_edits

    source = feeds.source_text()
    editions = JobEditions(line.state.store, lambda: line.store, FEED)
    kept = partial(feed.kept, line.state, job)
    return feed_edits.of_source(job, source, feed_source.shown(source), editions, kept, engines.networks_of(job))


def catalogue_of(line: OpenRoots) -> Catalogue:
    """The catalogue, or BadConfig without an index; Unavailable when the disk of the index is not there."""
    if not line.settings.index:
        why = "is not set, and the catalogue of SIPs is there: warcmill init --adopt index"
        raise BadConfig("[warcmill] index", why)
    from warcmill.package.catalogue import Catalogue  # most verbs ask for the roots alone

    line.settings.check_index()
    return Catalogue(open_folder("index", line.settings.index).base)


def destination_of(line: OpenRoots) -> Store:
    """The destination, or Unavailable."""
    return open_store("destination", chains.destination(), line.settings.access)


def verified_at(line: OpenRoots) -> tuple[Store, str]:
    """Where SIPs are read again, and the folder there: without a place of its own, the destination's watched folder."""
    place = chains.verified_at()
    if place == chains.destination():
        return destination_of(line), f"{layout.INGEST}/"
    return open_other("verified_at", place, line.settings.access), ""
