"""Restore markers of archived launches and of due crawls from the store, where the state has lost them."""

from __future__ import annotations

from typing import BinaryIO

from msgspec import Struct

from warcmill import layout
from warcmill.backup import archive
from warcmill.backup.backup import FOLDER, DueCrawl
from warcmill.errors import BadInput, Foreign
from warcmill.formats.logs import logzip
from warcmill.formats.logs.logzip import PackedLog
from warcmill.markers import claim
from warcmill.markers.claim import Evidence
from warcmill.markers.facts.state import BackedUp
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Launch, parse_job
from warcmill.stores import Stat, Store, temporary_names


class Backup(Struct, frozen=True):
    """A backup in the store: of which launch or due crawl, its path, and the evidence in it."""

    of: Launch | DueCrawl
    path: str
    kept: Evidence

    def files(self) -> dict[str, FileRef]:
        """The files in it, by their names in the zip."""
        return {name: file for file, name in BackedUp.from_claim(self.kept.claim).members.items()}


class Restored(Struct, frozen=True):
    """Paths of a backup's files: those restored, and those left alone because a different file is there."""

    restored: tuple[str, ...]
    different: tuple[str, ...]


def kept(store: Store) -> tuple[list[Launch | DueCrawl], list[BadInput]]:
    """The launches and due crawls with backups in the store, and an error for each entry that is neither."""
    backed_up: list[Launch | DueCrawl] = []
    strays: list[BadInput] = []
    for job in _entries(store, FOLDER):
        for entry in _entries(store, job.path) if _is_job(job) else [job]:
            try:
                backed_up.append(_parsed(job.name, entry))
            except BadInput as error:
                strays.append(BadInput(f"store:{entry.path}", f"no backup was made under this name: {error.why}"))
    return backed_up, strays


def _entries(store: Store, folder: str) -> list[Stat]:
    """The entries of a folder: no temporary files of backups that were killed, and not what `archive` keeps."""
    ours = (entry for entry in store.list(folder) if not temporary_names.is_temporary(entry.name))
    return [entry for entry in ours if entry.path != archive.FOLDER]


def _is_job(entry: Stat) -> bool:
    try:
        return entry.kind == "folder" and bool(parse_job(entry.name))
    except BadInput:
        return False


def _parsed(job: str, entry: Stat) -> Launch | DueCrawl:
    if entry.kind != "folder":
        raise BadInput(entry.path, "it is not a folder")
    due = entry.name.removeprefix("due.")
    launch = Launch.parse(job, due)
    return launch if due == entry.name else DueCrawl(job, due)


def newest(store: Store, of: Launch | DueCrawl) -> tuple[Backup | None, list[BadInput]]:
    """The newest valid backup of a launch or a due crawl, or None; and an error for each damaged one."""
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
        raise BadInput(entry.path, "no backup was made under this name: it is not a file")
    with store.open(entry.path) as file:
        evidence = claim.decode(logzip.evidence(file), entry.path)
    try:
        BackedUp.from_claim(evidence.claim)
    except BadInput as error:
        raise BadInput(entry.path, f"it is a zip of ours, and no backup: {error.why}") from error
    if not isinstance(evidence.run.finished, str):
        raise BadInput(entry.path, "it is a zip of ours, and no backup")
    return Backup(of, entry.path, evidence)


def _age(backup: Backup) -> tuple[str, int, str]:
    """A sort key. Of two backups of one second, the one with more files is the later."""
    return backup.kept.run.finished, len(backup.kept.claim.items), backup.path


def restore(state: MarkerStore, store: Store, backup: Backup) -> Restored:
    """Restore a backup's missing files; existing files stay as they are.

    Every member is read and compared first: BadInput when one differs from the backup's list.
    """
    files = backup.files()
    _refuse_tampered(backup, files)
    with store.open(backup.path) as stream:
        logzip.verify(stream, _expected(stream, files))
        is_new = {file.path: _put(state, stream, name, file) for name, file in files.items()}
    present = (file for file in files.values() if not is_new[file.path])
    different = tuple(file.path for file in present if state.store.server_digest(file.path) != ("sha512", file.sha512))
    return Restored(tuple(path for path, new in is_new.items() if new), different)


def _expected(stream: BinaryIO, files: dict[str, FileRef]) -> list[PackedLog]:
    """The expected members in the zip's order: the evidence lists them by path."""
    order = {entry.name: number for number, entry in enumerate(logzip.members(stream))}
    names = sorted(files, key=lambda name: order.get(name, len(order)))
    return [PackedLog(name, files[name].size, files[name].sha512 or "", 0) for name in names]


def _put(state: MarkerStore, stream: BinaryIO, name: str, file: FileRef) -> bool:
    assert file.sha512 is not None, f"{file.path}: a backup knows the digest of every file"
    with logzip.open_member(stream, name) as member:
        return state.store.commit_new(file.path, member, file.size, file.sha512)


def _refuse_tampered(backup: Backup, files: dict[str, FileRef]) -> None:
    """BadInput unless each file's path is one that a backup of this launch or job may restore."""
    for name, file in files.items():
        if not _is_sound(backup.of, name.removesuffix(file.name), file):
            raise BadInput(backup.path, f"{file.path} is not a file of {backup.of}: this backup was tampered with")


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
