"""The published versions of an index, in the index root, and look-ups of captures in them. Writes to the index root.

A version is a folder with its segments, and a link leads to the current one.

    {index}/versions/cdx/current -> 000007-9f86d081884c
    {index}/versions/cdx/000007-9f86d081884c/version    what is in the folder; sealed, and written last
                                            /{segment}.cdx.gz …
                                            /inputs.txt  the URI of each WARC, for other programs

The folder's name has the number of the version and the beginning of its list's digest. A segment that several versions
share has a name in the folder of each. `current` is moved by rename: a reader sees one version or the other.

`CdxLookup` finds captures by key, by the begin of a key, or by time. A lookup reads few blocks of few segments.
"""

from __future__ import annotations

import heapq
import json
import mmap
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import islice, takewhile
from logging import getLogger

from msgspec import Struct

from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.formats.index import zipnum
from warcmill.formats.index.zipnum import CDX, IDX
from warcmill.formats.seal import seal, unseal
from warcmill.model import FileRef, Json
from warcmill.stores import LocalStore
from warcmill.stores.temporary_names import is_temporary
from warcmill.versions import hidden_list, inputs
from warcmill.versions.hidden_list import Hidden
from warcmill.versions.inputs import FOLDER, LARGEST, Lists, VersionList
from warcmill.versions.segments import Segment, publish_bytes


class CdxLookup:
    """Answers from segments. They stay open: a version that is retired meanwhile still answers."""

    def __init__(self, index: LocalStore, segments: Sequence[Segment]) -> None:
        self._open = ExitStack()
        self._parts = [_Part(index, segment, self._open) for segment in segments]

    def close(self) -> None:
        """Close the segments."""
        self._open.close()

    def beginning_with(self, prefix: bytes) -> Iterator[bytes]:
        """The lines that begin with these bytes, in order."""
        parts = [part.following(prefix) for part in self._parts]
        return takewhile(lambda line: line.startswith(prefix), heapq.merge(*parts))

    def captures(self, key: str, first: str = "", last: str = "9" * 14) -> Iterator[bytes]:
        """The lines of a key, from the time `first` to `last`: 14 digits, or the first ones of them."""
        return self.between(f"{key} {first}".encode(), f"{key} {last}".encode() + b"~")

    def between(self, begin: bytes, end: bytes) -> Iterator[bytes]:
        """The lines from the first that is not before `begin`, to the last that is before `end`."""
        parts = [part.following(begin) for part in self._parts]
        return takewhile(lambda line: line < end, heapq.merge(*parts))


class _Part:
    """One open segment."""

    def __init__(self, index: LocalStore, segment: Segment, opened: ExitStack) -> None:
        self._where = f"index:{segment.files[CDX].path}"
        self._stream = opened.enter_context(index.open(segment.files[CDX].path))
        idx = opened.enter_context(index.open(segment.files[IDX].path))
        self._idx = opened.enter_context(mmap.mmap(idx.fileno(), 0, access=mmap.ACCESS_READ))
        self._held: tuple[int, list[bytes]] = -1, []

    def following(self, key: bytes) -> Iterator[bytes]:
        """All lines that are not before a key."""
        for block in zipnum.blocks(self._idx, zipnum.find(self._idx, key), self._where):
            lines = self._lines(block)
            yield from islice(lines, bisect_left(lines, key), None)

    def _lines(self, block: zipnum.IndexBlock) -> list[bytes]:
        """The lines of a block. The last one is kept: keys that are asked for in order are often in it."""
        if self._held[0] != block.offset:
            self._stream.seek(block.offset)
            packed = self._stream.read(block.length)
            self._held = block.offset, zipnum.unpack(packed, self._where, block.offset)
        return self._held[1]


def set_back(state: LocalStore, index: LocalStore, data_set: str) -> str:
    """Why the current version is not the newest one that the state lists, and what to do; '' if it is, or there is
    none. An older one lacks captures, and shows what was found to be a virus since.

    A fold leads to a version right after it has listed it: that is waited for.
    """
    lists, payloads = Lists(state, data_set), Payloads(index, data_set)
    tries = 0
    while (current := payloads.current()) and lists.has(current.number + 1):
        if tries == len(_MOMENTS):
            what = f"version {current.number} is the current one, and {max(lists.numbers())} the newest"
            return f"{what}; run 'warcmill scan', which leads to it"
        time.sleep(_MOMENTS[tries])
        tries += 1
    return ""


def hidden_now(state: LocalStore, index: LocalStore, data_set: str) -> Hidden:
    """The list now. NotReady if the current version is not the newest. NotReady or Conflict if the state lacks a
    decision that the current version names, as a lost state does: hidden captures would be shown."""
    current = Payloads(index, data_set).current()
    if current is None:
        return hidden_list.read(state)
    if why := set_back(state, index, data_set):
        raise NotReady(f"index:{FOLDER}/{data_set}/{CURRENT}", why)
    return hidden_list.now(state, Lists(state, data_set).hiding(current.number))


def open_version(index: LocalStore, data_set: str, number: int | None = None) -> tuple[Published, CdxLookup]:
    """Open a version by its number, or the current one. NotReady if it is not there."""
    payloads = Payloads(index, data_set)
    found = payloads.current() if number is None else payloads.numbered(number)
    if found is None:
        what = f"the current version of {data_set}" if number is None else f"version {number} of {data_set}"
        why = "its files are not in the index root; 'warcmill scan' makes the newest"
        raise NotReady(what, why)
    return found, CdxLookup(index, found.segments)


