"""The CDX as a data set: segments of CDXJ lines, folded so that a query opens few.

New WARCs make a new segment. A segment that is not at least FACTOR times as large as all newer ones together is merged
with them, so there are few, and a line is written again only when its segment has grown by that factor. A segment is
kept as it is while all that it was made of is still wanted, and nothing in it must be hidden, or be shown again. Else
its WARCs are taken from their extracts, as new ones are.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from typing import IO

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.extracts import cdx
from warcmill.extracts.cdx import CDXJ
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import Extractor
from warcmill.formats.index import cdxj
from warcmill.formats.index.zipnum import CDX
from warcmill.markers.state import MarkerStore
from warcmill.stores import LocalStore
from warcmill.versions import dataset, hidden_list, index_inputs, segments
from warcmill.versions.dataset import Built, New, Wanted
from warcmill.versions.hidden_list import Hidden, hidden_lines
from warcmill.versions.inputs import ListedWarc
from warcmill.versions.publication import CdxLookup, Published
from warcmill.versions.segments import Batch, Merge, Segment, SegmentSources

FACTOR = 4
NAME = "cdx"
log = logging.getLogger(__name__)


class _Damaged(Exception):
    """A segment cannot be read any more."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment


class _Plan(Struct):
    """The plan for a version's segments: kept, merged with new lines, or made anew of `fresh` WARCs."""

    kept: list[tuple[Segment, SegmentSources]] = field(default_factory=list)
    merged: list[tuple[Segment, SegmentSources]] = field(default_factory=list)
    fresh: list[ListedWarc] = field(default_factory=list)


