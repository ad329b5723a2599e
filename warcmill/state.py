"""Markers over a store: read, publish, and put a broken one aside.

Reading never writes. A marker that is empty, cut or altered counts as absent
and is reported once; only the writer that replaces it moves it to `aside/`.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import logging
import platform
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warcmill import __version__, clock, evidence, fixity, layout
from warcmill.errors import BadInput, Conflict, Foreign, NotReady, Unavailable
from warcmill.evidence import Claim, Evidence, Input, Run
from warcmill.formats import logzip
from warcmill.model import FileRef, Key, Launch, Stage
from warcmill.stores import Stat, temporary
from warcmill.stores.file import FileStore

log = logging.getLogger(__name__)
SCRATCH = ".scratch"
CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
LARGEST_RUN = 1 << 20  # bytes
_reported: set[tuple[str, str]] = set()


@dataclass(frozen=True, slots=True)
class _Found:
    """What lies at a marker's path: sound evidence, or a file that is not."""

    stat: Stat
    evidence: Evidence | None


class State:
    """The markers of a line. Make one when a step begins: its time is the run's start."""

    def __init__(self, store: FileStore) -> None:
        self.store = store
        self.started = clock.now()

    def read(self, key: Key) -> Evidence | None:
        """The evidence a step left; None when there is none. Foreign: a sound marker of something else."""
        path = layout.marker_path(key)
        try:
            return self._read(path, key)
        except NotReady:
            return None
        except BadInput:
            found = self._find(path, key)  # which reports it
            return found.evidence if found else None

    def holds(self, key: Key) -> bool:
        """Whether a step left sound evidence. As `read`, without building it: for those who ask thousands of times."""
        path = layout.marker_path(key)
        try:
            _refuse_foreign(path, evidence.key_of(self._bytes(path, key), path), key)
        except NotReady:
            return False
        except BadInput:
            return self.read(key) is not None  # which reports it
        return True

    def need(self, key: Key) -> Evidence:
        """The evidence a step left, or NotReady."""
        found = self.read(key)
        if found is None:
            raise NotReady(layout.marker_path(key), f"run {key} first")
        return found

    def folder(self, launch: Launch) -> dict[str, Evidence]:
        """All sound markers of a launch, by file name."""
        found = {}
        for entry in self.store.list(layout.state_folder(launch)):
            key = layout.parse_marker_path(entry.path)
            if key and (evidence := self.read(key)):
                found[entry.name] = evidence
        return found

    def stages(self, launch: Launch) -> set[Stage]:
        """The stages that have any marker, sound or not."""
        keys = (layout.parse_marker_path(entry.path) for entry in self.store.list(layout.state_folder(launch)))
        return {Stage.parse(key["stage"]) for key in keys if key and "stage" in dict(key.params)}

    def document(self, claim: Claim) -> bytes:
        """The bytes of the marker that this run would publish for a claim."""
        return _document(claim, self._run())

    def plain_document(self, claim: Claim) -> bytes:
        """The same, of no run: two honest runs give the same bytes. `publish` leaves the run beside it."""
        return _document(claim, evidence.UNKNOWN)

    def run_of(self, found: Evidence) -> Run:
        """Who left a marker, when and with what: as it says, or for a zip the file beside it; else UNKNOWN."""
        if found.run != evidence.UNKNOWN:
            return found.run
        path = layout.run_path(found.claim.key)
        try:
            with self.store.open(path) as file:
                return evidence.run_from_json(json.loads(file.read(LARGEST_RUN)))
        except (NotReady, ValueError, KeyError, TypeError, RecursionError):
            return evidence.UNKNOWN

    def _run(self) -> Run:
        tools = {"warcmill": __version__, "python": platform.python_version()}
        return Run(temporary.host(), self.started, clock.now(), tools)

    def publish(self, key: Key, claim: Claim, artefact: Path | None = None) -> None:
        """Leave the marker of a claim; all that it speaks of must be durable by now.

        `artefact` is a file that is the marker itself (a zip with the document in it, of no run): the run is written
        beside it first, so that no zip is there without; the first stays.
        The same claim already published is success, another is Conflict.
        """
        path = layout.marker_path(key)
        data = None if artefact else self.document(claim)
        if artefact:
            self._leave_run(key)
        while not self._commit(path, artefact, data):
            found = self._find(path, key)
            if found is None:
                continue  # a racer has just moved the broken one aside
            if found.evidence is None:
                self._put_aside(path, found.stat)
            elif found.evidence.digest == evidence.claim_digest(claim):
                return
            else:
                since = self.run_of(found.evidence).finished or "a time that is not known"
                raise Conflict(
                    path,
                    f"a marker with another claim is there since {since}, and was left as it is;"
                    " if the new one is right, 'warcmill redo' the step",
                )

    def marker_file(self, key: Key) -> FileRef:
        """The marker itself as a file, with its own length and digest."""
        path = layout.marker_path(key)
        with self.store.open(path) as file:
            return FileRef("state", path, *fixity.sha512(file))

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A new folder on the state's own disk, gone afterwards."""
        base = self.store.base / SCRATCH
        folder = base / temporary.name("step")
        try:
            base.mkdir(exist_ok=True)
            folder.mkdir()
            try:
                yield folder
            finally:
                shutil.rmtree(folder)
        except OSError as error:
            if error.errno in CANNOT_WRITE:  # nothing else is written to meanwhile: the roots raise errors of their own
                raise Unavailable(f"state:{SCRATCH}", f"{error.strerror} (root {self.store.base})") from error
            raise

    def sweep(self, folder: str) -> None:
        """Remove what this host's dead processes left half-made: in a folder of markers and in scratch."""
        self.store.sweep(folder)
        for entry in self.store.list(SCRATCH):
            if temporary.is_dead(entry.name):
                # Two may sweep at once; what stays holds nothing of worth, and the next step sweeps again.
                shutil.rmtree(self.store.real(entry.path), ignore_errors=True)

    def _find(self, path: str, key: Key) -> _Found | None:
        stat = self.store.stat(path)  # before the bytes: a file that is exchanged in between is then told from this one
        if stat is None:
            return None
        try:
            return _Found(stat, self._read(path, key))
        except NotReady:
            return None
        except BadInput as error:
            _report(path, stat.version, error)
            return _Found(stat, None)

    def _read(self, path: str, key: Key) -> Evidence:
        found = evidence.decode(self._bytes(path, key), path)
        _refuse_foreign(path, found.claim.key, key)
        return found

    def _bytes(self, path: str, key: Key) -> bytes:
        is_zip = layout.marker_name(key).endswith(".zip")  # `path` may be one in aside/
        if not is_zip:
            return self.store.read(path, evidence.LARGEST + 1)
        with self.store.open(path) as file:
            return logzip.evidence(file)

    def _leave_run(self, key: Key) -> None:
        text = json.dumps(evidence.run_to_json(self._run()), ensure_ascii=False, sort_keys=True, indent=1)
        data = f"{text}\n".encode()
        self.store.commit_new(layout.run_path(key), io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())

    def _commit(self, path: str, artefact: Path | None, data: bytes | None) -> bool:
        if artefact is None:
            assert data is not None
            return self.store.commit_new(path, io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())
        with artefact.open("rb") as file:
            size, digest = fixity.sha512(file)
            file.seek(0)
            return self.store.commit_new(path, file, size, digest)

    def _put_aside(self, path: str, broken: Stat) -> None:
        folder, _, name = path.rpartition("/")
        aside = f"{folder}/aside/{name}.{clock.stamp()}.{secrets.token_hex(4)}"
        if not self.store.move_aside(path, aside, broken):
            return
        log.warning("%s: moved to %s, another takes its place", path, aside)
        self._bring_back_if_sound(path, aside)

    def _bring_back_if_sound(self, path: str, aside: str) -> None:
        """Where folder locks do not hold, a racer's good marker may have been moved: read again what we moved."""
        key = layout.parse_marker_path(path)
        assert key is not None
        try:
            moved = self._read(aside, key)
        except BadInput:
            return
        with self.store.open(aside) as file:
            data = file.read()
        self.store.commit_new(path, io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())
        kept, now = self.store.stat(aside), self.read(key)
        if kept and now and now.digest == moved.digest:
            self.store.remove(aside, kept)
        else:
            log.error("%s: sound, but a marker with another claim is at %s now; find out which is right", aside, path)


def input_of(state: State, key: Key) -> Input:
    """A marker as a claim names it among its inputs, or NotReady."""
    return Input(layout.marker_path(key), state.need(key).digest)


def _document(claim: Claim, run: Run) -> bytes:
    data = evidence.encode(claim, run)
    evidence.decode(data, layout.marker_path(claim.key))  # what we cannot read we do not write
    return data


def _refuse_foreign(path: str, found: Key, wanted: Key) -> None:
    if found != wanted:
        raise Foreign(path, f"a sound marker, but of {found}")


def _report(path: str, version: str, error: BadInput) -> None:
    if (path, version) not in _reported:
        _reported.add((path, version))
        log.warning("%s; counts as absent", error)
