"""The text index as a data set: segments of documents with full text, folded so that a query opens few.

As with the CDX, new WARCs make a new segment, and a segment that is not at least FACTOR times as large is made again
with them. Documents come from extracts. What is hidden stays in the segments: a query leaves it out.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import IO

from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.launches import text_extracts
from warcmill.launches.extracts import Extracts
from warcmill.launches.per_warc import Making
from warcmill.launches.text_extracts import GENERATION, TEXT
from warcmill.markers.state import MarkerStore
from warcmill.stores import LocalStore
from warcmill.versions import cdx_inputs, making_again, segments, text_segments
from warcmill.versions.dataset import Built, New, Wanted
from warcmill.versions.hidden import Hidden
from warcmill.versions.inputs import Input
from warcmill.versions.payloads import Published
from warcmill.versions.segments import Made, Segment

FACTOR = 4
NAME = "text"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Text:
    """The data set `text`."""

    state: MarkerStore
    making: Making
    index: LocalStore
    name: str = NAME
    generation: int = GENERATION

    @property
    def extracts(self) -> Extracts:
        """The extracts of the index root."""
        return Extracts(self.index)

    def seen(self) -> str:
        return cdx_inputs.seen(self.state, self.index, NAME, self.generation)

    def wanted(self, before: Sequence[Input]) -> Wanted:
        return cdx_inputs.wanted(self.state, before, NAME, self.generation)

    def build(self, wanted: Sequence[Input], _hidden: Hidden, before: Published | None, _room: IO[bytes]) -> Built:
        troubles: dict[str, str] = {}
        at_once = self.making.at_once(sum(self.index.stat(TEXT.path(one.sha512)) is None for one in wanted))
        there = making_again.each(lambda one: self._digested(one, troubles), wanted, at_once, self.name)
        kept, fresh = self._plan(there, before.segments if before else ())
        listed = tuple(sorted(there))
        if not fresh:
            return Built(listed, kept, troubles=list(troubles.values()))
        written = text_segments.write(self.index, ((one, self._documents(one)) for one in fresh))
        if not written.lines:  # no document: nothing is published of it
            written.stream.close()
            return Built(listed, kept, troubles=list(troubles.values()))
        commit = partial(text_segments.commit, written=written, made=Made(tuple(fresh), frozenset()))
        return Built(listed, kept, New(written.lines, commit), list(troubles.values()))

    def _digested(self, one: Input, troubles: dict[str, str]) -> Input | None:
        """The input with the digest of its extract, which is made if it is missing or damaged; None in trouble."""
        digest = self.extracts.digest(TEXT, one.sha512)
        if digest is None:
            try:
                log.info("text: %s is read again from the store", one.name)
                self.extracts.remove(TEXT, one.sha512)
                self.making.text(cdx_inputs.WARCS + one.name, one.sha512)
                digest = self.extracts.digest(TEXT, one.sha512)
                if digest is None:
                    why = "it was made again, and cannot be read; look at the disk of the index root"
                    raise BadInput(f"index:{TEXT.path(one.sha512)}", why)
            except (NotReady, Mismatch, BadInput) as error:
                troubles[one.name] = f"{one.name}: {error}; it is left out of the index"
        return replace(one, extract=digest) if digest else None

    def _plan(self, wanted: Sequence[Input], known: Sequence[Segment]) -> tuple[tuple[Segment, ...], list[Input]]:
        """The segments that are kept, and the WARCs of which a new one is made."""
        open_, kept = {one.name: one for one in wanted}, list[tuple[int, Segment, Made]]()
        for segment in known:
            made = self._still_true(segment, open_)
            if made:
                kept.append((sum(map(self._size, made.inputs)), segment, made))
                for one in made.inputs:
                    del open_[one.name]
        kept.sort(key=lambda found: -found[0])
        fresh = list(open_.values())
        size = sum(self._size(one) for one in fresh)
        while fresh and kept and kept[-1][0] < FACTOR * size:
            length, _, made = kept.pop()
            fresh += made.inputs
            size += length
        return tuple(segment for _, segment, _ in kept), sorted(fresh)

    def _size(self, one: Input) -> int:
        found = self.index.stat(TEXT.path(one.sha512))
        return found.size if found else 0

    def _still_true(self, segment: Segment, wanted: dict[str, Input]) -> Made | None:
        """What a segment was made of, if it can be kept; else None."""
        try:
            made = segments.made_of(self.index, segment)
            entries = [(self.index.stat(file.path), file) for file in segment.files.values()]
            sound = all(entry and entry.size == file.size for entry, file in entries)
            return made if sound and all(wanted.get(one.name) == one for one in made.inputs) else None
        except (NotReady, BadInput, Mismatch) as error:
            log.warning("%s; its WARCs are taken from their extracts", error)
            return None

    def _documents(self, one: Input) -> Iterator[bytes]:
        """The documents of a WARC, without those left out. Mismatch if its extract changed meanwhile."""
        digest = hashlib.sha512()
        for line in self._digesting(one, digest):
            if text_extracts.offset(line) not in one.left_out:
                yield line
        if digest.hexdigest() != one.extract:
            raise Mismatch(f"index:{TEXT.path(one.sha512)}", one.extract, digest.hexdigest())

    def _digesting(self, one: Input, digest: hashlib._Hash) -> Iterator[bytes]:
        lines = self.extracts.lines(TEXT, one.sha512)
        for first in islice(lines, 1):
            digest.update(first)
        for line in lines:
            digest.update(line)
            yield line
