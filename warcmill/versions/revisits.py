"""The revisits whose original is in no WARC of their launch, and the WARCs that have their payloads. Reads only.

index.cdx-verified counts these revisits as `elsewhere`. `needs` finds the WARCs that a launch needs besides its own:
those of other launches that have the payloads of its revisits.

Payloads are looked for in the current version of the CDX, then in all extracts that it lists. Most originals are
captures of the same URL: the version has them under the revisit's own key. The rest is looked for by payload digest
among the lines of every WARC of the version, all at once. Hidden lines are among them: a hidden payload is archived,
too.

A payload in a viral WARC is archived as well. No index has the captures of viral and refused WARCs, so these are read
last, for payloads that are nowhere else.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, suppress
from datetime import date
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from warcmill import layout
from warcmill.errors import BadInput, NotReady
from warcmill.extracts import cdx, revisits
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.revisits import REVISITS, is_revisit
from warcmill.formats.index import cdxj
from warcmill.formats.index.cdxj import CdxLines
from warcmill.formats.warc import gate
from warcmill.formats.warc.http import comparable
from warcmill.launches.discovery import with_markers
from warcmill.markers.claim import Evidence
from warcmill.markers.facts.index import CdxVerified, Indexed
from warcmill.markers.state import MarkerStore
from warcmill.model import FileRef, Item, Launch, Outcome, Stage
from warcmill.stores import LocalStore, Store
from warcmill.versions import hidden_list
from warcmill.versions.cdx import NAME
from warcmill.versions.index_inputs import WARCS
from warcmill.versions.inputs import ListedWarc, Lists
from warcmill.versions.publication import CdxLookup, Payloads

_VERIFIED = "index.cdx-verified."


class Revisit(Struct, frozen=True, order=True):
    """A revisit, as its line has it. `digest` is the payload's, '' if the record has none."""

    key: str
    time: str
    url: str
    digest: str
    warc: str  # below the store's warcs/
    offset: int

    @classmethod
    def parse(cls, line: bytes) -> Revisit:
        """Read a line that has its filename."""
        key, time, text = line.decode().split(" ", 2)
        fields = json.loads(text)
        return cls(key, time, fields["url"], fields.get("digest", ""), fields["filename"], int(fields["offset"]))

    @property
    def wanted(self) -> bytes:
        """The mark of its original: this payload digest, to be compared. Without one: this key, and a blank."""
        return comparable(self.digest.encode()) or f"{self.key} ".encode()


def with_revisits(state: MarkerStore, launch: Launch) -> list[Stage]:
    """The stages of a launch whose index.cdx-verified counts revisits as `elsewhere`."""
    names = (name for name in sorted(state.store.names(layout.state_folder(launch))) if name.startswith(_VERIFIED))
    keys = filter(None, map(layout.parse_marker_name, names))
    return sorted(Stage.parse(key["stage"]) for key in keys if _elsewhere(state.read(key)))


def _elsewhere(marker: Evidence | None) -> int:
    """The count of a marker; 0 if its facts do not fit, which the audit reports as a broken marker."""
    try:
        return CdxVerified.from_claim(marker.claim).elsewhere if marker else 0
    except BadInput:
        return 0


def of_stage(state: MarkerStore, extracts: Extracts, launch: Launch, stage: Stage) -> Iterator[Revisit]:
    """The revisits of a stage. Their extract may be lost: then they are found again, among the lines of the WARCs.

    NotReady until the stage is verified, or where those lines are lost, too.
    """
    verified = state.require(layout.step("verify-cdx", launch, stage))
    if not CdxVerified.from_claim(verified.claim).elsewhere:
        return
    rests_on = {_stage(one.marker): one.claim for one in verified.claim.inputs}
    key = revisits.key([rests_on[one] for one in sorted(rests_on)])
    lines = extracts.lines(REVISITS, key)
    if extracts.digest(REVISITS, key) is None:
        lines = _found_again(state, extracts, launch, sorted(rests_on))
    try:
        yield from map(Revisit.parse, lines)
    except BadInput as error:
        raise NotReady(f"index:{error.path}", error.why) from error


def _stage(path: str) -> Stage:
    key = layout.parse_marker_path(path)
    if key is None:
        raise BadInput(path, "no marker of a stage")
    return Stage.parse(key["stage"])


def _found_again(state: MarkerStore, extracts: Extracts, launch: Launch, stages: list[Stage]) -> Iterator[bytes]:
    *before, own = [state.require(layout.step("cdx", launch, one)) for one in stages]
    return revisits.elsewhere(extracts, warcs_of(own), [one for marker in before for one in warcs_of(marker)])


