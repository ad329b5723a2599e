"""The data sets of a package index, as the fold sees them: each is one LevelDB, made of the dumps of one job.

A version that has more dumps than the one before begins with its database, and takes the new ones, in the order of
their windows; else it begins with nothing, as after a database whose keys are of another schema. A key of the file's
own lists what it put into a data set: by that it goes when the file leaves. In `distributions` it stays, with its life;
last come the newest releases of the projects that have changed.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from itertools import groupby
from typing import IO, BinaryIO, TypeVar

from msgspec import Struct

from warcmill import layout
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.formats.pypi import data_sets, releases
from warcmill.formats.pypi.data_sets import BEGIN, COUNT, DEPGRAPH, DISTRIBUTIONS, FIRST, MODULES, Pairs
from warcmill.formats.pypi.dump import DistributionRow, ProjectState, rows_of, states_of
from warcmill.formats.pypi.lives import DistributionLife, ProjectLives, StatusInterval, lives_of
from warcmill.formats.pypi.projects import ProjectRecord
from warcmill.formats.pypi.simple_pages import OfferedFile
from warcmill.layout import DumpedData, DumpFile
from warcmill.model import FileRef, Window
from warcmill.pypi.lives import BY_EVENTS, BY_PAGE, BY_TWO_PAGES, carried_on, left
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
_Row = TypeVar("_Row")
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
        if before and not self._has_schema(before):
            before, had = None, set()
        fresh = [one for one in wanted if one not in had]
        return Built(tuple(wanted), new=New(1, partial(self._commit, fresh=fresh, before=before)))

    @cached_property
    def _inputs(self) -> list[ListedWarc]:
        """The files of the newest generation's chain."""
        return [_input(file, self.generation) for dump in chain_of(self.dumps) for file in dump.files]

    def _has_schema(self, before: Published) -> bool:
        if self.name in _PAIRS:
            return True
        with leveldb.reading(self.index, before) as database:
            return database.get(releases.RELEASE) == releases.SCHEMA

    def _commit(
        self, index: LocalStore, folder: str, *, fresh: Sequence[ListedWarc], before: Published | None
    ) -> Segment:
        with leveldb.making(index, self.name, before) as made:
            filling = _Filling(self.name, made, is_empty=before is None)
            for window, files in _by_window(fresh):
                reading = DumpReading(self.open_store, files)
                for data in filling.order:
                    if data is DumpedData.DISTRIBUTIONS:
                        for row in reading.rows():
                            filling.take_row(row)
                    else:
                        for project in reading.projects():
                            filling.take_project(project, window)
                filling.is_empty = False
            return made.publish(index, folder, filling.finish())


def chain_of(dumps: Sequence[WholeDump]) -> list[WholeDump]:
    """The dumps of the newest generation whose windows follow each other, from serial 0 on."""
    newest = max((dump.generation for dump in dumps), default=0)
    chain, at = list[WholeDump](), 0
    for dump in sorted(dumps, key=lambda dump: (dump.window.up_to, dump.window.after)):
        if dump.generation == newest and dump.window.after == at:
            chain.append(dump)
            at = dump.window.up_to
    return chain


def readings(open_store: Callable[[], Store], chain: Sequence[WholeDump]) -> Iterator[tuple[Window, DumpReading]]:
    """The windows of a chain, each with its rows."""
    for window, files in _by_window([_input(file, GENERATION) for dump in chain for file in dump.files]):
        yield window, DumpReading(open_store, files)


def _input(file: FileRef, generation: int) -> ListedWarc:
    return ListedWarc(file.path.removeprefix(DUMPS), str(file.sha512), generation)


def place_of(one: ListedWarc) -> DumpFile:
    """The dump's file that an input of a version is."""
    place = layout.parse_dump_path(DUMPS + one.name)
    if place is None:
        raise BadInput(f"store:{DUMPS}{one.name}", "not the path of a dump's file")
    return place


