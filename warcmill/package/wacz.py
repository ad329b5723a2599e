"""Write the WACZ of a launch from the store, today or years later: the same markers give the same bytes.

Each WARC is read once: what reads it for the index writes it, and it is compared with its marker meanwhile. Where its
index lines are kept in the index root already, they are used. Captures with a hit of the virus scan get no line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Self, TypeVar

from warcmill import layout
from warcmill.base import digests
from warcmill.base.sorted_lines import SortedLines
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.formats import wacz
from warcmill.formats.cdxj import CdxLines, named
from warcmill.formats.wacz import Wacz
from warcmill.formats.warc import gate
from warcmill.launches import cdx_extracts
from warcmill.launches.cdx_extracts import CDXJ, Counts
from warcmill.launches.extracts import Extracts
from warcmill.launches.holdings import Holding
from warcmill.markers.state import MarkerStore
from warcmill.package.seed_pages import SeedPages
from warcmill.package.wacz_contents import Contents, Named
from warcmill.stores import Store

_SORTED = 32 << 20  # bytes of index lines in memory; more of them go to nameless files
Result = TypeVar("Result")
_OFFSET = re.compile(rb'"offset": "(\d+)"')


@dataclass(slots=True)
class Written:
    """What was written. `left_out`: names of files, each with what of it is not in the index or among the pages."""

    captures: int = 0
    pages: int = 0
    left_out: list[Named] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a WACZ is made from. `folder` has room for index lines that are being sorted."""

    state: MarkerStore
    store: Store
    extracts: Extracts | None
    folder: Path


def write(sources: Sources, what: Contents, target: BinaryIO, advance: Callable[[int], None]) -> Written:
    """Write the WACZ to a file that can seek. Mismatch when a WARC is no longer as it was verified."""
    written = Written()
    with ExitStack() as stack:
        lines = stack.enter_context(closing(SortedLines(sources.folder, _SORTED)))
        pages = stack.enter_context(closing(SeedPages(sources.folder)))
        for stage in what.stages:
            logs = sources.state.require(layout.step("pack", what.launch, stage))
            unread = pages.add_logs(sources.state, logs)
            written.left_out += [(name, "damaged: pages that its end names are not listed") for name in unread]
        archive = stack.enter_context(wacz.writing(target))
        for one in what.warcs:
            written.left_out += _add(sources, one, archive, lines, advance)
        written.captures = archive.index(pages.seen(lines))
        written.pages = archive.pages(pages)
        archive.finish(what.title, what.created)
    return written


def _add(
    sources: Sources, one: Holding, archive: Wacz, lines: SortedLines, advance: Callable[[int], None]
) -> Iterator[Named]:
    """Write a WARC, and add its index lines; yield what has no line."""
    hits = {hit.offset for hit in one.hits or ()}

    def add(line: bytes) -> None:
        if not (hits and _offset(line) in hits):
            lines.add(named(line, one.name))

    warc = _Warc(sources.store, one, archive, advance)
    sha512 = one.stored.sha512 or ""
    counts = _kept(sources.extracts, sha512)
    if sources.extracts and counts:
        warc.read_with(digests.drain)
        for line in cdx_extracts.lines(sources.extracts, sha512):
            add(line)
        left_out = counts.left_out
    else:
        heard = CdxLines(add)
        yield from _examined(warc, heard)
        left_out = heard.left_out
    yield from ((one.name, f"{number} captures without an index line: {why}") for why, number in left_out.items())
    if hits:
        yield one.name, f"{len(hits)} captures without an index line: the virus scan had a hit"


def _kept(extracts: Extracts | None, sha512: str) -> Counts | None:
    """What the extract of a WARC counts; None unless there is one, and it is sound."""
    try:
        sound = extracts is not None and extracts.digest(CDXJ, sha512) is not None
        return cdx_extracts.counts(extracts, sha512) if extracts and sound else None
    except (NotReady, BadInput):
        return None


def _examined(warc: _Warc, heard: CdxLines) -> Iterator[Named]:
    """Make the lines of a WARC while it is written."""
    verdict = warc.read_with(lambda stream: gate.examine(stream, warc.name, None, [heard], proven=True))
    for failure in verdict.unheard:
        raise failure.error
    heard.close()
    if not verdict.ok:  # it was whole when it was verified, by the gate of that time
        yield warc.name, f"no index line from offset {verdict.offset} on: {verdict.why}"


def _offset(line: bytes) -> int:
    match = _OFFSET.search(line)
    assert match, "every line has an offset"
    return int(match[1])


class _Warc:
    """A WARC on its way from the store into the WACZ: what is read of it is written."""

    def __init__(self, store: Store, holding: Holding, archive: Wacz, advance: Callable[[int], None]) -> None:
        self.name, self._stored = holding.name, holding.stored
        self._store, self._archive, self._advance = store, archive, advance
        self._sha512, self._size = hashlib.sha512(), 0

    def read_with(self, work: Callable[[Self], Result]) -> Result:
        """Write the WARC while `work` reads it to its end; Mismatch if it changed since it was verified."""
        with self._open() as self._stream, self._archive.warc(self.name, self._stored.size) as self._write:
            result = work(self)
        if self._sha512.hexdigest() != self._stored.sha512:
            raise self._changed("sha512", self._stored.sha512, self._sha512.hexdigest())
        return result

    def read(self, size: int, /) -> bytes:
        """Read the store, and write what was read."""
        piece = self._stream.read(size)
        self._size += len(piece)
        if self._size > self._stored.size:
            raise self._changed("length", f"{self._stored.size} bytes", "more")
        self._sha512.update(piece)
        self._write(piece)
        self._advance(len(piece))
        return piece

    def _open(self) -> BinaryIO:
        try:
            return self._store.open(self._stored.path)
        except NotReady:
            raise self._changed("length", f"{self._stored.size} bytes", "no file") from None

    def _changed(self, what: str, expected: object, found: object) -> Mismatch:
        return Mismatch(f"store:{self._stored.path} changed since it was verified; {what}", expected, found)
