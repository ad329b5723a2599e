"""Copy every file of a stage into the store, bit for bit, each under a name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warcmill import layout
from warcmill.base.progress import Progress
from warcmill.files.salvage import Salvage
from warcmill.files.transfer import Sources, Tee, counts, progress, store_file
from warcmill.launches.roots import JobRoots
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.facts import Checked, Checksums
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Launch, Root, Stage
from warcmill.stores import Store

Place = tuple[Root, str]


def copy(state: MarkerStore, roots: JobRoots, store: Store, launch: Launch, stage: Stage) -> Claim:
    """The claim of files.copied. A refused WARC is copied too, and stays refused.

    Unsettled when a file has changed since files.Checksum, or when the store has another file under its name.
    """
    key = layout.key("files.Copy", launch, stage=stage)
    checked = state.require(layout.key("files.Checksum", launch, stage=stage))
    items = {(item.file.root, item.file.path): item for item in checked.claim.items}
    files = [item.file for item in items.values()]
    targets = {(file.root, file.path): _target(roots, launch, file) for file in files}
    _sweep(store, targets)
    attempts = Attempts(state, key)
    sources = Sources(state, roots)
    facts = Checksums.from_claim(checked.claim).files
    copying = _Copying(sources, store, items, facts, targets, Salvage(state, store, launch), progress(attempts, files))
    copied = run_items(attempts, files, sources.version, copying.items, store.at_once)
    return Claim(key, rests_on(checked), items=copied, counts=counts(copied))


def _target(roots: JobRoots, launch: Launch, file: FileRef) -> FileRef:
    kind = "logs" if file.root == "state" else roots.kind_of(file)
    return FileRef("store", layout.stored_path(kind, launch, file.name), file.size, file.sha512)


def _sweep(store: Store, targets: Mapping[Place, FileRef]) -> None:
    """Remove what killed copies on this host left half-written."""
    for folder in {target.path.rpartition("/")[0] for target in targets.values()}:
        store.sweep(folder)


@dataclass(frozen=True)
class _Copying:
    sources: Sources
    store: Store
    checked: Mapping[Place, Item]
    facts: Mapping[FileRef, Checked]
    targets: Mapping[Place, FileRef]
    salvage: Salvage
    progress: Progress

    def items(self, file: FileRef) -> tuple[Item, ...]:
        """Copy one file, and salvage what is whole of an `.open` one."""
        known, target = self.checked[file.root, file.path], self.targets[file.root, file.path]
        with self.sources.root(file).open(file.path) as stream:
            store_file(self.store, target, Tee(stream, file, self.progress))
        checked = self.facts[file]
        salvaged, why_not = self.salvage.items(known, checked, target)
        facts: dict[str, Json] = {"hdfs": checked.hdfs}  # files.Verify compares it with HDFS's own
        if why_not:
            facts["not_salvaged"] = why_not
        return (Item(file, known.outcome, target, known.why, known.offset, facts), *salvaged)
