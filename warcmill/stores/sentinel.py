"""Make or adopt the root folders. Each gets a sentinel: the file that an empty mount point lacks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from warcmill.errors import BadConfig
from warcmill.layout import SENTINEL, root_word
from warcmill.model import Root

OWN: tuple[Root, ...] = ("state", "store", "index", "destination")


def adopt(folders: dict[Root, Path]) -> None:
    """Make missing folders and write each folder's sentinel. Safe to repeat.

    BadConfig when a folder is another root already, or when the state, the store
    or the index would begin in a folder that is not empty.
    """
    for folder in dict.fromkeys(folders.values()):
        names = sorted(root for root, where in folders.items() if where == folder)
        _check(folder, names)
    for folder in dict.fromkeys(folders.values()):
        names = sorted(root for root, where in folders.items() if where == folder)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / SENTINEL).exists():
            write_whole(folder / SENTINEL, sentinel(names).decode())


_EACH = "state, store, index and destination need a folder of their own each"


def check_index(index: str, own: Iterable[str], others: Iterable[str]) -> None:
    """Raise BadConfig for an index in the state or the store (`own`), or with a root in it: an operator may delete the
    index, as it can be rebuilt, so it must hold nothing else."""
    if not index.startswith("/"):
        raise BadConfig("[warcmill] index", f"'{index}' is not an absolute path; the index is a folder of this host")
    folder, own = Path(index).resolve(), list(own)
    for place in (*own, *others):
        root = Path(place).resolve()
        if root.is_relative_to(folder) or (place in own and folder.is_relative_to(root)):
            why = f"of {index} and the root {place}, one is inside the other; choose another folder"
            raise BadConfig("[warcmill] index", why)


def sentinel(names: list[Root]) -> bytes:
    """Return the content of the file that marks a folder as these roots."""
    return (json.dumps({"roots": sorted(map(root_word, names)), "schema": 1}) + "\n").encode()


def write_whole(path: Path, text: str) -> None:
    """Write a small file, durable and whole, or not at all.

    The next call replaces a half-written file that a kill left beside it.
    """
    half = _half(path)
    with half.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    half.rename(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _half(path: Path) -> Path:
    return path.with_name(f"{path.name}.tmp")


def _check(folder: Path, names: list[Root]) -> None:
    sentinel = folder / SENTINEL
    if sentinel.exists():
        written = json.loads(sentinel.read_text())["roots"]
        if written != sorted(map(root_word, names)):
            raise BadConfig(", ".join(names), f"{sentinel} marks this folder as {', '.join(written)}; choose another")
    elif len(names) > 1 and set(names) & set(OWN):
        raise BadConfig(", ".join(names), f"{folder} cannot be all of these: {_EACH}")
    elif set(names) & set(OWN) and folder.exists() and set(folder.iterdir()) - {_half(sentinel)}:
        raise BadConfig(names[0], f"{folder} holds files and was not made by 'warcmill init'; choose an empty folder")
