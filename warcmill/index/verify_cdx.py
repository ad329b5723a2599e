"""The check of the published CDX for the captures of a stage; and the count of revisits with no original in the launch.

Of every WARC are asked: how many of its lines the current version has; and its first line, its last, and some between,
which must be found once, and as they are, or not at all if they are hidden or a virus was found in them. Each sink is
asked for the same lines, and for some of those that must not be shown.

`CdxQuery` asks the current version for single captures. It is other code than the one that writes and folds segments,
and shares only the description of the form with it: it searches a list of the keys of an `.idx`, and inflates with
zlib.
"""

from __future__ import annotations

import json
import logging
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from warcmill import layout
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.extracts import cdx, revisits
from warcmill.extracts.cdx import CDXJ
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.revisits import REVISITS
from warcmill.extracts.stage_extracts import counts_differ, unread
from warcmill.formats.index import cdxj
from warcmill.index.provisional_captures import Followed
from warcmill.index.sinks import Acknowledged, QueriedSink, SinkInput
from warcmill.launches import holdings
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim, Evidence
from warcmill.markers.facts.index import Indexed, IndexedFile
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Json, Key, Launch, Outcome, Stage
from warcmill.stores import LocalStore
from warcmill.versions import hidden_list
from warcmill.versions.cdx import NAME
from warcmill.versions.hidden_list import Hidden
from warcmill.versions.inputs import ListedWarc, Lists
from warcmill.versions.publication import Payloads
from warcmill.versions.segments import Segment, counts_of

_LARGEST = 1 << 30  # bytes of an .idx


class _Block(NamedTuple):
    """Where a block is."""

    key: bytes
    offset: int
    length: int


class CdxQuery:
    """The current version, open. NotReady if there is none."""

    def __init__(self, state: LocalStore, index: LocalStore, data_set: str) -> None:
        current = Payloads(index, data_set).current()
        if current is None:
            raise NotReady(f"the current version of {data_set}", "run 'warcmill scan', which publishes one")
        self.number = current.number
        listed = Lists(state, data_set).read(current.number)
        self._inputs = listed.by_name
        self.hidden: Hidden = hidden_list.at(state, listed.hiding)
        self._open = ExitStack()
        self._parts = [_Part(index, segment, self._open) for segment in current.segments]
        self._counts: dict[str, int] = {}
        for segment in current.segments:
            self._counts |= counts_of(index, segment)

    def close(self) -> None:
        """Close its segments."""
        self._open.close()

    def input(self, name: str, sha512: str) -> ListedWarc:
        """The WARC in the version's list. NotReady if the version does not list these bytes."""
        one = self._inputs.get(name)
        if one is None or one.sha512 != sha512:
            raise NotReady(name, f"version {self.number} does not list it; run 'warcmill scan'")
        return one

    def count(self, name: str) -> int:
        """The number of lines of a WARC that were read back from the version."""
        return self._counts.get(name, 0)

    def captures(self, begin: bytes, name: str, offset: str) -> list[dict[str, str]]:
        """The captures of one record, by the begin of its line (key, blank, time) and its place in a WARC."""
        found = (json.loads(line[len(begin) :]) for part in self._parts for line in part.beginning_with(begin + b" "))
        return [one for one in found if (one.get("filename"), one.get("offset")) == (name, offset)]


class _Part:
    def __init__(self, index: LocalStore, segment: Segment, opened: ExitStack) -> None:
        self._path = segment.files[".cdx.gz"].path
        self._stream = opened.enter_context(index.open(self._path))
        rows = index.read(segment.files[".idx"].path, _LARGEST).splitlines()
        self._places = [_place(row) for row in rows]
        self._keys = [one.key for one in self._places]
        self._held: tuple[int, list[bytes]] = -1, []

    def beginning_with(self, prefix: bytes) -> Iterator[bytes]:
        """The lines that begin with a text: of the last block that begins before it, and of those that follow."""
        for number in range(max(bisect_left(self._keys, prefix[:-1]) - 1, 0), len(self._places)):
            if self._keys[number] > prefix:
                return
            yield from (line for line in self._block(number) if line.startswith(prefix))

    def _block(self, number: int) -> list[bytes]:
        if self._held[0] != number:
            place = self._places[number]
            self._stream.seek(place.offset)
            try:
                content = zlib.decompress(self._stream.read(place.length), 16 + zlib.MAX_WBITS)
            except zlib.error as error:
                raise NotReady(f"index:{self._path}", f"damaged at offset {place.offset}: {error}") from error
            self._held = number, content.split(b"\n")
        return self._held[1]


