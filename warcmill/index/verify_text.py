"""Ask the published text for the documents of a stage: the current version, and the Solr that it is posted to.

Of every WARC: how many documents each has; and its first document, its last, and some between, which must be there as
they are, or not at all if they must not be shown. In Solr also by host, and in each collection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace

from warcmill import layout
from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.formats.text.captures import OTHER_TYPE
from warcmill.formats.text.document import Kind
from warcmill.index.asking_solr import AskingSolr, Tally
from warcmill.index.asking_text import AskingText, compare
from warcmill.index.extracting import unread
from warcmill.index.sink_solr import Place
from warcmill.index.text_lines import Line, Shown, lines_of
from warcmill.launches import holdings, text_extracts
from warcmill.launches.extracts import Extracts
from warcmill.launches.text_extracts import Counts, kind_of
from warcmill.markers.attempts import Attempts, run_items
from warcmill.markers.claim import Claim
from warcmill.markers.facts import TextIndexed, TextIndexedFile
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import FileRef, Item, Key, Launch, Outcome, Stage
from warcmill.stores import LocalStore
from warcmill.versions.inputs import Input

SAMPLE = 30  # documents of a WARC that are read back, besides the first and the last
WARCS = "warcs/"


def is_ready(state: MarkerStore, index: LocalStore, place: Place | None, launch: Launch, stage: Stage) -> bool:
    """True if the current version lists a stage, and Solr has all of it. Solr is not asked."""
    marker = state.require(layout.step("text", launch, stage))
    try:
        with ExitStack() as opened:
            asking, solr = _open(opened, state, index, place)
            for file in TextIndexed.from_claim(marker.claim).files:
                require(asking, solr, file)
    except NotReady:
        return False
    return True


def verify(state: MarkerStore, index: LocalStore, place: Place | None, launch: Launch, stage: Stage) -> Claim:
    """The claim of index.text-verified. It follows from index.text alone.

    NotReady until a version lists the stage, and Solr has acknowledged that; Unsettled when a document is missing, not
    as it should be, in another collection, or shown although it is hidden.
    """
    key = layout.step("verify-text", launch, stage)
    indexed = state.require(layout.step("text", launch, stage))
    known = TextIndexed.from_claim(indexed.claim).files
    held = {one.stored: one for one in holdings.of_stage(state, launch, stage).holdings}
    hits = {file: tuple(hit.offset for hit in one.hits or ()) for file, one in held.items()}
    sources = {item.made or item.file: item.file for item in indexed.claim.items}
    with ExitStack() as opened:
        asking, solr = _open(opened, state, index, place)
        work = _Verifying(indexed.claim.key, asking, solr, Extracts(index), known, hits, sources)
        for file in known:
            require(asking, solr, file)
        items = run_items(Attempts(state, key), known, work.version, work.item)
    claim = Claim(key, rests_on(indexed), items=items)
    return replace(claim, counts={"warcs": len(items), "documents": sum(map(_documents, known.values()))})


@dataclass(frozen=True)
class _Verifying:
    indexed: Key
    asking: AskingText
    solr: AskingSolr | None
    extracts: Extracts
    known: Mapping[FileRef, TextIndexedFile]
    hits: Mapping[FileRef, tuple[int, ...]]
    sources: Mapping[FileRef, FileRef]

    def version(self, file: FileRef) -> str:
        """Changes with the version of the text and with Solr: another one is asked again."""
        return f"{self.asking.listed.number} {self.solr.name if self.solr else '-'} {file.sha512}"

    def item(self, file: FileRef) -> tuple[Item, ...]:
        """Ask for the documents of one WARC."""
        one, number = require(self.asking, self.solr, file), _documents(self.known[file])
        lines = self._counted(one, self.known[file])
        left_out = (*one.left_out, *self.hits.get(file, ()))
        in_version, shown = Shown(left_out, {}), Shown(left_out, self.asking.hidden.prefixes())
        tally: Tally = self.solr.tally() if self.solr else {}
        asked, sample, seen, kept = _sample(lines), list[Line](), 0, 0
        for line in self._lines(one):
            if seen in asked:
                sample.append(line)
            if self.solr and shown.has(line):
                self.solr.count(tally, line)
            kept += in_version.has(line)
            seen += 1
        compare(f"lines of {kind_of(one.generation).path(one.sha512)}", lines, seen)
        self.asking.check(one.name, kept, [(line, in_version.has(line)) for line in sample])
        if self.solr:
            self.solr.check(one.name, tally, [(line, shown.has(line)) for line in sample])
        return (Item(self.sources[file], Outcome.OK, file, facts={"documents": number}),)

    def _counted(self, one: Input, known: TextIndexedFile) -> int:
        """How many lines its extract must have. Mismatch if that counts other documents than index.text."""
        kind = kind_of(one.generation)
        try:
            found = text_extracts.counts(self.extracts, kind, one.sha512)
        except (BadInput, NotReady) as error:
            raise unread(error, self.indexed) from error
        if not _is_same(known, found):
            raise Mismatch(f"documents that {kind.path(one.sha512)} counts", _shown(known), _shown(found))
        return sum(found.documents.values())

    def _lines(self, one: Input) -> Iterator[Line]:
        try:
            yield from lines_of(self.extracts, one)
        except (BadInput, NotReady) as error:
            raise unread(error, self.indexed) from error


def _open(
    opened: ExitStack, state: MarkerStore, index: LocalStore, place: Place | None
) -> tuple[AskingText, AskingSolr | None]:
    asking = opened.enter_context(closing(AskingText(state.store, index)))
    return asking, opened.enter_context(closing(AskingSolr(index, place, asking.listed))) if place else None


def require(asking: AskingText, solr: AskingSolr | None, file: FileRef) -> Input:
    """A WARC in the version's list. NotReady if it is not in it, or not in Solr."""
    one = asking.input(file.path.removeprefix(WARCS), str(file.sha512))
    if solr:
        solr.require(one)
    return one


def _sample(number: int) -> frozenset[int]:
    """The documents to ask for: the first, the last, and some at equal distances."""
    inner = (at * number // (SAMPLE + 1) for at in range(1, SAMPLE + 1))
    return frozenset({0, number - 1, *inner})


def _documents(file: TextIndexedFile) -> int:
    return sum(file.documents.values())


def _is_same(known: TextIndexedFile, found: Counts) -> bool:
    """True if a marker and an extract count the same. Markers made before office documents were documents have them
    among captures of another type, and stay as they are."""
    documents, left_out = Counter(found.documents), Counter(found.left_out)
    if Kind.OFFICE not in known.documents:
        left_out[OTHER_TYPE] += documents.pop(Kind.OFFICE, 0)
    return documents == Counter(known.documents) and left_out == Counter(known.left_out)


def _shown(counted: TextIndexedFile | Counts) -> str:
    return f"{dict(counted.documents)}, and left out {dict(counted.left_out)}"
