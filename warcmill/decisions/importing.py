"""Import a folder of WARCs that have no launch and no log: they become a launch of their own.

The work is done in a hidden folder of the root of imported launches, and one rename makes it a launch; the marker
01.imported, which says that it has ended, comes last. A kill before the rename leaves no launch. One between the two
leaves a launch that runs as far as a scan knows, so no step begins; the next import of the job publishes its marker.

What a job has already, by its digest, is not imported again, so importing the same folder twice changes nothing. Files
that have come since make a second launch: the first is frozen, as its markers name exactly its files.

Whether a WARC is linked or copied: `take_in`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from warcmill import layout
from warcmill.decisions import foreign, incoming
from warcmill.decisions.import_claim import claim_of, launch_of
from warcmill.decisions.import_order import TASK, Order, Result
from warcmill.decisions.import_taking import Taking, check_room
from warcmill.decisions.take_in import Advance
from warcmill.decisions.taken_before import Before
from warcmill.errors import BadInput, Unavailable
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores.file import FileStore
from warcmill.stores.source_folder import SourceFolder

Shown = Callable[[int], AbstractContextManager[Advance]]  # shows the progress of so many bytes


def mend(state: MarkerStore, root: FileStore, job: str) -> Iterator[Launch]:
    """Complete the imports of a job that were killed when only the name, or the marker, was missing; yield them."""
    with own_disk(root):
        for left in list(incoming.leftovers(root, job)):
            claim = incoming.claim_in(root, left.folder)
            if claim and claim.key.task == TASK:
                left.place(layout.launch_of(claim.key))
    for launch in list(incoming.launches(root, job)):
        key = layout.key(TASK, launch)
        if state.read(key) is None and (claim := incoming.claim_in(root, str(launch))) and claim.key == key:
            state.publish(key, claim)
            yield launch


def import_folder(state: MarkerStore, root: FileStore, source: SourceFolder, order: Order, shown: Shown) -> Result:
    """Import the WARCs of a folder as one launch, and publish its marker.

    BadInput when there is no WARC, no date, or such a launch already. Unsettled when a file cannot be read: what was
    done is kept, and the next import continues from there.
    """
    result = Result(mended=tuple(mend(state, root, order.job)))
    found = order.layout.find(source)
    if not found.warcs:
        some = f", such as {found.missing[0]}" if found.missing else ""
        why = f"there is no WARC in it; what it has: {len(found.left_out) + len(found.missing)} other entries{some}"
        raise BadInput(str(source.base), why)
    before = Before.of(state, order.job)
    with own_disk(root):
        at = incoming.begin(root, order.job)
        packed = foreign.packed(source, found.warcs)
        names = foreign.names((entry.path for entry in found.warcs), packed=packed)
        taking = Taking(source, at, before, names, at.settled())
        check_room(root, taking, found)
        with shown(sum(entry.size for entry in found.warcs)) as advance:
            taking.all(found.warcs, advance)
        result.known = taking.known
        if not taking.new:
            at.discard()
            return result
        launch = launch_of(state, root, source, order, taking)
        result.claim = claim_of(launch, order, source, found, taking)
        result.linked = sum(taken.linked for taken in taking.new.values())
        at.complete([taking.names[path] for path in taking.new], result.claim)
        at.place(launch)
    state.publish(result.claim.key, result.claim)
    return result


@contextmanager
def own_disk(root: FileStore) -> Iterator[None]:
    """Make an error of the system on the root of imported launches an outage of that root."""
    try:
        yield
    except OSError as error:
        why = f"{error.strerror or error}. What is copied there is kept: import again when that is put right"
        raise Unavailable(f"the root of imported launches ({root.base})", why) from error