class DumpedProject(Struct, frozen=True):
    """A project in a dump: its page, and its past; None: the dump does not have it. `pages`: the number of pages in a
    row without a file after which that has left."""

    name: str
    page: ProjectState | None
    past: ProjectLives | None
    pages: int

    def carried_on(
        self, known: Mapping[str, DistributionLife], record: ProjectRecord, window: Window
    ) -> dict[str, DistributionLife]:
        """The lives of its files at the end of the dump's window, by name; `known`, `record`: those of before."""
        events = self.past.events if self.past else () if self.pages == BY_EVENTS else None
        files = {life.file.filename: life for life in self.past.files} if self.past else {}
        return carried_on(self.name, files or known, window, self.page, events, self.pages, record.serial)

    def recorded(self, known: ProjectRecord, window: Window, *, missed: bool) -> ProjectRecord:
        """Its record at the end of the dump's window; `known`: that of before."""
        events = (self.past.events if self.past else None) or ()
        if self.past and self.past.statuses:
            known = ProjectRecord(self.past.statuses)
        return known.carried_on(window.after, window.up_to, self.page, events, missed=missed)


class DumpReading(Struct, frozen=True):
    """The files of the dumps of one window. Each is compared with its digest once it is read to its end."""

    open_store: Callable[[], Store]
    files: Sequence[tuple[DumpFile, ListedWarc]]

    def rows(self) -> Iterator[DistributionRow]:
        """The facts of files."""
        for file, listed in self.files:
            if file.data is DumpedData.DISTRIBUTIONS:
                yield from self._read(file, listed, rows_of)

    def projects(self) -> Iterator[DumpedProject]:
        """The projects, each with its page and its past, which are in files of the same number."""
        pasts = {file.number: (file, listed) for file, listed in self.files if file.data is DumpedData.LIVES}
        for file, listed in self.files:
            if file.data is not DumpedData.STATE:
                continue
            past = pasts.get(file.number)
            lives: Iterator[ProjectState | ProjectLives] = self._read(*past, lives_of) if past else iter(())
            pages: Iterator[ProjectState | ProjectLives] = self._read(file, listed, states_of)
            for name, rows in groupby(heapq.merge(pages, lives, key=_project), _project):
                yield _dumped(name, list(rows), has_past=past is not None)

    def _read(
        self, file: DumpFile, listed: ListedWarc, rows: Callable[[_Checked, str], Iterator[_Row]]
    ) -> Iterator[_Row]:
        with self.open_store().open(file.path) as stream, _checked(stream, file.path, listed.sha512) as checked:
            yield from rows(checked, file.path)


def _project(row: ProjectState | ProjectLives) -> str:
    return row.project


