"""The copies of a stage's files in the store, bit for bit, each under a name of its own. Writes to the store.

A WARC that is still `.open` is stored as it is. Its whole records, from the first to the one before the fault, are
stored again beside it, under its final name: a WARC that every tool can read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct

from warcmill import layout
from warcmill.base import digests
from warcmill.base.digests import Readable
from warcmill.base.progress import Progress
from warcmill.files.transfer import Sources, Tee, counts, progress, store_file
from warcmill.launches.roots import JobRoots
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.facts.files import Checked, Checksums
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Launch, Outcome, Root, Stage
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


class _Copying(Struct, frozen=True):
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


class Salvage:
    """Salvage the `.open` WARCs of a launch."""

    def __init__(self, state: MarkerStore, store: Store, launch: Launch) -> None:
        self._state, self._store, self._launch = state, store, launch

    def items(self, checked: Item, facts: Checked, copy: FileRef) -> tuple[tuple[Item, ...], str]:
        """Salvage from `copy`, the stored copy of a file: the new item, or the reason why there is none.

        Both are empty for a file that is not `.open`.
        """
        file = checked.file
        if layout.final_name(file.path) == file.path:
            return (), ""
        whole = file.size if checked.outcome is Outcome.OK else facts.whole
        if not whole:
            return (), "no record in it is whole"
        if layout.final_name(file.name) in self._listed:
            return (), "the launch has a file of its closed name"
        salvaged = self._store_prefix(copy, whole)
        why = f"salvaged: the first {whole} of {file.size} bytes of {file.name}, whole records all"
        return (Item(file, Outcome.OK, salvaged, why, facts={"salvaged": True, "bytes": whole}),), ""

    @cached_property
    def _listed(self) -> frozenset[str]:
        """The names of all files in the launch's 03 markers; the list is complete once `final` has its marker."""
        stages = self._state.stages(self._launch)
        keys = [layout.key("output.AssembleOutput", self._launch, stage=stage) for stage in stages]
        claims = [marker.claim for key in keys if (marker := self._state.read(key))]
        return frozenset(item.file.name for claim in claims for item in claim.items)

    def _store_prefix(self, copy: FileRef, size: int) -> FileRef:
        """Store the first `size` bytes of a stored file beside it. Read the store's copy: the engine's may change."""
        with self._store.open(copy.path) as stream:
            _, sha512 = digests.sha512(_Prefix(stream, size))
        salvaged = FileRef("store", layout.final_name(copy.path), size, sha512)
        with self._store.open(copy.path) as stream:
            store_file(self._store, salvaged, _Prefix(stream, size))
        return salvaged


class _Prefix:
    """The first `size` bytes of a stream."""

    def __init__(self, stream: Readable, size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(min(size, self._left))
        self._left -= len(data)
        return data
