"""The data sets of a package index, as the fold sees them: each is one LevelDB, made of the dumps of one job.

A version that has more dumps than the one before begins with its database, and takes the new ones, in the order of
their windows; else it begins with nothing. A key of the file's own lists what it put into a data set: by
that it goes when its project's page has it no more. In `distributions` it stays, with the last serial at which it was
there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Self

from warcmill import layout
from warcmill.errors import BadConfig, BadInput, Mismatch
from warcmill.formats.pypi import data_sets
from warcmill.formats.pypi.data_sets import COUNT, DEPGRAPH, DISTRIBUTIONS, MODULES, DistributionLife, Pairs, Yanked
from warcmill.formats.pypi.dump import DistributionRow, ListedFile, ProjectState, rows_of, states_of
from warcmill.formats.pypi.simple_pages import OfferedFile
from warcmill.layout import DumpedData, DumpFile
from warcmill.model import FileRef, Window
from warcmill.stores import LocalStore, Store
from warcmill.versions.dataset import Built, New, Wanted
from warcmill.versions.hidden_list import Hidden
from warcmill.versions.inputs import ListedWarc, Lists
from warcmill.versions.publication import Payloads, Published
from warcmill.versions.segments import Segment

if TYPE_CHECKING:
    from warcmill.versions.leveldb import MadeDatabase

GENERATION = 1
DUMPS = "dumps/"
EXTRA = "warcmill[pypi]"
_BATCH = 4 << 20  # bytes of keys and values that are written together
_PAIRS: dict[str, Callable[[DistributionRow], Pairs]] = {
    MODULES: data_sets.of_modules,
    DEPGRAPH: data_sets.of_depgraph,
}


@dataclass(frozen=True, slots=True)
class WholeDump:
    """A dump of a window, with its files in the store. Those of one generation are a chain from serial 0."""

    window: Window
    generation: int
    files: tuple[FileRef, ...]


@dataclass(frozen=True)
class PackageData:
    """One data set. `dumps` are all whole dumps of the job."""

    state: LocalStore
    open_store: Callable[[], Store]
    index: LocalStore
    name: str
    dumps: Sequence[WholeDump]
    generation: int = GENERATION

    def seen(self) -> str:
        inputs = "".join(one.line() for one in self._inputs)
        return hashlib.sha512(f"{self.generation}\n{inputs}".encode()).hexdigest()

    def wanted(self, _before: Sequence[ListedWarc]) -> Wanted:
        return Wanted(tuple(sorted(self._inputs)))

    def build(self, wanted: Sequence[ListedWarc], _hidden: Hidden, before: Published | None, _room: IO[bytes]) -> Built:
        had = set(Lists(self.state, self.name).read(before.number).inputs) if before and before.segments else set()
        if not had or had - set(wanted):
            before, had = None, set()
        fresh = [one for one in wanted if one not in had]
        return Built(tuple(wanted), new=New(1, partial(self._commit, fresh=fresh, before=before)))

    @cached_property
    def _inputs(self) -> list[ListedWarc]:
        """The files of the newest generation's chain."""
        newest = max((dump.generation for dump in self.dumps), default=0)
        chain, at = list[WholeDump](), 0
        for dump in sorted(self.dumps, key=lambda dump: (dump.window.up_to, dump.window.after)):
            if dump.generation == newest and dump.window.after == at:
                chain.append(dump)
                at = dump.window.up_to
        files = (file for dump in chain for file in dump.files)
        return [ListedWarc(file.path.removeprefix(DUMPS), str(file.sha512), self.generation) for file in files]

    def _commit(
        self, index: LocalStore, folder: str, *, fresh: Sequence[ListedWarc], before: Published | None
    ) -> Segment:
        from warcmill.versions import leveldb  # noqa: PLC0415 - plyvel is an extra

        with leveldb.making(index, self.name, before) as made:
            filling = _Filling(self.name, made)
            for window, files in _by_window(fresh):
                for data in _ORDER[self.name]:
                    for file, listed in files:
                        if file.data is data:
                            self._fill(filling, window, file, listed)
            return made.publish(index, folder, filling.finish())

    def _fill(self, filling: _Filling, window: Window, file: DumpFile, listed: ListedWarc) -> None:
        with self.open_store().open(file.path) as stream, _checked(stream, file.path, listed.sha512) as checked:
            if file.data is DumpedData.DISTRIBUTIONS:
                for row in rows_of(checked, file.path):
                    filling.take_row(row)
            else:
                for state in states_of(checked, file.path):
                    filling.take_state(state, window)


