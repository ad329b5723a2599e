"""The text index as a data set: segments of documents with full text, folded so that a query opens few.

As with the CDX, new WARCs make a new segment, and a segment that is not at least FACTOR times as large is made again
with them. Documents come from extracts. What is hidden stays in the segments: a query leaves it out.

An extract in which office documents are unread is made again once something reads them, and becomes an input of another
generation. Its text stays when that is switched off.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import IO

from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.launches import text_extracts
from warcmill.launches.extracts import Extracts
from warcmill.launches.per_warc import Making
from warcmill.launches.text_extracts import GENERATION, KINDS, OFFICE_TEXT, TEXT, WITH_OFFICE, kind_of
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
_LOST = "the text of its office documents is lost, and [text] tika, by which it would be made again, is not set"
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
        seen = cdx_inputs.seen(self.state, self.index, NAME, self.generation)
        return hashlib.sha512(f"{seen} {WITH_OFFICE}".encode()).hexdigest() if self.making.has_office else seen

    def wanted(self, before: Sequence[Input]) -> Wanted:
        found = cdx_inputs.wanted(self.state, before, NAME, self.generation)
        had = {one.sha512 for one in before if one.generation == WITH_OFFICE}
        inputs = (replace(one, generation=self._generation(one.sha512, had)) for one in found.inputs)
        return replace(found, inputs=tuple(inputs))

    def _generation(self, sha512: str, had: Set[str]) -> int:
        """Of which generation the extract of a WARC should be, as far as it is known before the WARC is read."""
        is_there = sha512 in had or self.index.stat(OFFICE_TEXT.path(sha512))
        return WITH_OFFICE if is_there or self._is_short(sha512) else GENERATION

    def _is_short(self, sha512: str) -> bool:
        """True if office documents are unread in an extract that could be read."""
        try:
            return self.making.has_office and text_extracts.counts(self.extracts, TEXT, sha512).unread > 0
        except (NotReady, BadInput):
            return False

    def build(self, wanted: Sequence[Input], _hidden: Hidden, before: Published | None, _room: IO[bytes]) -> Built:
        troubles: dict[str, str] = {}
        at_once = self.making.at_once(sum(self.index.stat(_path(one)) is None for one in wanted))
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
        """The input with the digest of its extract, which is made if it is missing, damaged, or short of office
        documents that can be read; None in trouble."""
        found = self._found(one)
        if found is None:
            try:
                log.info("text: %s is read again from the store", one.name)
                for kind in KINDS:
                    self.extracts.remove(kind, one.sha512, if_damaged=True)
                self.making.text(cdx_inputs.WARCS + one.name, one.sha512)
                found = self._found(one)
                if not found:
                    why = "it was made again, and cannot be read; look at the disk of the index root"
                    raise BadInput(f"index:{_path(one)}", why)
            except (NotReady, Mismatch, BadInput) as error:
                troubles[one.name] = f"{one.name}: {error}; it is left out of the index"
        if found and found.generation < one.generation:
            troubles[one.name] = f"{one.name}: {_LOST}"
        return found

    def _found(self, one: Input) -> Input | None:
        """The input, with the digest and the generation of the extract that is there; None if one has to be made."""
        for kind in KINDS:
            digest = self.extracts.digest(kind, one.sha512)
            if digest and (kind is OFFICE_TEXT or not self._is_short(one.sha512)):
                return replace(one, generation=kind.generation, extract=digest)
        return None

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
        found = self.index.stat(_path(one))
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
            raise Mismatch(f"index:{_path(one)}", one.extract, digest.hexdigest())

    def _digesting(self, one: Input, digest: hashlib._Hash) -> Iterator[bytes]:
        lines = self.extracts.lines(kind_of(one.generation), one.sha512)
        for first in islice(lines, 1):
            digest.update(first)
        for line in lines:
            digest.update(line)
            yield line


def _path(one: Input) -> str:
    """The path of the extract of an input."""
    return kind_of(one.generation).path(one.sha512)