def warcs_of(marker: Evidence) -> list[tuple[str, str]]:
    """The WARCs of an index.cdx, sorted: the name of each below the store's `warcs/`, and its SHA-512."""
    files = Indexed.from_claim(marker.claim).files
    return sorted((file.path.removeprefix(WARCS), str(file.sha512)) for file in files)


_DIGEST = re.compile(rb'"digest": "([^"\\]*)"')
_NAME = re.compile(rb'"filename": "([^"\\]*)"')
_NAMED = 3  # launches
_STORED = "files.verified."


class PayloadSource(Struct, frozen=True, order=True):
    """A WARC with the payload of a revisit, below the store's `warcs/`, or `viral/`; whether an index shows it.

    `is_refused`: the gate has refused it, so no index has it. `has_hit`: a virus was found in the record.
    """

    warc: str
    is_shown: bool = True
    is_viral: bool = False
    is_refused: bool = False
    has_hit: bool = False


class Searched(Struct):
    """Where payloads are, by `Revisit.wanted`; the stored launches whose lines could not be looked through."""

    originals: dict[bytes, PayloadSource] = field(default_factory=dict)
    unread: set[Launch] = field(default_factory=set)
    why: str = ""

    def unknown(self) -> str:
        """Why a payload that was not found may be archived all the same; '' if it is archived nowhere."""
        if not self.unread:
            return self.why
        named = ", ".join(map(str, sorted(self.unread)[:_NAMED])) + (", …" if len(self.unread) > _NAMED else "")
        launches = "1 launch is" if len(self.unread) == 1 else f"{len(self.unread)} launches are"
        return f"{launches} not indexed: {named}; run 'warcmill scan' over their days"


class Originals:
    """The current version of the CDX, all that it lists, and viral WARCs. NotReady if none is published."""

    def __init__(self, state: MarkerStore, index: LocalStore, store: Store) -> None:
        current = Payloads(index, NAME).current()
        if current is None:
            raise NotReady(f"the current version of {NAME}", "no version is published; run 'warcmill scan'")
        self._state, self._store, self._extracts = state, store, Extracts(index)
        self._listed = Lists(state.store, NAME).read(current.number)
        self._index, self._segments = index, current.segments
        self._lookup: CdxLookup | None = None

    def sha512(self, warc: str) -> str:
        """The SHA-512 of a WARC that the version lists."""
        return self._listed.by_name[warc].sha512

    def shown(self, prefix: bytes) -> Iterator[bytes]:
        """The lines of the version that begin with these bytes. Ask in order: few blocks are read then."""
        if self._lookup is None:
            self._lookup = CdxLookup(self._index, self._segments)
        return self._lookup.beginning_with(prefix)

    def close(self) -> None:
        """Close what `shown` reads."""
        if self._lookup:
            self._lookup.close()

    def search(self, revisits: Iterable[Revisit], *, refused: bool = False) -> Searched:
        """Find the original of each: under its own key, else among all lines, else in viral WARCs.

        `refused`: look into refused WARCs, too. A payload that is found only there counts as no original, but
        a reader may want to report it.
        """
        found, left = Searched(), set[bytes]()
        with closing(CdxLookup(self._index, self._segments)) as lookup:
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
        for warc in warcs(self._state, refused=refused) if left else ():
            is_viral = warc.path.startswith(VIRAL)
            name = warc.path.partition("/")[2]
            original = PayloadSource(name, is_shown=False, is_viral=is_viral, is_refused=not is_viral)
            for line in _with_body(lines(self._store, warc), left):
                for wanted in _answers(line, left):
                    found.originals.setdefault(wanted, original)

    def _look_through(self, left: Collection[bytes], found: Searched) -> None:
        prefixes = hidden_list.at(self._state.store, self._listed.hiding).prefixes()
        for one in self._listed.inputs:
            try:
                for line in _with_body(cdx.lines(self._extracts, one.sha512), left):
                    has_hit = cdxj.offset(line) in one.left_out
                    is_shown = not has_hit and any(hidden_list.visible([line], prefixes, set()))
                    for wanted in _answers(line, left):
                        if wanted not in found.originals or (is_shown and not found.originals[wanted].is_shown):
                            found.originals[wanted] = PayloadSource(one.name, is_shown, has_hit=has_hit)
            except (NotReady, BadInput):
                found.unread.add(one.launch)


def not_indexed(state: MarkerStore, listed: Iterable[ListedWarc]) -> Iterator[Launch]:
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


