"""Compare what a launch brought with the launch of its job before it: new, changed, same and gone pages.

It is computed when it is first asked for, and kept in the index root, if there is one; it is in no claim. Memory does
not grow with the logs: their lines are sorted on disk, and read side by side.

    index root   reports/{job}/{launch}.{digest}.json      the digest is of all markers that it follows from
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha512
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from warcmill import layout
from warcmill.base.line_sort import SortedLines
from warcmill.errors import BadInput, NotReady
from warcmill.formats.logs.crawllog import END, CrawlRecord, blocks, parse
from warcmill.launches import stored_logs
from warcmill.launches.view import parts
from warcmill.markers.claim import Evidence
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch
from warcmill.stores import LocalStore, Store

FIRST = 20  # URLs of each kind that are kept
KINDS = ("new", "changed", "same", "gone")
_LARGEST = 1 << 22  # bytes of a kept comparison
_NOT_MODIFIED, _SAME, _DUPLICATE = b"304", b"=", b"d"


class LaunchComparison(Struct, frozen=True):
    """The numbers of pages that are new, changed, same and gone, and the first of each by URL."""

    before: Launch
    counts: dict[str, int]
    first: dict[str, list[str]]

    def json(self) -> dict[str, Json]:
        """The comparison for programs."""
        first: dict[str, Json] = {kind: [*urls] for kind, urls in self.first.items()}
        return {"before": self.before.id, "counts": dict(self.counts), "first": first}


def compare(
    state: MarkerStore, store: Store | None, index: LocalStore | None, launch: Launch
) -> LaunchComparison | None:
    """Compare a launch with the newest one before it whose every stage is verified; None when there is none.

    `store` None: only a comparison that is kept is returned, and nothing is written.
    NotReady without 04, or files.verified of a stage; Mismatch when a stored zip is no longer the verified one.
    """
    before = _before(state, launch)
    if before is None:
        return None
    both = [_verified(state, one) for one in (launch, before)]
    digest = sha512("\n".join(marker.digest for each in both for marker in each).encode()).hexdigest()
    path = f"reports/{launch.job}/{launch.id}.{digest[:32]}.json"
    if index and (kept := _kept(index, path, before)):
        return kept
    if store is None:
        return None
    with state.scratch() as folder:
        found = _compared(store, folder, both[0], both[1], before)
    if index:
        index.replace(path, json.dumps(found.json(), sort_keys=True).encode())
    return found


def _before(state: MarkerStore, launch: Launch) -> Launch | None:
    """The newest launch of the job before this one that is complete and verified."""
    names = {name for month in state.store.names("") for name in state.store.names(f"{month}/{launch.job}")}
    ids = sorted((name for name in names if name.isdigit() and name < launch.id and len(name) == 14), reverse=True)
    for earlier in (Launch(launch.job, one) for one in ids):
        if state.holds(layout.step("process", earlier)) and all(
            state.holds(layout.step("verify", *part)) for part in parts(state, earlier)
        ):
            return earlier
    return None


def _verified(state: MarkerStore, launch: Launch) -> list[Evidence]:
    """The markers of the stages whose logs count, also of those that the launch continues."""
    return [state.require(layout.step("verify", *part)) for part in parts(state, launch)]


def _kept(index: LocalStore, path: str, before: Launch) -> LaunchComparison | None:
    try:
        found = json.loads(index.read(path, _LARGEST))
        counts = {kind: int(found["counts"][kind]) for kind in KINDS}
        return LaunchComparison(before, counts, {kind: [str(url) for url in found["first"][kind]] for kind in KINDS})
    except (NotReady, BadInput, ValueError, KeyError, TypeError):
        return None  # it is not there, or damaged: it is computed anew


def _compared(
    store: Store, folder: Path, ours: list[Evidence], theirs: list[Evidence], before: Launch
) -> LaunchComparison:
    counts, first = dict.fromkeys(KINDS, 0), {kind: list[str]() for kind in KINDS}
    with closing(_Pages(folder)) as now, closing(_Pages(folder)) as then:
        for pages, markers in ((now, ours), (then, theirs)):
            for marker in markers:
                with stored_logs.opened(store, marker, folder) as logs:
                    logs.read_crawl_logs(pages.add)
        for url, kind in _kinds(iter(now), iter(then)):
            counts[kind] += 1
            if kind != "same" and len(first[kind]) < FIRST:
                first[kind].append(url.decode("utf-8", "replace"))
    return LaunchComparison(before, counts, first)


def _kinds(now: Iterator[tuple[bytes, bytes]], then: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, str]]:
    """The kind of each URL of two launches, both in order."""
    ours, theirs = next(now, None), next(then, None)
    while ours or theirs:
        if theirs is None or (ours and ours[0] < theirs[0]):
            assert ours
            yield ours[0], "new"
            ours = next(now, None)
        elif ours is None or theirs[0] < ours[0]:
            yield theirs[0], "gone"
            theirs = next(then, None)
        else:
            yield ours[0], "same" if _is_same(ours[1], theirs[1]) else "changed"
            ours, theirs = next(now, None), next(then, None)


def _is_same(ours: bytes, theirs: bytes) -> bool:
    """A server that answered 304 gave no digest: then what our answer duplicates decides."""
    return ours == _SAME or ours[1:] == theirs[1:] or (theirs == _SAME and ours.startswith(_DUPLICATE))


class _Pages:
    """The pages that crawl logs have, by URL, each with the mark of its last line: `=` for 304; else `+`, or
    `d` for a duplicate of earlier bytes, and their digest."""

    def __init__(self, folder: Path) -> None:
        self._lines, self._number = SortedLines(folder), 0

    def add(self, stream: BinaryIO) -> None:
        for lines in blocks(stream, END):
            for raw in lines:
                columns = raw.split(None, 2)
                is_got = len(columns) > 1 and (columns[1][:1] == b"2" or columns[1] == _NOT_MODIFIED)
                if is_got and isinstance(record := parse(raw), CrawlRecord):
                    self._add(record)

    def _add(self, record: CrawlRecord) -> None:
        if (record.hops or "").endswith("P") or not 200 <= (record.status or 0) < 400:
            return
        self._number += 1
        mark = _DUPLICATE if any(one.startswith("duplicate:") for one in record.annotations) else b"+"
        digest = mark + (record.digest or "").encode("utf-8", "replace")
        if record.status == int(_NOT_MODIFIED):
            digest = _SAME
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
