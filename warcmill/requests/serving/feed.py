"""The feed of a job that serves requests: the document of each target, a line, by its number. Writes to the feed.

    {"document":{"appid":"testapp","url":"http://a.example/", ...},"place":"demo.incoming@2026-11-26:..."}

The number of a target is the offset of its line, and every URI that is found for it carries it. `place` is where the
message was on the bus: a message that comes again, after a death before it was acknowledged, has its line already.
Several processes append; a line that a kill left without its end is cut off by the next one.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final, NamedTuple

from warcmill.crawl.durable import failed, make_folder, sync_folder
from warcmill.errors import BadInput
from warcmill.model import Json

NAME: Final = "requests.jsonl"
LONGEST: Final = 1 << 18
"""Bytes of a line: no document has more."""

_FIRST: Final = 1 << 13  # bytes that are read for one target: most are shorter
_REMEMBERED: Final = 100_000  # places of messages
_TAIL: Final = 32 << 20  # bytes in which the places of messages that may come again are


class FedTarget(NamedTuple):
    """A target of the feed: its number, the place of its message on the bus, and its document."""

    number: int
    place: str
    document: dict[str, Json]


class RequestFeed:
    """The feed of the job in a folder, for one process. Unavailable when the disk reports an error."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._places: OrderedDict[str, None] = OrderedDict()
        self._known_to: int | None = None  # up to here the places are known

    def append(self, targets: Sequence[tuple[str, dict[str, Json]]]) -> int:
        """Append targets, by place and document, durable when this returns; return how many were not there yet.

        BadInput for a document that is too long, before any is appended.
        """
        lines = {place: _line(place, document) for place, document in targets}
        with self._open(os.O_RDWR | os.O_CREAT | os.O_APPEND) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = _cut(file)
            self._learn_places(file, end)
            fresh = [(place, line) for place, line in lines.items() if place not in self._places]
            data = memoryview(b"".join(line for _, line in fresh))
            while data:
                data = data[os.write(file, data) :]
            os.fsync(file)
            if not end:
                sync_folder(self.path.parent)
            for place, _ in fresh:
                self._remember(place)
            self._known_to = os.fstat(file).st_size
        return len(fresh)

    def read(self, number: int, most: int) -> tuple[list[FedTarget], int]:
        """Return up to `most` targets from a number on, and the number of the next one. BadInput for a number at which
        no line begins."""
        if self.size <= number:
            return [], number
        with self._open(os.O_RDONLY) as file:
            if number and os.pread(file, 1, number - 1) != b"\n":
                raise BadInput(f"{self.path}:{number}", "no target begins there; is it the feed of this job?")
            found = []
            for start, line in _lines(file, number):
                found.append(_read(line, start))
                number = start + len(line)
                if len(found) == most:
                    break
        return found, number

    def each(self, numbers: Iterable[int]) -> Iterator[FedTarget]:
        """Yield the targets of many numbers, by number; one that the feed has lost has an empty document."""
        with self._open(os.O_RDONLY) if self.size else nullcontext(-1) as file:
            begin, data = 0, b""
            for number in sorted(numbers):
                if (end := data.find(b"\n", number - begin) if number >= begin else -1) < 0:
                    begin, data = number, os.pread(file, LONGEST, number) if file >= 0 else b""
                    end = data.find(b"\n")
                yield _read(data[number - begin : end + 1], number)

    def document(self, number: int) -> dict[str, Json]:
        """Return the document of a target; an empty one of a target that the feed has lost."""
        return next(self.each((number,))).document

    @property
    def size(self) -> int:
        """Its length in bytes; 0 before it exists."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise failed(self.path, error) from error

    def _learn_places(self, file: int, end: int) -> None:
        """Read the places of the lines that other processes have appended; at first, of the last lines."""
        begin = self._known_to
        if begin is None:
            begin = max(0, end - _TAIL)  # the first line may be the rest of one, which has no place
        for start, line in _lines(file, begin):
            self._remember(_read(line, start).place)

    def _remember(self, place: str) -> None:
        self._places[place] = None
        if len(self._places) > _REMEMBERED:
            self._places.popitem(last=False)

    @contextmanager
    def _open(self, flags: int) -> Iterator[int]:
        try:
            if flags & os.O_CREAT:
                make_folder(self.path.parent)
            file = os.open(self.path, flags | os.O_CLOEXEC, 0o644)
            try:
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise failed(self.path, error) from error


def _line(place: str, document: dict[str, Json]) -> bytes:
    line = json.dumps({"document": document, "place": place}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    if len(line) > LONGEST:
        raise BadInput("request", f"it has {len(line):,} bytes as it is kept, {LONGEST:,} are the most")
    return line


def _read(line: bytes, number: int) -> FedTarget:
    """The target of a line; of one that is damaged an empty document, which whoever reads that refuses by name."""
    try:
        found = json.loads(line)
        return FedTarget(number, str(found["place"]), dict(found["document"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return FedTarget(number, "", {})


def _lines(file: int, offset: int) -> Iterator[tuple[int, bytes]]:
    """The whole lines from an offset on, each with its own."""
    rest, size = b"", _FIRST
    while chunk := os.pread(file, size, offset + len(rest)):
        size = LONGEST
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield offset, line + b"\n"
            offset += len(line) + 1


def _cut(file: int) -> int:
    """Cut off a last line without its end, which a kill left; return where the file ends."""
    end = os.fstat(file).st_size
    if not end or os.pread(file, 1, end - 1) == b"\n":
        return end
    begin = max(0, end - LONGEST)
    keep = begin + os.pread(file, end - begin, begin).rfind(b"\n") + 1
    os.ftruncate(file, keep)
    return keep