def _under_its_key(lookup: CdxLookup, one: Revisit) -> PayloadSource | None:
    wanted = {one.wanted}
    line = next(_with_body(lookup.beginning_with(f"{one.key} ".encode()), wanted), None)
    name = _NAME.search(line) if line else None
    return PayloadSource(name[1].decode()) if name else None


def _with_body(lines: Iterable[bytes], wanted: Collection[bytes]) -> Iterator[bytes]:
    """The lines of captures with one of these payload digests, or keys, that are not revisits."""
    return (line for line in lines if any(_answers(line, wanted)) and not is_revisit(line))


def _answers(line: bytes, wanted: Collection[bytes]) -> Iterator[bytes]:
    digest = _DIGEST.search(line)
    for one in (comparable(digest[1]) if digest else b"", line[: line.index(b" ") + 1]):
        if one in wanted:
            yield one


VIRAL = "viral/"


def warcs(state: MarkerStore, *, refused: bool = False) -> Iterator[FileRef]:
    """The viral WARCs of all launches, as the store has them; with `refused`, those that the gate has refused, too."""
    for launch in with_markers(state, date.min, date.max):
        names = state.store.names(layout.state_folder(launch))
        keys = filter(None, (layout.parse_marker_name(name) for name in sorted(names) if name.startswith(_STORED)))
        for stage in (Stage.parse(key["stage"]) for key in keys):
            with suppress(NotReady):  # it has just been moved aside
                items = state.record(layout.step("verify", launch, stage)).claim.items
                yield from (item.made for item in items if item.made and _is_taken(item, item.made, refused))


def _is_taken(item: Item, made: FileRef, refused: bool) -> bool:
    return made.path.startswith(VIRAL) or (refused and item.outcome is Outcome.REFUSED)


def lines(store: Store, warc: FileRef) -> Iterator[bytes]:
    """The CDXJ lines of such a WARC, up to where it is cut; none if it is not in the store any more."""
    found: list[bytes] = []
    with suppress(NotReady), store.open(warc.path) as stream:
        hearer = CdxLines(found.append)
        gate.examine(stream, warc.name, hearers=[hearer])
        hearer.close()
    yield from found


class Where(StrEnum):
    """Where a needed WARC is. `hidden`: it is in the store, but an index hides each needed record. `viral`: it is among
    the store's viral WARCs, which no index has."""

    STORED = "stored"
    HIDDEN = "hidden"
    VIRAL = "viral"
    MISSING = "missing"


class Need(Struct, frozen=True):
    """A WARC that has the payloads of so many revisits; its name is below the store's `warcs/`, or `viral/`."""

    warc: str
    where: Where
    revisits: int

    @property
    def launch(self) -> Launch:
        """The launch it is of."""
        return Launch.parse(*self.warc.split("/")[:2])


class Needs(Struct, frozen=True):
    """All that a launch needs, and the revisits whose payload was not found.

    `unknown`: why it may be archived all the same; '' if it is archived nowhere.
    """

    warcs: tuple[Need, ...]
    nowhere: tuple[Revisit, ...]
    unknown: str


def needs(state: MarkerStore, index: LocalStore, store: Store, launch: Launch) -> Needs:
    """Find what a launch needs. NotReady until VerifyCdx has verified all of its stages, or without a version."""
    searched = Originals(state, index, store).search(_revisits(state, index, launch))
    found, nowhere = Counter[PayloadSource](), list[Revisit]()
    for one in _revisits(state, index, launch):
        if original := searched.originals.get(one.wanted):
            found[replace(original, has_hit=False)] += 1  # an entry has all of a WARC, hit or not
        else:
            nowhere.append(one)
    others = {one: number for one, number in found.items() if not one.warc.startswith(f"{launch}/")}
    warcs = tuple(Need(one.warc, _where(store, one), others[one]) for one in sorted(others))
    return Needs(warcs, tuple(nowhere), searched.unknown() if nowhere else "")


def _revisits(state: MarkerStore, index: LocalStore, launch: Launch) -> Iterator[Revisit]:
    stages = sorted(state.stages(launch))
    if not stages:
        raise NotReady(str(launch), "no stage of it is assembled; 'warcmill why' lists what is missing")
    for stage in stages:
        state.require(layout.step("verify-cdx", launch, stage))
        yield from of_stage(state, Extracts(index), launch, stage)


def _where(store: Store, one: PayloadSource) -> Where:
    if store.stat((VIRAL if one.is_viral else WARCS) + one.warc) is None:
        return Where.MISSING
    if one.is_viral:
        return Where.VIRAL
    return Where.STORED if one.is_shown else Where.HIDDEN
