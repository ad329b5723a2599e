"""Remove from the roots of engines and writers the WARCs that were read back from the store.

The only step that removes anything an engine wrote. It removes a file when all
of this holds: it was never refused; files.ReadBack has read its copy; the copy
is still there; and its own bytes, read again now, are those of files.Checksum.
"""

from __future__ import annotations

from dataclasses import dataclass

from warcmill import fixity, layout
from warcmill.errors import Mismatch
from warcmill.evidence import Claim
from warcmill.launches import Engines
from warcmill.ledger import Ledger, settle
from warcmill.model import FileRef, Item, Launch, Outcome, Stage
from warcmill.state import State
from warcmill.steps.transfer import counts, is_salvaged, place, present, rests_on, stored
from warcmill.stores import Stat, Store

INTENT = "retiring"


def retire(state: State, engines: Engines, store: Store, launch: Launch, stage: Stage) -> Claim:
    """Remove the files; the claim of files.retired. Refused WARCs stay, and are in it as refused.

    Unsettled when a file or its copy is no longer what was read back, or when another removed it.
    """
    key = layout.key("files.Retire", launch, stage=stage)
    proven = state.need(layout.key("files.ReadBack", launch, stage=stage))
    warcs = [item for item in proven.claim.items if item.file.is_engines and not is_salvaged(item)]
    safe = {item.file: stored(item) for item in warcs if item.outcome is Outcome.OK}
    ledger = Ledger(state, key)
    removing = _Removing(ledger, engines, store, safe, intended(ledger))
    removed = settle(ledger, safe, _digest, removing.item)
    kept = tuple(Item(one.file, one.outcome, stored(one), one.why, one.offset) for one in warcs if one.file not in safe)
    items = (*removed, *kept)
    return Claim(key, rests_on(proven), items=items, counts=counts(items))


def intended(ledger: Ledger) -> frozenset[str]:
    """Labels of the files that some attempt was about to remove."""
    return frozenset(line[INTENT] for attempt in ledger.attempts() for line in attempt.lines if INTENT in line)


def _digest(file: FileRef) -> str:
    """A file that is gone has no version but this."""
    return str(file.sha512)


@dataclass(frozen=True)
class _Removing:
    ledger: Ledger
    engines: Engines
    store: Store
    copies: dict[FileRef, FileRef]
    intended: frozenset[str]

    def item(self, file: FileRef) -> tuple[Item, ...]:
        """Remove one file. One that is gone, and that an attempt of ours was about to remove, is done."""
        made = self.copies[file]
        present(self.store, made)
        root = self.engines.root(file.root)
        if file.label not in self.intended or root.stat(file.path) is not None:
            proven = self._read_again(root, file)
            self.ledger.append({INTENT: file.label})
            root.remove(file.path, proven)
        return (Item(file, Outcome.OK, made),)

    def _read_again(self, root: Store, file: FileRef) -> Stat:
        """The file as it is while its bytes are still the ones that were stored, else Mismatch."""
        before = present(root, file)
        with root.open(file.path) as stream:
            found = fixity.sha512(stream)
        proven = file.size, file.sha512
        if found != proven:
            raise Mismatch(f"{place(file)} is no longer the file that was stored (bytes, sha512)", proven, found)
        return before
