"""Save what is whole of a WARC that its engine never closed.

The `.open` file is stored as it is. Its whole records, from the first to the
one before the fault, are stored once more under the closed name beside it: a
WARC that every tool can read.
"""

from __future__ import annotations

from functools import cached_property

from warcmill import fixity, layout
from warcmill.fixity import Readable
from warcmill.model import FileRef, Item, Launch, Outcome
from warcmill.state import State
from warcmill.steps.transfer import store_file
from warcmill.stores import Store


class Salvage:
    """Salvages the `.open` WARCs of a launch."""

    def __init__(self, state: State, store: Store, launch: Launch) -> None:
        self._state, self._store, self._launch = state, store, launch

    def items(self, checked: Item, made: FileRef) -> tuple[tuple[Item, ...], str]:
        """The item of what was salvaged from `made`, the stored copy of a file; or why nothing was.

        Both are empty for a file that is not `.open`.
        """
        file = checked.file
        closed = layout.closed_name(file.path)
        if closed == file.path:
            return (), ""
        whole = _whole(checked)
        if not whole:
            return (), "no record in it is whole"
        if layout.closed_name(file.name) in self._listed:
            return (), "the launch has a file of its closed name"
        salvaged = self._store_prefix(made, whole)
        why = f"salvaged: the first {whole} of {file.size} bytes of {file.name}, whole records all"
        return (Item(file, Outcome.OK, salvaged, why, facts={"salvaged": True, "bytes": whole}),), ""

    @cached_property
    def _listed(self) -> frozenset[str]:
        """The names of all files that the launch's 03 markers list: by `final`, all that there are."""
        stages = self._state.stages(self._launch)
        keys = [layout.key("output.AssembleOutput", self._launch, stage=stage) for stage in stages]
        claims = [found.claim for key in keys if (found := self._state.read(key))]
        return frozenset(item.file.name for claim in claims for item in claim.items)

    def _store_prefix(self, made: FileRef, size: int) -> FileRef:
        """Store the first bytes of a stored file beside it, read from there: the engine's file may still change."""
        with self._store.open(made.path) as stream:
            _, sha512 = fixity.sha512(_Prefix(stream, size))
        salvaged = FileRef("store", layout.closed_name(made.path), size, sha512)
        with self._store.open(made.path) as stream:
            store_file(self._store, salvaged, _Prefix(stream, size))
        return salvaged


def _whole(checked: Item) -> int:
    if checked.outcome is Outcome.OK:
        return checked.file.size
    whole = checked.facts["whole"]
    assert isinstance(whole, int)
    return whole


class _Prefix:
    """The first bytes of a stream."""

    def __init__(self, stream: Readable, size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(min(size, self._left))
        self._left -= len(data)
        return data
