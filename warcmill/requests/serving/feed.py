"""The feed of a job that serves requests: the document of each target, a line, by its number. Writes to the feed.

    {"document":{"appid":"testapp","url":"http://a.example/", ...},"place":"demo.incoming@2026-11-26:..."}

It is cut by day (UTC): `requests.jsonl` is its first file, and whoever appends first on a later day begins
`requests/DAY-NUMBER.jsonl`. The number of a target is the offset of its line, in its file and those before it together;
every URI that is found for it carries it. The name of a file has the number of its first target, so that no number
depends on files before it.

`place` is where the message was on the bus: a message that comes again, after a death before it was acknowledged, has
its line already. Several processes append, in turns, by a lock on the first file; a line that a kill left without its
end is cut off by the next one.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from warcmill.base import clock
from warcmill.crawl.durable import failed, make_folder, sync_folder
from warcmill.errors import BadInput, Conflict
from warcmill.model import Json

NAME, DAYS = "requests.jsonl", "requests"  # the first file; the folder of the files of later days
LONGEST: Final = 1 << 18
"""Bytes of a line: no document has more."""

_DAY = re.compile(r"(\d{8})-(\d{15})\.jsonl", re.ASCII).fullmatch
_APPENDS = os.O_RDWR | os.O_CREAT | os.O_APPEND
_FIRST: Final = 1 << 13  # bytes that are read for one target: most are shorter
_REMEMBERED: Final = 100_000  # places of messages
_TAIL: Final = 32 << 20  # bytes in which the places of messages that may come again are


class FedTarget(NamedTuple):
    """A target of the feed: its number, the place of its message on the bus, and its document."""

    number: int
    place: str
    document: dict[str, Json]


class _FeedFile(NamedTuple):
    """A file of a feed: the number of its first target; its path; the day that it is of, '' for the first file."""

    first: int
    path: Path
    day: str = ""

    @property
    def end(self) -> int:
        """The number behind its last target."""
        try:
            return self.first + self.path.stat().st_size
        except FileNotFoundError:
            return self.first
        except OSError as error:
            raise failed(self.path, error) from error


class RequestFeed:
    """The feed of the job in a folder, for one process. Unavailable when the disk reports an error."""

    def __init__(self, folder: Path) -> None:
        self.path, self._days = folder / NAME, folder / DAYS
        self._places: OrderedDict[str, None] = OrderedDict()
        self._known_to: int | None = None  # up to here the places are known

    def append(self, targets: Sequence[tuple[str, dict[str, Json]]]) -> int:
        """Append targets, by place and document, durable when this returns; return how many were not there yet.

        BadInput for a document that is too long, Conflict where a process of an earlier version has appended behind
        a later file: before any is appended.
        """
        lines = {place: _line(place, document) for place, document in targets}
        with _opened(self.path, _APPENDS) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            *before, last = self._files()
            _refuse_overlap([*before, last])
            with _opened(last.path, _APPENDS) as file:
                day = last.day or clock.digits(datetime.fromtimestamp(os.fstat(file).st_mtime, UTC))[:8]
                end = _cut(file)  # which is not an append of today
            if end and day < (today := clock.stamp()[:8]):
                last, end = _FeedFile(last.first + end, self._days / f"{today}-{last.first + end:015}.jsonl", today), 0
            with _opened(last.path, _APPENDS) as file:
                self._learn_places([*before, last], last.first + end)
                fresh = [(place, line) for place, line in lines.items() if place not in self._places]
                data = memoryview(b"".join(line for _, line in fresh))
                while data:
                    data = data[os.write(file, data) :]
                os.fsync(file)
                if not end:
                    sync_folder(last.path.parent)
                for place, _ in fresh:
                    self._remember(place)
                self._known_to = last.first + os.fstat(file).st_size
        return len(fresh)

    def read(self, number: int, most: int) -> tuple[list[FedTarget], int]:
        """Return up to `most` targets from a number on, and the number of the next one. BadInput for a number at which
        no line begins."""
        found = list[FedTarget]()
        for one in self._files():
            if one.end <= number:
                continue
            with _opened(one.path, os.O_RDONLY) as file:
                begin = number - one.first
                if begin < 0 or (begin and os.pread(file, 1, begin - 1) != b"\n"):
                    raise BadInput(f"{one.path}:{begin}", "no target begins there; is it the feed of this job?")
                for start, line in _lines(file, begin):
                    found.append(_read(line, one.first + start))
                    number = one.first + start + len(line)
                    if len(found) == most:
                        return found, number
        return found, number

    def each(self, numbers: Iterable[int]) -> Iterator[FedTarget]:
        """Yield the targets of many numbers, by number; one that the feed has lost has an empty document."""
        asked = sorted(numbers)
        files = self._files()
        for one, following in zip(files, [*files[1:], None], strict=True):
            behind = bisect_left(asked, following.first) if following else len(asked)
            some, asked = asked[:behind], asked[behind:]
            if some:
                yield from _of_file(one, some)

    def document(self, number: int) -> dict[str, Json]:
        """Return the document of a target; an empty one of a target that the feed has lost."""
        return next(self.each((number,))).document

    @property
    def size(self) -> int:
        """The number behind its last target; 0 before it exists."""
        return self._files()[-1].end

    def _files(self) -> list[_FeedFile]:
        """Its files, the oldest first."""
        try:
            names = os.listdir(self._days)
        except FileNotFoundError:
            names = []
        except OSError as error:
            raise failed(self._days, error) from error
        days = [_FeedFile(int(found[2]), self._days / name, found[1]) for name in names if (found := _DAY(name))]
        return [_FeedFile(0, self.path), *sorted(days)]

    def _learn_places(self, files: Iterable[_FeedFile], end: int) -> None:
        """Read the places of the lines that other processes have appended; at first, of the last lines."""
        begin = self._known_to
        if begin is None:
            begin = max(0, end - _TAIL)  # the first line may be the rest of one, which has no place
        for one in files:
            if one.end > begin:
                with _opened(one.path, os.O_RDONLY) as file:
                    for start, line in _lines(file, max(0, begin - one.first)):
                        self._remember(_read(line, start).place)

    def _remember(self, place: str) -> None:
        self._places[place] = None
        if len(self._places) > _REMEMBERED:
            self._places.popitem(last=False)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    try:
        if flags & os.O_CREAT:
            make_folder(path.parent)
        file = os.open(path, flags | os.O_CLOEXEC, 0o644)
        try:
            yield file
        finally:
            os.close(file)
    except OSError as error:
        raise failed(path, error) from error


def _of_file(one: _FeedFile, numbers: Iterable[int]) -> Iterator[FedTarget]:
    """Yield the targets of a file, by number."""
    with _opened(one.path, os.O_RDONLY) if one.end > one.first else nullcontext(-1) as file:
        begin, data = one.first, b""
        for number in numbers:
            if (end := data.find(b"\n", number - begin) if number >= begin else -1) < 0:
                begin, data = number, os.pread(file, LONGEST, number - one.first) if file >= 0 else b""
                end = data.find(b"\n")
            yield _read(data[number - begin : end + 1], number)


def _refuse_overlap(files: Sequence[_FeedFile]) -> None:
    """Conflict where a file has lines beyond the first number of the next one: nobody would read these."""
    for one, following in pairwise(files):
        if one.end > following.first:
            why = (
                f"a process of an earlier version has appended to it, beyond byte {following.first - one.first:,}; end "
                "that process, post the requests behind that byte anew, and cut the file there"
            )
            raise Conflict(str(one.path), why)


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
