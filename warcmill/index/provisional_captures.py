"""The captures of a running launch, as lines of an index that are marked as provisional. Writes notes of sent parts.

`filename` is `provisional/{job}/{launch}`, which no WARC has, and `offset` is where the line ends in the crawl logs of
the launch, taken as one. Engines give a record the time of its fetch, so it has the second of the capture to come.

The notes are in `{index}/follow/{sink}/{job}/{launch}/`, a file for each part of the launch's logs.

    000000000000000-000000000184220          the lines of this part of the crawl logs, which the sink has
    000000000184220-000000000190033.begun    it may have some of these

Without the notes, only posts are repeated. They are removed when the index has the launch, and nothing provisional is
left.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha512
from typing import BinaryIO

from warcmill import layout
from warcmill.errors import BadInput, Conflict, Mismatch
from warcmill.formats.index.urlkey import urlkey
from warcmill.formats.logs import crawllog
from warcmill.formats.logs.crawllog import CHUNK, LIMIT, CrawlRecord
from warcmill.launches.roots import JobRoots
from warcmill.model import Launch, Stage
from warcmill.stores import LocalStore, Stat

_HTTP = 100  # from here on a status is one of HTTP; 1 is a DNS answer; below are failures


def name_of(launch: Launch) -> str:
    """The `filename` of the provisional lines of a launch."""
    return f"provisional/{launch.job}/{launch.id}"


def crawled(roots: JobRoots, launch: Launch, start: int) -> Iterator[tuple[int, bytes]]:
    """The lines of a launch's crawl logs from a place on: for each, where it ends, and what an index gets, or b''.

    Rotated logs come first. A last line that is not whole yet is left for later. A start in the
    middle of a line belongs to other logs: then everything is taken again.
    """
    logs = _logs(roots, launch)
    if start and not _is_an_end(roots, logs, start):
        start = 0
    base = 0
    for log in logs:
        if base + log.size > start:
            with roots.output.open(log.path, max(start - base, 0)) as stream:
                for end, raw in _whole_lines(stream, max(start, base)):
                    yield end, _line(raw, launch, end)
        base += log.size


def _logs(roots: JobRoots, launch: Launch) -> list[Stat]:
    """The crawl logs, oldest first; not compressed ones."""
    found: dict[tuple[Stage, tuple[int, str, int, bool]], Stat] = {}
    for entry in roots.output.list(roots.layout.folder("logs", launch)):
        plain, stage = layout.split_log_name(entry.name)
        order = layout.crawl_log_order(plain)
        if entry.kind == "file" and order and not plain.endswith(".gz"):
            found[Stage.parse(stage), order] = entry
    return [found[order] for order in sorted(found)]


def _is_an_end(roots: JobRoots, logs: list[Stat], place: int) -> bool:
    base = 0
    for log in logs:
        if base < place <= base + log.size:
            with roots.output.open(log.path, place - base - 1) as stream:
                return stream.read(1) == b"\n"
        base += log.size
    return False


def _whole_lines(stream: BinaryIO, at: int) -> Iterator[tuple[int, bytes]]:
    """Lines without their ends; of one that is too long, the last bytes."""
    rest, dropped = b"", 0
    while chunk := stream.read(CHUNK):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            at, dropped = at + dropped + len(line) + 1, 0
            yield at, line
        if len(rest) > LIMIT:
            dropped, rest = dropped + len(rest) - LIMIT, rest[-LIMIT:]


def _line(raw: bytes, launch: Launch, end: int) -> bytes:
    record = crawllog.parse(raw)
    if not isinstance(record, CrawlRecord) or (record.status or 0) <= 0:
        return b""
    second = (record.fetched or "")[:14]
    if len(second) != 14 or not second.isdigit():
        return b""
    fields = {"url": record.uri, "mime": record.mime or "unk"}
    if record.status and record.status >= _HTTP:
        fields["status"] = str(record.status)
    if record.digest:
        fields["digest"] = record.digest
    text = json.dumps({**fields, "offset": str(end), "filename": name_of(launch)})
    return f"{urlkey(record.uri)} {second} {text}\n".encode()


FOLDER = "follow"
BEGUN, HIDDEN = ".begun", "hidden"
LARGEST = 1 << 28  # bytes of a file
_NAME = re.compile(r"([0-9]{15})-([0-9]{15})(\.begun)?")


def launches(index: LocalStore, sink: str) -> Iterator[Launch]:
    """The launches of which something was sent to a sink."""
    for job in sorted(index.names(f"{FOLDER}/{sink}")):
        for launch_id in sorted(index.names(f"{FOLDER}/{sink}/{job}")):
            with suppress(BadInput):
                yield Launch.parse(job, launch_id)


class Followed:
    """The captures that were sent to one sink of one launch."""

    def __init__(self, index: LocalStore, sink: str, launch: Launch) -> None:
        self._index, self.folder = index, f"{FOLDER}/{sink}/{launch.job}/{launch.id}"

    def is_empty(self) -> bool:
        """True if the sink has nothing provisional of the launch."""
        return not any(map(_NAME.fullmatch, self._index.names(self.folder)))

    def place(self) -> int:
        """Up to where the sink has the crawl logs."""
        found = (_NAME.fullmatch(name) for name in self._index.names(self.folder))
        return max((int(match[2]) for match in found if match and not match[3]), default=0)

    def begun(self) -> list[str]:
        """The files of parts that were begun."""
        return sorted(name for name in self._index.names(self.folder) if name.endswith(BEGUN))

    def begin(self, first: int, end: int, lines: Iterable[bytes]) -> str:
        """Note a part that is about to be sent; return the name of its file."""
        name, data = f"{first:015}-{end:015}{BEGUN}", b"".join(lines)
        self._index.sweep(self.folder)
        is_new = self._index.commit_new(f"{self.folder}/{name}", io.BytesIO(data), len(data), sha512(data).hexdigest())
        if not is_new and b"".join(self.lines(name)) != data:
            why = "it is of other crawl logs; empty the server's collection, and remove this folder"
            raise Conflict(f"index:{self.folder}/{name}", why)
        return name

    def done(self, name: str) -> None:
        """Note that the sink has a part that was begun."""
        self._index.link(f"{self.folder}/{name}", f"{self.folder}/{name.removesuffix(BEGUN)}")
        self._remove(name)

    def lines(self, name: str) -> list[bytes]:
        """The lines of a part."""
        return self._index.read(f"{self.folder}/{name}", LARGEST).splitlines(keepends=True)

    def all_lines(self) -> Iterator[bytes]:
        """Every line that the sink has, or may have."""
        for name in sorted(self._index.names(self.folder)):
            if _NAME.fullmatch(name):
                yield from self.lines(name)

    def is_without(self, hiding: str) -> bool:
        """True if what is hidden, by this digest, was deleted already."""
        return HIDDEN in self._index.names(self.folder) and self.lines(HIDDEN) == [f"{hiding}\n".encode()]

    def note_without(self, hiding: str) -> None:
        """Note that what is hidden was deleted."""
        self._index.replace(f"{self.folder}/{HIDDEN}", f"{hiding}\n".encode())

    def forget(self) -> None:
        """Remove all that is noted: the sink has nothing of it any more."""
        self._index.sweep(self.folder)
        for name in sorted(self._index.names(self.folder)):
            self._remove(name)
        self._index.remove_folder(self.folder)

    def _remove(self, name: str) -> None:
        found = self._index.stat(f"{self.folder}/{name}")
        if found:
            with suppress(Mismatch):
                self._index.remove(found.path, found)
