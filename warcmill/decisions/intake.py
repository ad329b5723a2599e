"""Take one WARC of a foreign folder into the line: the gate, its digest and the copy in one pass.

A hard link saves the copy, and gives the archive an inode that its source's owner keeps. So a file is linked only if
nobody but the user who imports, or root, can change it: it belongs to one of them, and neither its group nor others
may write to it (with an ACL, the group's bits show the widest right that it gives). Every other file is copied, and so
is one on another disk, or where the system refuses the link. A link changes no byte and no time of modification of the
source; its count of links, and with it its ctime, grow.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat as modes
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from warcmill.base import clock
from warcmill.base.digests import Readable
from warcmill.decisions.folder_layouts import WarcSource
from warcmill.errors import BadInput, Mismatch
from warcmill.formats.warc import gate, hearers
from warcmill.formats.warc.hearers import Hearer, RecordHead, WholeRecord
from warcmill.formats.warc.rest import Again
from warcmill.model import parse_stamp
from warcmill.stores import Stat

Advance = Callable[[int], object]
_NO_LINK = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOENT, errno.ENOSYS)
_UTC = re.compile(rb"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?Z")
_ARC = re.compile(rb"[0-9]{12,17}")


class Taken(Struct, frozen=True):
    """A WARC that was read. `first` and `last` are the dates of its records, 14 digits; '' when none is a date."""

    size: int
    sha512: str
    ok: bool
    why: str
    offset: int | None
    first: str
    last: str
    linked: bool = False


class Dates(Hearer):
    """The earliest and the latest date of the records of a file that the gate accepted."""

    def __init__(self) -> None:
        self.first = self.last = ""
        self._tomorrow = clock.digits(datetime.now(UTC) + timedelta(days=1))
        self._begun = b""
        self._raw: bytes | None = None

    def begin(self, head: RecordHead, /) -> Dates:
        """Note a record's date."""
        self._begun = head.fields.get(b"WARC-Date") or head.fields.get(b"Archive-date") or b""
        return self

    def feed(self, _piece: memoryview) -> None:
        """Its block has no date."""

    def end(self, _offset: int, _length: int) -> None:
        """The record is readable: count its date."""
        self._count(self._begun)

    def whole(self, record: WholeRecord, /) -> None:
        """Count the date of most records: the gate has it from the header, and nobody makes a head for it."""
        self._count(record.header[hearers.DATE])

    def _count(self, raw: bytes) -> None:
        if raw == self._raw:  # a request has the date of its response, and many pages come in a second
            return
        self._raw = raw
        if date := stamp_of(raw.strip()):
            self.first = min(self.first or date, date)
            if date <= self._tomorrow:  # no launch ends in the future: such a record is odd
                self.last = max(self.last, date)


def stamp_of(date: bytes) -> str:
    """Return a record's date as 14 digits in UTC; '' when it is not a real time."""
    try:
        if parts := _UTC.fullmatch(date):
            return parse_stamp(b"".join(parts.groups()).decode("ascii"))
        if _ARC.fullmatch(date):
            return parse_stamp(date.decode("ascii")[:14].ljust(14, "0"))
        return _other_date(date.decode("ascii"))
    except (BadInput, ValueError, OverflowError):
        return ""


def _other_date(text: str) -> str:
    """A date of WARC 1.1 may end with the year, month, day or minute (ISO 28500:2017, 5.4); some have an offset."""
    if re.fullmatch(r"[0-9]{4}(-[0-9]{2}){0,2}", text):
        return parse_stamp(f"{text.replace('-', '')}0101"[:8].ljust(14, "0"))
    moment = datetime.fromisoformat(text)
    return clock.digits(moment.astimezone(UTC) if moment.tzinfo else moment)


class _Tee:
    """A stream whose pieces also go to `feeds`."""

    def __init__(self, stream: Readable, *feeds: Callable[[bytes], object]) -> None:
        self._stream, self._feeds = stream, feeds

    def read(self, size: int, /) -> bytes:
        data = self._stream.read(size)
        for feed in self._feeds:
            feed(data)
        return data


def take(source: WarcSource, entry: Stat, target: Path | None, advance: Advance, name: str = "") -> Taken:
    """Read a WARC, and leave a link or a durable copy of it as `target`; None: only read it. `name`: its own in
    the launch.

    Unavailable when it cannot be read, Mismatch when it changes meanwhile, BadInput when its source finds it damaged:
    then nothing is left. An OSError is about the target.
    """
    with source.open(entry.path) as stream:
        linked = target is not None and not source.is_packed and _link(stream, target)
        again = (lambda: target.open("rb")) if target else None  # all of it is there by then, and can seek
        try:
            with _copy(None if linked else target) as write:
                taken = _read(stream, name or entry.name, write, advance, linked, again)
            if linked:
                os.fsync(stream.fileno())  # its bytes may never have been synced
            if source.stat(entry.path) != entry or taken.size != entry.size:
                raise Mismatch(f"{source.where(entry.path)} changed while it was read; its version", entry, "another")
        except BaseException:
            if target is not None:
                with suppress(FileNotFoundError):
                    target.unlink()
            raise
    return taken


def _read(
    stream: BinaryIO, name: str, write: Callable[[bytes], object], advance: Advance, linked: bool, again: Again | None
) -> Taken:
    sha512, dates, sizes = hashlib.sha512(), Dates(), [0]

    def count(data: bytes) -> None:
        sizes[0] += len(data)
        advance(len(data))

    verdict = gate.examine(_Tee(stream, sha512.update, write, count), name, hearers=[dates], again=again)
    read = sizes[0], sha512.hexdigest()
    return Taken(*read, verdict.ok, verdict.why, verdict.offset, dates.first, dates.last, linked)


@contextmanager
def _copy(target: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Yield a function that writes to a new file, which is synced at the end; None: to no file."""
    if target is None:
        yield lambda _: None
        return
    with target.open("xb", buffering=0) as file:
        yield lambda data: _write_all(file.fileno(), data)
        os.fsync(file.fileno())


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`: write(2) may take only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def may_link(status: os.stat_result, own: int) -> bool:
    """True if nobody but the user `own` and root can change this file."""
    return status.st_uid in (0, own) and not status.st_mode & (modes.S_IWGRP | modes.S_IWOTH)


def _link(stream: BinaryIO, target: Path) -> bool:
    """Link the very file that is open, if that is safe and the disk allows it; return whether it was linked."""
    status = os.fstat(stream.fileno())
    if not may_link(status, os.geteuid()) or status.st_dev != os.stat(target.parent).st_dev:
        return False
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(f"/proc/self/fd/{stream.fileno()}", target.name, dst_dir_fd=folder, follow_symlinks=True)
    except OSError as error:
        if error.errno not in _NO_LINK:
            raise
        return False
    finally:
        os.close(folder)
    return True
