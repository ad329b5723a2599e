"""The removal of WARCs that were read back from the store, from the roots of engines and writers. Deletes there only.

No other step removes anything that an engine wrote. A file is removed when all of this holds: it was never refused;
files.ReadBack has read its copy; the copy is still in the store; its own bytes, read again now, have the digest
in files.Checksum.
"""

from __future__ import annotations

from msgspec import Struct

from warcmill import layout
from warcmill.base import digests
from warcmill.errors import Mismatch
from warcmill.files.transfer import counts, place, present, stored
from warcmill.launches.roots import JobRoots
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.facts.files import Stored
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Launch, Outcome, Stage
from warcmill.stores import Stat, Store

INTENT = "retiring"


def retire(state: MarkerStore, roots: JobRoots, store: Store, launch: Launch, stage: Stage) -> Claim:
    """Remove the files; return the claim of files.retired. Refused WARCs stay, and it lists them as refused.

    Unsettled when a file or its copy has changed since it was read back, or when something else removed the file.
    """
    key = layout.key("files.Retire", launch, stage=stage)
    proven = state.require(layout.key("files.ReadBack", launch, stage=stage))
    facts = Stored.from_claim(proven.claim).files
    warcs = [item for item in proven.claim.items if item.file.is_engines and not facts[stored(item)].salvaged]
    safe = {item.file: stored(item) for item in warcs if item.outcome is Outcome.OK}
    attempts = Attempts(state, key)
    removing = _Removing(attempts, roots, store, safe, intended(attempts))
    removed = run_items(attempts, safe, _digest, removing.item)
    rest = (item for item in warcs if item.file not in safe)
    kept = tuple(Item(item.file, item.outcome, stored(item), item.why, item.offset) for item in rest)
    items = (*removed, *kept)
    return Claim(key, rests_on(proven), items=items, counts=counts(items))


def intended(attempts: Attempts) -> frozenset[str]:
    """Labels of the files that earlier attempts meant to remove."""
    return frozenset(line[INTENT] for attempt in attempts.earlier() for line in attempt.lines if INTENT in line)


def _digest(file: FileRef) -> str:
    """The version of a file that may be removed already: only its digest remains."""
    return str(file.sha512)


class _Removing(Struct, frozen=True):
    attempts: Attempts
    roots: JobRoots
    store: Store
    copies: dict[FileRef, FileRef]
    intended: frozenset[str]

    def item(self, file: FileRef) -> tuple[Item, ...]:
        """Remove one file. A missing file that an earlier attempt meant to remove counts as removed."""
        copy = self.copies[file]
        present(self.store, copy)
        root = self.roots.root(file.root)
        if file.label not in self.intended or root.stat(file.path) is not None:
            proven = self._read_again(root, file)
            self.attempts.append({INTENT: file.label})
            root.remove(file.path, proven)
        return (Item(file, Outcome.OK, copy),)

    def _read_again(self, root: Store, file: FileRef) -> Stat:
        """Read the file, and return its status from before; Mismatch unless its bytes are those that were stored."""
        before = present(root, file)
        with root.open(file.path) as stream:
            actual = digests.sha512(stream)
        proven = file.size, file.sha512
        if actual != proven:
            raise Mismatch(f"{place(file)} is no longer the file that was stored (bytes, sha512)", proven, actual)
        return before
