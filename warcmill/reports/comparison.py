"""Compare what a launch brought with the launch of its job before it: new, changed, same, gone and not visited pages.

A page is gone if its server says so now, by 404 or 410; one that was not got for another reason was not visited. A
launch that got nothing is not compared, nor one with the launches that it continues: these are one crawl.

It is computed when it is first asked for, and kept in the index root, if there is one; it is in no claim. Memory does
not grow with the logs: their lines are sorted on disk, and read side by side.

    index root   reports/{job}/{launch}.{digest}.json      the digest is of all markers that it follows from
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import sha512
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, field

from warcmill import layout
from warcmill.base.line_sort import SortedLines
from warcmill.errors import BadInput, Foreign, NotReady
from warcmill.formats.logs.crawllog import END, CrawlRecord, blocks, is_got, parse
from warcmill.launches import crawl_parts, stored_logs
from warcmill.launches.view import Part
from warcmill.markers.claim import Evidence
from warcmill.markers.facts.reports import Seeds, SeedState
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch
from warcmill.reports.seed_fates import NO_LINE, reason
from warcmill.stores import LocalStore, Store

FIRST = 20  # URLs of each kind that are kept
NOT_VISITED = "not visited"
KINDS = ("new", "changed", "same", "gone", NOT_VISITED)
_LARGEST = 1 << 22  # bytes of a kept comparison
_NOT_MODIFIED, _SAME, _DUPLICATE, _MISSED = b"304", b"=", b"d", b"!"
_GONE = frozenset({b"!404", b"!410"})


class LaunchComparison(Struct, frozen=True):
    """The numbers of pages that are new, changed, same, gone and not visited, and the first of each by URL. `why`: the
    reason why a page was not visited, of the first ones."""

    before: Launch
    counts: dict[str, int]
    first: dict[str, list[str]]
    why: dict[str, str] = field(default_factory=dict)

    def json(self) -> dict[str, Json]:
        """The comparison for programs."""
        first: dict[str, Json] = {kind: [*urls] for kind, urls in self.first.items()}
        return {"before": self.before.id, "counts": dict(self.counts), "first": first, "why": dict(self.why)}


def compare(
    state: MarkerStore, store: Store | None, index: LocalStore | None, launch: Launch
) -> LaunchComparison | None:
    """Compare a launch with the newest one before it that got something, and whose every stage is verified; None
    without one, and for a launch that got nothing.

    `store` None: only a comparison that is kept is returned, and nothing is written.
    NotReady without 04, or files.verified of a stage; Mismatch when a stored zip is no longer the verified one.
    """
    earlier = before(state, launch)
    if earlier is None:
        return None
    both = [_verified(state, one) for one in (launch, earlier)]
    digest = sha512("\n".join(marker.digest for each in both for marker in each).encode()).hexdigest()
    path = f"reports/{launch.job}/{launch.id}.{digest[:32]}.json"
    if index and (kept := _kept(index, path, earlier)):
        return kept
    if store is None:
        return None
    with state.scratch() as folder:
        found = _compared(store, folder, both[0], both[1], earlier)
    if index:
        index.replace(path, json.dumps(found.json(), sort_keys=True).encode())
    return found


def before(state: MarkerStore, launch: Launch) -> Launch | None:
    """The newest launch of the job before this one that is complete and verified, and that it does not continue; None
    without one, and for a launch that got nothing."""
    if not _may_have_pages(state, launch):
        return None
    continued = {one.id for one in crawl_parts.of(state, launch).before}
    for earlier in state.launches(launch.job):
        if earlier.id >= launch.id or earlier.id in continued or not _may_have_pages(state, earlier):
            continue
        if state.holds(layout.step("process", earlier)) and all(
            state.holds(layout.step("verify", *part)) for part in _stages(state, earlier)
        ):
            return earlier
    return None


def _may_have_pages(state: MarkerStore, launch: Launch) -> bool:
    """False for a launch that got none of its seeds."""
    try:
        marker = state.read(layout.step("seeds", launch))
        seeds = Seeds.from_claim(marker.claim) if marker else None
    except (BadInput, Foreign):
        return True
    lost = seeds.numbers[SeedState.DEAD] + seeds.numbers[SeedState.UNTRIED] if seeds else 0
    return not seeds or not lost or lost < seeds.numbers["seeds"]


def _verified(state: MarkerStore, launch: Launch) -> list[Evidence]:
    """The markers of the stages whose logs count, also of those that the launch continues."""
    state.require(layout.step("process", launch))
    return [state.require(layout.step("verify", *part)) for part in _stages(state, launch)]


def _stages(state: MarkerStore, launch: Launch) -> tuple[Part, ...]:
    return crawl_parts.stages(state, crawl_parts.of(state, launch))


def _kept(index: LocalStore, path: str, before: Launch) -> LaunchComparison | None:
    try:
        found = json.loads(index.read(path, _LARGEST))
        counts = {kind: int(found["counts"][kind]) for kind in KINDS}
        first = {kind: [str(url) for url in found["first"][kind]] for kind in KINDS}
        return LaunchComparison(before, counts, first, {str(url): str(why) for url, why in found["why"].items()})
    except (NotReady, BadInput, ValueError, KeyError, TypeError, AttributeError):
        return None  # it is not there, or damaged: it is computed anew


def _compared(
    store: Store, folder: Path, ours: list[Evidence], theirs: list[Evidence], earlier: Launch
) -> LaunchComparison:
    counts, first = dict.fromkeys(KINDS, 0), {kind: list[str]() for kind in KINDS}
    reasons = dict[str, str]()
    for url, kind, why in kinds(store, folder, ours, theirs):
        counts[kind] += 1
        if kind != "same" and len(first[kind]) < FIRST:
            first[kind].append(url)
            if why:
                reasons[url] = why
    return LaunchComparison(earlier, counts, first, reasons)


def kinds(
    store: Store, folder: Path, ours: Iterable[Evidence], theirs: Iterable[Evidence]
) -> Iterator[tuple[str, str, str]]:
    """Each page of two crawls, in order of URLs, with its kind, and why it was not visited. By files.verified of their
    stages; lines are sorted in `folder`. Mismatch when a stored zip is no longer the verified one."""
    with closing(_Pages(folder)) as now, closing(_Pages(folder)) as then:
        for pages, markers in ((now, ours), (then, theirs)):
            for marker in markers:
                with stored_logs.opened(store, marker, folder) as logs:
                    logs.read_crawl_logs(pages.add)
        for url, kind, mark in _kinds(iter(now), iter(then)):
            why = (reason(int(mark[1:])) if mark else NO_LINE) if kind == NOT_VISITED else ""
            yield url.decode("utf-8", "replace"), kind, why


def _kinds(
    now: Iterator[tuple[bytes, bytes]], then: Iterator[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, str, bytes]]:
    """The kind of each page of two launches, both in order, and its mark now; b'' for one that has no line now."""
    ours, theirs = next(now, None), next(then, None)
    while ours or theirs:
        if theirs and (theirs[1].startswith(_MISSED)):
            theirs = next(then, None)
        elif theirs is None or (ours and ours[0] < theirs[0]):
            assert ours
            if not ours[1].startswith(_MISSED):
                yield ours[0], "new", ours[1]
            ours = next(now, None)
        elif ours is None or theirs[0] < ours[0]:
            yield theirs[0], NOT_VISITED, b""
            theirs = next(then, None)
        else:
            yield ours[0], _kind(ours[1], theirs[1]), ours[1]
            ours, theirs = next(now, None), next(then, None)


def _kind(ours: bytes, theirs: bytes) -> str:
    """The kind of a page that was got then, and has a line now, by its marks."""
    if ours.startswith(_MISSED):
        return "gone" if ours in _GONE else NOT_VISITED
    return "same" if _is_same(ours, theirs) else "changed"


def _is_same(ours: bytes, theirs: bytes) -> bool:
    """A server that answered 304 gave no digest: then what our answer duplicates decides."""
    return ours == _SAME or ours[1:] == theirs[1:] or (theirs == _SAME and ours.startswith(_DUPLICATE))


class _Pages:
    """The pages that crawl logs have, by URL, each with the mark of its last line: `=` for 304; `+`, or `d` for a
    duplicate of earlier bytes, and their digest; `!` and the code for one that was not got."""

    def __init__(self, folder: Path) -> None:
        self._lines, self._number = SortedLines(folder), 0

    def add(self, stream: BinaryIO) -> None:
        for lines in blocks(stream, END):
            for raw in lines:
                if isinstance(record := parse(raw), CrawlRecord):
                    self._add(record)

    def _add(self, record: CrawlRecord) -> None:
        status = record.status or 0
        if (record.hops or "").endswith("P"):
            return
        self._number += 1
        mark = _DUPLICATE if any(one.startswith("duplicate:") for one in record.annotations) else b"+"
        digest = mark + (record.digest or "").encode("utf-8", "replace")
        if status == int(_NOT_MODIFIED):
            digest = _SAME
        elif not is_got(status):
            digest = b"%b%d" % (_MISSED, status)
        url = record.uri.encode("utf-8", "replace").replace(b"\t", b"%09")
        self._lines.add(b"%b\t%016d\t%b\n" % (url, self._number, digest))

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """Each URL once, in order; the last line of a URL counts."""
        for url, lines in groupby(self._lines, key=lambda line: line.partition(b"\t")[0]):
            last = b""
            for last in lines:  # noqa: B007 the last one counts
                pass
            yield url, last.rstrip(b"\n").rpartition(b"\t")[2]

    def close(self) -> None:
        self._lines.close()
