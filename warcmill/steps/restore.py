"""Bring the markers of closed launches and of due crawls back from the store, where the state has lost them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from warcmill import evidence, layout
from warcmill.errors import BadInput, Foreign
from warcmill.evidence import Evidence
from warcmill.formats import logzip
from warcmill.formats.logzip import Packed
from warcmill.model import FileRef, Launch, parse_job
from warcmill.state import State
from warcmill.steps.backup import FOLDER, DueCrawl
from warcmill.stores import Stat, Store, temporary


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup in the store: whose it is, where it lies, and the evidence in it."""

    of: Launch | DueCrawl
    path: str
    kept: Evidence

    def files(self) -> dict[str, FileRef]:
        """The files in it by their names in the zip."""
        return {str(item.facts["member"]): item.file for item in self.kept.claim.items}


@dataclass(frozen=True, slots=True)
class Restored:
    """What became of a backup's files, by path: brought back, or left because another file is there."""

    made: tuple[str, ...]
    different: tuple[str, ...]


def kept(store: Store) -> tuple[list[Launch | DueCrawl], list[BadInput]]:
    """The launches and the due crawls that the store has backups of, and what else lies between their folders."""
    found: list[Launch | DueCrawl] = []
    strays: list[BadInput] = []
    for job in _entries(store, FOLDER):
        for one in _entries(store, job.path) if _is_job(job) else [job]:
            try:
                found.append(_parsed(job.name, one))
            except BadInput as error:
                strays.append(BadInput(f"store:{one.path}", f"no backup was made under this name: {error.why}"))
    return found, strays


def _entries(store: Store, folder: str) -> list[Stat]:
    """What lies in a folder, but for what a backup that was killed has left half-written."""
    return [entry for entry in store.list(folder) if not temporary.is_temporary(entry.name)]


def _is_job(entry: Stat) -> bool:
    try:
        return entry.kind == "folder" and bool(parse_job(entry.name))
    except BadInput:
        return False


def _parsed(job: str, entry: Stat) -> Launch | DueCrawl:
    if entry.kind != "folder":
        raise BadInput(entry.path, "it is no folder")
    due = entry.name.removeprefix("due.")
    launch = Launch.parse(job, due)
    return launch if due == entry.name else DueCrawl(job, due)


def newest(store: Store, of: Launch | DueCrawl) -> tuple[Backup | None, list[BadInput]]:
    """The newest sound backup of a launch or a due crawl, and what is wrong with the others."""
    sound: list[Backup] = []
    damaged: list[BadInput] = []
    for entry in _entries(store, f"{FOLDER}/{of}"):
        try:
            sound.append(_read(store, of, entry))
        except BadInput as error:
            damaged.append(BadInput(f"store:{entry.path}", error.why, error.offset))
        except Foreign as error:
            damaged.append(BadInput(f"store:{entry.path}", error.why))
    return max(sound, key=_age, default=None), damaged


def _read(store: Store, of: Launch | DueCrawl, entry: Stat) -> Backup:
    if entry.kind != "file":
        raise BadInput(entry.path, "no backup was made under this name: it is no file")
    with store.open(entry.path) as file:
        found = evidence.decode(logzip.evidence(file), entry.path)
    if not all("member" in item.facts for item in found.claim.items) or not isinstance(found.run.finished, str):
        raise BadInput(entry.path, "it is a zip of ours, and no backup")
    return Backup(of, entry.path, found)


def _age(backup: Backup) -> tuple[str, int, str]:
    """Of two backups of one second, the one that holds more came later."""
    return backup.kept.run.finished, len(backup.kept.claim.items), backup.path


def restore(state: State, store: Store, backup: Backup) -> Restored:
    """Bring a backup's files back where they are missing; nothing that is there is changed.

    Every member is read and compared first: BadInput when one is not what was kept.
    """
    files = backup.files()
    _refuse_strange(backup, files)
    with store.open(backup.path) as stream:
        logzip.verify(stream, _expected(stream, files))
        made = {one.path: _put(state, stream, name, one) for name, one in files.items()}
    there = (one for one in files.values() if not made[one.path])
    different = tuple(one.path for one in there if state.store.server_digest(one.path) != ("sha512", one.sha512))
    return Restored(tuple(path for path, new in made.items() if new), different)


def _expected(stream: BinaryIO, files: dict[str, FileRef]) -> list[Packed]:
    """In the zip's own order: the evidence lists them by path."""
    order = {entry.name: number for number, entry in enumerate(logzip.members(stream))}
    names = sorted(files, key=lambda name: order.get(name, len(order)))
    return [Packed(name, files[name].size, files[name].sha512 or "", 0) for name in names]


def _put(state: State, stream: BinaryIO, name: str, file: FileRef) -> bool:
    assert file.sha512 is not None, f"{file.path}: a backup knows the digest of every file"
    with logzip.open_member(stream, name) as member:
        return state.store.commit_new(file.path, member, file.size, file.sha512)


def _refuse_strange(backup: Backup, files: dict[str, FileRef]) -> None:
    """Only where such files lie, of the backup's own launch or job, whatever the zip says."""
    for name, file in files.items():
        if not _is_sound(backup.of, name.removesuffix(file.name), file):
            raise BadInput(backup.path, f"{file.path} is no file of {backup.of}: this backup was tampered with")


def _is_sound(of: Launch | DueCrawl, folder: str, file: FileRef) -> bool:
    if file.sha512 is None:
        return False
    if folder == "feeds/":
        return file.path == layout.feed_path(file.sha512)
    if folder == "launch/" and isinstance(of, Launch):
        return file.path == f"{layout.state_folder(of)}/{file.name}"
    key = layout.parse_marker_path(file.path)
    tasks = {"launch/": ("pulse.Started",), "job/": ("pulse.StartJob", "pulse.CrawlFeed")}.get(folder, ())
    return key is not None and key.task in tasks and key["job"] == of.job
