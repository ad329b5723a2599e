"""Bring the data sets of a package index up to date, and leave their databases in the store. Writes to index and store.

    dumps/{job}/v{generation}/{data set}/leveldbs/00007/CURRENT …
                                        /input_lists/00007       the URI of each dump's file; written last

Each number is a version's. If its list is there, the database beside it is whole.
"""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from typing import NamedTuple

from msgspec import Struct

from warcmill import layout
from warcmill.base import digests
from warcmill.errors import BadConfig, Busy, Mismatch, NotReady
from warcmill.formats.pypi import data_sets
from warcmill.launches.discovery import with_markers
from warcmill.launches.full_dumps import all_decided
from warcmill.layout import DumpedData
from warcmill.markers import locks
from warcmill.markers.facts.pypi import Dumped
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef
from warcmill.pypi.data_sets import PackageData, WholeDump, place_of
from warcmill.stores import LocalStore, Stat, Store
from warcmill.versions.fold import LOCK, Folded, fold
from warcmill.versions.inputs import Lists, VersionList
from warcmill.versions.publication import Payloads, Published

log = logging.getLogger(__name__)


class UpdateRoots(Struct, frozen=True):
    """The places of an update. `place` is the URI of the store's folder of dumps."""

    state: MarkerStore
    open_store: Callable[[], Store]
    index: LocalStore
    place: str


def verified_dumps(state: MarkerStore, job: str) -> list[WholeDump]:
    """The whole dumps of a job that were read back. A full dump is read back before its marker is there."""
    fulls = filter(None, (state.read(full.key) for full in all_decided(state, job)))
    found = [_whole(Dumped.from_claim(marker.claim)) for marker in fulls]
    for launch in with_markers(state, date.min, date.max):
        if launch.job != job or not state.holds(layout.step("verify-dump", launch)):
            continue
        if marker := state.read(layout.step("dump", launch)):
            dumped = Dumped.from_claim(marker.claim)
            if dumped.whole:
                found.append(_whole(dumped))
    return found


def _whole(dumped: Dumped) -> WholeDump:
    return WholeDump(dumped.window, dumped.generation, dumped.files)


def update(roots: UpdateRoots, job: str, dumps: Sequence[WholeDump]) -> list[Folded]:
    """Publish what is dumped and in no version, of each data set; then leave it in the store. With nothing new no
    version is made, and what a killed update did not leave is left. Busy during another update."""
    folded = []
    for name in data_sets.NAMES:
        lists = Lists(roots.state.store, name)
        _refuse_other_job(job, lists.newest())
        data = PackageData(roots.state.store, roots.open_store, roots.index, name, dumps)
        folded.append(fold(roots.state, roots.open_store, roots.index, data, roots.place))
        current = Payloads(roots.index, name).current()
        if current is not None and current.segments:
            leave(roots, current, lists.read(current.number))
    return folded


def leave(roots: UpdateRoots, published: Published, listed: VersionList) -> None:
    """Leave a version in the store, unless it is there; of one that was there, what is gone since."""
    store, top = roots.open_store(), folder(listed)
    number = f"{listed.number:05}"
    there = {entry.name: entry.size for entry in store.list(f"{top}/leveldbs/{number}")}
    is_listed = store.stat(f"{top}/input_lists/{number}") is not None
    lacking = [(name, file) for name, file in files_of(published) if there.get(name) != file.size]
    if is_listed and not lacking:
        return
    for swept in (f"{top}/leveldbs/{number}", f"{top}/input_lists"):
        store.sweep(swept)
    for name, file in lacking if is_listed else files_of(published):
        _copy(roots.index, store, file, f"{top}/leveldbs/{number}/{name}")
    uris = "".join(f"{roots.place}/{one.name}\n" for one in listed.inputs).encode()
    store.commit_new(f"{top}/input_lists/{number}", io.BytesIO(uris), len(uris), hashlib.sha512(uris).hexdigest())
    log.info("%s: version %d is in the store, at %s/leveldbs/%s", listed.data_set, listed.number, top, number)


def files_of(published: Published) -> list[tuple[str, FileRef]]:
    """The files of a version's database, by their names."""
    return [entry for segment in published.segments for entry in segment.files.items()]


