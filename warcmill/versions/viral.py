"""The captures of viral WARCs, which no index has. They are read in the store, for payloads that are nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import date

from warcmill import layout
from warcmill.errors import NotReady
from warcmill.formats.cdxj import CdxLines
from warcmill.formats.warc import gate
from warcmill.launches.recorded import with_markers
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Stage
from warcmill.stores import Store

VIRAL = "viral/"
_STORED = "files.verified."


def warcs(state: MarkerStore) -> Iterator[FileRef]:
    """The viral WARCs of all launches, as the store has them."""
    for launch in with_markers(state, date.min, date.max):
        names = state.store.names(layout.state_folder(launch))
        keys = filter(None, (layout.parse_marker_name(name) for name in sorted(names) if name.startswith(_STORED)))
        for stage in (Stage.parse(key["stage"]) for key in keys):
            with suppress(NotReady):  # it has just been moved aside
                items = state.record(layout.step("verify", launch, stage)).claim.items
                yield from (item.made for item in items if item.made and item.made.path.startswith(VIRAL))


def lines(store: Store, warc: FileRef) -> Iterator[bytes]:
    """The CDXJ lines of a viral WARC, up to where it is cut; none if it is not in the store any more."""
    found: list[bytes] = []
    with suppress(NotReady), store.open(warc.path) as stream:
        hearer = CdxLines(found.append)
        gate.examine(stream, warc.name, hearers=[hearer])
        hearer.close()
    yield from found
