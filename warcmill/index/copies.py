"""Look again at what the CDX server and Solr have of the current versions: captures and documents. Changes neither.

Of a WARC all captures are asked for, or of more than MOST_ASKED so many, at equal distances. Its documents are counted
in each collection, by host too, and some are compared.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Protocol

from warcmill.errors import BadInput, Mismatch, NotReady, Unavailable
from warcmill.formats.index import cdxj
from warcmill.index.sink_cdx import CdxSink
from warcmill.index.sink_solr import SolrSink, SolrTarget
from warcmill.index.sinks import Acknowledged, SinkInput
from warcmill.index.text import Line
from warcmill.index.verify_text import AskingSolr
from warcmill.markers import outside_copies
from warcmill.markers.outside_copies import UNASKED, Lack
from warcmill.model import Launch
from warcmill.stores import LocalStore
from warcmill.versions import cdx, text
from warcmill.versions.inputs import ListedWarc, Lists, VersionList
from warcmill.versions.publication import Payloads

SAMPLE = 32  # documents of a WARC that are read back


class _Named(Protocol):
    """A sink, as it is named to operators."""

    @property
    def name(self) -> str: ...

    @property
    def place(self) -> str: ...


def of_cdx(
    state: LocalStore, index: LocalStore, sink: CdxSink, launches: Sequence[Launch], looked: Counter[str]
) -> Iterator[Lack]:
    """Ask the CDX server for the captures of each WARC of these launches. The rest waits where it does not answer."""
    known = Acknowledged(index, sink.name)

    def look(one: ListedWarc, listed: VersionList) -> str:
        part = SinkInput(one.identity, listed.hiding)
        return _captures(sink, part, frozenset(known.of(part).refused), looked)

    yield from _each(state, index, cdx.NAME, sink, launches, look)


def of_solr(
    state: LocalStore,
    index: LocalStore,
    sink: SolrSink,
    place: SolrTarget,
    launches: Sequence[Launch],
    looked: Counter[str],
) -> Iterator[Lack]:
    """Ask Solr for the documents of each WARC of these launches. The rest waits where it does not answer."""

    def look(one: ListedWarc, listed: VersionList) -> str:
        with closing(AskingSolr(index, place, listed)) as solr:
            solr.require(one)
            return _documents(sink, solr, SinkInput(one.identity, listed.hiding), looked)

    yield from _each(state, index, text.NAME, sink, launches, look)


def _each(
    state: LocalStore,
    index: LocalStore,
    data_set: str,
    sink: _Named,
    launches: Sequence[Launch],
    look: Callable[[ListedWarc, VersionList], str],
) -> Iterator[Lack]:
    """A lack for each WARC of these launches of which the sink has not all that the current version has."""
    wanted = frozenset(launches)
    try:
        current = Payloads(index, data_set).current()
        listed = Lists(state, data_set).read(current.number) if current else None
        for one in listed.inputs if listed else ():
            if listed and one.launch in wanted and (why := _why(look, one, listed)):
                yield _lack(index, sink, SinkInput(one.identity, listed.hiding), why)
    except Unavailable as error:
        yield Lack(None, sink.place, f"{error}; the rest was not looked at", is_away=True)
    except (NotReady, BadInput) as error:
        yield Lack(None, sink.place, str(error), "warcmill doctor")


def _why(look: Callable[[ListedWarc, VersionList], str], one: ListedWarc, listed: VersionList) -> str:
    try:
        return look(one, listed)
    except (NotReady, BadInput, Mismatch) as error:
        return str(error)


def _lack(index: LocalStore, sink: _Named, part: SinkInput, why: str) -> Lack:
    """An input whose acknowledgement is gone is sent again, whole."""
    note = index.real(f"{Acknowledged(index, sink.name).folder}/{part.digest}")
    launch = part.input.launch
    todo = f"rm -f {shlex.quote(str(note))} && warcmill scan {launch.day}"
    return Lack(launch, f"{part.input.name} at {sink.place}", why, todo)


def _captures(sink: CdxSink, part: SinkInput, refused: frozenset[int], looked: Counter[str]) -> str:
    """The fault of the captures of a WARC; '' without a fault."""
    number = sum(1 for _ in sink.lines(part))
    asked, wrong, first = _spread(number, outside_copies.MOST_ASKED), 0, ""
    for at, (line, is_shown) in enumerate(sink.lines(part)):
        if at not in asked or (is_shown and cdxj.offset(line) in refused):
            continue
        try:
            sink.ask(line, is_shown)
        except Mismatch as error:
            wrong += 1
            first = first or f"{error.what}: {error.found} instead of {error.expected}"
        looked["captures"] += 1
    looked[UNASKED] += number - len(asked)
    of = f"{number:,} captures" if len(asked) == number else f"the {len(asked):,} of {number:,} captures asked for"
    return f"{wrong:,} of {of} are missing or differ; first {first}" if wrong else ""


def _documents(sink: SolrSink, solr: AskingSolr, part: SinkInput, looked: Counter[str]) -> str:
    """The fault of the documents of a WARC; '' without a fault."""
    number = sum(1 for _ in sink.lines(part))
    asked, tally, sample = _spread(number, SAMPLE), solr.tally(), list[tuple[Line, bool]]()
    for at, line in enumerate(sink.lines(part)):
        solr.count(tally, line)
        if at in asked:
            sample.append((line, True))
    try:
        solr.check(part.input.name, tally, sample)
        why = ""
    except Mismatch as error:
        why = str(error)
    looked["documents"] += number
    return why


def _spread(number: int, most: int) -> frozenset[int]:
    """The items to ask for: all, or the first, the last, and some at equal distances."""
    if number <= most:
        return frozenset(range(number))
    return frozenset({number - 1, *(at * number // (most - 1) for at in range(most - 1))})
