"""The data set `documents` for the fold: crawls that are new or have changed are joined anew. Writes segments.

As with the other data sets, what is new makes a new segment, and a segment that is not at least FACTOR times as large
is copied into it. A crawl is joined anew if it has other WARCs, if something in it is to be hidden, or shown again.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from warcmill import layout
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.extracts import harvest
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.harvest import HARVEST
from warcmill.extracts.per_warc import Extractor
from warcmill.formats.harvested import HarvestedRecord
from warcmill.markers.facts.output import Assembled
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch
from warcmill.stores import LocalStore
from warcmill.versions import dataset, hidden_list, index_inputs
from warcmill.versions.dataset import Built, New, Wanted
from warcmill.versions.documents import segment
from warcmill.versions.documents.join import Key, join
from warcmill.versions.documents.segment import JoinedCrawl, KeptCrawl, SegmentWriter
from warcmill.versions.hidden_list import Hidden
from warcmill.versions.inputs import ListedWarc
from warcmill.versions.publication import Published
from warcmill.versions.segments import Segment

FACTOR = 4
NAME = "documents"
WORD = "documents"  # of the step whose markers count
_BATCH = 1000  # records
log = logging.getLogger(__name__)
Crawls = dict[str, list[ListedWarc]]


class Documents(Struct, frozen=True):
    """The data set `documents`."""

    state: MarkerStore
    making: Extractor
    index: LocalStore
    name: str = NAME
    generation: int = HARVEST.generation

    @property
    def extracts(self) -> Extracts:
        """The extracts of the index root."""
        return Extracts(self.index)

    def seen(self) -> str:
        return index_inputs.seen(self.state, self.index, WORD, self.generation)

    def wanted(self, before: Sequence[ListedWarc]) -> Wanted:
        return index_inputs.wanted(self.state, before, WORD, self.generation)

    def build(self, wanted: Sequence[ListedWarc], hidden: Hidden, before: Published | None, _room: IO[bytes]) -> Built:
        troubles: dict[str, str] = {}
        known = [one for one in (before.segments if before else ()) if self._is_sound(one)]
        kept = segment.crawls(self.index, known)
        crawls, old = self._of_crawls(wanted), dict[str, tuple[ListedWarc, ...]]()
        for name in self._unchanged(crawls, kept, known, hidden):
            old[name] = segment.inputs(self.index, kept[name])
        fresh = {name: self._there(ones, troubles) for name, ones in sorted(crawls.items()) if name not in old}
        gone = [
            name for name in kept if name not in crawls
        ]  # also those that went before: a segment may still have them
        if not fresh and not any(kept[name].token for name in gone):
            return Built(tuple(sorted(one for ones in old.values() for one in ones)), tuple(known))
        with segment.writing(self.index) as writer:
            for name in gone:
                writer.add(JoinedCrawl(name, (), (), set()))
            inputs = dict(old)
            for name, ones in fresh.items():
                inputs[name] = self._join(writer, name, ones, hidden)
            left = {name: one for name, one in kept.items() if name in old}
            stay = self._copy(writer, known, left, len(fresh) + len(gone))
            written = writer.written()
        listed = tuple(sorted(one for ones in inputs.values() for one in ones))
        commit = partial(segment.commit, written=written)
        return Built(listed, tuple(stay), New(written.parts, commit, without_lines=True), list(troubles.values()))

    def _is_sound(self, one: Segment) -> bool:
        """True if a segment can be read."""
        try:
            return segment.is_there(self.index, one) and bool(segment.crawls(self.index, [one]))
        except (NotReady, BadInput, Mismatch) as error:
            log.warning("%s; its crawls are joined anew", error)
            return False

    def _of_crawls(self, wanted: Iterable[ListedWarc]) -> Crawls:
        """The WARCs by crawl: the launch that is continued by none before it names it."""
        found, first = Crawls(), cache(self._first)
        for one in wanted:
            found.setdefault(first(one.launch), []).append(one)
        return found

    def _first(self, launch: Launch) -> str:
        known = {launch}
        while stages := self.state.stages(launch):
            marker = self.state.read(layout.step("assemble", launch, min(stages)))
            continued = Assembled.from_claim(marker.claim).continues if marker else None
            if not continued or continued.launch in known:
                break
            launch = continued.launch
            known.add(launch)
        return str(launch)

    def _unchanged(
        self, crawls: Crawls, kept: Mapping[str, KeptCrawl], known: Sequence[Segment], hidden: Hidden
    ) -> Iterator[str]:
        """The crawls that need not be joined anew."""
        prefixes = tuple(hidden.prefixes())
        to_hide = {one.name: segment.shows(self.index, one, prefixes) for one in known} if prefixes else {}
        for name, one in kept.items():
            is_same = name in crawls and segment.token(crawls[name]) == one.token
            if is_same and one.hidden <= hidden.entries.keys() and one.number not in to_hide.get(one.segment.name, ()):
                yield name

    def _there(self, wanted: Sequence[ListedWarc], troubles: dict[str, str]) -> list[ListedWarc]:
        """The inputs with the digests of their extracts; those in trouble are left out."""
        at_once = self.making.at_once(sum(self.index.stat(HARVEST.path(one.sha512)) is None for one in wanted))
        return sorted(dataset.each(lambda one: self._digested(one, troubles), wanted, at_once, self.name))

    def _digested(self, one: ListedWarc, troubles: dict[str, str]) -> ListedWarc | None:
        """The input with the digest of its extract, which is made if it is missing or damaged; None in trouble."""
        try:
            if not (digest := self._sound_digest(one)):
                log.info("documents: %s is read again from the store", one.name)
                self.extracts.remove(HARVEST, one.sha512)
                self.making.harvest(index_inputs.WARCS + one.name, one.sha512)
                if not (digest := self._sound_digest(one)):
                    why = "it was written anew, and cannot be read; look at the disk of the index root"
                    raise BadInput(f"index:{HARVEST.path(one.sha512)}", why)
            return replace(one, extract=digest)
        except (NotReady, Mismatch, BadInput) as error:
            troubles[one.name] = f"{one.name}: {error}; it is left out of the index"
            return None

    def _sound_digest(self, one: ListedWarc) -> str | None:
        """The digest of an extract; None if it is missing or damaged."""
        try:
            harvest.tally(self.extracts, one.sha512)
        except (NotReady, BadInput):
            return None
        return self.extracts.digest(HARVEST, one.sha512)

    def _join(
        self, writer: SegmentWriter, name: str, inputs: Sequence[ListedWarc], hidden: Hidden
    ) -> tuple[ListedWarc, ...]:
        met, prefixes = set[str](), hidden.prefixes()

        def read() -> Iterator[tuple[str, Iterator[HarvestedRecord]]]:
            for one in inputs:
                yield one.name, _shown(self._records(one), prefixes, met)

        writer.add(JoinedCrawl(name, tuple(inputs), join(writer.folder, read), met))
        return tuple(inputs)

    def _records(self, one: ListedWarc) -> Iterator[HarvestedRecord]:
        left_out = frozenset(one.left_out)
        return (record for record in harvest.read(self.extracts, one.sha512) if record.offset not in left_out)

    def _copy(
        self, writer: SegmentWriter, known: Sequence[Segment], left: Mapping[str, KeptCrawl], new: int
    ) -> list[Segment]:
        """Copy small segments into the new one; return those that stay, in their order."""
        live = defaultdict[str, int](int)
        for one in left.values():
            live[one.segment.name] += 1
        stay = sorted((one for one in known if live[one.name]), key=lambda one: -(one.lines + live[one.name]))
        while stay and stay[-1].lines + live[stay[-1].name] < FACTOR * (writer.parts + new):
            smallest = stay.pop()
            writer.copy(left, smallest)
            new += live[smallest.name]
        return [one for one in known if one in stay]


def _shown(
    records: Iterator[HarvestedRecord], prefixes: Mapping[bytes, str], met: set[str]
) -> Iterator[HarvestedRecord]:
    """The records that are not hidden."""
    if not prefixes:
        yield from records
        return
    while batch := list(islice(records, _BATCH)):
        lines = (f"{Key(one.url)} {one.date} {at}".encode() for at, one in enumerate(batch))
        for line in hidden_list.visible(lines, prefixes, met):
            yield batch[int(line.rpartition(b" ")[2])]
