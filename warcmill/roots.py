"""Make or adopt the four root folders: each gets the file that proves it is there and not an empty mount point."""

from __future__ import annotations

import json
import os
from pathlib import Path

from warcmill.errors import BadConfig
from warcmill.layout import SENTINEL
from warcmill.model import Root, is_writer

OWN: tuple[Root, ...] = ("state", "store")


def adopt(folders: dict[Root, Path]) -> None:
    """Make the folders that are missing and write each one's sentinel. Safe to repeat.

    BadConfig when a folder is another root already, or when the state or the
    store would begin in a folder that holds something else.
    """
    for folder in dict.fromkeys(folders.values()):
        names = sorted(root for root, where in folders.items() if where == folder)
        _check(folder, names)
    for folder in dict.fromkeys(folders.values()):
        names = sorted(root for root, where in folders.items() if where == folder)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / SENTINEL).exists():
            write_whole(folder / SENTINEL, sentinel(names).decode())


_AND = "' and '"


def sentinel(names: list[Root]) -> bytes:
    """The content of the file that marks a folder as these roots."""
    return (json.dumps({"roots": sorted(map(_word, names)), "schema": 1}) + "\n").encode()


def _word(root: Root) -> str:
    """What a sentinel calls a root: all writers' are alike, so that one may be given another name."""
    return "writer" if is_writer(root) else root


def check_sentinel(root: Root, data: bytes, where: str) -> None:
    """BadConfig unless the file at `where` says that its folder is this root."""
    try:
        named = [_named(one) for one in json.loads(data)["roots"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadConfig(root, f"{where} is not the file that 'warcmill init' writes: {error!r}") from error
    if _word(root) not in named:
        raise BadConfig(root, f"{where} says that this folder is '{_AND.join(named)}', not '{root}': correct luigi.cfg")


def _named(found: object) -> str:
    if not isinstance(found, str):
        raise TypeError(f"{found!r} is no name of a root")
    return found


def write_whole(path: Path, text: str) -> None:
    """Write a small file under its name: durable and whole, or not at all.

    What a kill leaves of it beside, the next call replaces.
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
        if written != sorted(map(_word, names)):
            raise BadConfig(", ".join(names), f"{sentinel} says this folder is {', '.join(written)}; choose another")
    elif len(names) > 1 and set(names) & set(OWN):
        raise BadConfig(", ".join(names), f"{folder} cannot be all of these: state and store need folders of their own")
    elif set(names) & set(OWN) and folder.exists() and set(folder.iterdir()) - {_half(sentinel)}:
        raise BadConfig(names[0], f"{folder} holds files and was not made by 'warcmill init'; choose an empty folder")
