"""Back up what is history or decision, and of no launch: the lists of index versions, and what is hidden.

    state   versions/{data set}/{number}.list, decisions/{kind}/{number}.json
    store   state/_archive/ and the same path

Each file is sealed and never changes, so it is copied once, as it is. A decision is copied as it is made, and here if
the store was away then.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha512

from warcmill import layout
from warcmill.errors import BadInput
from warcmill.formats.seal import unseal
from warcmill.stores import LocalStore, Stat, Store, temporary_names

NAME = layout.ARCHIVE.rpartition("/")[2]
FOLDER = layout.ARCHIVE
KEPT = ("decisions", "versions")  # in this order: a list names decisions


@dataclass(frozen=True, slots=True)
class CopyOutcome:
    """The paths that were copied; those that differ from what is there, left as they are; and damaged files."""

    copied: tuple[str, ...]
    different: tuple[str, ...]
    damaged: tuple[BadInput, ...]


def back_up(state: LocalStore, store: Store) -> CopyOutcome:
    """Copy the files that the store has not. A damaged one is named and not copied."""
    there = {entry.path.removeprefix(f"{FOLDER}/"): entry.size for entry in _files(store, FOLDER)}
    ours = list(_files(state, ""))
    different = tuple(entry.path for entry in ours if there.get(entry.path, entry.size) != entry.size)
    return _copy(state, store, [entry.path for entry in ours if entry.path not in there], f"{FOLDER}/{{}}", different)


def restore(state: LocalStore, store: Store) -> CopyOutcome:
    """Bring back the files that the state has not. A file that is there, and differs, is named."""
    missing, different = list[str](), list[str]()
    for entry in _files(store, FOLDER):
        path = entry.path.removeprefix(f"{FOLDER}/")
        if state.stat(path) is None:
            missing.append(entry.path)
        elif _bytes(state, path) != _bytes(store, entry.path):
            different.append(path)
    return _copy(store, state, missing, "", tuple(different))


def _copy(source: Store, target: Store, paths: list[str], to: str, different: tuple[str, ...]) -> CopyOutcome:
    copied, damaged = list[str](), list[BadInput]()
    for path in paths:
        data = _bytes(source, path)
        try:
            unseal(data, path)
        except BadInput as error:
            damaged.append(BadInput(f"{source.root}:{path}", error.why, error.offset))
            continue
        name = to.format(path) if to else path.removeprefix(f"{FOLDER}/")
        target.commit_new(name, io.BytesIO(data), len(data), sha512(data).hexdigest())
        copied.append(name)
    return CopyOutcome(tuple(copied), different, tuple(damaged))


def _bytes(store: Store, path: str) -> bytes:
    with store.open(path) as file:
        return file.read()


def _files(store: Store, top: str) -> Iterator[Stat]:
    for kept in KEPT:
        for folder in store.list(f"{top}/{kept}" if top else kept):
            entries = store.list(folder.path) if folder.kind == "folder" else ()
            yield from (one for one in entries if one.kind == "file" and not temporary_names.is_temporary(one.name))
