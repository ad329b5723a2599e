"""The bus in files of one machine: a JSON Lines file for each topic and day. Writes to the spool's folder.

    {topic}/2026-11-26.jsonl         the messages of a day
    {topic}/.lock                    held by who appends, shared by who reads
    .places/{group}/{topic}.json     the file and offset behind the last message that the group committed
    .places/{group}/{topic}.lock     held by the group's one active reader: the others wait for its end

A message is there once its line has its end. A kill leaves a line without one: the next append cuts it off, as it was
never acknowledged. A file is never written again once a later day has one, so places only grow.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import re
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from warcmill.base import disk
from warcmill.clients.bus import LONGEST, Message, check_name, check_values
from warcmill.errors import BadInput, Unavailable

_log = logging.getLogger(__name__)
DAYS: Final = 7
_FILE: Final = re.compile(r"(\d{4}-\d\d-\d\d)\.jsonl")
_PLACES: Final = ".places"
_CHUNK: Final = 1 << 18
_FIRST_POLL, _LAST_POLL = 0.02, 0.1  # seconds between two looks at a file that has not grown


class _Spot(NamedTuple):
    """A place in a topic; '' is before its first file."""

    file: str
    offset: int


class Spool:
    """A folder of topics. Files older than `days` are removed, unless a group has not read them."""

    def __init__(
        self, folder: Path, days: int = DAYS, today: Callable[[], date] = lambda: datetime.now(UTC).date()
    ) -> None:
        self._folder, self._days, self._today = folder, days, today
        self._durable: set[Path] = set()  # files whose names are, by this process

    def append(self, topic: str, values: Sequence[bytes]) -> None:
        check_values(topic, values)
        lines = memoryview(b"".join(value + b"\n" for value in values))
        if not lines:
            return
        folder = self._folder / topic
        with _trouble(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder / ".lock", fcntl.LOCK_EX):
                path = folder / f"{max(self._today().isoformat(), _newest(folder))}.jsonl"
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
                try:
                    _append(descriptor, lines)
                except OSError:
                    os.close(descriptor)
                    raise
            with _closing(descriptor):  # others may append while the disk works
                os.fsync(descriptor)
            if path not in self._durable:
                _sync_folders(path, self._folder.parent)
                self._durable.add(path)
                self._remove_old(topic)

    def reader(self, topic: str, group: str | None, *, from_end: bool = False) -> SpoolReader:
        check_name("topic", topic)
        if group is not None:
            check_name("group", group)
        places = None if group is None else self._folder / _PLACES / group
        return SpoolReader(self._folder / topic, topic, places, from_end=from_end)

    def topics(self) -> list[str]:
        with _trouble(self._folder):
            if not self._folder.exists():
                return []
            return sorted(entry.name for entry in os.scandir(self._folder) if entry.is_dir() and entry.name[0] != ".")

    def close(self) -> None:
        """Nothing is held."""

    def _remove_old(self, topic: str) -> None:
        """Remove the files of a topic that are too old; one that a group has yet to read is kept, and named."""
        oldest = (self._today() - timedelta(days=self._days)).isoformat()
        old = [name for name in _files(self._folder / topic) if _FILE.sub(r"\1", name) < oldest]
        for place in sorted((self._folder / _PLACES).glob(f"*/{topic}.json")) if old else []:
            try:
                spot = _read_spot(place)
            except BadInput:  # its group reports it; until then nothing that it may need is removed
                return
            kept = [name for name in old if name >= spot.file]
            if kept:
                _log.warning("%s: kept from %s on, as group %s has not read it", topic, kept[0], place.parent.name)
            old = [name for name in old if name < spot.file]
        for name in old:
            (self._folder / topic / name).unlink(missing_ok=True)


class SpoolReader:
    """Reads one topic. A reader of a group gets nothing while another one of that group lives."""

    def __init__(self, folder: Path, topic: str, places: Path | None, *, from_end: bool) -> None:
        self._folder, self._topic, self._from_end = folder, topic, from_end
        self._place = None if places is None else places / f"{topic}.json"
        self._lock: int | None = None
        self._open: tuple[str, int] | None = None  # the file that is read, and its descriptor
        self._read_to = _Spot("", 0)
        self._committed: _Spot | None = None
        if self._place is None:
            self._begin()
        else:
            self._owns()

    def read(self, most: int, seconds: float) -> list[Message]:
        deadline, pause = time.monotonic() + seconds, _FIRST_POLL
        while True:
            with _trouble(self._folder):
                found = self._next(most) if self._owns() else []
            left = deadline - time.monotonic()
            if found or left <= 0:
                return found
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, _LAST_POLL)

    def commit(self) -> None:
        if self._place is None or self._read_to == self._committed:
            return
        with _trouble(self._place):
            if (self._folder / self._read_to.file).is_file():
                os.fsync(self._descriptor(self._read_to.file))  # else a power cut could leave less than the place has
            _replace(self._place, json.dumps(self._read_to._asdict(), sort_keys=True).encode("ascii"))
            if self._committed is None:
                _sync_folders(self._place, self._folder.parent.parent)
        self._committed = self._read_to

    def close(self) -> None:
        self._leave_file()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _owns(self) -> bool:
        """True once this is the active reader of its group; then its place is known."""
        if self._place is None or self._lock is not None:
            return True
        with _trouble(self._place):
            self._place.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._begin()
            except BlockingIOError:
                os.close(descriptor)
                return False
            except BaseException:
                os.close(descriptor)
                raise
            self._lock = descriptor
        return True

    def _begin(self) -> None:
        """Find the group's place. A new group keeps one at once: no file that it has not read is then removed."""
        if self._place is not None and self._place.exists():
            self._read_to = self._committed = _read_spot(self._place)
            return
        if self._from_end:
            with _locked(self._folder / ".lock", fcntl.LOCK_SH) if self._folder.exists() else contextlib.nullcontext():
                name = max(_files(self._folder), default="")
                size = (self._folder / name).stat().st_size if name else 0
                self._read_to = _Spot(name, self._end_of_lines(name, size))
        self.commit()

    def _end_of_lines(self, name: str, size: int) -> int:
        """The end of the last line that is whole; what is behind it may be cut."""
        while size:
            start = max(0, size - _CHUNK)
            end = os.pread(self._descriptor(name), size - start, start).rfind(b"\n")
            if end >= 0:
                return start + end + 1
            size = start
        return 0

    def _next(self, most: int) -> list[Message]:
        """The next messages, of one file."""
        if not self._folder.exists():
            return []
        with _locked(self._folder / ".lock", fcntl.LOCK_SH):
            self._leave_replaced()
            names = [name for name in _files(self._folder) if name >= self._read_to.file]
            for name in names:
                offset = self._read_to.offset if name == self._read_to.file else 0
                file = os.fstat(self._descriptor(name))
                if lines := _some(_lines(self._descriptor(name), 0 if offset > file.st_size else offset, most)):
                    self._read_to = _Spot(name, lines[-1][1])
                    place = f"{name.removesuffix('.jsonl')}:{file.st_ino:x}"  # offsets of a new file begin again
                    return [
                        Message(self._topic, f"{place}:{start}:{zlib.crc32(value):08x}", value)
                        for start, _, value in lines
                    ]
        return []

    def _leave_replaced(self) -> None:
        """Leave an open file that was moved away, or deleted; one of its name is read from its beginning."""
        if self._open is None:
            return
        name, descriptor = self._open
        try:
            found = os.stat(self._folder / name)
        except FileNotFoundError:
            found = None
        if found is None or not os.path.samestat(found, os.fstat(descriptor)):
            _log.warning("%s: it was moved away; a new one is read from its beginning", self._folder / name)
            self._leave_file()
            if name == self._read_to.file:
                self._read_to, self._committed = _Spot(name, 0), None

    def _descriptor(self, name: str) -> int:
        if self._open is None or self._open[0] != name:
            self._leave_file()
            self._open = name, os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
        return self._open[1]

    def _leave_file(self) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None


