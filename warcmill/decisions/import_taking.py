"""Take the WARCs of a folder one after the other, and sort them: new, known from an earlier import, or double."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from warcmill import layout
from warcmill.decisions.foreign import Found
from warcmill.decisions.incoming import Incoming
from warcmill.decisions.take_in import Advance, Taken, may_link, take
from warcmill.decisions.taken_before import Before
from warcmill.errors import Mismatch, NotReady, Unavailable, Unsettled
from warcmill.stores import Stat
from warcmill.stores.file import FileStore
from warcmill.stores.source_folder import SourceFolder


@dataclass(slots=True)
class Taking:
    """The WARCs of a folder as they are read: those that are `new`, `known` from earlier imports, or `doubles`."""

    source: SourceFolder
    at: Incoming
    before: Before
    names: Mapping[str, str]
    settled: Mapping[str, Taken]
    new: dict[str, Taken] = field(default_factory=dict)
    known: dict[str, str] = field(default_factory=dict)
    doubles: list[str] = field(default_factory=list)

    def all(self, entries: list[Stat], advance: Advance) -> None:
        """Take every WARC; Unsettled when some could not be read."""
        failures, first = list[str](), dict[str, str]()
        for entry in entries:
            try:
                taken, is_here = self._taken(entry, advance)
            except (Unavailable, NotReady, Mismatch) as error:
                failures.append(str(error))
                continue
            if is_here:  # an error of our own disk ends the import at once
                self.at.settle(file_key(entry, self.names[entry.path]), taken)
            self._sort_in(entry, taken, first)
        if failures:
            raise Unsettled(f"the import of {self.source.base}", failures)

    def _taken(self, entry: Stat, advance: Advance) -> tuple[Taken, bool]:
        """A WARC, and whether it lies here now and has to be settled."""
        name = self.names[entry.path]
        if earlier := self.settled.get(file_key(entry, name)):
            advance(entry.size)
            return earlier, False
        if self.looks_known(entry):
            taken = take(self.source, entry, None, advance, name)
            if taken.sha512 in self.before.where:
                return taken, False
        return take(self.source, entry, self.at.target(name), advance, name), True

    def looks_known(self, entry: Stat) -> bool:
        """True if an earlier import had a WARC of this path and size: it is read before it is copied."""
        return (layout.shown(entry.path), entry.size) in self.before.origins

    def _sort_in(self, entry: Stat, taken: Taken, first: dict[str, str]) -> None:
        path = layout.shown(entry.path)
        if where := self.before.where.get(taken.sha512):
            self.known[path] = where
        elif taken.sha512 in first:
            self.doubles.append(f"{path}: the same bytes as {first[taken.sha512]}")
        else:
            first[taken.sha512] = path
            self.new[entry.path] = taken
            return
        self.at.drop(self.names[entry.path])


def file_key(entry: Stat, name: str) -> str:
    """The name of a settled WARC: its version in the source, and its name in the launch."""
    return f"{entry.version}/{name}"


def check_room(root: FileStore, taking: Taking, found: Found) -> None:
    """Unavailable when what has to be copied is more than the disk has room for: better now than after hours."""
    needed = sum(entry.size for entry in found.warcs if _is_copied(root, taking, entry))
    disk = os.statvfs(root.base)
    if needed > disk.f_bavail * disk.f_frsize:
        why = f"{needed:,} bytes have to be copied, and {disk.f_bavail * disk.f_frsize:,} are free; make room"
        raise Unavailable(f"the root of imported launches ({root.base})", why)


def _is_copied(root: FileStore, taking: Taking, entry: Stat) -> bool:
    if file_key(entry, taking.names[entry.path]) in taking.settled or taking.looks_known(entry):
        return False
    try:
        status = os.lstat(taking.source.real(entry.path))
    except OSError:
        return True  # reading it will tell
    return status.st_dev != os.stat(root.base).st_dev or not may_link(status, os.geteuid())
