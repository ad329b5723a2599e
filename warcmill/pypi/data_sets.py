"""The data sets of a package index, as the fold sees them: each is one LevelDB, made of the dumps of one job.

A version that has more dumps than the one before begins with its database, and takes the new ones, in the order of
their windows; else it begins with nothing. A key of the file's own lists what it put into a data set: by
that it goes when its project's page has it no more. In `distributions` it stays, with the last serial at which it was
there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from typing import IO, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from warcmill import layout
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.formats.pypi import data_sets
from warcmill.formats.pypi.data_sets import (
    COUNT,
    DEPGRAPH,
    DISTRIBUTIONS,
    FIRST,
    MODULES,
    DistributionLife,
    Pairs,
    Yanked,
)
from warcmill.formats.pypi.dump import DistributionRow, ListedFile, ProjectState, rows_of, states_of
from warcmill.formats.pypi.simple_pages import OfferedFile
from warcmill.layout import DumpedData, DumpFile
from warcmill.model import FileRef, Window
from warcmill.stores import LocalStore, Store
from warcmill.versions import leveldb
from warcmill.versions.dataset import Built, New, Wanted
from warcmill.versions.hidden_list import Hidden
from warcmill.versions.inputs import ListedWarc, Lists
from warcmill.versions.leveldb import Database, MadeDatabase
from warcmill.versions.publication import Published
from warcmill.versions.segments import Segment

GENERATION = 1
DUMPS = "dumps/"
_BATCH = 4 << 20  # bytes of keys and values that are written together
_PAIRS: dict[str, Callable[[DistributionRow], Pairs]] = {
    MODULES: data_sets.of_modules,
    DEPGRAPH: data_sets.of_depgraph,
}


class WholeDump(Struct, frozen=True):
    """A dump of a window, with its files in the store. Those of one generation are a chain from serial 0."""

    window: Window
    generation: int
    files: tuple[FileRef, ...]


class PackageData(Struct, frozen=True, dict=True):
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

    def wanted(self, before: Sequence[ListedWarc]) -> Wanted:
        """The files of the chain. A chain that has lost dumps, as during a redo, withdraws no published file."""
        inputs = tuple(sorted(self._inputs))
        if lost := set(before) - set(inputs) if set(inputs) < set(before) else None:
            why = f"{len(lost)} of its dump files have no marker now, such as {min(lost).name}: warcmill reconcile"
            return Wanted(tuple(before), (f"{self.name} stays as it is: {why}",))
        return Wanted(inputs)

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
        with leveldb.making(index, self.name, before) as made:
            filling = _Filling(self.name, made, is_empty=before is None)
            for window, files in _by_window(fresh):
                for data in filling.order:
                    for file, listed in files:
                        if file.data is data:
                            self._fill(filling, window, file, listed)
                filling.is_empty = False
            return made.publish(index, folder, filling.finish())

    def _fill(self, filling: _Filling, window: Window, file: DumpFile, listed: ListedWarc) -> None:
        with self.open_store().open(file.path) as stream, _checked(stream, file.path, listed.sha512) as checked:
            if file.data is DumpedData.DISTRIBUTIONS:
                for row in rows_of(checked, file.path):
                    filling.take_row(row)
            else:
                for state in states_of(checked, file.path):
                    filling.take_state(state, window)


def place_of(one: ListedWarc) -> DumpFile:
    """The dump's file that an input of a version is."""
    place = layout.parse_dump_path(DUMPS + one.name)
    if place is None:
        raise BadInput(f"store:{DUMPS}{one.name}", "not the path of a dump's file")
    return place


