"""Copy every file of a stage into the store, bit for bit, under a name that nothing else has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warcmill import layout
from warcmill.evidence import Claim
from warcmill.launches import Engines
from warcmill.ledger import Ledger, settle
from warcmill.model import FileRef, Item, Json, Launch, Root, Stage
from warcmill.progress import Progress
from warcmill.state import State
from warcmill.steps.salvage import Salvage
from warcmill.steps.transfer import Sources, Tee, counts, progress, rests_on, store_file
from warcmill.stores import Store

Place = tuple[Root, str]


def copy(state: State, engines: Engines, store: Store, launch: Launch, stage: Stage) -> Claim:
    """The claim of files.copied. A refused WARC is copied as well, and stays refused.

    Unsettled when a file is no longer what files.Checksum read, or when another file is in its place.
    """
    key = layout.key("files.Copy", launch, stage=stage)
    checked = state.need(layout.key("files.Checksum", launch, stage=stage))
    items = {(item.file.root, item.file.path): item for item in checked.claim.items}
    files = [item.file for item in items.values()]
    targets = {(file.root, file.path): _target(engines, launch, file) for file in files}
    _sweep(store, targets)
    ledger = Ledger(state, key)
    sources = Sources(state, engines)
    copying = _Copying(sources, store, items, targets, Salvage(state, store, launch), progress(ledger, files))
    copied = settle(ledger, files, sources.version, copying.items, store.at_once)
    return Claim(key, rests_on(checked), items=copied, counts=counts(copied))


def _target(engines: Engines, launch: Launch, file: FileRef) -> FileRef:
    kind = "logs" if file.root == "state" else engines.kind_of(file)
    return FileRef("store", layout.stored_path(kind, launch, file.name), file.size, file.sha512)


def _sweep(store: Store, targets: Mapping[Place, FileRef]) -> None:
    """Remove what killed copies of this host left half-written."""
    for folder in {made.path.rpartition("/")[0] for made in targets.values()}:
        store.sweep(folder)


@dataclass(frozen=True)
class _Copying:
    sources: Sources
    store: Store
    checked: Mapping[Place, Item]
    targets: Mapping[Place, FileRef]
    salvage: Salvage
    progress: Progress

    def items(self, file: FileRef) -> tuple[Item, ...]:
        """Copy one file, and salvage what is whole of an `.open` one."""
        known, made = self.checked[file.root, file.path], self.targets[file.root, file.path]
        with self.sources.root(file).open(file.path) as stream:
            store_file(self.store, made, Tee(stream, file, self.progress))
        salvaged, why_not = self.salvage.items(known, made)
        facts: dict[str, Json] = {"hdfs": known.facts["hdfs"]}  # what files.Verify will ask an HDFS for
        if why_not:
            facts["not_salvaged"] = why_not
        return (Item(file, known.outcome, made, known.why, known.offset, facts), *salvaged)