# Facts belong to files that are listed; whereas a key may only go once its file has put it there.
_ORDER = {
    MODULES: (DumpedData.DISTRIBUTIONS, DumpedData.STATE),
    DEPGRAPH: (DumpedData.DISTRIBUTIONS, DumpedData.STATE),
    DISTRIBUTIONS: (DumpedData.STATE, DumpedData.DISTRIBUTIONS),
}


def _by_window(inputs: Sequence[ListedWarc]) -> Iterator[tuple[Window, list[tuple[DumpFile, ListedWarc]]]]:
    found: dict[Window, list[tuple[DumpFile, ListedWarc]]] = {}
    for one in inputs:
        file = layout.parse_dump_path(DUMPS + one.name)
        if file is None:
            raise BadInput(f"store:{DUMPS}{one.name}", "not the path of a dump's file")
        found.setdefault(file.window, []).append((file, one))
    for window in sorted(found, key=lambda window: (window.up_to, window.after)):
        yield window, found[window]


class _Checked:
    """A stream whose bytes are digested as they are read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.digest = stream, hashlib.sha512()

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        self.digest.update(data)
        return data


@contextmanager
def _checked(stream: BinaryIO, path: str, sha512: str) -> Iterator[_Checked]:
    """Mismatch at the end if a file in the store is no longer the one that was dumped."""
    checked = _Checked(stream)
    yield checked
    if checked.digest.hexdigest() != sha512:
        raise Mismatch(f"sha512 of store:{path}", sha512, checked.digest.hexdigest())


class _Filling:
    """Writes to a database in batches; what was not written yet is seen too."""

    def __init__(self, name: str, made: MadeDatabase) -> None:
        self._pairs, self._made = _PAIRS.get(name), made
        self._waiting: dict[bytes, bytes | None] = {}
        self._size = 0
        self._keys = int(made.db.get(COUNT) or b"0")

    def finish(self) -> int:
        """Write the rest; return the number of keys."""
        self._waiting[COUNT] = b"%d" % self._keys
        self._write()
        return self._keys

    def take_row(self, row: DistributionRow) -> None:
        """Take the facts of a file, in place of those that it had."""
        if self._pairs is None:
            self._attach(row)
            return
        owner = data_sets.owner(row.project, row.filename)
        self._forget(owner)
        pairs = self._pairs(row)
        for key, value in pairs.items():
            self._put(key, value)
        self._keys += len(pairs)
        self._put(owner, data_sets.owned(pairs))

    def take_state(self, state: ProjectState, window: Window) -> None:
        """Take the list of the files that a project has now."""
        if self._pairs is None:
            self._relist(state, min(state.serial or window.up_to, window.up_to))
            return
        now = {data_sets.owner(state.project, file.filename) for file in state.files}
        for owner in [key for key, _ in self._beginning_with(data_sets.owner(state.project, ""))]:
            if owner not in now:
                self._forget(owner)

    def _forget(self, owner: bytes) -> None:
        """Delete what a file put there, if it has put any."""
        owned = self._get(owner)
        if owned is None:
            return
        keys = owned.split(b"\n") if owned else []
        for key in (*keys, owner):
            self._put(key, None)
        self._keys -= len(keys)

    def _relist(self, state: ProjectState, serial: int) -> None:
        prefix = data_sets.joined(state.project, "")
        before = {key: DistributionLife.parse(value) for key, value in self._beginning_with(prefix)}
        now = {data_sets.joined(state.project, file.filename): file for file in state.files}
        for key, file in now.items():
            life = _life(before.get(key), file, serial)
            if life != before.get(key):
                self._put(key, life.encode())
        self._keys += len(now.keys() - before.keys())
        for key in before.keys() - now.keys():
            if (life := before[key]).last is None:
                self._put(key, replace(life, last=max(life.first, serial - 1)).encode())

    def _attach(self, row: DistributionRow) -> None:
        key = data_sets.joined(row.project, row.filename)
        if value := self._get(key):
            life = DistributionLife.parse(value)
            if life.file.sha256 in (None, row.sha256):
                self._put(key, replace(life, row=row).encode())

    def _get(self, key: bytes) -> bytes | None:
        if key in self._waiting:
            return self._waiting[key]
        found: bytes | None = self._made.db.get(key)
        return found

    def _beginning_with(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        self._write()
        with self._made.db.iterator(prefix=prefix) as found:
            return list(found)

    def _put(self, key: bytes, value: bytes | None) -> None:
        self._waiting[key] = value
        self._size += len(key) + len(value or b"")
        if self._size > _BATCH:
            self._write()

    def _write(self) -> None:
        if not self._waiting:
            return
        with self._made.db.write_batch() as batch:
            for key, value in self._waiting.items():
                if value is None:
                    batch.delete(key)
                else:
                    batch.put(key, value)
        self._waiting, self._size = {}, 0


def _life(before: DistributionLife | None, file: ListedFile, serial: int) -> DistributionLife:
    """The life of a file that a page lists at a serial. One with other bytes, or that was away, begins anew."""
    is_same = before is not None and before.last is None and before.file.sha256 == file.sha256
    kept = before if is_same else None
    yanked = None
    if file.yanked is not None:
        since = kept.yanked.since if kept and kept.yanked else serial
        yanked = Yanked(since, file.yanked)
    if kept:
        return replace(kept, file=file, yanked=yanked)
    return DistributionLife(file, serial, None, yanked, None)


@dataclass(frozen=True)
class PublishedHistory:
    """The files of a package index by serial, as an open database of `distributions` has them. `newest`: the last
    serial that is known."""

    database: Any
    newest: int
    opened: ExitStack

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self.opened.close()

    def projects(self, serial: int) -> Iterator[str]:
        """The normalised names of the projects that had a file at a serial, sorted."""
        last = ""
        with self.database.iterator(start=b"\x01") as pairs:
            for key, value in pairs:
                project = data_sets.parts_of(key)[0]
                if project != last and DistributionLife.parse(value).was_there(serial):
                    last = project
                    yield project

    def files(self, project: str, serial: int) -> Iterator[OfferedFile]:
        """The files that a project had at a serial, as its page listed them."""
        there = (life for life in self.lives(project) if life.was_there(serial))
        return (OfferedFile(life.at(serial), life.row) for life in there)

    def lives(self, project: str) -> Iterator[DistributionLife]:
        """All files that a project ever had here, by name."""
        with self.database.iterator(prefix=data_sets.joined(project, "")) as pairs:
            for _, value in pairs:
                yield DistributionLife.parse(value)


def open_history(state: LocalStore, index: LocalStore) -> PublishedHistory | None:
    """Open the current version of `distributions`; None if none is published."""
    found = Payloads(index, DISTRIBUTIONS).current()
    if found is None:
        return None
    with ExitStack() as opened:
        database = opened.enter_context(reading(index, found))
        newest = newest_serial(Lists(state, DISTRIBUTIONS).read(found.number).inputs)
        return PublishedHistory(database, newest, opened.pop_all())


def check_installed() -> None:
    """BadConfig without the extra that reads and writes the data sets."""
    if find_spec("plyvel") is None:
        raise BadConfig("[pypi] since", f"is set, and plyvel cannot be found: pip install '{EXTRA}', or empty it")


@contextmanager
def reading(index: LocalStore, published: Published) -> Iterator[Any]:
    """Open a version's database, which has `get` and `iterator`; BadConfig without the extra that reads it."""
    check_installed()
    from warcmill.versions import leveldb  # noqa: PLC0415 - plyvel is an extra

    with leveldb.reading(index, published) as database:
        yield database


def newest_serial(inputs: Sequence[ListedWarc]) -> int:
    """The last serial of the dumps that a version is made of; 0 for none."""
    files = (layout.parse_dump_path(DUMPS + one.name) for one in inputs)
    return max((file.window.up_to for file in files if file), default=0)
