"""The captures of viral and refused WARCs, which no index has. They are read for payloads that are nowhere else."""

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
from warcmill.model import FileRef, Item, Outcome, Stage
from warcmill.stores import Store

VIRAL = "viral/"
_STORED = "files.verified."


def warcs(state: MarkerStore, *, refused: bool = False) -> Iterator[FileRef]:
    """The viral WARCs of all launches, as the store has them; with `refused`, those that the gate has refused, too."""
    for launch in with_markers(state, date.min, date.max):
        names = state.store.names(layout.state_folder(launch))
        keys = filter(None, (layout.parse_marker_name(name) for name in sorted(names) if name.startswith(_STORED)))
        for stage in (Stage.parse(key["stage"]) for key in keys):
            with suppress(NotReady):  # it has just been moved aside
                items = state.record(layout.step("verify", launch, stage)).claim.items
                yield from (item.made for item in items if item.made and _is_taken(item, item.made, refused))


def _is_taken(item: Item, made: FileRef, refused: bool) -> bool:
    return made.path.startswith(VIRAL) or (refused and item.outcome is Outcome.REFUSED)


def lines(store: Store, warc: FileRef) -> Iterator[bytes]:
    """The CDXJ lines of such a WARC, up to where it is cut; none if it is not in the store any more."""
    found: list[bytes] = []
    with suppress(NotReady), store.open(warc.path) as stream:
        hearer = CdxLines(found.append)
        gate.examine(stream, warc.name, hearers=[hearer])
        hearer.close()
    yield from found
