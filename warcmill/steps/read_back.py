"""Read every stored file of a stage as a stranger would: cold from the disk, its digest, and the gate."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from warcmill import fixity, layout
from warcmill.errors import Mismatch
from warcmill.evidence import Claim
from warcmill.formats import gate
from warcmill.ledger import Ledger, settle
from warcmill.model import FileRef, Item, Launch, Outcome, Stage
from warcmill.progress import Progress
from warcmill.state import State
from warcmill.steps.checksum import named_offsets
from warcmill.steps.transfer import Tee, counts, is_salvaged, place, present, progress, rests_on, stored
from warcmill.stores import Store


def read_back(state: State, store: Store, launch: Launch, stage: Stage) -> Claim:
    """The claim of files.read-back. Unsettled when the stored bytes are not those of files.Checksum,
    or when the gate no longer says the same of them; what was salvaged must pass it."""
    key = layout.key("files.ReadBack", launch, stage=stage)
    verified = state.need(layout.key("files.Verify", launch, stage=stage))
    assembled = state.need(layout.key("output.AssembleOutput", launch, stage=stage))
    items = {stored(item): item for item in verified.claim.items}
    ledger = Ledger(state, key)
    reading = _Reading(store, items, named_offsets(assembled.claim), progress(ledger, items))
    read = settle(ledger, items, reading.version, reading.item)
    return Claim(key, rests_on(verified, assembled), items=read, counts=counts(read))


@dataclass(frozen=True)
class _Reading:
    store: Store
    items: Mapping[FileRef, Item]
    offsets: Mapping[str, int]
    progress: Progress

    def version(self, made: FileRef) -> str:
        """What changes when the stored file does."""
        return present(self.store, made).version

    def item(self, made: FileRef) -> tuple[Item, ...]:
        """The item as it was, when the stored bytes bear it out."""
        item, sha512 = self.items[made], hashlib.sha512()
        with self.store.read_back(made.path) as stream:
            outcome = self._examine(Tee(stream, made, self.progress, sha512.update), item)
        if sha512.hexdigest() != made.sha512:
            raise Mismatch(f"sha512 of {place(made)}, read back", made.sha512, sha512.hexdigest())
        if outcome is not item.outcome:
            raise Mismatch(f"what the gate says of {place(made)}, read back", item.outcome, outcome)
        return (Item(item.file, item.outcome, made, item.why, item.offset, item.facts),)

    def _examine(self, tee: Tee, item: Item) -> Outcome:
        if item.file.root == "state":
            fixity.drain(tee)
            return Outcome.OK
        named = None if is_salvaged(item) else self.offsets.get(item.file.label)
        verdict = gate.examine(tee, stored(item).name, named)
        return Outcome.OK if verdict.ok else Outcome.REFUSED
