"""The crawl logs of a stage as its zip has them, rotated ones too: their order, and what they add up to."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from typing import BinaryIO, cast

from warcmill import fixity, layout
from warcmill.evidence import Evidence
from warcmill.formats import logzip
from warcmill.formats.crawlcounts import CrawlCounts, Tally
from warcmill.model import Item
from warcmill.state import State


def count(state: State, logs: Evidence) -> tuple[CrawlCounts, list[str]]:
    """Every line of every crawl log in a 02 zip; and the paths of those that are not counted, or not to their end.

    Nothing is counted when the launch left none.
    """
    tally = Tally()
    packed = (item for item in logs.claim.items if str(item.facts["member"]).startswith("logs/"))
    crawl_logs = [item for item in packed if layout.is_crawl_log(_plain(item))]
    read = in_order(crawl_logs)
    uncounted = {item.file.label for item in crawl_logs} - {item.file.label for item in read}
    for item in read:
        if not _add(state, logs, item, tally):
            uncounted.add(item.file.label)
    return tally.counts(), sorted(uncounted)


def in_order(crawl_logs: Iterable[Item]) -> list[Item]:
    """Those whose lines count, the oldest first. Of one that is there twice, compressed too, the plain one counts."""
    found = {(_folder(item), _plain(item)): item for item in crawl_logs}
    twice = {(folder, f"{plain}.gz") for folder, plain in found}
    once = [item for place, item in found.items() if place not in twice]
    known = [(order, item.file.label, item) for item in once if (order := layout.crawl_log_order(_plain(item)))]
    return [item for _, _, item in sorted(known, key=lambda one: one[:2])]


def _folder(item: Item) -> str:
    return item.file.label.rpartition("/")[0]


def _plain(item: Item) -> str:
    return layout.split_log_name(item.file.name)[0]


def _add(state: State, logs: Evidence, item: Item, tally: Tally) -> bool:
    """Count a log as far as it can be read; whether that is to its end. BadInput when the zip itself is damaged."""
    with state.store.open(layout.marker_path(logs.claim.key)) as file:
        stream = logzip.open_member(file, str(item.facts["member"]))
        if not _plain(item).endswith(".gz"):
            tally.add(stream)
            return True
        try:
            with gzip.GzipFile(fileobj=stream) as inflated:
                tally.add(cast(BinaryIO, inflated))
        except (gzip.BadGzipFile, EOFError, zlib.error):
            fixity.drain(stream)  # its own fault, unless the zip's CRC at the end says otherwise
            return False
    return True
