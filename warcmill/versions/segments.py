"""A segment: the lines of some WARCs, sorted, in ZipNum files that are never changed. Writes to the index root.

    {name}.cdx.gz .idx .loc   as formats/zipnum describes them
    {name}.inputs             the WARCs that it was made of, and what was hidden in it; sealed
    {name}.counts             how many lines of each WARC were read back from it; sealed

`name` is the beginning of the digest of `{name}.inputs`.

`Merge` merges the sorted lines of many sources in little memory: a few sources at a time, by runs in nameless files. A
source gives its lines in batches. Of the batches that are there, all lines up to the first batch's end are sorted
together: that takes half the time of a comparison for each line.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, BinaryIO, cast

from msgspec import Struct
from msgspec.structs import replace

from warcmill.base import digests
from warcmill.base.digests import Readable
from warcmill.errors import BadInput, Mismatch, Unavailable
from warcmill.formats.index import zipnum
from warcmill.formats.index.zipnum import CDX, IDX, LOC, IndexBlock
from warcmill.formats.seal import seal, unseal
from warcmill.model import FileRef
from warcmill.stores import LocalStore
from warcmill.versions.inputs import LARGEST, ListedWarc

INPUTS, COUNTS = ".inputs", ".counts"
_FILENAME = re.compile(rb'"filename": "([^"\\]*)"')


class Segment(Struct, frozen=True):
    """A segment in a folder of the index root: its files by their ends, and how many lines it has."""

    name: str
    lines: int
    files: Mapping[str, FileRef]

    def within(self, folder: str) -> Segment:
        """The same segment in another folder."""
        moved = {end: file._replace(path=f"{folder}/{self.name}{end}") for end, file in self.files.items()}
        return replace(self, files=moved)


class SegmentSources(Struct, frozen=True):
    """The sources of a segment: its WARCs, and the entries of the hidden list that left lines out."""

    inputs: tuple[ListedWarc, ...]
    hidden: frozenset[str]


class Spooled(Struct, frozen=True):
    """A segment that has no name yet, in a nameless file."""

    stream: IO[bytes]
    blocks: Sequence[IndexBlock]
    lines: int


@contextmanager
def room(index: LocalStore) -> Iterator[IO[bytes]]:
    """A nameless file in the index root. Unavailable if the disk is full."""
    try:
        with tempfile.TemporaryFile(dir=index.base) as stream:
            yield stream
    except OSError as error:
        raise Unavailable("index:versions", f"{error.strerror or error} (root {index.base})") from error


def spool(stream: IO[bytes], lines: Iterable[bytes]) -> Spooled:
    """Compress sorted lines into a nameless file."""
    stream.seek(0)
    stream.truncate()
    blocks, number = list[IndexBlock](), 0
    for packed in zipnum.pack(lines):
        stream.write(packed.data)
        blocks.append(packed.block)
        number += packed.lines
    stream.flush()
    return Spooled(stream, blocks, number)


def commit(index: LocalStore, folder: str, spooled: Spooled, made: SegmentSources) -> Segment:
    """Publish a segment's files in a folder, read them back, and count what was read."""
    document, name = named(made)
    idx = b"".join(block.line(name) for block in spooled.blocks)
    spooled.stream.seek(0)
    size, sha512 = digests.sha512(cast("BinaryIO", spooled.stream))
    spooled.stream.seek(0)
    files = {CDX: publish(index, f"{folder}/{name}{CDX}", spooled.stream, size, sha512)}
    for end, data in ((IDX, idx), (LOC, zipnum.loc_line(name)), (INPUTS, document)):
        files[end] = publish_bytes(index, f"{folder}/{name}{end}", data)
    segment = Segment(name, spooled.lines, files)
    counts = seal(b"".join(b"%d %s\n" % (number, name) for name, number in sorted(read_back(index, segment).items())))
    return replace(segment, files={**files, COUNTS: publish_bytes(index, f"{folder}/{name}{COUNTS}", counts)})


def named(made: SegmentSources) -> tuple[bytes, str]:
    """The document that lists a segment's inputs, and the segment's name."""
    document = _encode(made)
    return document, hashlib.sha512(document).hexdigest()[:16]


def publish(index: LocalStore, path: str, source: Readable, size: int, sha512: str) -> FileRef:
    """Publish a file. It replaces another that a killed fold left under its name."""
    if not index.commit_new(path, source, size, sha512):
        _replace_other(index, path, source, size, sha512)
    return FileRef("index", path, size, sha512)


def publish_bytes(index: LocalStore, path: str, data: bytes) -> FileRef:
    """Publish a small file in the same way."""
    return publish(index, path, io.BytesIO(data), len(data), hashlib.sha512(data).hexdigest())


def _replace_other(index: LocalStore, path: str, source: Readable, size: int, sha512: str) -> None:
    there = index.stat(path)
    if there is None or index.server_digest(path) == ("sha512", sha512):
        return
    index.remove(path, there)
    index.commit_new(path, source, size, sha512)


def read_back(index: LocalStore, segment: Segment) -> Counter[bytes]:
    """Read all lines of a segment from the disk; count them by the name of their WARC.

    Mismatch or BadInput unless they are those that were written, in order, each once, at the places in the `.idx`.
    """
    counts: Counter[bytes] = Counter()
    last = b""
    for lines in blocks_of(index, segment):
        if lines != sorted(lines) or not last < lines[0] or any(one == next_ for one, next_ in pairwise(lines)):
            raise Mismatch(f"index:{segment.files[CDX].path}", "lines in order, each once", "another order")
        last = lines[-1]
        counts.update(_FILENAME.findall(b"".join(lines)))
    if counts.total() != segment.lines:
        raise Mismatch(f"lines of index:{segment.files[CDX].path}", segment.lines, counts.total())
    return counts


