"""The dumps of a package index's job, by their markers: the newest, and which generation the next is of. Reads only."""

from __future__ import annotations

from warcmill import layout
from warcmill.errors import NotReady
from warcmill.launches import discovery
from warcmill.launches.full_dumps import FullDump, decided, last_of, newest_of, newest_whole
from warcmill.markers.claim import Claim, Evidence
from warcmill.markers.facts.pulse import Started
from warcmill.markers.facts.pypi import Dumped
from warcmill.markers.state import MarkerStore
from warcmill.model import Key, Launch, Window
from warcmill.pypi import feed
from warcmill.pypi.feed import EarlierDump, LackedProject


def newest(state: MarkerStore, job: str) -> EarlierDump | None:
    """The newest whole dump of a job; None for a job without any. A later launch's window begins where it ends."""
    marker = newest_whole(state, job)
    if marker is None:
        return None
    dumped, asked = last_of(state, marker), fed_by(state, layout.launch_of(marker.claim.key))
    lacking = {name: LackedProject() for name in dumped.lacking}
    if lacking:  # a page that was older than its event may still be
        pages = {one.project for one in dumped.lacked if not one.file}
        files = {name: tuple(one.file for one in dumped.lacked if one.project == name) for name in lacking}
        is_full = dumped.window.after < feed.window_of(state, asked).after  # what earlier launches got is not in it
        for one in feed.targets(state, asked):
            if one.project in pages:
                named = None if is_full else one.files
                lacking[one.project] = LackedProject(one.serial, named, one.tries + 1, one.newest, one.older)
            elif one.project in lacking:
                lacking[one.project] = LackedProject(one.serial, files[one.project])
    return EarlierDump(dumped.window.up_to, lacking, feed.projects_of(state, asked), asked, dumped.waiting)


def fed_by(state: MarkerStore, launch: Launch) -> Key:
    """The key of the feed of a launch; NotReady for one that was not started by pulse."""
    started = state.require(layout.key("pulse.Started", launch))
    return layout.feed_key(launch.job, Started.from_claim(started.claim).due)


def lock(job: str) -> str:
    """The name of the lock under which a full dump is decided, and a dump published: it saves the work of dumping a
    launch anew, in the generation that was decided meanwhile."""
    return f"pypi.{job}"


def of_newest(state: MarkerStore, job: str) -> FullDump | None:
    """The full dump that was decided of a job's newest whole dump, which the next window follows; None without any."""
    marker = newest_whole(state, job)
    return decided(state, layout.launch_of(marker.claim.key)) if marker else None


def followed(state: MarkerStore, launch: Launch) -> FullDump | None:
    """The full dump that the window of a launch follows; None for the window of a full crawl."""
    before = whole_before(state, launch)
    if before is None or feed.window_of(state, fed_by(state, launch)).after == 0:
        return None
    return decided(state, layout.launch_of(before.claim.key))


def whole_before(state: MarkerStore, launch: Launch) -> Evidence | None:
    """The marker of the newest whole dump of a launch before this one; None without any."""
    return newest_of(state, (one for one in discovery.of_job(state, launch.job) if one.id < launch.id))


def next_generation(state: MarkerStore, window: Window, before: Evidence | None) -> int:
    """The generation of the dump of a window: that of the whole dump before it, if the window begins where that ends,
    or of the full dump that was decided of that one. One that begins at 0 anew, as that of a full crawl, begins its
    own."""
    if before is None:
        return 1
    dumped, full = Dumped.from_claim(before.claim), decided(state, layout.launch_of(before.claim.key))
    return (full.generation if full else dumped.generation) + (window.after == 0 < dumped.window.up_to)


def refuse_outdated(state: MarkerStore, launch: Launch, claim: Claim) -> None:
    """NotReady if a full dump was decided while a launch was dumped: its dump belongs to that generation."""
    made = Dumped.from_claim(claim)
    generation = next_generation(state, made.window, whole_before(state, launch))
    if generation != made.generation:
        why = f"it was dumped in generation {made.generation}, and dump_full has begun {generation} meanwhile"
        raise NotReady(str(launch), f"{why}; the next scan dumps it there")
