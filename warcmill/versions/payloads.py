"""What is published of a version in the index root: a folder with its segments, and the link to the current one.

    {index}/versions/cdx/current -> 000007-9f86d081884c
    {index}/versions/cdx/000007-9f86d081884c/version    what is in the folder; sealed, and written last
                                            /{segment}.cdx.gz …
                                            /inputs.txt  the URI of each WARC, for other programs

The folder's name has the number of the version and the beginning of its list's digest. A segment that several versions
share has a name in the folder of each. `current` is moved by rename: a reader sees one version or the other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from logging import getLogger

from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.formats.sealed import seal, unseal
from warcmill.model import FileRef, Json
from warcmill.stores import LocalStore
from warcmill.stores.temporary import is_temporary
from warcmill.versions import lists
from warcmill.versions.inputs import VersionList
from warcmill.versions.lists import FOLDER, LARGEST
from warcmill.versions.segments import Segment, publish_bytes

CURRENT, DOCUMENT, URIS, SEEN = "current", "version", "inputs.txt", "seen"
log = getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Published:
    """A version in the index root. `places`: URIs of the folders below which the names of its WARCs are."""

    number: int
    folder: str
    list_sha512: str
    places: tuple[str, ...]
    segments: tuple[Segment, ...]

    @property
    def lines(self) -> int:
        """How many lines it has."""
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
        return f"{self.top}/{listed.number:06}-{lists.digest(listed)[:12]}"

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
        """Publish the document of a version whose segments are in its folder, and remove what is none of them."""
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
        """What the last fold saw of the markers; '' if that is not known."""
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
