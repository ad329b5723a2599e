"""Store the whole records of a WARC that is still `.open`.

The `.open` file is stored as it is. Its whole records, from the first to the
one before the fault, are stored again beside it, under its final name: a WARC
that every tool can read.
"""

from __future__ import annotations

from functools import cached_property

from warcmill import layout
from warcmill.base import digests
from warcmill.base.digests import Readable
from warcmill.files.transfer import store_file
from warcmill.markers.facts import Checked
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Item, Launch, Outcome
from warcmill.stores import Store


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
