"""Read and publish markers in a store, and move broken ones aside.

Reading never writes. A marker that is empty, cut or altered counts as absent
and is logged once; only the writer that replaces it moves it to `aside/`.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import logging
import platform
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from msgspec import Struct

from warcmill import __version__, chain, layout
from warcmill.base import clock, digests, disk
from warcmill.errors import BadInput, Conflict, Foreign, NotReady, Unavailable
from warcmill.formats.logs import logzip
from warcmill.markers import claim as evidence
from warcmill.markers.claim import Claim, Evidence, Input, Run, SoundMarker
from warcmill.model import FileRef, Key, Launch, Stage, parse_job
from warcmill.stores import LocalStore, Stat, temporary_names

log = logging.getLogger(__name__)
SCRATCH = ".scratch"
CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
LARGEST_RUN = 1 << 20  # bytes
T = TypeVar("T")
NO_TOOLS: Mapping[str, str] = MappingProxyType({})
_is_month = re.compile(r"[0-9]{4}-[0-9]{2}").fullmatch
_reported: set[tuple[str, str]] = set()


class _Entry(Struct, frozen=True):
    """The file at a marker's path, and its evidence; None when it is broken."""

    stat: Stat
    evidence: Evidence | None


class MarkerStore:
    """The markers of a line. Make one when a step begins: `started` is the start of its run."""

    def __init__(self, store: LocalStore) -> None:
        self.store = store
        self.started = clock.now()

    def read(self, key: Key) -> Evidence | None:
        """Return the evidence that a step left, or None; Foreign when a sound marker of something else is there."""
        path = layout.marker_path(key)
        try:
            return self._read(path, key)
        except NotReady:
            return None
        except BadInput:
            entry = self._find(path, key)  # logs the fault
            return entry.evidence if entry else None

    def holds(self, key: Key) -> bool:
        """True if a step left sound evidence. Faster than `read`, for callers that ask thousands of times."""
        path = layout.marker_path(key)
        try:
            found, _ = evidence.decode_head(self._bytes(path, key), path)
            _refuse_foreign(path, found, key)
        except NotReady:
            return False
        except BadInput:
            return self.read(key) is not None  # logs the fault
        return True

    def require(self, key: Key) -> Evidence:
        """Return the evidence that a step left, or raise NotReady."""
        marker = self.read(key)
        if marker is None:
            raise NotReady(layout.marker_path(key), f"run {key} first")
        return marker

    def record(self, key: Key) -> SoundMarker:
        """Return the record of a step's marker, or raise NotReady. Faster than `require`; no claim can rest on it."""
        path = layout.marker_path(key)
        try:
            found = evidence.decode_record(self._bytes(path, key), path)
        except (NotReady, BadInput):
            return self.require(key)  # logs the fault
        _refuse_foreign(path, found.claim.key, key)
        return found

    def run(self, key: Key) -> Run:
        """Return the run in a step's marker, or raise NotReady. Faster than `record`: its files are not read."""
        path = layout.marker_path(key)
        try:
            found, run = evidence.decode_head(self._bytes(path, key), path)
        except (NotReady, BadInput):
            return self.require(key).run  # logs the fault
        _refuse_foreign(path, found, key)
        return run

    def folder(self, launch: Launch) -> dict[str, Evidence]:
        """Return all sound markers of a launch, by file name."""
        markers = {}
        for entry in self.store.list(layout.state_folder(launch)):
            key = layout.parse_marker_path(entry.path)
            if key and (marker := self.read(key)):
                markers[entry.name] = marker
        return markers

    def months(self) -> list[str]:
        """The months that have a folder, the newest first."""
        return sorted(filter(_is_month, self.store.names("")), reverse=True)

    def jobs(self) -> set[str]:
        """The jobs that have a folder in some month."""
        return {name for month in self.months() for name in self.store.names(month) if _parsed(parse_job, name)}

    def launches(self, job: str) -> Iterator[Launch]:
        """The launches of a job that have a folder, the newest first."""
        for month in self.months():
            for name in sorted(self.store.names(f"{month}/{job}"), reverse=True):
                if launch := _parsed(Launch.parse, job, name):
                    yield launch

    def stages(self, launch: Launch) -> set[Stage]:
        """Return the stages of a launch that have any marker, sound or not."""
        keys = (layout.parse_marker_path(entry.path) for entry in self.store.list(layout.state_folder(launch)))
        return {Stage.parse(key["stage"]) for key in keys if key and "stage" in dict(key.params)}

    def document(self, claim: Claim) -> bytes:
        """Return the bytes of the marker that this run would publish for a claim."""
        return _document(claim, self._run())

    def plain_document(self, claim: Claim) -> bytes:
        """Return the same without a run: two honest runs give the same bytes. `publish` writes the run beside it."""
        return _document(claim, evidence.UNKNOWN)

    def run_of(self, marker: Evidence) -> Run:
        """Return the run of a marker: its own, or for a zip that of the file beside it; else UNKNOWN."""
        if marker.run != evidence.UNKNOWN:
            return marker.run
        path = layout.run_path(marker.claim.key)
        try:
            with self.store.open(path) as file:
                return evidence.run_from_json(json.loads(file.read(LARGEST_RUN)))
        except (NotReady, ValueError, KeyError, TypeError, RecursionError):
            return evidence.UNKNOWN

    def _run(self, tools: Mapping[str, str] = NO_TOOLS, by: str = "") -> Run:
        own = {"warcmill": __version__, "python": platform.python_version()}
        return Run(temporary_names.host(), self.started, clock.now(), {**tools, **own}, by)

    def publish(
        self, key: Key, claim: Claim, artefact: Path | None = None, tools: Mapping[str, str] = NO_TOOLS, by: str = ""
    ) -> None:
        """Publish the marker of a claim. Everything that the claim names must be durable before.

        `tools`: versions of other programs that did the work, for its run. `by`: the person who states it, there too:
        of two who state the same, the first one's marker stays.

        `artefact` is a file that is the marker itself: a zip that contains `plain_document`. Its run is written beside
        it first, so that every zip has one; the first run is kept.
        If the same claim is published already, that is success; another claim is a Conflict.
        """
        path = layout.marker_path(key)
        data = None if artefact else _document(claim, self._run(tools, by))
        if artefact:
            self._leave_run(key)
        while not self._commit(path, artefact, data):
            entry = self._find(path, key)
            if entry is None:
                continue  # a racer has just moved the broken one aside
            if entry.evidence is None:
                self._put_aside(path, entry.stat)
            elif entry.evidence.digest == evidence.claim_digest(claim):
                return
            else:
                since = self.run_of(entry.evidence).finished or "a time that is not known"
                raise Conflict(
                    path,
                    f"a marker with another claim is there since {since}, and was left as it is;"
                    " if the new one is right, 'warcmill redo' the step",
                )

    def marker_file(self, key: Key) -> FileRef:
        """Return the marker itself as a file, with its own length and digest."""
        path = layout.marker_path(key)
        with self.store.open(path) as file:
            return FileRef("state", path, *digests.sha512(file))

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Make a new folder on the state's own disk, and remove it afterwards."""
        base = self.store.base / SCRATCH
        folder = base / temporary_names.name("step")
        try:
            base.mkdir(exist_ok=True)
            folder.mkdir()
            try:
                yield folder
            finally:
                shutil.rmtree(folder)
        except OSError as error:
            if error.errno in CANNOT_WRITE:  # it can only be this folder: the roots raise their own errors
                why = f"{disk.reason(error, folder)} (root {self.store.base})"
                raise Unavailable(f"state:{SCRATCH}", why) from error
            raise

    def sweep(self, folder: str) -> None:
        """Remove temporary files that dead processes of this host left in a folder of markers and in scratch."""
        self.store.sweep(folder)
        for entry in self.store.list(SCRATCH):
            if temporary_names.is_dead(entry.name):
                # Two may sweep at once; leftovers are harmless, and the next step sweeps again.
                shutil.rmtree(self.store.real(entry.path), ignore_errors=True)

    def _find(self, path: str, key: Key) -> _Entry | None:
        stat = self.store.stat(path)  # before the bytes: a file that is exchanged in between then has another version
        if stat is None:
            return None
        try:
            return _Entry(stat, self._read(path, key))
        except NotReady:
            return None
        except BadInput as error:
            _report(path, stat.version, error)
            return _Entry(stat, None)

    def _read(self, path: str, key: Key) -> Evidence:
        marker = evidence.decode(self._bytes(path, key), path)
        _refuse_foreign(path, marker.claim.key, key)
        return marker

    def _bytes(self, path: str, key: Key) -> bytes:
        if not chain.by_task(chain.ROWS)[key.task].marker.endswith(".zip"):  # `path` may be one in aside/
            return self.store.read(path, evidence.LARGEST + 1)
        member = logzip.last_member(*self.store.read_end(path, logzip.END), logzip.EVIDENCE)
        if member is not None:
            return member
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
            size, digest = digests.sha512(file)
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
        """Read again what we moved: where folder locks do not work, it may be a racer's good marker."""
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


def input_of(state: MarkerStore, key: Key) -> Input:
    """Return a marker as an input of a claim, or raise NotReady."""
    return rests_on(state.require(key))[0]


def rests_on(*markers: Evidence) -> tuple[Input, ...]:
    """Return markers as inputs of the claim that rests on them: as they were read, not as they are on disk now."""
    return tuple(Input(layout.marker_path(marker.claim.key), marker.digest) for marker in markers)


def _parsed(parse: Callable[..., T], *names: str) -> T | None:
    """A job or a launch of this name; None for another name, as the summary of a day or a marker of a due crawl."""
    try:
        return parse(*names)
    except BadInput:
        return None


def _document(claim: Claim, run: Run) -> bytes:
    data = evidence.encode(claim, run)
    evidence.decode(data, layout.marker_path(claim.key))  # never write a marker that we could not read
    return data


def _refuse_foreign(path: str, actual: Key, wanted: Key) -> None:
    if actual != wanted:
        raise Foreign(path, f"a sound marker, but of {actual}")


def _report(path: str, version: str, error: BadInput) -> None:
    if (path, version) not in _reported:
        _reported.add((path, version))
        log.warning("%s; counts as absent", error)