def _append(descriptor: int, lines: memoryview) -> None:
    """Write lines at the end of a file, over a line that a kill has cut. On an error whole lines may stay."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        _cut(descriptor, size)
    try:
        while lines:
            lines = lines[os.write(descriptor, lines) :]
    except OSError:
        with contextlib.suppress(OSError):  # the next append does it, if this disk does not let us now
            _cut(descriptor, os.fstat(descriptor).st_size)
        raise


def _cut(descriptor: int, size: int) -> None:
    """Cut off the last line, which has no end."""
    keep = size
    while keep:
        start = max(0, keep - _CHUNK)
        end = os.pread(descriptor, keep - start, start).rfind(b"\n")
        if end >= 0:
            keep = start + end + 1
            break
        keep = start
    os.ftruncate(descriptor, keep)


def _some(lines: Iterator[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """As many as fit into memory at a time."""
    found, size = [], 0
    for line in lines:
        found.append(line)
        size += len(line[2])
        if size > LONGEST:
            break
    return found


def _lines(descriptor: int, offset: int, most: int) -> Iterator[tuple[int, int, bytes]]:
    """Up to `most` whole lines from an offset: start, end, bytes. One that is too long gives its first bytes."""
    parts: list[bytes] = []
    start, kept = offset, 0
    while most > 0 and (chunk := os.pread(descriptor, _CHUNK, offset)):
        pieces = chunk.split(b"\n")
        for piece, end in zip(pieces[:-1], accumulate(len(piece) + 1 for piece in pieces[:-1]), strict=True):
            yield start, offset + end, b"".join([*parts, piece])[:LONGEST]
            start, parts, kept, most = offset + end, [], 0, most - 1
            if not most:
                return
        if kept < LONGEST:
            parts.append(pieces[-1])
            kept += len(pieces[-1])
        offset += len(chunk)


def _files(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if _FILE.fullmatch(name))
    except FileNotFoundError:
        return []


def _newest(folder: Path) -> str:
    return max(_files(folder), default="").removesuffix(".jsonl")


def _read_spot(path: Path) -> _Spot:
    try:
        found = json.loads(path.read_bytes())
        file, offset = found["file"], found["offset"]
        if isinstance(file, str) and isinstance(offset, int) and offset >= 0:
            return _Spot(file, offset)
    except (ValueError, KeyError, TypeError):
        pass
    raise BadInput(str(path), "it is not a place in a topic; delete it, and the group reads from the beginning")


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with _closing(descriptor):
        fcntl.flock(descriptor, how)
        yield


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _trouble(path: Path) -> Iterator[None]:
    """Our error for one of the disk."""
    try:
        yield
    except OSError as error:
        raise Unavailable(str(path), disk.reason(error, path)) from error


def _replace(path: Path, data: bytes) -> None:
    half = path.with_name(f".{path.name}.tmp")
    with half.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    half.replace(path)
    _sync_folder(path.parent)


def _sync_folders(path: Path, top: Path) -> None:
    """Make the names up to a file durable, from `top` on: another process may have made its folders just now."""
    for folder in path.parents:
        _sync_folder(folder)
        if folder == top:
            return


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    with _closing(descriptor):
        os.fsync(descriptor)