def _dumped(name: str, rows: Sequence[ProjectState | ProjectLives], *, has_past: bool) -> DumpedProject:
    page = next((row for row in rows if isinstance(row, ProjectState)), None)
    past = next((row for row in rows if isinstance(row, ProjectLives)), None)
    without_events = BY_TWO_PAGES if past and past.events is None else BY_EVENTS
    return DumpedProject(name, page, past, without_events if has_past else BY_PAGE)


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
        self._touched = set[str]()  # projects with pairs that wait
        self._size = 0
        self._keys = int(made.get(COUNT) or b"0")
        self._begin: int | None = None
        self._changed: set[str] | None = None if is_empty else set()  # projects; None: all

    @property
    def order(self) -> tuple[DumpedData, ...]:
        """The files of a dump, in the order to take them."""
        if self._pairs is None:  # facts belong to files that are listed
            return DumpedData.STATE, DumpedData.DISTRIBUTIONS
        # a key may only go once its file has put it there
        return (DumpedData.DISTRIBUTIONS,) if self.is_empty else (DumpedData.DISTRIBUTIONS, DumpedData.STATE)

    def finish(self) -> int:
        """Write the rest; return the number of keys."""
        if self._pairs is None:
            self._release()
        self._waiting[COUNT] = b"%d" % self._keys
        if self._begin is not None:
            self._waiting[BEGIN] = b"%d" % self._begin
        self._write()
        return self._keys

    def take_row(self, row: DistributionRow) -> None:
        """Take the facts of a file, in place of those that it had."""
        if self._pairs is None:
            self._attach(row)
            return
        owner = data_sets.owner(row.project, row.filename)
        if not self.is_empty:
            self._forget(row.project, owner)
        pairs = self._pairs(row)
        self._keys += len(pairs)
        self._put(row.project, {**pairs, owner: data_sets.owned(pairs)})

    def take_project(self, project: DumpedProject, window: Window) -> None:
        """Take the files that a project has now, and what has become of the others."""
        if self._pairs is None:
            self._carry_on(project, window)
            return
        begin = data_sets.owner(project.name, "")
        names = {data_sets.parts_of(key)[1]: key for key, _ in self._beginning_with(begin, project.name)}
        for name in self._left(project, names):
            self._forget(project.name, names[name])

    def _left(self, project: DumpedProject, names: Mapping[str, bytes]) -> set[str]:
        """The files among these that have left their project."""
        if project.pages == BY_EVENTS:
            events = (project.past.events if project.past else None) or ()
            return left(project.name, names, events, project.page)
        if project.page is None:
            return set()
        listed = {data_sets.parts_of(data_sets.joined(file.filename))[0] for file in project.page.files}
        away = names.keys() - listed
        if project.pages == BY_PAGE:
            return away
        missed = {name for name in names if self._get(data_sets.missed(project.name, name)) is not None}
        marks = dict.fromkeys(away - missed, b"") | dict.fromkeys(missed)
        self._put(project.name, {data_sets.missed(project.name, name): mark for name, mark in marks.items()})
        return away & missed

    def _forget(self, project: str, owner: bytes) -> None:
        """Delete what a file put there, if it has put any."""
        owned = self._get(owner)
        if owned is None:
            return
        keys = owned.split(b"\n") if owned else []
        self._put(project, dict.fromkeys((*keys, owner)))
        self._keys -= len(keys)

    def _carry_on(self, project: DumpedProject, window: Window) -> None:
        self._note(project.name)
        prefix = data_sets.joined(project.name, "")
        pairs = () if self.is_empty else self._beginning_with(prefix, project.name)
        # all with their modules may take gigabytes
        lives = (DistributionLife.parse(value).light() for _, value in pairs)
        before = {life.file.filename: life for life in lives}
        key = data_sets.record(project.name)
        value = None if self.is_empty else self._get(key)
        record = ProjectRecord.parse(value) if value else ProjectRecord()
        after = project.carried_on(before, record, window)
        if project.past and project.past.since is not None:
            self._begin = project.past.since
        missed = any(life.missed is not None for life in after.values())
        if (recorded := project.recorded(record, window, missed=missed)) != record:
            self._put(project.name, {key: recorded.encode()})
        for name, life in after.items():
            if life != before.get(name):
                key = data_sets.joined(project.name, name)
                known = self._get(key) if name in before else None
                self._put(project.name, {key: (life.with_facts(known) if known else life).encode()})
        self._keys += len(after.keys() - before.keys())

    def _attach(self, row: DistributionRow) -> None:
        self._note(row.project)
        key = data_sets.joined(row.project, row.filename)
        if value := self._get(key):
            self._put(row.project, {key: DistributionLife.parse(value).attached(row).encode()})

    def _note(self, project: str) -> None:
        if self._changed is not None:
            self._changed.add(project)

    def _release(self) -> None:
        """Put the newest releases of the projects that have changed, in place of those of before."""
        dependents = Counter[bytes]()
        for project, names in self._files_of_changed():
            before = self._get(releases.RELEASE + data_sets.joined(project)) if self._changed is not None else None
            old = releases.Release.parse(before) if before else None
            new, pairs = releases.pairs_of(project, names, partial(self._life, project))
            gone = {releases.RELEASE + data_sets.joined(project), *(old.keys(project) if old else ())}
            self._put(project, {**dict.fromkeys(gone), **pairs})
            dependents.update(releases.DEPENDENTS + data_sets.joined(name) for name in (new.required if new else ()))
            dependents.subtract(releases.DEPENDENTS + data_sets.joined(name) for name in (old.required if old else ()))
        for key, change in dependents.items():
            if change:
                number = int(self._get(key) or b"0") + change
                self._put("", {key: b"%d" % number if number else None})
        self._put("", {releases.RELEASE: releases.SCHEMA})

    def _files_of_changed(self) -> Iterator[tuple[str, list[str]]]:
        """The names of the files of each project that has changed."""
        self._write()
        if self._changed is None:
            keys = (data_sets.parts_of(key) for key, _ in self._made.since(FIRST))
            yield from ((name, [file for _, file in some]) for name, some in groupby(keys, lambda parts: parts[0]))
            return
        for name in sorted(self._changed):
            found = self._made.beginning_with(data_sets.joined(name, ""))
            yield name, [data_sets.parts_of(key)[1] for key, _ in found]

    def _life(self, project: str, name: str) -> DistributionLife:
        return DistributionLife.parse(self._get(data_sets.joined(project, name)) or b"")

    def _get(self, key: bytes) -> bytes | None:
        if key in self._waiting:
            return self._waiting[key]
        return self._made.get(key)

    def _beginning_with(self, prefix: bytes, project: str) -> Iterator[tuple[bytes, bytes]]:
        """The pairs of a project that begin so. Only where some of it wait they are written first: LevelDB lets each
        write wait while it sorts tables."""
        if project in self._touched:
            self._write()
        return self._made.beginning_with(prefix)

    def _put(self, project: str, changes: Mapping[bytes, bytes | None]) -> None:
        """Put pairs of a project, or of none, and delete the keys whose value is None."""
        self._waiting.update(changes)
        self._touched.add(project)
        self._size += sum(map(len, changes)) + sum(map(len, filter(None, changes.values())))
        if self._size > _BATCH:
            self._write()

    def _write(self) -> None:
        self._made.write(self._waiting)
        self._waiting, self._size = {}, 0
        self._touched.clear()