class Cdx(Struct, frozen=True):
    """The data set `cdx`."""

    state: MarkerStore
    making: Extractor
    index: LocalStore
    name: str = NAME
    generation: int = cdxj.GENERATION

    @property
    def extracts(self) -> Extracts:
        """The extracts of the index root."""
        return Extracts(self.index)

    def seen(self) -> str:
        return index_inputs.seen(self.state, self.index)

    def wanted(self, before: Sequence[ListedWarc]) -> Wanted:
        return index_inputs.wanted(self.state, before)

    def build(self, wanted: Sequence[ListedWarc], hidden: Hidden, before: Published | None, room: IO[bytes]) -> Built:
        troubles = self._make_missing(wanted)
        there = [one for one in wanted if one.name not in troubles]
        known, remade = list(before.segments if before else ()), set[ListedWarc]()
        while True:
            plan = self._plan(there, hidden, known)
            try:
                built = self._merged(plan, hidden, room)
            except _Unread as found:
                self._make_again(found.one, troubles, remade)
                there = [one for one in there if one.name not in troubles]
                continue
            except _Damaged as found:
                log.warning("index:%s is damaged; its WARCs are taken from their extracts", found.segment.name)
                known.remove(found.segment)
                continue
            return replace(built, troubles=list(troubles.values()))

    def _make_missing(self, wanted: Sequence[ListedWarc]) -> dict[str, str]:
        """Make the extracts that are not there. Returns why some cannot be made, by name."""
        troubles: dict[str, str] = {}
        there: dict[str, frozenset[str]] = {}
        missing: list[ListedWarc] = []
        for one in wanted:
            folder, _, name = CDXJ.path(one.sha512).rpartition("/")
            if folder not in there:
                there[folder] = self.index.names(folder)
            if name not in there[folder]:
                missing.append(one)
        dataset.each(lambda one: self._make(one, troubles), missing, self.making.at_once(len(missing)), self.name)
        return troubles

    def _make(self, one: ListedWarc, troubles: dict[str, str]) -> None:
        try:
            log.info("cdx: %s is read again from the store", one.name)
            self.making.cdx(index_inputs.WARCS + one.name, one.sha512)
        except (NotReady, Mismatch, BadInput) as error:
            troubles[one.name] = f"{one.name}: {error}; it is left out of the index"

    def _make_again(self, one: ListedWarc, troubles: dict[str, str], remade: set[ListedWarc]) -> None:
        """Make a damaged extract again, once: a disk may damage it each time."""
        if one in remade:
            path, why = (
                CDXJ.path(one.sha512),
                "was written anew, and cannot be read; look at the disk of the index root",
            )
            troubles[one.name] = f"{one.name}: index:{path} {why}; it is left out of the index"
            return
        remade.add(one)
        self.extracts.remove(CDXJ, one.sha512)
        self._make(one, troubles)

    def _plan(self, wanted: Sequence[ListedWarc], hiding: Hidden, known: Sequence[Segment]) -> _Plan:
        plan, open_ = _Plan(), {one.identity: one for one in wanted}
        for segment in known:
            made = self._still_true(segment, hiding, open_)
            if made:
                plan.kept.append((segment, made))
                for one in made.inputs:
                    del open_[one.identity]
        plan.fresh = sorted(open_.values())
        plan.kept.sort(key=lambda pair: -pair[0].files[CDX].size)
        size = sum(self._size(one) for one in plan.fresh)
        while plan.fresh and plan.kept and plan.kept[-1][0].files[CDX].size < FACTOR * size:
            plan.merged.append(plan.kept.pop())
            size += plan.merged[-1][0].files[CDX].size
        return plan

    def _size(self, one: ListedWarc) -> int:
        found = self.index.stat(CDXJ.path(one.sha512))
        return found.size if found else 0

    def _still_true(
        self, segment: Segment, hiding: Hidden, wanted: dict[ListedWarc, ListedWarc]
    ) -> SegmentSources | None:
        """The sources of a segment, if it can be kept; else None."""
        try:
            made = segments.made_of(self.index, segment)
            for file in segment.files.values():
                entry = self.index.stat(file.path)
                if entry is None or entry.size != file.size:
                    return None
            if not made.hidden <= set(hiding.entries) or any(one.identity not in wanted for one in made.inputs):
                return None
            with closing(CdxLookup(self.index, (segment,))) as lookup:
                shows = next(hidden_lines(lookup.beginning_with, tuple(hiding.prefixes())), None) is not None
            return None if shows else made
        except (NotReady, BadInput, Mismatch) as error:
            log.warning("%s; its WARCs are taken from their extracts", error)
            return None

    def _merged(self, plan: _Plan, hiding: Hidden, room: IO[bytes]) -> Built:
        """Merge what is new. _Unread if an extract is damaged, _Damaged if a segment is."""
        old = {one.identity: one for _, made in (*plan.kept, *plan.merged) for one in made.inputs}
        kept = tuple(segment for segment, _ in plan.kept)
        if not plan.fresh:
            return Built(tuple(sorted(old.values())), kept)
        digests: dict[str, str] = {}
        met = {entry for _, made in plan.merged for entry in made.hidden}
        small = [partial(self._lines, one, digests) for one in plan.fresh]
        large = [partial(self._old_lines, segment) for segment, _ in plan.merged]
        with closing(Merge(self.index.base)) as merge:
            lines = chain.from_iterable(merge.batches(small, large))
            spooled = segments.spool(room, hidden_list.visible(lines, hiding.prefixes(), met))
        fresh = [replace(one, extract=digests[one.name]) for one in plan.fresh]
        new = sorted([*fresh, *(one for _, made in plan.merged for one in made.inputs)])
        inputs = tuple(sorted([*old.values(), *fresh]))
        made = SegmentSources(tuple(new), frozenset(met))
        return Built(
            inputs, kept, New(spooled.lines, lambda index, folder: segments.commit(index, folder, spooled, made))
        )

    def _lines(self, one: ListedWarc, digests: dict[str, str]) -> Iterator[Batch]:
        """The lines of a WARC with its name, without those left out; at their end, the digest of its extract."""
        digest = hashlib.sha512()
        left_out = frozenset(one.left_out)
        try:
            for batch in cdx.batches(self.extracts, one.sha512, one.name, digest):
                yield [line for line in batch if cdxj.offset(line) not in left_out] if left_out else batch
        except (BadInput, NotReady) as error:
            log.warning("index:%s; it is written anew", error)
            raise _Unread(one) from error
        digests[one.name] = digest.hexdigest()

    def _old_lines(self, segment: Segment) -> Iterator[Batch]:
        try:
            yield from segments.blocks_of(self.index, segment)
        except (BadInput, Mismatch, NotReady) as error:
            log.warning("%s", error)
            raise _Damaged(segment) from error


class _Unread(Exception):
    """An extract cannot be read any more."""

    def __init__(self, one: ListedWarc) -> None:
        self.one = one