def _by_window(inputs: Sequence[ListedWarc]) -> Iterator[tuple[Window, list[tuple[DumpFile, ListedWarc]]]]:
    found: dict[Window, list[tuple[DumpFile, ListedWarc]]] = {}
    for one in inputs:
        file = place_of(one)
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
    """Writes to a database in batches; what was not written yet is seen too.

    `is_empty`: the dump is the first, so its rows find nothing to replace. VerifyDump has seen that each is of a file
    that a page lists, once.
    """

    def __init__(self, name: str, made: MadeDatabase, *, is_empty: bool) -> None:
        self._pairs, self._made, self.is_empty = _PAIRS.get(name), made, is_empty
        self._waiting: dict[bytes, bytes | None] = {}
        self._size = 0
        self._keys = int(made.get(COUNT) or b"0")

    @property
    def order(self) -> tuple[DumpedData, ...]:
        """The files of a dump, in the order to take them."""
        if self._pairs is None:  # facts belong to files that are listed
            return DumpedData.STATE, DumpedData.DISTRIBUTIONS
        # a key may only go once its file has put it there
        return (DumpedData.DISTRIBUTIONS,) if self.is_empty else (DumpedData.DISTRIBUTIONS, DumpedData.STATE)

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
        if not self.is_empty:
            self._forget(owner)
        pairs = self._pairs(row)
        self._keys += len(pairs)
        self._put({**pairs, owner: data_sets.owned(pairs)})

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
        self._put(dict.fromkeys((*keys, owner)))
        self._keys -= len(keys)

    def _relist(self, state: ProjectState, serial: int) -> None:
        prefix = data_sets.joined(state.project, "")
        known = [] if self.is_empty else self._beginning_with(prefix)
        before = {key: DistributionLife.parse(value) for key, value in known}
        now = {data_sets.joined(state.project, file.filename): file for file in state.files}
        for key, file in now.items():
            life = _life(before.get(key), file, serial)
            if life != before.get(key):
                self._put({key: life.encode()})
        self._keys += len(now.keys() - before.keys())
        for key in before.keys() - now.keys():
            if (life := before[key]).last is None:
                self._put({key: replace(life, last=max(life.first, serial - 1)).encode()})

    def _attach(self, row: DistributionRow) -> None:
        key = data_sets.joined(row.project, row.filename)
        if value := self._get(key):
            life = DistributionLife.parse(value)
            if life.file.sha256 in (None, row.sha256):
                self._put({key: replace(life, row=row).encode()})

    def _get(self, key: bytes) -> bytes | None:
        if key in self._waiting:
            return self._waiting[key]
        return self._made.get(key)

    def _beginning_with(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        self._write()
        return list(self._made.beginning_with(prefix))

    def _put(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Put pairs, and delete the keys whose value is None."""
        self._waiting.update(changes)
        self._size += sum(map(len, changes)) + sum(map(len, filter(None, changes.values())))
        if self._size > _BATCH:
            self._write()

    def _write(self) -> None:
        self._made.write(self._waiting)
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


class PublishedHistory(Struct, frozen=True):
    """The files of a package index by serial, as an open database of `distributions` has them.

    `newest`: the last serial that is known. `begin`: the end of the full dump that it begins with, whose pages have no
    past.
    """

    database: Database
    begin: int
    newest: int
    opened: ExitStack

    def close(self) -> None:
        """Close the database."""
        self.opened.close()

    def projects(self, serial: int) -> Iterator[str]:
        """The normalised names of the projects that had a file at a serial, sorted. NotReady for one before the end of
        the full dump: projects that changed later have no past there."""
        if serial < self.begin:
            why = f"it is known from serial {self.begin} on, by the full dump that ends there"
            raise NotReady(f"the list of projects at serial {serial}", why)
        return self._there(serial)

    def _there(self, serial: int) -> Iterator[str]:
        last = ""
        for key, value in self.database.since(FIRST):
            project = data_sets.parts_of(key)[0]
            if project != last and DistributionLife.parse(value).was_there(serial):
                last = project
                yield project

    def files(self, project: str, serial: int) -> Iterator[OfferedFile]:
        """The files that a project had at a serial, as its page listed them. NotReady if that is not known: its page
        in the full dump is a later one."""
        lives = list(self.lives(project))
        first = min((life.first for life in lives), default=0)
        if serial < first <= self.begin:
            why = f"its page is known from serial {first} on, by the full dump that ends at {self.begin}"
            raise NotReady(f"{project} at serial {serial}", why)
        return (OfferedFile(life.at(serial), life.row) for life in lives if life.was_there(serial))

    def lives(self, project: str) -> Iterator[DistributionLife]:
        """All files that a project ever had here, by name."""
        pairs = self.database.beginning_with(data_sets.joined(project, ""))
        return (DistributionLife.parse(value) for _, value in pairs)


def open_history(state: LocalStore, index: LocalStore, published: Published) -> PublishedHistory:
    """Open a version of `distributions`. That takes milliseconds, so that each reader has one of its own, which no
    update and no retirement touches."""
    inputs = Lists(state, DISTRIBUTIONS).read(published.number).inputs
    begin = min((place_of(one).window.up_to for one in inputs), default=0)
    with ExitStack() as opened:
        database = opened.enter_context(leveldb.reading(index, published))
        return PublishedHistory(database, begin, newest_serial(inputs), opened.pop_all())


def newest_serial(inputs: Sequence[ListedWarc]) -> int:
    """The last serial of the dumps that a version is made of; 0 without one."""
    return max((place_of(one).window.up_to for one in inputs), default=0)
