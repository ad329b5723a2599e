"""Read the logs of a stage as the store has them: its zip, by its files.verified. Reads only.

The zip is copied to a nameless file of the state's disk first, and compared with its marker meanwhile: a zip is read in
any order, and a store on another host gives its bytes once.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

from msgspec import Struct

from warcmill import layout
from warcmill.base import digests
from warcmill.errors import Mismatch, NotReady
from warcmill.formats.logs import crawllog, logzip
from warcmill.markers import claim
from warcmill.markers.claim import Evidence
from warcmill.markers.facts.output import PackedLogs
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Item
from warcmill.stores import Store


class StoredLogs(Struct, frozen=True):
    """An open zip of logs, and the items of its own claim, by the name in the zip."""

    stream: BinaryIO
    members: dict[str, Item]

    def paper(self, name: str, most: int) -> bytes | None:
        """A paper of the launch or a report, by its name in the zip, such as `jobs/seeds.txt`; None when there is none.

        At most so many bytes of it.
        """
        return logzip.open_member(self.stream, name).read(most) if name in self.members else None

    def open_paper(self, name: str) -> BinaryIO | None:
        """The same, opened: one that may be long."""
        return logzip.open_member(self.stream, name) if name in self.members else None

    def read_crawl_logs(self, take: Callable[[BinaryIO], None]) -> list[str]:
        """Give every crawl log to `take`, oldest first; return those that could not be read to their end."""
        ours = {name: item for name, item in self._logs() if layout.is_crawl_log(_plain(item))}
        names = {item.file: name for name, item in ours.items()}
        ordered = in_order(ours.values())
        unread = {item.file.label for item in ours.values()} - {item.file.label for item in ordered}
        unread |= {item.file.label for item in ordered if not self._read(names[item.file], item, take)}
        return sorted(unread)

    def read_logs(self, plain: str, take: Callable[[BinaryIO], None]) -> None:
        """Give every log of a plain name, such as `scope.log`, to `take`, as far as it can be read."""
        for name, item in self._logs():
            if _plain(item).removesuffix(".gz") == plain:
                self._read(name, item, take)

    def _logs(self) -> Iterator[tuple[str, Item]]:
        return ((name, item) for name, item in self.members.items() if name.startswith("logs/"))

    def _read(self, name: str, item: Item, take: Callable[[BinaryIO], None]) -> bool:
        return crawllog.read(logzip.open_member(self.stream, name), take, is_gzip=_plain(item).endswith(".gz"))


@contextmanager
def opened(store: Store, verified: Evidence, scratch: Path) -> Iterator[StoredLogs]:
    """Open the stored zip of the stage that a files.verified is of. Mismatch when the store has other bytes by now."""
    stored = _zip_of(verified)
    with tempfile.TemporaryFile(dir=scratch) as room:
        _copy(store, stored, room)
        stream = cast(BinaryIO, room)
        packed = claim.decode(logzip.evidence(stream), f"store:{stored.path}").claim
        names = PackedLogs.from_claim(packed).members
        yield StoredLogs(stream, {names[item.file]: item for item in packed.items})


@contextmanager
def packed(state: MarkerStore, logs: Evidence) -> Iterator[StoredLogs]:
    """Open the zip of a 02 in the state: the same logs, before they are stored."""
    names = PackedLogs.from_claim(logs.claim).members
    with state.store.open(layout.marker_path(logs.claim.key)) as stream:
        yield StoredLogs(stream, {names[item.file]: item for item in logs.claim.items})


def in_order(crawl_logs: Iterable[Item]) -> list[Item]:
    """The logs to count, oldest first. Of a log that exists plain and compressed, only the plain one counts."""
    by_place = {(_folder(item), _plain(item)): item for item in crawl_logs}
    duplicates = {(folder, f"{plain}.gz") for folder, plain in by_place}
    single = [item for place, item in by_place.items() if place not in duplicates]
    known = [(order, item.file.label, item) for item in single if (order := layout.crawl_log_order(_plain(item)))]
    return [item for _, _, item in sorted(known, key=lambda entry: entry[:2])]


def _zip_of(verified: Evidence) -> FileRef:
    """The stored zip of logs: the one file of a stage that is from the state."""
    found = [item.made for item in verified.claim.items if item.file.root == "state" and item.made]
    if not found:
        raise NotReady(layout.marker_path(verified.claim.key), "it names no zip of logs in the store")
    return found[0]


def _copy(store: Store, stored: FileRef, room: IO[bytes]) -> None:
    digest, size = hashlib.sha512(), 0
    with store.open(stored.path) as source:
        while piece := source.read(digests.CHUNK):
            digest.update(piece)
            size += len(piece)
            room.write(piece)
    if (size, digest.hexdigest()) != (stored.size, stored.sha512):
        expected, found = f"{stored.size} bytes, {stored.sha512}", f"{size} bytes, {digest.hexdigest()}"
        raise Mismatch(f"store:{stored.path} changed since it was verified; length and sha512", expected, found)


def _folder(item: Item) -> str:
    return item.file.label.rpartition("/")[0]


def _plain(item: Item) -> str:
    return layout.split_log_name(item.file.name)[0]
