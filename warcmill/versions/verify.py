"""Read a version again, from its list to its last line: its segments, and what must not be in them. Reads only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import islice

from msgspec import Struct

from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable
from warcmill.extracts import cdx as cdx_extracts
from warcmill.extracts import text as text_extracts
from warcmill.extracts.extracts import Extracts
from warcmill.extracts.text import extract_kind
from warcmill.formats.index import cdxj
from warcmill.formats.index.zipnum import CDX, IDX, LOC
from warcmill.formats.pypi.data_sets import FIRST
from warcmill.stores import LocalStore
from warcmill.versions import cdx, hidden_list, inputs, leveldb, segments, text
from warcmill.versions import text as text_segments
from warcmill.versions.documents import dataset as documents
from warcmill.versions.documents import segment as document_segments
from warcmill.versions.hidden_list import Hidden
from warcmill.versions.inputs import ListedWarc, Lists, VersionList
from warcmill.versions.publication import CURRENT, CdxLookup, Payloads, Published, set_back
from warcmill.versions.segments import Segment
from warcmill.versions.text import SQLITE


class Verified(Struct, frozen=True):
    """The result of reading a version: its counts, and each thing that is wrong with it."""

    number: int
    warcs: int
    lines: int
    findings: tuple[str, ...]


def verify(state: LocalStore, index: LocalStore, data_set: str, number: int | None = None) -> Verified:
    """Read a version, the current one by default. NotReady if its files are not there.

    Of a data set of a package index each file is compared with its digest, and the keys are counted.
    """
    payloads = Payloads(index, data_set)
    found = payloads.current() if number is None else payloads.numbered(number)
    if found is None:
        raise NotReady(f"version {number or 'current'} of {data_set}", "its files are not in the index root")
    listed = Lists(state, data_set).read(found.number)
    said = hidden_list.read(state, listed.hiding.decisions)
    of_segments = _of_parts(index, listed, found, said, data_set)
    findings = [*_of_list(listed, found, said), *of_segments]
    if not number and (why := set_back(state, index, data_set)):
        findings.insert(0, f"index:{payloads.top}/{CURRENT}: {why}")
    return Verified(found.number, len(listed.inputs), found.lines, tuple(findings))


def _of_list(listed: VersionList, found: Published, said: Hidden) -> Iterator[str]:
    if inputs.digest(listed) != found.list_sha512:
        yield f"index:{found.folder} is of another list than version {listed.number} in the state"
    if said.hiding.sha512 != listed.hiding.sha512:
        yield f"the first {listed.hiding.decisions} decisions differ from those that version {listed.number} names"


def _of_parts(index: LocalStore, listed: VersionList, found: Published, said: Hidden, data_set: str) -> Iterator[str]:
    if data_set in READINGS:
        return _of_segments(index, listed, found, said)
    return _of_crawls(index, listed, found, said) if data_set == documents.NAME else _of_database(index, found)


def _of_crawls(index: LocalStore, listed: VersionList, found: Published, said: Hidden) -> Iterator[str]:
    """The findings of the data set of documents: of a crawl that several segments have, the last one counts."""
    try:
        for part in found.segments:
            document_segments.check(index, part)
        crawls = document_segments.crawls(index, found.segments)
        made = {line for crawl in crawls.values() for line in document_segments.inputs(index, crawl)}
        prefixes = tuple(said.prefixes())
        shown = {part.name: document_segments.shows(index, part, prefixes) for part in found.segments if prefixes}
    except (BadInput, Mismatch, NotReady) as error:
        yield str(error)
        return
    for one in sorted(made.symmetric_difference(listed.inputs)):
        yield f"{one.name} is not the same in the list of version {listed.number} and in its segments"
    for name, crawl in sorted(crawls.items()):
        if crawl.number in shown.get(crawl.segment.name, ()):
            yield f"index:{crawl.segment.files[SQLITE].path} shows something of {name} that is hidden"


def _of_database(index: LocalStore, found: Published) -> Iterator[str]:
    try:
        for segment in found.segments:
            leveldb.check_files(index, segment)
        with leveldb.reading(index, found) as database:
            count = sum(1 for _ in database.since(FIRST))
    except (Mismatch, NotReady, Unavailable) as error:
        yield str(error)
        return
    if count != found.lines:
        yield f"index:{found.folder} has {count:,} keys, and {found.lines:,} were counted when it was made"


def _of_segments(index: LocalStore, listed: VersionList, found: Published, said: Hidden) -> Iterator[str]:
    covered: set[ListedWarc] = set()
    reading = READINGS[listed.data_set]
    for segment in found.segments:
        try:
            yield from _of_segment(index, segment, listed, said, covered)
        except (BadInput, Mismatch, NotReady) as error:
            yield str(error)
    for one in listed.inputs:
        if one not in covered and reading.has_any(index, one, said):
            yield f"{one.name} is in the list of version {listed.number}, and in none of its segments"


def _of_segment(
    index: LocalStore, segment: Segment, listed: VersionList, said: Hidden, covered: set[ListedWarc]
) -> Iterator[str]:
    reading, made = READINGS[listed.data_set], segments.made_of(index, segment)
    twice = covered.intersection(made.inputs)
    covered.update(made.inputs)
    yield from (f"{one.name} is in two segments of version {listed.number}" for one in sorted(twice))
    known = set(listed.inputs)
    yield from (f"{one.name} is in a segment, and not in its list" for one in made.inputs if one not in known)
    if reading.counts(index, segment) != segments.counts_of(index, segment):
        path = next(iter(segment.files.values())).path
        yield f"index:{path} has other lines than were counted when it was made"
    yield from reading.shown(index, segment, said)


class SegmentChecks(Struct, frozen=True):
    """The functions for one data set.

    `counts` reads a segment to its end, and counts by WARC; Mismatch or BadInput if it is damaged. `shown` names what
    a segment has though it is hidden. `has_any`: whether a WARC must be in a segment.
    """

    counts: Callable[[LocalStore, Segment], Mapping[str, int]]
    shown: Callable[[LocalStore, Segment, Hidden], Iterator[str]]
    has_any: Callable[[LocalStore, ListedWarc, Hidden], bool]


def _cdx_counts(index: LocalStore, segment: Segment) -> Mapping[str, int]:
    for end in (IDX, LOC):
        segments.read_file(index, segment.files[end])
    return {name.decode(): number for name, number in segments.read_back(index, segment).items()}


def _cdx_shown(index: LocalStore, segment: Segment, said: Hidden) -> Iterator[str]:
    shows = f"index:{segment.files[CDX].path} shows"
    with closing(CdxLookup(index, (segment,))) as lookup:
        for prefix, entry in said.prefixes().items():
            if line := next(lookup.beginning_with(prefix), None):
                yield f"{entry} is hidden, and {shows} {line[:200].decode()}"
        met: set[str] = set()
        deque(
            hidden_list.visible(hidden_list.beside(lookup.beginning_with), said.prefixes(), met), maxlen=0
        )  # one pass for all
        yield from (f"{entry} is hidden, and {shows} DNS records, or what goes with pages" for entry in sorted(met))


def _cdx_has_any(index: LocalStore, one: ListedWarc, said: Hidden) -> bool:
    lines = cdx_extracts.lines(Extracts(index), one.sha512)
    kept = (line for line in lines if cdxj.offset(line) not in one.left_out)
    return next(hidden_list.visible(kept, said.prefixes(), set()), None) is not None


def _text_counts(index: LocalStore, segment: Segment) -> Mapping[str, int]:
    file = segment.files[SQLITE]
    found = index.server_digest(file.path)
    if found != ("sha512", file.sha512):
        raise Mismatch(f"index:{file.path}", file.sha512, found)
    return text_segments.read_back(index, file.path)


def _text_shown(_index: LocalStore, _segment: Segment, _said: Hidden) -> Iterator[str]:
    """Nothing: what is hidden stays in the segments, and a search leaves it out."""
    return iter(())


def _text_has_any(index: LocalStore, one: ListedWarc, _said: Hidden) -> bool:
    lines = islice(Extracts(index).lines(extract_kind(one.generation), one.sha512), 1, None)
    return any(text_extracts.offset(line) not in one.left_out for line in lines)


READINGS: Mapping[str, SegmentChecks] = {
    cdx.NAME: SegmentChecks(_cdx_counts, _cdx_shown, _cdx_has_any),
    text.NAME: SegmentChecks(_text_counts, _text_shown, _text_has_any),
}
