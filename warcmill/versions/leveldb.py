"""Versions whose payload is a LevelDB: made beside the one before, read by a copy of links. Writes to the index root.

LevelDB lets one process open a database, and writes whenever it is opened. Its tables are never changed. So a new
version begins with links to the tables of the one before, whose folder stays as it is; and each reader opens links of
its own, in a folder that goes with it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import plyvel

from warcmill.base import digests
from warcmill.errors import Mismatch, Unavailable
from warcmill.model import FileRef
from warcmill.stores import LocalStore, temporary_names
from warcmill.versions.publication import Published
from warcmill.versions.segments import Segment

_MAKING, _READING = "making", "reading"  # folders of the index root: nothing in them outlives its process
_TABLES = (".ldb", ".sst")
_OWN = frozenset({"LOCK", "LOG", "LOG.old"})  # of the process that has it open
_BUFFER = 32 << 20  # bytes that are sorted in memory, twice at most


@contextmanager
def making(index: LocalStore, data_set: str, before: Published | None) -> Iterator[MadeDatabase]:
    """Open a new database, with all that the version before has. It is gone afterwards, unless `publish` linked it."""
    folder = _new_folder(index, f"{_MAKING}/{data_set}")
    made = MadeDatabase(folder, before.segments[0] if before and before.segments else None)
    try:
        if made.known:
            _link(index, made.known, folder)
        made.open()
        yield made
    except (plyvel.Error, OSError) as error:
        raise Unavailable(f"index:{_MAKING}/{data_set}", f"{error} (root {index.base})") from error
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


class MadeDatabase:
    """A database that is being made, in a folder of its own."""

    def __init__(self, folder: Path, known: Segment | None) -> None:
        self.folder, self.known = folder, known
        self.db: Any = None

    def open(self) -> None:
        """Open it; what was written is in tables then."""
        self.close()
        options = {
            "write_buffer_size": _BUFFER,
            "block_size": 16 << 10,
            "max_file_size": 16 << 20,
            "bloom_filter_bits": 10,
        }
        self.db = plyvel.DB(str(self.folder), create_if_missing=True, paranoid_checks=True, **options)

    def close(self) -> None:
        """Close it."""
        if self.db is not None:
            self.db.close()
            self.db = None

    def publish(self, index: LocalStore, folder: str, keys: int) -> Segment:
        """Link the files into the folder of a version, synced, in place of what a killed fold left there."""
        self.open()  # what is in the log only goes into a table, so that no reader has to do it
        self.close()
        for entry in index.list(folder):
            index.remove(entry.path, entry)
        Path(index.real(folder)).mkdir(parents=True, exist_ok=True)
        files = {name: self._publish(index, folder, name) for name in sorted(_names(self.folder))}
        _sync(index.real(folder))
        return Segment("", keys, files)

    def _publish(self, index: LocalStore, folder: str, name: str) -> FileRef:
        path, source = f"{folder}/{name}", self.folder / name
        before = self.known.files.get(name) if self.known and name.endswith(_TABLES) else None
        os.link(source, index.real(path))
        if before and os.path.samefile(source, index.real(before.path)):
            return before._replace(path=path)
        _sync(source)
        with source.open("rb") as stream:
            size, sha512 = digests.sha512(stream)
        return FileRef("index", path, size, sha512)


@contextmanager
def reading(index: LocalStore, published: Published) -> Iterator[Any]:
    """Open a version for reading: the database has `get` and `iterator`. It stays whole if the version is retired."""
    folder = _new_folder(index, _READING)
    database: Any = None
    try:
        for segment in published.segments:
            _link(index, segment, folder)
        database = plyvel.DB(str(folder), create_if_missing=not published.segments)
        yield database
    except (plyvel.Error, OSError) as error:
        raise Unavailable(
            f"index:{published.folder}", f"{error}; to read it again: warcmill versions verify"
        ) from error
    finally:
        if database is not None:
            database.close()
        shutil.rmtree(folder, ignore_errors=True)


def check_files(index: LocalStore, segment: Segment) -> None:
    """Read all files of a version again. Mismatch if a byte of one is another."""
    for file in segment.files.values():
        if (found := index.server_digest(file.path)) != ("sha512", file.sha512):
            raise Mismatch(f"index:{file.path}", file.sha512, found[1] if found else "no file")


def _link(index: LocalStore, segment: Segment, folder: Path) -> None:
    """Give a folder the files of a version: links to tables, copies of the few small files that LevelDB changes."""
    for name, file in segment.files.items():
        if name.endswith(_TABLES):
            os.link(index.real(file.path), folder / name)
        else:
            shutil.copyfile(index.real(file.path), folder / name)


def _new_folder(index: LocalStore, where: str) -> Path:
    """A folder of this process; those of this host's dead processes are removed."""
    top = Path(index.real(where))
    top.mkdir(parents=True, exist_ok=True)
    for left in top.iterdir():
        if temporary_names.is_dead(left.name):
            shutil.rmtree(left, ignore_errors=True)
    folder = top / temporary_names.name("leveldb")
    folder.mkdir()
    return folder


def _names(folder: Path) -> Iterator[str]:
    return (path.name for path in folder.iterdir() if path.name not in _OWN)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