def not_left(store: Store, published: Published, listed: VersionList) -> Iterator[str]:
    """Yield each thing that is wrong with a version in the store: every file is read."""
    top, number = folder(listed), f"{listed.number:05}"
    if store.stat(f"{top}/input_lists/{number}") is None:
        yield f"store:{top}/input_lists/{number} is not there"
    for name, file in files_of(published):
        path = f"{top}/leveldbs/{number}/{name}"
        if store.stat(path) is None:
            yield f"store:{path} is not there"
        elif not _is_same(store, path, str(file.sha512)):
            yield f"store:{path} has other bytes than were published"


class RetiredGeneration(NamedTuple):
    """The numbers of its dump files, and of the databases made of them, that were deleted from the store."""

    files: int
    databases: int


def retire(roots: UpdateRoots, job: str, generation: int, newest: int) -> RetiredGeneration:
    """Delete from the store the dump files of a generation older than `newest`, and the databases made of them. The
    markers of its dumps stay. Busy during an update. NotReady while a data set is made of them, by its current version
    or its newest list, or while none newer is dumped."""
    what = f"retiring generation {generation} of {job}"
    if generation >= newest:
        raise NotReady(what, f"the newest generation is {newest}, and only older ones are retired")
    for name in data_sets.NAMES:
        if locks.take(roots.state, LOCK + name):
            raise Busy(f"the update of {name}")
    for name in data_sets.NAMES:
        lists, current = Lists(roots.state.store, name), Payloads(roots.index, name).current()
        for listed in (lists.newest(), lists.read(current.number) if current else None):
            if listed and any(place_of(one)[:2] == (job, generation) for one in listed.inputs):
                why = f"version {listed.number} of {name} is made of it; pypi.UpdateLevelDb first publishes a newer one"
                raise NotReady(what, why)
    store, top = roots.open_store(), layout.dumps_folder(job, generation)
    for name in data_sets.NAMES:  # first: a list proves that its database is whole
        _remove(store, store.list(f"{top}/{name}/input_lists"))
    folders = (folder for name in data_sets.NAMES for folder in store.list(f"{top}/{name}/leveldbs"))
    databases = sum(_remove(store, store.list(folder.path)) > 0 for folder in folders)
    return RetiredGeneration(_remove(store, _dump_files(store, top)), databases)


def _remove(store: Store, files: Iterable[Stat]) -> int:
    """Remove files; return how many."""
    listed = list(files)
    for file in listed:
        store.remove(file.path, file)
    return len(listed)


def _dump_files(store: Store, top: str) -> Iterator[Stat]:
    for data in DumpedData:
        for window in store.list(f"{top}/data_dumps/{data}"):
            yield from (file for file in store.list(window.path) if layout.parse_dump_path(file.path))


def folder(listed: VersionList) -> str:
    """The folder in the store of a version's data set: below the generation of its dumps."""
    first = place_of(listed.inputs[0])
    return f"{layout.dumps_folder(first.job, first.generation)}/{listed.data_set}"


def _copy(index: LocalStore, store: Store, file: FileRef, to: str) -> None:
    """Copy a file of the index root. Another under its name is of an update that was killed: no list names it yet."""
    digest = str(file.sha512)
    for _ in range(2):
        with index.open(file.path) as source:
            if store.commit_new(to, source, file.size, digest):
                return
        if (found := store.stat(to)) is None:
            continue
        if _is_same(store, to, digest):
            return
        store.remove(to, found)
    raise Mismatch(f"store:{to}", digest, "another file, or none, whatever is copied there")


def _is_same(store: Store, path: str, sha512: str) -> bool:
    """True if a file of a store is this one. A store that digests otherwise is read."""
    if store.server_digest(path) == ("sha512", sha512):
        return True
    with store.open(path) as stream:
        return digests.sha512(stream)[1] == sha512


def _refuse_other_job(job: str, newest: VersionList | None) -> None:
    jobs = {place_of(one).job for one in newest.inputs} if newest else set()
    if jobs - {job}:
        why = f"the data sets are made of the dumps of {', '.join(sorted(jobs))}; a line publishes those of one job"
        raise BadConfig("[pypi] jobs", why)
