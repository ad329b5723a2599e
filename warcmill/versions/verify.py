"""Read a version again, from its list to its last line. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warcmill.errors import BadInput, Mismatch, NotReady
from warcmill.stores import LocalStore
from warcmill.versions import hidden, lists, segments
from warcmill.versions.hidden import Hidden
from warcmill.versions.inputs import Input, VersionList
from warcmill.versions.lists import Lists
from warcmill.versions.payloads import Payloads, Published
from warcmill.versions.reading import READINGS
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
    index: LocalStore, segment: Segment, listed: VersionList, said: Hidden, covered: set[Input]
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
