"""The second reading of a stage's stored files, from the disk itself: for their digests and the gate. Reads only."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from msgspec import Struct

from warcmill import layout
from warcmill.base import digests
from warcmill.base.progress import Progress
from warcmill.errors import Mismatch
from warcmill.files.transfer import Tee, counts, place, present, progress, stored
from warcmill.formats.warc import gate
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.facts.files import Stored, StoredFile
from warcmill.markers.facts.output import Assembled
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Launch, Outcome, Stage
from warcmill.stores import Store


def read_back(state: MarkerStore, store: Store, launch: Launch, stage: Stage) -> Claim:
    """The claim of files.read-back.

    Unsettled when the stored bytes differ from those of files.Checksum, or when the gate's verdict does.
    Salvaged files must pass the gate.
    """
    key = layout.key("files.ReadBack", launch, stage=stage)
    verified = state.require(layout.key("files.Verify", launch, stage=stage))
    assembled = state.require(layout.key("output.AssembleOutput", launch, stage=stage))
    items = {stored(item): item for item in verified.claim.items}
    attempts = Attempts(state, key)
    offsets, facts = Assembled.from_claim(assembled.claim).offsets, Stored.from_claim(verified.claim).files
    reading = _Reading(store, items, facts, offsets, progress(attempts, items))
    read = run_items(attempts, items, reading.version, reading.item)
    return Claim(key, rests_on(verified, assembled), items=read, counts=counts(read))


class _Reading(Struct, frozen=True):
    store: Store
    items: Mapping[FileRef, Item]
    facts: Mapping[FileRef, StoredFile]
    offsets: Mapping[str, int]
    progress: Progress

    def version(self, copy: FileRef) -> str:
        """A text that changes when the stored file does."""
        return present(self.store, copy).version

    def item(self, copy: FileRef) -> tuple[Item, ...]:
        """The item unchanged; Mismatch when the stored bytes disagree with it."""
        item, sha512 = self.items[copy], hashlib.sha512()
        with self.store.read_back(copy.path) as stream:
            outcome = self._examine(Tee(stream, copy, self.progress, sha512.update), item, copy)
        if sha512.hexdigest() != copy.sha512:
            raise Mismatch(f"sha512 of {place(copy)}, read back", copy.sha512, sha512.hexdigest())
        if outcome is not item.outcome:
            raise Mismatch(f"the gate's verdict on {place(copy)}, read back", item.outcome, outcome)
        return (Item(item.file, item.outcome, copy, item.why, item.offset, item.facts),)

    def _examine(self, tee: Tee, item: Item, copy: FileRef) -> Outcome:
        if item.file.root == "state":
            digests.drain(tee)
            return Outcome.OK
        named = None if self.facts[copy].salvaged else self.offsets.get(item.file.label)
        verdict = gate.examine(tee, copy.name, named)
        return Outcome.OK if verdict.ok else Outcome.REFUSED
