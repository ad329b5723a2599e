"""The URLs that a launch missed, each with its code, the reason and the page that led to it. Reads only.

The crawl logs of all stages that count for the launch are read as they are stored; the last line of a URL counts. A URL
that a later launch of the job got is left out. Memory does not grow with the logs: their lines are sorted on disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import groupby, takewhile
from typing import BinaryIO, NamedTuple

from warcmill import layout
from warcmill.base.line_sort import SortedLines
from warcmill.formats.logs.crawllog import END, CrawlRecord, blocks, is_got, parse
from warcmill.launches import crawl_parts, discovery, later_launches, stored_logs
from warcmill.markers.facts.reports import Seeds
from warcmill.markers.state import MarkerStore
from warcmill.model import Json, Launch
from warcmill.reports.seed_fates import REDIRECTS, reason
from warcmill.stores import Store

COLUMNS = ("url", "status", "why", "referrer")


class MissedUrl(NamedTuple):
    """A URL that was not got: its status, or the crawler's code below zero; the page that led to it, '' for a seed; the
    hops from its seed, and that."""

    url: str
    status: int
    why: str
    referrer: str
    hops: str
    source: str

    def json(self) -> dict[str, Json]:
        """The URL for programs."""
        return {name: getattr(self, name) for name in COLUMNS}


class MissedUrls:
    """The missed URLs of a launch, in order of URLs: iterate once or more often."""

    def __init__(self, lines: SortedLines) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[MissedUrl]:
        for url, lines in groupby(self._lines, key=lambda line: line.partition(b"\t")[0]):
            last = b""
            for last in lines:  # noqa: B007 the last one counts
                pass
            if found := last.rstrip(b"\n").split(b"\t", 2)[2]:
                status, why, referrer, hops, source = json.loads(found)
                yield MissedUrl(url.decode("utf-8", "replace"), status, why, referrer, hops, source)


@contextmanager
def of_launch(state: MarkerStore, store: Store, launch: Launch) -> Iterator[MissedUrls]:
    """Yield the missed URLs of a launch.

    NotReady before it has ended, and before each of its stages is verified; Mismatch when a stored zip is no longer the
    verified one.
    """
    state.require(layout.step("process", launch))
    stages = crawl_parts.stages(state, crawl_parts.of(state, launch))
    ours = [state.require(layout.step("verify", *part)) for part in stages]
    later = [*takewhile(lambda one: one.id > launch.id, discovery.of_job(state, launch.job))]
    theirs = (layout.step("verify", one, stage) for one in reversed(later) for stage in sorted(state.stages(one)))
    with state.scratch() as folder, closing(SortedLines(folder)) as lines:
        log = _Log(lines)
        for marker in ours:
            with stored_logs.opened(store, marker, folder) as logs:
                logs.read_crawl_logs(log.add)
        for marker in filter(None, map(state.read, theirs)) if log.has_missed else ():
            with stored_logs.opened(store, marker, folder) as logs:
                logs.read_crawl_logs(log.add_got)
        _add_untried(state, launch, log)
        yield MissedUrls(lines)


def _add_untried(state: MarkerStore, launch: Launch, log: _Log) -> None:
    """Add the seeds that no crawl log has a line of: something ended the crawl before."""
    marker = state.read(layout.step("seeds", launch))
    lost = Seeds.from_claim(marker.claim).lost() if marker else ()
    got = later_launches.got_before(state, launch, (fate.seed for fate in lost))
    for fate in lost:
        if fate.code is None and fate.seed not in got:
            log.add_untried(fate.seed, fate.why)


class _Log:
    """Lines of crawl logs, as they are sorted: the URL, the number of the line, and what is known of one that was not
    got."""

    def __init__(self, lines: SortedLines) -> None:
        self._lines, self._number = lines, 0
        self.has_missed = False

    def add(self, stream: BinaryIO) -> None:
        """Read a crawl log of the launch."""
        for record in _records(stream):
            code = record.status or 0
            if is_got(code) or code in REDIRECTS:
                self._add(record, b"")
            else:
                self.has_missed = True
                why = reason(code, record.annotations)
                found = (code, why, record.via or "", record.hops or "", record.source or "")
                self._add(record, json.dumps(found).encode())

    def add_untried(self, seed: str, why: str) -> None:
        """Add a seed that was never tried. A line of it counts, whichever launch has it."""
        url = seed.encode("utf-8", "replace").replace(b"\t", b"%09")
        self._lines.add(b"%b\t%016d\t%b\n" % (url, 0, json.dumps((0, why, "", "", seed)).encode()))

    def add_got(self, stream: BinaryIO) -> None:
        """Read a crawl log of a later launch."""
        for record in _records(stream):
            if is_got(record.status or 0):
                self._add(record, b"")

    def _add(self, record: CrawlRecord, found: bytes) -> None:
        self._number += 1
        url = record.uri.encode("utf-8", "replace").replace(b"\t", b"%09")
        self._lines.add(b"%b\t%016d\t%b\n" % (url, self._number, found))


def _records(stream: BinaryIO) -> Iterator[CrawlRecord]:
    """The lines of a crawl log, without those of URLs that others need first."""
    for lines in blocks(stream, END):
        for raw in lines:
            record = parse(raw)
            if isinstance(record, CrawlRecord) and not (record.hops or "").rstrip("R").endswith("P"):
                yield record