def _place(row: bytes) -> _Block:
    try:
        key, _, offset, length, _ = row.split(b"\t")
        return _Block(key, int(offset), int(length))
    except ValueError as error:
        raise BadInput("an .idx", f"not five fields: {row[:80]!r}") from error


SAMPLE = 30  # lines of a WARC that are asked for, besides the first and the last
WARCS = "warcs/"
log = logging.getLogger(__name__)


def earlier(state: MarkerStore, launch: Launch, stage: Stage) -> list[Stage]:
    """The stages of a launch before a stage, as far as they are assembled."""
    known = (one for one in sorted(state.stages(launch)) if one < stage)
    return [one for one in known if state.holds(layout.step("assemble", launch, one))]


def verify(
    state: MarkerStore, index: LocalStore, launch: Launch, stage: Stage, sinks: Sequence[QueriedSink] = ()
) -> Claim:
    """The claim of index.cdx-verified. It follows from the extracts of the launch alone.

    NotReady until a version lists the stage, and each sink has it; Unsettled when a capture is missing, doubled, not as
    it should be, or shown although it is hidden.
    """
    for sink in sinks:
        sink.check()
        if stage.is_final and not Followed(index, sink.name, launch).is_empty():
            raise NotReady(f"{launch} at {sink.place}", "provisional captures are left; run 'warcmill scan'")
    key = layout.step("verify-cdx", launch, stage)
    indexed = state.require(layout.step("cdx", launch, stage))
    before = [state.require(layout.step("cdx", launch, one)) for one in earlier(state, launch, stage)]
    held = {one.stored: one for one in holdings.of_stage(state, launch, stage).holdings}
    hits = {file: frozenset(str(hit.offset) for hit in one.hits or ()) for file, one in held.items()}
    sources = {item.made or item.file: item.file for item in indexed.claim.items}
    known = Indexed.from_claim(indexed.claim).files
    items: tuple[Item, ...] = ()
    if known:  # an archive without a WARC never publishes a version: there is nothing to ask
        with closing(CdxQuery(state.store, index, NAME)) as asking:
            answers = {sink: Acknowledged(index, sink.name) for sink in sinks}
            work = _Verifying(indexed.claim.key, asking, Extracts(index), known, hits, sources, answers)
            for file in known:
                asking.input(_name(file), str(file.sha512))
            items = run_items(Attempts(state, key), known, work.version, work.item)
    elsewhere = _elsewhere(Extracts(index), indexed, before)
    counts: dict[str, Json] = {"warcs": len(items), "captures": sum(_captures(one) for one in known.values())}
    claim = Claim(key, rests_on(indexed, *before), items=items)
    return replace(claim, counts={**counts, "elsewhere": elsewhere})


