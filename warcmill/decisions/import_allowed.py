"""What can be imported, and as which job: nothing of an engine, and nothing of the line itself."""

from __future__ import annotations

from pathlib import Path

from warcmill import layout
from warcmill.decisions.import_order import TASK
from warcmill.decisions.taken_before import EVER
from warcmill.launches.recorded import with_markers
from warcmill.launches.rootmap import RootMap
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch


def why_not(rootmap: RootMap, state: MarkerStore, job: str) -> str:
    """Return why nothing can be imported as this job: something crawls it; '' when nothing does."""
    if section := rootmap.engine_of(job):
        return f"job '{job}' is crawled by {section.name}"
    for writer in rootmap.writers:
        if job in writer.jobs:
            return f"[{writer.root}] writes WARCs of job '{job}'"
    for (place, folder), root in rootmap.default.folders().items():
        if rootmap.open(root, place).stat(f"{folder}/{job}".lstrip("/")):
            return f"an engine crawls job '{job}': {place}/{folder} has a folder of it".replace("//", "/")
    crawled = (launch for launch in with_markers(state, *EVER) if launch.job == job and _is_crawled(state, launch))
    return next((f"an engine crawled job '{job}': launch {launch.id} was not imported" for launch in crawled), "")


def _is_crawled(state: MarkerStore, launch: Launch) -> bool:
    names = state.store.names(layout.state_folder(launch))
    return any(map(layout.parse_marker_name, names)) and layout.marker_name(layout.key(TASK, launch)) not in names


def is_inside(source: Path, root: str) -> bool:
    """True if a folder is in a root, or holds it."""
    place = Path(root).resolve()
    return source.is_relative_to(place) or place.is_relative_to(source)
