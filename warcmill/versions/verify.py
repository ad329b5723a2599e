"""Read a version again, from its list to its last line. Changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.formats import cdxj
from warcmill.formats.zipnum import IDX, LOC
from warcmill.launches import cdx_extracts
from warcmill.launches.extracts import Extracts
from warcmill.stores import LocalStore
from warcmill.versions import hidden, lists, segments
from warcmill.versions.hidden import Hidden
from warcmill.versions.inputs import Input, VersionList
from warcmill.versions.lists import Lists
from warcmill.versions.lookup import Lookup
from warcmill.versions.payloads import Payloads, Published
from warcmill.versions.segments import Segment


@dataclass(frozen=True, slots=True)
class Verified:
    """What was read of a version, and each thing that is wrong with it."""

    number: int
    warcs: int
    lines: int
    findings: tuple[str, ...]


def verify(state: LocalStore, index: LocalStore, data_set: str, number: int | None = None) -> Verified:
    """Read a version, the current one by default. NotReady if its files are not there."""
    payloads = Payloads(index, data_set)
    found = payloads.current() if number is None else payloads.numbered(number)
    if found is None:
        raise NotReady(f"version {number or 'current'} of {data_set}", "its files are not in the index root")
    listed = Lists(state, data_set).read(found.number)
    said = hidden.read(state, listed.hiding.decisions)
    findings = [*_of_list(listed, found, said), *_of_segments(index, listed, found, said)]
    return Verified(found.number, len(listed.inputs), found.lines, tuple(findings))


def _of_list(listed: VersionList, found: Published, said: Hidden) -> Iterator[str]:
    if lists.digest(listed) != found.list_sha512:
        yield f"index:{found.folder} is of another list than version {listed.number} in the state"
    if said.hiding.sha512 != listed.hiding.sha512:
        yield f"the first {listed.hiding.decisions} decisions hide something else than version {listed.number} says"


def _of_segments(index: LocalStore, listed: VersionList, found: Published, said: Hidden) -> Iterator[str]:
    covered: set[Input] = set()
    for segment in found.segments:
        try:
            yield from _of_segment(index, segment, listed, said, covered)
        except (BadInput, Mismatch, NotReady) as error:
            yield str(error)
    for one in listed.inputs:
        if one not in covered and _shows(index, one, said):
            yield f"{one.name} is in the list of version {listed.number}, and in none of its segments"


def _of_segment(
    index: LocalStore, segment: Segment, listed: VersionList, said: Hidden, covered: set[Input]
) -> Iterator[str]:
    made = segments.made_of(index, segment)
    twice = covered.intersection(made.inputs)
    covered.update(made.inputs)
    for end in (IDX, LOC):
        segments.read_file(index, segment.files[end])
    yield from (f"{one.name} is in two segments of version {listed.number}" for one in sorted(twice))
    known = set(listed.inputs)
    yield from (f"{one.name} is in a segment, and not in its list" for one in made.inputs if one not in known)
    counts = Counter({name.decode(): number for name, number in segments.read_back(index, segment).items()})
    if counts != Counter(segments.counts_of(index, segment)):
        yield f"index:{found_path(segment)} has other lines than were counted when it was made"
    with closing(Lookup(index, (segment,))) as lookup:
        for prefix, entry in said.prefixes().items():
            if line := next(lookup.beginning_with(prefix), None):
                yield f"{entry} is hidden, and index:{found_path(segment)} shows {line[:200].decode()}"


def found_path(segment: Segment) -> str:
    """The path of a segment's lines."""
    return next(iter(segment.files.values())).path


def _shows(index: LocalStore, one: Input, said: Hidden) -> bool:
    """Whether a WARC has a line that is to be shown."""
    lines = cdx_extracts.lines(Extracts(index), one.sha512)
    kept = (line for line in lines if cdxj.offset(line) not in one.left_out)
    return next(hidden.visible(kept, said.prefixes(), set()), None) is not None