class PublishedHistory(Struct, frozen=True):
    """The files of a package index by serial, as an open database of `distributions` has them.

    `newest`: the last serial that is known. `begin`: the end of the first full dump, whose pages have no past.
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
            if project == last:
                continue
            life = DistributionLife.parse(value)
            if life.was_there(serial) or (life.found and serial < life.began):  # its page then is unknown
                last = project
                yield project

    def files(self, project: str, serial: int) -> Iterator[OfferedFile]:
        """The files that a project had at a serial, as its page listed them. NotReady if that is not known: its page
        in the full dump is a later one."""
        lives = list(self.lives(project))
        first = min(lives, key=lambda life: life.began, default=None)
        if first and serial < first.began and (first.began <= self.begin or first.found):
            why = f"its page is known from serial {first.began} on, by the full dump that ends at {self.begin}"
            raise NotReady(f"{project} at serial {serial}", why)
        there = (life.at(serial) for life in lives)
        return (OfferedFile(one.file, one.row) for one in there if one and not one.is_quarantined)

    def addresses(self, project: str) -> Iterator[tuple[str, str]]:
        """The files that a project ever had, also those in quarantine, each with its last address."""
        return ((life.file.filename, life.file.url) for life in self.lives(project))

    def record(self, project: str) -> ProjectRecord:
        """The project's record, which is empty for one that is unknown."""
        value = self.database.get(data_sets.record(project))
        return ProjectRecord.parse(value) if value else ProjectRecord()

    def records(self, after: str = "") -> Iterator[tuple[str, ProjectRecord]]:
        """The projects that have a record, by name, from those after one on."""
        for key, value in self.database.since(data_sets.record(after)):
            if not key.startswith(data_sets.RECORDS):
                return
            name = data_sets.parts_of(key.removeprefix(data_sets.RECORDS))[0]
            if name > after:
                yield name, ProjectRecord.parse(value)

    def status(self, project: str, serial: int) -> StatusInterval | None:
        """The status of a project at a serial (PEP 792); None: it is unknown."""
        return self.record(project).status_at(serial)

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
        begin = int(database.get(BEGIN) or begin)
        return PublishedHistory(database, begin, newest_serial(inputs), opened.pop_all())


def newest_serial(inputs: Sequence[ListedWarc]) -> int:
    """The last serial of the dumps that a version is made of; 0 without one."""
    return max((place_of(one).window.up_to for one in inputs), default=0)
