"""The WARC files of one writer: named by prefix, time, serial and process, `.open` until closed. Writes to its folder.

It appends and renames; it proves nothing durable. The keeper of the books calls `sync`, and notes the `lengths` that it
has seen durable: after a kill the files are cut to those.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from warcmill.base import clock, disk
from warcmill.errors import Conflict, Unavailable
from warcmill.formats.warc.records import CONFORMS_TO, Pairs, Record, warcinfo

T = TypeVar("T")

OPEN = ".open"
FILE_SIZE = 10**9  # bytes; a file that has as many is closed before the next exchange
HELD = 1 << 20  # bytes that one write takes: mostly all records of a URI
ALWAYS = (("format", "WARC File Format 1.1"), ("conformsTo", CONFORMS_TO))


class RecordPlace(Struct, frozen=True):
    """Where a record is: the file's final name, offset and length of its member, in bytes."""

    name: str
    offset: int
    length: int


class Writer(Struct, frozen=True):
    """The names of the files of one writer: `{prefix}-{17 digits}-{serial}-{pid}~{host}~{port}.warc.gz`."""

    prefix: str
    pid: int
    host: str
    port: int = 0

    def name(self, moment: datetime, serial: int) -> str:
        """The final name of the file with this serial."""
        stamp = f"{clock.digits(moment)}{moment.microsecond // 1000:03}"
        return f"{self.prefix}-{stamp}-{serial:05}-{self.pid}~{self.host}~{self.port}.warc.gz"


class WarcFiles:
    """The WARCs of one writer in `folder`: one is open at a time, from the first record after `close` on.

    `fields` go into each file's warcinfo; `serial` is the number of the next file.
    `before_file` is called before a file is made, and may refuse by raising.
    """

    def __init__(
        self,
        folder: Path,
        writer: Writer,
        fields: Pairs,
        serial: int = 0,
        size: int = FILE_SIZE,
        before_file: Callable[[], None] = lambda: None,
    ) -> None:
        self.serial = serial
        self._folder, self._writer, self._fields, self._size = folder, writer, (*fields, *ALWAYS), size
        self._before_file = before_file
        self._fd, self._name, self._length = -1, "", 0
        self._held = bytearray()

    @property
    def name(self) -> str:
        """The final name of the open file; '' when none is open."""
        return self._name

    @property
    def length(self) -> int:
        """The length of the open file in bytes."""
        return self._length

    def append(self, records: Sequence[Record]) -> list[RecordPlace]:
        """Append the records of one URI, in one file; return their places. Unavailable: none of them was written."""
        if self._fd >= 0 and self._length >= self._size:
            self.sync()
            self.close()
        if self._fd < 0:
            self._begin()
        return self._write(records)

    def sync(self) -> None:
        """Make all that was appended durable. An error is final: what the file then holds is not known."""
        if self._fd >= 0:
            _try(self._path, lambda: os.fdatasync(self._fd))
            if os.fstat(self._fd).st_nlink == 0:
                raise Unavailable(str(self._path), "it was deleted while it was written")

    def close(self) -> str:
        """Close the open file under its final name, and return that; '' when none is open. Call `sync` before."""
        if self._fd < 0:
            return ""
        name, self._name = self._name, ""
        os.close(self._fd)
        self._fd = -1
        close_name(self._folder, name)
        return name

    @property
    def _path(self) -> Path:
        return self._folder / (self._name + OPEN)

    def _begin(self) -> None:
        self._before_file()
        now = datetime.now(UTC)
        name = self._writer.name(now, self.serial)
        path = self._folder / (name + OPEN)
        self._fd = _try(path, lambda: os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        self._name, self._length, self.serial = name, 0, self.serial + 1
        sync_folder(self._folder)
        self._write([warcinfo(name, clock.text(now), self._fields)])

    def _write(self, records: Iterable[Record]) -> list[RecordPlace]:
        begin, places = self._length, []
        try:
            for record in records:
                offset = self._length + len(self._held)
                for piece in record.member():
                    self._held += piece
                    if len(self._held) > HELD:
                        self._write_held()
                places.append(RecordPlace(self._name, offset, self._length + len(self._held) - offset))
            self._write_held()
        except OSError as error:
            self._cut(begin)
            why = f"{disk.reason(error, self._path)}. The record was not written"
            raise Unavailable(str(self._path), why) from error
        except BaseException:
            self._cut(begin)
            raise
        return places

    def _write_held(self) -> None:
        held, self._held = bytes(self._held), bytearray()
        rest = memoryview(held)
        while rest:
            written = os.pwrite(self._fd, rest, self._length)
            self._length += written
            rest = rest[written:]

    def _cut(self, length: int) -> None:
        """Take back a group that was written in part; the next one is written there in any case."""
        self._length = length
        self._held.clear()
        _try(self._path, lambda: os.ftruncate(self._fd, length))


def close_name(folder: Path, name: str) -> None:
    """Rename a file from `{name}.open` to `name`; Conflict when that exists."""
    final = folder / name
    if final.exists():
        raise Conflict(str(final), f"it exists, and so does {name}{OPEN}; compare them, then move one away")
    _try(final, lambda: os.rename(folder / (name + OPEN), final))
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = _try(folder, lambda: os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    try:
        _try(folder, lambda: os.fsync(descriptor))
    finally:
        os.close(descriptor)


def _try(path: Path, act: Callable[[], T]) -> T:
    try:
        return act()
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error
