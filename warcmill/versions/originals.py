"""Where the payloads of revisits are: looked for in the current version of the CDX, then in all extracts that it lists.

Most originals are captures of the same URL: the version has them under the revisit's own key. What is left is looked
for by its payload digest among the lines of every WARC of the version, all at once. Those lines have what is hidden,
too: a payload that is hidden is archived. So is one in a viral WARC, which no version lists: these are read last.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date

from warcmill import layout
from warcmill.errors import BadInput, NotReady
from warcmill.formats import cdxj
from warcmill.formats.warc.digest import comparable
from warcmill.launches import cdx_extracts
from warcmill.launches.extracts import Extracts
from warcmill.launches.recorded import with_markers
from warcmill.launches.revisit_extracts import is_revisit
from warcmill.markers.state import MarkerStore
from warcmill.model import Launch, Stage
from warcmill.stores import LocalStore, Store
from warcmill.versions import hidden, viral
from warcmill.versions.cdx import NAME
from warcmill.versions.inputs import Input
from warcmill.versions.lists import Lists
from warcmill.versions.lookup import Lookup
from warcmill.versions.payloads import Payloads
from warcmill.versions.revisits import Revisit, warcs_of

_DIGEST = re.compile(rb'"digest": "([^"\\]*)"')
_NAME = re.compile(rb'"filename": "([^"\\]*)"')
_NAMED = 3  # launches
_STORED = "files.verified."


@dataclass(frozen=True, order=True, slots=True)
class Original:
    """A WARC with the payload of a revisit, below the store's `warcs/`, or `viral/`; whether an index shows it.

    `is_refused`: the gate has refused it, so no index has it. `has_hit`: a virus was found in the record.
    """

    warc: str
    is_shown: bool = True
    is_viral: bool = False
    is_refused: bool = False
    has_hit: bool = field(default=False, compare=False)


@dataclass
class Searched:
    """Where payloads are, by `Revisit.wanted`; the stored launches whose lines could not be looked through."""

    originals: dict[bytes, Original] = field(default_factory=dict)
    unread: set[Launch] = field(default_factory=set)
    why: str = ""

    def unknown(self) -> str:
        """Why a payload that was not found may be archived all the same; '' if it is archived nowhere."""
        if not self.unread:
            return self.why
        named = ", ".join(map(str, sorted(self.unread)[:_NAMED])) + (", …" if len(self.unread) > _NAMED else "")
        launches = "1 launch is" if len(self.unread) == 1 else f"{len(self.unread)} launches are"
        return f"{launches} not indexed: {named}; run index.ScanForIndexing over their days"


class Originals:
    """The current version of the CDX, all that it lists, and viral WARCs. NotReady if none is published."""

    def __init__(self, state: MarkerStore, index: LocalStore, store: Store) -> None:
        current = Payloads(index, NAME).current()
        if current is None:
            raise NotReady(f"the current version of {NAME}", "no version is published; run index.ScanForIndexing")
        self._state, self._store, self._extracts = state, store, Extracts(index)
        self._listed = Lists(state.store, NAME).read(current.number)
        self._index, self._segments = index, current.segments
        self._lookup: Lookup | None = None

    def sha512(self, warc: str) -> str:
        """The SHA-512 of a WARC that the version lists."""
        return self._listed.by_name[warc].sha512

    def shown(self, prefix: bytes) -> Iterator[bytes]:
        """The lines of the version that begin with these bytes. Ask in order: few blocks are read then."""
        if self._lookup is None:
            self._lookup = Lookup(self._index, self._segments)
        return self._lookup.beginning_with(prefix)

    def close(self) -> None:
        """Close what `shown` reads."""
        if self._lookup:
            self._lookup.close()

    def search(self, revisits: Iterable[Revisit], *, refused: bool = False) -> Searched:
        """Find the original of each: under its own key, else among all lines, else in viral WARCs.

        `refused`: look into refused WARCs, too. What is there alone is no original: a reader may want to report it.
        """
        found, left = Searched(), set[bytes]()
        with closing(Lookup(self._index, self._segments)) as lookup:
            for one in revisits:
                if one.wanted not in found.originals and (original := _under_its_key(lookup, one)):
                    found.originals[one.wanted] = original
                elif one.wanted not in found.originals:
                    left.add(one.wanted)
        left -= found.originals.keys()
        if left:
            found.unread.update(not_indexed(self._state, self._listed.inputs))
            self._look_through(left, found)
            self._look_into_others(left - found.originals.keys(), found, refused=refused)
        return found

    def _look_into_others(self, left: Collection[bytes], found: Searched, *, refused: bool) -> None:
        for warc in viral.warcs(self._state, refused=refused) if left else ():
            is_viral = warc.path.startswith(viral.VIRAL)
            name = warc.path.partition("/")[2]
            original = Original(name, is_shown=False, is_viral=is_viral, is_refused=not is_viral)
            for line in _with_body(viral.lines(self._store, warc), left):
                for wanted in _answers(line, left):
                    found.originals.setdefault(wanted, original)

    def _look_through(self, left: Collection[bytes], found: Searched) -> None:
        prefixes = hidden.at(self._state.store, self._listed.hiding).prefixes()
        for one in self._listed.inputs:
            try:
                for line in _with_body(cdx_extracts.lines(self._extracts, one.sha512), left):
                    has_hit = cdxj.offset(line) in one.left_out
                    is_shown = not has_hit and any(hidden.visible([line], prefixes, set()))
                    for wanted in _answers(line, left):
                        if wanted not in found.originals or (is_shown and not found.originals[wanted].is_shown):
                            found.originals[wanted] = Original(one.name, is_shown, has_hit=has_hit)
            except (NotReady, BadInput):
                found.unread.add(one.launch)


def not_indexed(state: MarkerStore, listed: Iterable[Input]) -> Iterator[Launch]:
    """The launches with a stored stage that has no index.cdx, or one of which a WARC is not listed."""
    known = {(one.name, one.sha512) for one in listed}
    for launch in with_markers(state, date.min, date.max):
        names = state.store.names(layout.state_folder(launch))
        keys = filter(None, (layout.parse_marker_name(name) for name in names if name.startswith(_STORED)))
        if not all(_is_listed(state, launch, Stage.parse(key["stage"]), known) for key in keys):
            yield launch


def _is_listed(state: MarkerStore, launch: Launch, stage: Stage, known: Collection[tuple[str, str]]) -> bool:
    marker = state.read(layout.step("cdx", launch, stage))
    return marker is not None and all(one in known for one in warcs_of(marker))


def _under_its_key(lookup: Lookup, one: Revisit) -> Original | None:
    wanted = {one.wanted}
    line = next(_with_body(lookup.beginning_with(f"{one.key} ".encode()), wanted), None)
    name = _NAME.search(line) if line else None
    return Original(name[1].decode()) if name else None


def _with_body(lines: Iterable[bytes], wanted: Collection[bytes]) -> Iterator[bytes]:
    """The lines of captures with one of these payload digests, or keys, that are no revisits."""
    return (line for line in lines if any(_answers(line, wanted)) and not is_revisit(line))


def _answers(line: bytes, wanted: Collection[bytes]) -> Iterator[bytes]:
    digest = _DIGEST.search(line)
    for one in (comparable(digest[1]) if digest else b"", line[: line.index(b" ") + 1]):
        if one in wanted:
            yield one
