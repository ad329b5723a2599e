"""How the segments of each data set are read again: to the end, and for what must not be in them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from warcmill.errors import Mismatch
from warcmill.formats import cdxj
from warcmill.formats.zipnum import CDX, IDX, LOC
from warcmill.launches import cdx_extracts, text_extracts
from warcmill.launches.extracts import Extracts
from warcmill.launches.text_extracts import kind_of
from warcmill.stores import LocalStore
from warcmill.versions import cdx, hidden, segments, text, text_segments
from warcmill.versions.hidden import Hidden
from warcmill.versions.inputs import Input
from warcmill.versions.lookup import Lookup
from warcmill.versions.segments import Segment
from warcmill.versions.text_segments import SQLITE


@dataclass(frozen=True, slots=True)
class Reading:
    """The functions for one data set.

    `counts` reads a segment to its end, and counts by WARC; Mismatch or BadInput if it is damaged. `shown` names what
    a segment has though it is hidden. `has_any`: whether a WARC must be in a segment.
    """

    counts: Callable[[LocalStore, Segment], Mapping[str, int]]
    shown: Callable[[LocalStore, Segment, Hidden], Iterator[str]]
    has_any: Callable[[LocalStore, Input, Hidden], bool]


def _cdx_counts(index: LocalStore, segment: Segment) -> Mapping[str, int]:
    for end in (IDX, LOC):
        segments.read_file(index, segment.files[end])
    return {name.decode(): number for name, number in segments.read_back(index, segment).items()}


def _cdx_shown(index: LocalStore, segment: Segment, said: Hidden) -> Iterator[str]:
    shows = f"index:{segment.files[CDX].path} shows"
    with closing(Lookup(index, (segment,))) as lookup:
        for prefix, entry in said.prefixes().items():
            if line := next(lookup.beginning_with(prefix), None):
                yield f"{entry} is hidden, and {shows} {line[:200].decode()}"
        met: set[str] = set()
        deque(hidden.visible(hidden.beside(lookup.beginning_with), said.prefixes(), met), maxlen=0)  # one pass for all
        yield from (f"{entry} is hidden, and {shows} DNS records, or what goes with pages" for entry in sorted(met))


def _cdx_has_any(index: LocalStore, one: Input, said: Hidden) -> bool:
    lines = cdx_extracts.lines(Extracts(index), one.sha512)
    kept = (line for line in lines if cdxj.offset(line) not in one.left_out)
    return next(hidden.visible(kept, said.prefixes(), set()), None) is not None


def _text_counts(index: LocalStore, segment: Segment) -> Mapping[str, int]:
    file = segment.files[SQLITE]
    found = index.server_digest(file.path)
    if found != ("sha512", file.sha512):
        raise Mismatch(f"index:{file.path}", file.sha512, found)
    return text_segments.read_back(index, file.path)


def _text_shown(_index: LocalStore, _segment: Segment, _said: Hidden) -> Iterator[str]:
    """Nothing: what is hidden stays in the segments, and a search leaves it out."""
    return iter(())


def _text_has_any(index: LocalStore, one: Input, _said: Hidden) -> bool:
    lines = islice(Extracts(index).lines(kind_of(one.generation), one.sha512), 1, None)
    return any(text_extracts.offset(line) not in one.left_out for line in lines)


READINGS: Mapping[str, Reading] = {
    cdx.NAME: Reading(_cdx_counts, _cdx_shown, _cdx_has_any),
    text.NAME: Reading(_text_counts, _text_shown, _text_has_any),
}
