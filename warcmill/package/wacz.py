"""The WACZ of a launch, written from the store, today or years later: the same markers give the same bytes.

It takes what indexes take, whole and salvaged WARCs, and names the others. Each WARC is read once: the index reads it
as it is written, and it is compared with its marker meanwhile. Where its index lines and its text are kept in the index
root already, they are used. Captures with a hit of the virus scan get no line. Once anything is hidden in the archive,
each WARC is read twice: first to find the records to leave out of it. So it is where only some pages are wanted: then
WARCs without any of them are left out whole, and the list of pages has those that were chosen.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field

from warcmill import layout
from warcmill.base import digests
from warcmill.base.line_sort import SortedLines
from warcmill.errors import BadInput, NotReady
from warcmill.extracts import cdx, text
from warcmill.extracts.cdx import CDXJ, CaptureCounts
from warcmill.extracts.extracts import Extracts
from warcmill.formats import wacz
from warcmill.formats.index.cdxj import CdxLines, named
from warcmill.formats.text.titles import Titles
from warcmill.formats.wacz import EXTRA, SEEDS, Wacz, Write
from warcmill.formats.warc import gate
from warcmill.formats.warc.gate import FileVerdict
from warcmill.formats.warc.hearers import Hearer
from warcmill.formats.warc.rest import Again, Rest
from warcmill.launches import crawl_parts, holdings
from warcmill.launches.crawl_parts import CrawlParts
from warcmill.launches.holdings import Holding, HoldingKind, StageHoldings
from warcmill.launches.view import Part
from warcmill.markers.state import MarkerStore
from warcmill.model import FINAL, Launch, Stage
from warcmill.package.wacz_cuts import Choice, Cuts, CutWarc, Extents, HiddenRecords, offset_of
from warcmill.package.wacz_originals import Archived, Lost, RefersTo, Revisits
from warcmill.package.wacz_pages import WaczPages, Words
from warcmill.stores import Store
from warcmill.versions import hidden_list
from warcmill.versions.revisits import Originals

_WARC = re.compile(r".*\.warc(\.gz)?", re.DOTALL | re.IGNORECASE)
Named = tuple[str, str]


class WaczContents(Struct, frozen=True):
    """The contents of a WACZ: WARCs by name. `left_out` has names, each with the reason; `missing`: parts of the crawl,
    by their names, of which nothing is there."""

    launch: Launch
    stages: tuple[Part, ...]
    warcs: tuple[Holding, ...]
    left_out: tuple[Named, ...]
    title: str
    created: str
    missing: tuple[Named, ...] = ()

    @property
    def size(self) -> int:
        """The length of all WARCs, in bytes."""
        return sum(one.stored.size for one in self.warcs)


def contents(state: MarkerStore, launch: Launch, stage: Stage | None) -> WaczContents:
    """The contents of the WACZ of a stage; without a stage, of a WACZ of a whole crawl: all stages of a launch that has
    ended, and of those that it continues.

    NotReady with the scan to run, if one is not verified. BadInput if there is no such stage, or no WARC to replay.
    """
    title = f"{launch.job} {launch.id}" + (f" {stage}" if stage else "")
    if stage is None:
        stages, missing = _of_crawl(state, crawl_parts.of(state, launch))
    elif stage in state.stages(launch):
        stages, missing = ((launch, stage),), []
    else:
        raise _no_stage(state, launch, stage)
    held = [_of_stage(state, *one) for one in stages]
    every = [one for each in held for one in each.holdings]
    left_out = [(one.name, why) for one in every if (why := _why_not(one))]
    left_out += [(one.name, f"not in the store: {one.why}") for each in held for one in each.unstored]
    warcs = _by_name(one for one in every if not _why_not(one))
    if not warcs:
        raise BadInput(title, "no WARC to replay" + "".join(f"; {name}: {why}" for name, why in left_out[:3]))
    created = max(state.require(layout.step("verify", *one)).run.finished for one in stages)
    return WaczContents(launch, stages, warcs, tuple(left_out), title, created, tuple(missing))


def _of_crawl(state: MarkerStore, parts: CrawlParts) -> tuple[tuple[Part, ...], list[Named]]:
    """The stages of the parts of a crawl; and the parts of which some is missing, each with the reason."""
    missing = [("the crawl before", parts.broken)] if parts.broken else []
    stages = crawl_parts.stages(state, parts)
    for one in parts.launches:
        if (one, FINAL) in stages:
            continue
        if one == parts.launch and not state.folder(one):
            raise _no_stage(state, one, None)
        if one == parts.launch:
            raise NotReady(f"{one} {FINAL}", f"it is not in the store yet; {_scan(one)}")
        missing.append((f"{one} {FINAL}", f"the launch has no such stage yet; {_scan(one)}"))
    return stages, missing


def _no_stage(state: MarkerStore, launch: Launch, stage: Stage | None) -> BadInput:
    names = ", ".join(map(str, sorted(state.stages(launch)))) or "none yet; 'warcmill why' explains what it waits for"
    return BadInput(f"{launch} {stage or ''}".rstrip(), f"no such stage; those of the launch: {names}")


def _of_stage(state: MarkerStore, launch: Launch, stage: Stage) -> StageHoldings:
    """NotReady with the scan to run, unless the stage is verified."""
    if not state.holds(layout.step("verify", launch, stage)):
        raise NotReady(f"{launch} {stage}", f"its WARCs are not verified in the store yet; {_scan(launch)}")
    return holdings.of_stage(state, launch, stage)


def _scan(launch: Launch) -> str:
    return f"run: warcmill scan {launch.day}"


def _why_not(one: Holding) -> str:
    """Why a WARC is not taken; '' if it is."""
    if one.word is HoldingKind.CUT and not one.by_record:
        return f"cut: {one.why}"
    if one.word is HoldingKind.VIRAL:
        return "from the engine's viral writer"
    return "" if _WARC.fullmatch(one.name) else "an ARC: replay reads WARCs only"


def _by_name(warcs: Iterable[Holding]) -> tuple[Holding, ...]:
    """Each WARC once, by name; BadInput for two of one name."""
    found: dict[str, Holding] = {}
    for one in warcs:
        there = found.setdefault(one.name, one)
        if there.stored.sha512 != one.stored.sha512:
            why = f"another WARC of the same name is stored as {there.stored.path}; write the WACZ of one stage"
            raise BadInput(f"store:{one.stored.path}", why)
    return tuple(found[name] for name in sorted(found))


_SORTED = 32 << 20  # bytes of index lines in memory; more of them go to nameless files


class WrittenWacz(Struct):
    """A WACZ that was written. `left_out`: names of files, each with its records that the index or the pages lack.

    `originals`: the WARCs of other launches, or stages, that have originals of revisits, and of how many. `lost`:
    captures that will not replay. `hidden`: captures that are left out, by the entry that hides them.
    """

    warcs: int = 0
    captures: int = 0
    pages: int = 0
    extra_pages: int = 0
    has_text: bool = False
    left_out: list[Named] = field(default_factory=list)
    originals: Counter[str] = field(default_factory=Counter)
    lost: list[Lost] = field(default_factory=list)
    hidden: Counter[str] = field(default_factory=Counter)


class WaczSources(Struct, frozen=True):
    """Where a WACZ is made from. `folder` has room for index lines that are being sorted.

    `no_index`: why there are no extracts.
    """

    state: MarkerStore
    store: Store
    extracts: Extracts | None
    folder: Path
    no_index: str = "not looked for: there is no index"

    def archived(self, prefixes: Mapping[bytes, str]) -> Archived:
        """Where originals may be found."""
        if self.extracts is None:
            return Archived(self.store, prefixes, why_not=self.no_index)
        try:
            return Archived(self.store, prefixes, Originals(self.state, self.extracts.index, self.store))
        except NotReady as error:
            return Archived(self.store, prefixes, why_not=f"not looked for: {error}")


def write(
    sources: WaczSources,
    what: WaczContents,
    target: BinaryIO,
    advance: Callable[[int], None],
    *,
    with_originals: bool = True,
    choice: Choice | None = None,
) -> WrittenWacz:
    """Write the WACZ to a file that can seek: of all, or of what was chosen. Mismatch when a WARC is no longer as it
    was verified; BadInput if nothing of what was chosen is there."""
    written = WrittenWacz()
    with ExitStack() as stack:
        pages = stack.enter_context(closing(WaczPages(sources.folder, choice)))
        for launch, stage in what.stages:
            logs = sources.state.require(layout.step("pack", launch, stage))
            unread = pages.add_logs(sources.state, logs)
            written.left_out += [(name, "damaged: pages that its end names are not listed") for name in unread]
        archive = stack.enter_context(wacz.writing(target))
        adding = _Adding(sources, archive, pages, written, advance, stack, choice)
        for one in what.warcs:
            adding.warc(one)
        if choice and not written.warcs:
            hidden = f"; {written.hidden.total():,} captures of it are hidden" if written.hidden else ""
            raise BadInput(what.title, f"no WARC of the store has what was chosen{hidden}")
        adding.finish(with_originals=with_originals)
        archive.finish(what.title, what.created)
    return written


class _Adding:
    """Adds WARC after WARC to a WACZ, then their originals, index and pages."""

    def __init__(
        self,
        sources: WaczSources,
        archive: Wacz,
        pages: WaczPages,
        written: WrittenWacz,
        advance: Callable[[int], None],
        stack: ExitStack,
        choice: Choice | None,
    ) -> None:
        self._sources, self._archive, self._pages, self._choice = sources, archive, pages, choice
        self._written, self._advance = written, advance
        self._prefixes = hidden_list.read(sources.state.store).prefixes()
        self._archived = sources.archived(self._prefixes)
        self._lines = stack.enter_context(closing(SortedLines(sources.folder, _SORTED)))
        self._copied = stack.enter_context(closing(SortedLines(sources.folder)))
        self._revisits = stack.enter_context(closing(Revisits(sources.folder)))
        self._texts: dict[str, tuple[str, Cuts]] = {}  # by WARC: its SHA-512 and what is cut out of it
        if self._archived.originals:
            stack.enter_context(closing(self._archived.originals))

    def warc(self, one: Holding) -> None:
        """Write a WARC, and take its lines and its titles."""
        sha512 = one.stored.sha512 or ""
        cuts = self._cuts(one) if self._prefixes or self._choice else Cuts()
        if cuts is None:
            self._advance(one.stored.size)
            return
        self._written.warcs += 1
        hits = {cuts.moved(hit.offset) for hit in one.hits or ()}
        extracts, counts = self._sources.extracts, _kept(self._sources.extracts, sha512)
        has_text = extracts is not None and _has_text(extracts, sha512)
        if has_text:
            self._texts[one.name] = sha512, cuts
        warc = CutWarc(self._sources.store, one, cuts, self._advance)
        with self._archive.warc(one.name, one.stored.size) as write:
            if extracts and counts and has_text and not (cuts.ranges or counts.captures.get("revisit")):
                warc.read_with(digests.drain, write)
                for line in cdx.lines(extracts, sha512):
                    self._take(one, line, hits)
                left_out = counts.left_out
                if counts.bad:
                    self._leave_out(one, f"{counts.bad} bad records without an index line")
            else:
                left_out = self._examined(one, warc, write, hits, with_titles=not has_text)
        self._leave_out(one, *(f"{number} captures without an index line: {why}" for why, number in left_out.items()))
        if hits:
            self._leave_out(one, f"{len(hits)} captures without an index line: the virus scan had a hit")

    def _examined(
        self, one: Holding, warc: CutWarc, write: Write, hits: set[int | None], *, with_titles: bool
    ) -> Mapping[str, int]:
        """Make the lines of a WARC while it is written."""
        refers = RefersTo()

        def add(line: bytes) -> None:
            referred = refers.of(offset_of(line))
            if (taken := self._take(one, line, hits)) and referred:
                self._revisits.add(taken, referred)

        heard = CdxLines(add)
        titles = Titles(lambda offset, title: self._pages.add_title(one.name, offset, title))
        hearers: list[Hearer] = [refers, heard, *([titles] if with_titles else [])]
        verdict = warc.read_with(lambda stream: _examine(stream, one, hearers, warc.again), write)
        heard.close()
        if verdict.rest:
            self._leave_out(one, *_bad(verdict.rest, "without an index line"))
        elif not verdict.ok:  # it was whole when it was verified, by the gate of that time
            self._leave_out(one, f"no index line from offset {verdict.offset} on: {verdict.why}")
        return heard.left_out

    def _take(self, one: Holding, line: bytes, hits: set[int | None]) -> bytes:
        """Take a line, with its name; b"" for a capture with a hit."""
        if hits and offset_of(line) in hits:
            return b""
        line = named(line, one.name)
        self._lines.add(line)
        return line

    def _cuts(self, one: Holding) -> Cuts | None:
        """Find what of a WARC is hidden, or was not chosen; None if it has nothing that was."""
        if self._choice and not self._choice.may_be_in(one.name):
            return None
        warc = CutWarc(self._sources.store, one, Cuts(), lambda _: None)
        found, extents = HiddenRecords(self._prefixes, self._choice), Extents()
        lines = CdxLines(found.add_line)
        hearers: list[Hearer] = [found, lines, *([extents] if one.by_record else [])]
        verdict = warc.read_with(lambda stream: _examine(stream, one, hearers, warc.again))
        lines.close()
        self._written.hidden.update(found.met)
        if self._choice and not found.captures:
            return None
        size = one.stored.size
        if verdict.rest and one.by_record:
            self._leave_out(one, *_bad(verdict.rest, "left out, as hidden captures cannot be found in them"))
            return Cuts(found.ranges_but(extents.kept(one.name), size))
        end = size if verdict.ok or verdict.offset is None else verdict.offset
        if not verdict.ok:
            self._leave_out(one, f"all from offset {end} on, where hidden captures cannot be found: {verdict.why}")
        return Cuts(found.ranges(end, size))

    def _leave_out(self, one: Holding, *whys: str) -> None:
        self._written.left_out += [(one.name, why) for why in whys]

    def finish(self, *, with_originals: bool) -> None:
        """Write originals, index and pages."""
        written, pages, revisits = self._written, self._pages, self._revisits
        if revisits.any:
            revisits.resolve(self._lines, self._archived)
            written.originals, written.lost = revisits.elsewhere, revisits.lost(self._archived)
            if with_originals:
                for line in revisits.copy(self._archive, self._sources.store, pages.add_title):
                    self._copied.add(line)
        own = pages.seen(revisits.with_fates(self._lines, with_originals=with_originals))
        self._archive.index(heapq.merge(own, self._copied))
        written.captures = pages.captures
        written.has_text = bool(self._texts)
        written.extra_pages = self._archive.pages(EXTRA, pages.others(self._words), has_text=written.has_text)
        written.pages = self._archive.pages(SEEDS, pages.of_seeds(), has_text=written.has_text)

    def _words(self, warc: str) -> Iterator[Words]:
        """The titles and texts of a WARC of the WACZ, or of one that has originals."""
        extracts, originals = self._sources.extracts, self._archived.originals
        sha512, cuts = self._texts.get(warc, ("", Cuts()))
        if "/" in warc and originals:
            sha512 = originals.sha512(warc)
        if not (extracts and sha512 and _has_text(extracts, sha512)):
            return
        for line in text.lines(extracts, sha512):
            about, offset = json.loads(line), cuts.moved(text.offset(line))
            if offset is not None:
                yield offset, about.get("title", ""), about.get("content", "")


def _examine(
    stream: digests.Readable, one: Holding, hearers: Sequence[Hearer], again: Again | None = None
) -> FileVerdict:
    """Have hearers hear a WARC, of which all records were proven before unless it is refused; what one of them raises
    is raised."""
    verdict = gate.examine(stream, one.name, None, hearers, proven=not one.by_record, again=again)
    for failure in verdict.unheard:
        raise failure.error
    return verdict


def _bad(rest: Rest, what: str) -> Iterator[str]:
    """The number of bad records of a WARC, and the first; nothing if it has none."""
    if rest.bad_records:
        first = f", the first at offset {rest.bad[0].offset}: {rest.bad[0].why}" if rest.bad else ""
        yield f"{rest.bad_records} bad records {what}{first}"


def _kept(extracts: Extracts | None, sha512: str) -> CaptureCounts | None:
    """The counts of the extract of a WARC; None unless there is one, and it is sound."""
    try:
        sound = extracts is not None and extracts.digest(CDXJ, sha512) is not None
        return cdx.counts(extracts, sha512) if extracts and sound else None
    except (NotReady, BadInput):
        return None


def _has_text(extracts: Extracts, sha512: str) -> bool:
    """True if there is a sound extract of a WARC's text."""
    return extracts.digest(text.best(extracts, sha512), sha512) is not None
