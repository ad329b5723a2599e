"""Back up what is history or decision, and of no launch: lists of versions, decisions, editions, actions by pages.

    state   versions/{data set}/{number}.list, decisions/{kind}/{number}.json, editions/{job}/{number}/ and its files,
            web/actions/{id}.json and .log
    store   state/_archive/ and the same path

Each file is sealed, or named by its digest, and never changes, so it is copied once, as it is. Decisions and editions
are copied as they are made, and here if the store was away then. An action has no seal, and is copied once its end is
on record. Tokens are not copied: one that was withdrawn would open the pages again.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from hashlib import sha512

from msgspec import Struct

from warcmill import layout
from warcmill.errors import BadInput, Conflict, NotReady
from warcmill.formats.seal import unseal
from warcmill.markers import editions
from warcmill.markers.editions import JobEditions
from warcmill.stores import LocalStore, Stat, Store, temporary_names

NAME = layout.ARCHIVE.rpartition("/")[2]
FOLDER = layout.ARCHIVE
KEPT = ("decisions", "versions", "quality")  # in this order: a list names decisions
ACTIONS = "web/actions"


class CopyOutcome(Struct, frozen=True):
    """The paths that were copied; those that differ from what is there, left as they are; and damaged files."""

    copied: tuple[str, ...]
    different: tuple[str, ...]
    damaged: tuple[BadInput, ...]


def back_up(state: LocalStore, store: Store) -> CopyOutcome:
    """Copy the files that the store has not. A damaged one is named and not copied. Of editions only their numbers are
    listed: a job may have tens of thousands."""
    there = {entry.path.removeprefix(f"{FOLDER}/"): entry.size for entry in _files(store, FOLDER)}
    ours = [entry for entry in _files(state, "") if entry.path in there or _is_final(state, entry.path)]
    different = tuple(entry.path for entry in ours if there.get(entry.path, entry.size) != entry.size)
    done = _copy(state, store, [entry.path for entry in ours if entry.path not in there], f"{FOLDER}/{{}}", different)
    copied, differ, damaged = list[str](), list[str](), list[BadInput]()
    for job in editions.jobs_in(state):
        of_job = JobEditions(state, lambda: store, job)
        try:
            copied += (f"{FOLDER}/{of_job.path(number)}" for number in of_job.copy())
        except BadInput as error:
            damaged.append(error)
        except Conflict as error:
            differ.append(error.path.partition(":")[2])
    return CopyOutcome((*done.copied, *copied), (*done.different, *differ), (*done.damaged, *damaged))


def restore(state: LocalStore, store: Store) -> CopyOutcome:
    """Bring back the files that the state has not. A file that is there, and differs, is named."""
    missing, different = list[str](), list[str]()
    for entry in (*_files(store, FOLDER), *_of_editions(store)):
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
            _check(data, path.removeprefix(f"{FOLDER}/"))
        except BadInput as error:
            damaged.append(BadInput(f"{source.root}:{path}", error.why, error.offset))
            continue
        name = to.format(path) if to else path.removeprefix(f"{FOLDER}/")
        target.commit_new(name, io.BytesIO(data), len(data), sha512(data).hexdigest())
        copied.append(name)
    return CopyOutcome(tuple(copied), different, tuple(damaged))


def _check(data: bytes, path: str) -> None:
    """BadInput for a damaged file. An action has nothing by which it could be told."""
    if path.startswith(f"{editions.FOLDER}/"):
        editions.check_file(data, path)
    elif not _is_action(path):
        unseal(data, path)


def _is_action(path: str) -> bool:
    return path.startswith(f"{ACTIONS}/")


def _is_final(state: LocalStore, path: str) -> bool:
    """True if a file changes no more: of an action, once its record has an exit code."""
    if not _is_action(path):
        return True
    try:
        record = json.loads(_bytes(state, f"{path.rpartition('.')[0]}.json"))
        return record["exit_code"] is not None
    except (NotReady, ValueError, TypeError, KeyError, RecursionError):
        return False


def _bytes(store: Store, path: str) -> bytes:
    with store.open(path) as file:
        return file.read()


def _files(store: Store, top: str) -> Iterator[Stat]:
    for kept in KEPT:
        for folder in store.list(f"{top}/{kept}" if top else kept):
            entries = store.list(folder.path) if folder.kind == "folder" else ()
            yield from filter(_is_whole, entries)
    yield from filter(_is_whole, store.list(f"{top}/{ACTIONS}" if top else ACTIONS))


def _of_editions(store: Store) -> Iterator[Stat]:
    """The files of all editions in the store; of each edition its edition.json last, as it is there once that is."""
    for job in store.list(f"{FOLDER}/{editions.FOLDER}"):
        for edition in store.list(job.path) if job.kind == "folder" else ():
            files = filter(_is_whole, store.list(edition.path) if edition.kind == "folder" else ())
            yield from sorted(files, key=lambda entry: entry.name == editions.HEAD)


def _is_whole(entry: Stat) -> bool:
    return entry.kind == "file" and not temporary_names.is_temporary(entry.name)