_MOMENTS = (0.02, 0.05, 0.1)  # seconds
CURRENT, DOCUMENT, URIS, SEEN = "current", "version", "inputs.txt", "seen"
log = getLogger(__name__)


class Published(Struct, frozen=True):
    """A version in the index root. `places`: URIs of the folders below which the names of its WARCs are."""

    number: int
    folder: str
    list_sha512: str
    places: tuple[str, ...]
    segments: tuple[Segment, ...]

    @property
    def lines(self) -> int:
        """The number of its lines."""
        return sum(segment.lines for segment in self.segments)

    @property
    def bytes(self) -> int:
        """The length of its files."""
        return sum(file.size for segment in self.segments for file in segment.files.values())


class Payloads:
    """The published versions of one data set."""

    def __init__(self, index: LocalStore, data_set: str) -> None:
        self.index, self.top = index, f"{FOLDER}/{data_set}"

    def folder(self, listed: VersionList) -> str:
        """The folder of a version."""
        return f"{self.top}/{listed.number:06}-{inputs.digest(listed)[:12]}"

    def current(self) -> Published | None:
        """The version that readers read; None if there is none, or if it is damaged."""
        name = self.index.pointed(f"{self.top}/{CURRENT}")
        return self.at(f"{self.top}/{name}") if name else None

    def at(self, folder: str) -> Published | None:
        """The version in a folder; None if it is missing, unfinished or damaged."""
        path = f"{folder}/{DOCUMENT}"
        try:
            return _decode(unseal(self.index.read(path, LARGEST), path), folder)
        except NotReady:
            return None
        except BadInput as error:
            log.warning("index:%s; counts as absent", error)
            return None

    def numbered(self, number: int) -> Published | None:
        """The version of this number; None if its files are not there."""
        return next((one for one in self.all() if one.number == number), None)

    def all(self) -> Iterator[Published]:
        """All versions whose files are there, in order."""
        for folder in self.folders():
            if found := self.at(folder):
                yield found

    def folders(self) -> list[str]:
        """All folders, finished or not, in order."""
        return [entry.path for entry in self.index.list(self.top) if entry.kind == "folder"]

    def take_over(self, segment: Segment, folder: str) -> Segment:
        """Give a segment of another version its names in this folder."""
        moved = segment.within(folder)
        for end, file in segment.files.items():
            self.index.link(file.path, moved.files[end].path)
        return moved

    def finish(self, published: Published) -> None:
        """Publish the document of a version whose segments are in its folder, and remove other files."""
        known = {file.name for segment in published.segments for file in segment.files.values()}
        self.index.sweep(published.folder)
        for entry in self.index.list(published.folder):
            if entry.name not in known | {DOCUMENT, URIS} and not is_temporary(entry.name):
                with suppress(Mismatch):
                    self.index.remove(entry.path, entry)
        publish_bytes(self.index, f"{published.folder}/{DOCUMENT}", seal(_encode(published)))

    def sweep(self) -> None:
        """Remove what killed folds of this host left half-written beside the folders."""
        self.index.sweep(self.top)

    def point(self, published: Published) -> None:
        """Make a version the current one."""
        self.index.point(f"{self.top}/{CURRENT}", published.folder.rpartition("/")[2])

    def remove(self, folder: str) -> int:
        """Remove a folder, its document first; return the bytes of its files, which other versions may still have."""
        entries = sorted(self.index.list(folder), key=lambda entry: entry.name != DOCUMENT)
        for entry in entries:
            self.index.remove(entry.path, entry)
        self.index.remove_folder(folder)
        return sum(entry.size for entry in entries)

    def seen(self) -> str:
        """A digest of the markers that the last fold saw; '' if unknown."""
        try:
            return self.index.read(f"{self.top}/{SEEN}", 200).decode("ascii", "replace").strip()
        except NotReady:
            return ""

    def note_seen(self, seen: str) -> None:
        """Remember what this fold saw of the markers: the next one does nothing if it sees the same."""
        self.index.replace(f"{self.top}/{SEEN}", f"{seen}\n".encode())


def _encode(published: Published) -> bytes:
    segments: list[Json] = [_segment(segment) for segment in published.segments]
    document: dict[str, Json] = {"list": published.list_sha512, "number": published.number, "schema": 1}
    document |= {"places": list(published.places), "segments": segments}
    return f"{json.dumps(document, sort_keys=True, indent=1)}\n".encode()


def _segment(segment: Segment) -> Json:
    files: dict[str, Json] = {end: {"sha512": file.sha512, "size": file.size} for end, file in segment.files.items()}
    return {"files": files, "lines": segment.lines, "name": segment.name}


def _decode(body: bytes, folder: str) -> Published:
    try:
        said = json.loads(body)
        if said["schema"] != 1:
            raise BadInput(folder, f"written with schema {said['schema']}, this Warcmill reads 1")
        segments = tuple(
            Segment(
                one["name"],
                one["lines"],
                {
                    end: FileRef("index", f"{folder}/{one['name']}{end}", file["size"], file["sha512"])
                    for end, file in one["files"].items()
                },
            )
            for one in said["segments"]
        )
        return Published(said["number"], folder, said["list"], tuple(said["places"]), segments)
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{folder}/{DOCUMENT}", f"soundly sealed, but no version: {error}") from error