class _Verifying(Struct, frozen=True):
    indexed: Key
    asking: CdxQuery
    extracts: Extracts
    known: Mapping[FileRef, IndexedFile]
    hits: Mapping[FileRef, frozenset[str]]
    sources: Mapping[FileRef, FileRef]
    sinks: Mapping[QueriedSink, Acknowledged]

    def version(self, file: FileRef) -> str:
        """Changes with the version of the CDX, and with the sinks: others are asked again."""
        return " ".join([f"{self.asking.number} {file.sha512}", *(sink.name for sink in self.sinks)])

    def item(self, file: FileRef) -> tuple[Item, ...]:
        """Ask for the captures of one WARC."""
        one = self.asking.input(_name(file), str(file.sha512))
        number = _captures(self.known[file])
        asked, refused = _sample(number), self._refused(one)
        shown = seen = 0
        for line in self._lines(file):
            is_shown = self._is_shown(line, one, file)
            shown += is_shown
            if seen in asked:
                self._ask(line, one, is_shown)
            if seen in asked or (not is_shown and seen - shown < SAMPLE):
                self._ask_sinks(cdxj.named(line, one.name), is_shown, refused)
            seen += 1
        if seen != number:
            raise unread(BadInput(CDXJ.path(one.sha512), counts_differ(seen, number)), self.indexed)
        _compare(f"captures of {one.name} in version {self.asking.number}", shown, self.asking.count(one.name))
        return (Item(self.sources[file], Outcome.OK, file, facts={"captures": number}),)

    def _refused(self, one: ListedWarc) -> dict[QueriedSink, frozenset[int]]:
        """By sink, the offsets of the records that it refused. NotReady for one that has not all of the WARC."""
        part = SinkInput(one.identity, self.asking.hidden.hiding)
        return {sink: frozenset(known.of(part).refused) for sink, known in self.sinks.items()}

    def _ask_sinks(self, line: bytes, is_shown: bool, refused: Mapping[QueriedSink, frozenset[int]]) -> None:
        for sink in self.sinks:
            if is_shown and cdxj.offset(line) in refused[sink]:
                log.warning("%s refuses %s", sink.place, line[:200].decode())
            else:
                sink.ask(line, is_shown)

    def _lines(self, file: FileRef) -> Iterator[bytes]:
        try:
            yield from cdx.lines(self.extracts, str(file.sha512))
        except (BadInput, NotReady) as error:
            raise unread(error, self.indexed) from error

    def _is_shown(self, line: bytes, one: ListedWarc, file: FileRef) -> bool:
        out = one.left_out or self.hits.get(file)
        if out and _offset(line) in {*map(str, one.left_out), *self.hits.get(file, ())}:
            return False
        return not hidden_list.is_hidden(line, tuple(self.asking.hidden.prefixes()))

    def _ask(self, line: bytes, one: ListedWarc, is_shown: bool) -> None:
        key, time, text = line.rstrip(b"\n").split(b" ", 2)
        expected = {**json.loads(text), "filename": one.name}
        begin = key + b" " + time
        found = self.asking.captures(begin, one.name, expected["offset"])
        what = f"{begin.decode()} at {expected['offset']} of {one.name}, in version {self.asking.number}"
        if not is_shown:
            _compare(f"{what}, which must not be shown", 0, len(found))
            return
        _compare(what, "found once", "found once" if len(found) == 1 else f"found {len(found)} times")
        _compare(what, json.dumps(expected, sort_keys=True), json.dumps(found[0], sort_keys=True))


def _compare(what: str, expected: object, found: object) -> None:
    if expected != found:
        raise Mismatch(what, expected, found)


def _sample(number: int) -> frozenset[int]:
    """The lines to ask for: the first, the last, and some at equal distances."""
    inner = (at * number // (SAMPLE + 1) for at in range(1, SAMPLE + 1))
    return frozenset({0, number - 1, *inner})


def _offset(line: bytes) -> str:
    return str(json.loads(line.split(b" ", 2)[2])["offset"])


def _captures(file: IndexedFile) -> int:
    return sum(file.captures.values())


def _name(file: FileRef) -> str:
    return file.path.removeprefix(WARCS)


def _elsewhere(extracts: Extracts, indexed: Evidence, before: list[Evidence]) -> int:
    """Count the revisits of the stage that have their original in no WARC of the launch; leave an extract of them."""
    own, others = _warcs(indexed), [one for marker in before for one in _warcs(marker)]
    key = revisits.key([one.digest for one in (*before, indexed)])
    try:
        number = sum(1 for _ in revisits.elsewhere(extracts, own, others))
        if number:
            extracts.leave(REVISITS, key, revisits.elsewhere(extracts, own, others))
    except (BadInput, NotReady) as error:
        has = (marker.claim.key for marker in before if any(digest in str(error) for _, digest in _warcs(marker)))
        raise unread(error, next(has, indexed.claim.key)) from error
    return number


def _warcs(marker: Evidence) -> list[tuple[str, str]]:
    files = Indexed.from_claim(marker.claim).files
    return sorted((_name(file), str(file.sha512)) for file in files)