def blocks_of(index: LocalStore, segment: Segment) -> Iterator[list[bytes]]:
    """Read a segment from its begin to its end. Mismatch or BadInput if a byte of it is another."""
    cdx, idx = segment.files[CDX], segment.files[IDX]
    digest, at = hashlib.sha512(), 0
    with index.read_back(cdx.path) as stream:
        for block in zipnum.blocks(read_file(index, idx), 0, idx.path):
            data = stream.read(block.length)
            digest.update(data)
            if block.offset != at:
                raise BadInput(f"index:{idx.path}", f"a block at {block.offset}, where {at} was expected")
            at += block.length
            lines = zipnum.unpack(data, f"index:{cdx.path}", block.offset)
            if not lines or not lines[0].startswith(block.key + b" "):
                raise BadInput(f"index:{cdx.path}", f"not the block of {block.key!r}", block.offset)
            yield lines
        if at != cdx.size or stream.read(1) or digest.hexdigest() != cdx.sha512:
            raise Mismatch(f"index:{cdx.path}", f"{cdx.size} bytes, {cdx.sha512}", f"{at} bytes, {digest.hexdigest()}")


def made_of(index: LocalStore, segment: Segment) -> SegmentSources:
    """The sources of a segment. BadInput if the file that lists them is damaged."""
    file = segment.files[INPUTS]
    first, _, rest = unseal(read_file(index, file), file.path).decode().partition("\n")
    return SegmentSources(tuple(map(ListedWarc.parse, rest.splitlines())), frozenset(json.loads(first)["hidden"]))


def counts_of(index: LocalStore, segment: Segment) -> dict[str, int]:
    """The number of lines of each WARC that were read back from a segment."""
    file = segment.files[COUNTS]
    pairs = (line.split(" ") for line in unseal(read_file(index, file), file.path).decode().splitlines())
    return {name: int(number) for number, name in pairs}


def read_file(index: LocalStore, file: FileRef) -> bytes:
    """The bytes of a segment's small file. Mismatch if they are no longer those that were written."""
    data = index.read(file.path, LARGEST)
    found = hashlib.sha512(data).hexdigest()
    if found != file.sha512:
        raise Mismatch(f"index:{file.path}", file.sha512, found)
    return data


def _encode(made: SegmentSources) -> bytes:
    head = json.dumps({"hidden": sorted(made.hidden), "schema": 1}, sort_keys=True)
    return seal(f"{head}\n{''.join(one.line() for one in made.inputs)}".encode())


FAN_IN = 96  # sources that are open at a time
Batch = list[bytes]
Source = Callable[[], Iterable[Batch]]


class Merge:
    """Merges sources. `folder` holds the runs, if there are any; a killed process leaves nothing there."""

    def __init__(self, folder: Path, fan_in: int = FAN_IN) -> None:
        self._folder, self._fan_in = folder, fan_in
        self._open = ExitStack()

    def batches(self, small: Sequence[Source], large: Sequence[Source] = ()) -> Iterator[Batch]:
        """The lines of all sources, sorted. Only small ones are written to runs, if there are too many."""
        room = max(self._fan_in - len(large), 2)
        while len(small) > room:
            small = [self._run(small[at : at + self._fan_in]) for at in range(0, len(small), self._fan_in)]
        return merged([source() for source in (*large, *small)])

    def close(self) -> None:
        """Free the runs."""
        self._open.close()

    def _run(self, sources: Sequence[Source]) -> Source:
        run = self._open.enter_context(tempfile.TemporaryFile(dir=self._folder))  # noqa: SIM115 - `close` closes it
        blocks = list[IndexBlock]()
        for packed in zipnum.pack(chain.from_iterable(merged([source() for source in sources]))):
            run.write(packed.data)
            blocks.append(packed.block)
        return lambda: _read(run, blocks)


def merged(sources: Sequence[Iterable[Batch]]) -> Iterator[Batch]:
    """Merge sorted sources."""
    left = list(filter(None, map(_Left, sources)))
    while left:
        end = min(one.last for one in left)
        batch = [line for one in left for line in one.take(end)]
        batch.sort()
        yield batch
        left = list(filter(None, left))


class _Left:
    """The rest of a source; false once nothing is."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._batches = filter(None, batches)
        self._batch, self._at = Batch(), 0
        self._next()

    def __bool__(self) -> bool:
        return bool(self._batch)

    @property
    def last(self) -> bytes:
        """The last line that was read."""
        return self._batch[-1]

    def take(self, end: bytes) -> Batch:
        """The lines up to a line, of those that were read."""
        at, self._at = self._at, bisect_right(self._batch, end, self._at)
        taken = self._batch[at : self._at]
        if self._at == len(self._batch):
            self._next()
        return taken

    def _next(self) -> None:
        self._batch, self._at = next(self._batches, []), 0


def _read(run: IO[bytes], blocks: Sequence[IndexBlock]) -> Iterator[Batch]:
    for block in blocks:
        run.seek(block.offset)
        yield zipnum.unpack(run.read(block.length), "a nameless file", block.offset)
