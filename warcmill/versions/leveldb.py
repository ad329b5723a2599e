"""Versions whose payload is a LevelDB: made beside the one before, read by a copy of links. Writes to the index root.

LevelDB lets one process open a database, and writes whenever it is opened. Its tables are never changed. So a new
version begins with links to the tables of the one before, whose folder stays as it is; and each reader opens links of
its own, in a folder that goes with it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from warcmill.base import digests
from warcmill.errors import BadConfig, Mismatch, Unavailable
from warcmill.model import FileRef
from warcmill.stores import LocalStore, temporary_names
from warcmill.versions.publication import Published
from warcmill.versions.segments import Segment

try:
    import plyvel
except ImportError:  # `check_installed` reports it
    plyvel = None

_MAKING, _READING = "making", "reading"  # folders of the index root: nothing in them outlives its process
_TABLES = (".ldb", ".sst")
_OWN = frozenset({"LOCK", "LOG", "LOG.old"})  # of the process that has it open
_BUFFER = 32 << 20  # bytes that are sorted in memory, twice at most


def check_installed() -> None:
    """BadConfig without the extra that reads and writes databases."""
    if plyvel is None:
        why = "is set, and plyvel cannot be imported: pip install 'warcmill[pypi]', or empty it"
        raise BadConfig("[pypi] since", why)


class Database:
    """An open database. Unavailable where it is damaged: each block is compared with its checksum as it is read."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.db: Any = None

    def open(self, folder: Path, **options: Any) -> None:
        """Open the database of a folder."""
        self.db = plyvel.DB(str(folder), paranoid_checks=True, **options)

    def close(self) -> None:
        """Close it."""
        if self.db is not None:
            self.db.close()
            self.db = None

    def get(self, key: bytes) -> bytes | None:
        """The value of a key; None without one."""
        with _outage(self.where):
            found: bytes | None = self.db.get(key, verify_checksums=True)
        return found

    def beginning_with(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The pairs whose keys begin with these bytes, in order."""
        with _outage(self.where), self.db.iterator(prefix=prefix, verify_checksums=True) as found:
            yield from found

    def since(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The pairs whose keys are not before this one, in order."""
        with _outage(self.where), self.db.iterator(start=start, verify_checksums=True) as found:
            yield from found


@contextmanager
def making(index: LocalStore, data_set: str, before: Published | None) -> Iterator[MadeDatabase]:
    """Open a new database, with all that the version before has. It is gone afterwards, unless `publish` linked it."""
    check_installed()
    place = f"{_MAKING}/{data_set}"
    with ExitStack() as opened:
        with _outage(f"index:{before.folder if before else place}"):
            folder = opened.enter_context(_folder(index, place))
            made = MadeDatabase(folder, f"index:{place}", before.segments[0] if before else None)
            opened.callback(made.close)
            if made.known:
                _link(index, made.known, folder)
            made.reopen()
        yield made


class MadeDatabase(Database):
    """A database that is being made, in a folder of its own."""

    def __init__(self, folder: Path, where: str, known: Segment | None) -> None:
        super().__init__(where)
        self.folder, self.known = folder, known

    def reopen(self) -> None:
        """Open it, anew if it is open; what was written is in tables then."""
        self.close()
        self.open(
            self.folder,
            create_if_missing=not self.known,
            write_buffer_size=_BUFFER,
            block_size=16 << 10,
            max_file_size=16 << 20,
            bloom_filter_bits=10,
        )

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Put pairs, and delete the keys whose value is None."""
        with _outage(self.where), self.db.write_batch() as batch:
            for key, value in changes.items():
                if value is None:
                    batch.delete(key)
                else:
                    batch.put(key, value)

    def publish(self, index: LocalStore, folder: str, keys: int) -> Segment:
        """Link the files into the folder of a version, synced, in place of a killed fold's files."""
        for entry in index.list(folder):
            index.remove(entry.path, entry)
        with _outage(self.where):
            self.reopen()  # what is in the log only goes into a table, so that no reader has to do it
            self.close()
            Path(index.real(folder)).mkdir(parents=True, exist_ok=True)
            names = sorted(path.name for path in self.folder.iterdir() if path.name not in _OWN)
            files = {name: self._publish(index, folder, name) for name in names}
            _sync(index.real(folder))
        return Segment("", keys, files)

    def _publish(self, index: LocalStore, folder: str, name: str) -> FileRef:
        path, source = f"{folder}/{name}", self.folder / name
        before = self.known.files.get(name) if self.known and name.endswith(_TABLES) else None
        if before and os.path.samefile(source, index.real(before.path)):
            os.link(source, index.real(path))
            return before._replace(path=path)
        _sync(source)
        with source.open("rb") as stream:
            size, sha512 = digests.sha512(stream)
        os.link(source, index.real(path))
        return FileRef("index", path, size, sha512)


@contextmanager
def reading(index: LocalStore, published: Published) -> Iterator[Database]:
    """Open a version for reading. It stays whole if the version is retired."""
    check_installed()
    database = Database(f"index:{published.folder}")
    with ExitStack() as opened:
        with _outage(database.where):
            folder = opened.enter_context(_folder(index, _READING))
            for segment in published.segments:
                _link(index, segment, folder)
            database.open(folder)
        opened.callback(database.close)
        yield database


def check_files(index: LocalStore, segment: Segment) -> None:
    """Read all files of a version again. Mismatch if a byte of one is another."""
    for file in segment.files.values():
        if (found := index.server_digest(file.path)) != ("sha512", file.sha512):
            raise Mismatch(f"index:{file.path}", file.sha512, found[1] if found else "no file")


def _link(index: LocalStore, segment: Segment, folder: Path) -> None:
    """Give a folder the files of a version: links to tables, whose blocks have checksums; copies of the few small
    files that LevelDB changes, compared with their digests. One that is cut may read as an older state, or as empty."""
    for name, file in segment.files.items():
        source, copy = index.real(file.path), folder / name
        if name.endswith(_TABLES):
            os.link(source, copy)
            is_same = copy.stat().st_size == file.size
        else:
            shutil.copyfile(source, copy)
            with copy.open("rb") as stream:
                is_same = digests.sha512(stream) == (file.size, file.sha512)
        if not is_same:
            raise plyvel.CorruptionError(f"{file.path} is not as it was published")


@contextmanager
def _outage(where: str) -> Iterator[None]:
    """Unavailable for what the disk or LevelDB reports: neither is the absence of a key."""
    try:
        yield
    except (plyvel.CorruptionError, FileNotFoundError) as error:
        why = f"{error}; 'warcmill versions verify' compares its files; delete its folder, and the next scan makes it"
        raise Unavailable(where, f"{why} again") from error
    except (plyvel.Error, OSError) as error:
        raise Unavailable(where, str(error)) from error


@contextmanager
def _folder(index: LocalStore, where: str) -> Iterator[Path]:
    """A folder of this process; those of this host's dead processes are removed."""
    top = Path(index.real(where))
    top.mkdir(parents=True, exist_ok=True)
    for left in top.iterdir():
        if temporary_names.is_dead(left.name):
            shutil.rmtree(left, ignore_errors=True)
    folder = top / temporary_names.name("leveldb")
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
