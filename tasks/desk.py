"""The desk of documents as luigi.cfg has it: of the current version, and the watched targets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache, partial

from tasks.config import sections
from tasks.config.chains import DOCUMENTS
from tasks.config.settings import NO_INDEX
from tasks.line import OpenRoots
from warcmill.documents import desk
from warcmill.documents.desk import Desk, DeskSources
from warcmill.errors import BadConfig
from warcmill.markers.state import MarkerStore
from warcmill.stores.opening import open_folder
from warcmill.versions.documents import watching
from warcmill.versions.documents.watching import WatchedTargets


def is_on() -> bool:
    """True if crawls are searched for documents."""
    return bool(sections.value(DOCUMENTS, "since"))


def sources(line: OpenRoots) -> DeskSources:
    """The parts that the desk is made of; BadConfig for a line without an index root."""
    if not line.settings.index:
        raise BadConfig("[warcmill] index", f"is not set, {NO_INDEX}")
    index = open_folder("index", line.settings.index)
    targets = watching.name_of(line.state, sections.value(DOCUMENTS, "watched"))
    watched = partial(_watched, line.state, targets)
    return DeskSources(line.state.store, index, partial(desk.published_entries, index), targets, watched)


@lru_cache(1)
def _watched(state: MarkerStore, _name: str) -> WatchedTargets:
    """The watched targets; `_name` is another one for each list."""
    return watching.targets(state, sections.value(DOCUMENTS, "watched"))


@contextmanager
def opened(line: OpenRoots) -> Iterator[Desk]:
    """The desk, up to date."""
    with desk.opened(sources(line)) as found:
        yield found
