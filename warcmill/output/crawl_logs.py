"""Count the crawl logs in a stage's zip, rotated ones too, in the order they were written."""

from __future__ import annotations

from warcmill import layout
from warcmill.formats import loglines, logzip
from warcmill.formats.crawlcounts import CrawlCounts, Tally
from warcmill.launches.stored_logs import in_order
from warcmill.markers.claim import Evidence
from warcmill.markers.facts import PackedLogs
from warcmill.markers.state import MarkerStore
from warcmill.model import Item


def count(state: MarkerStore, logs: Evidence) -> tuple[CrawlCounts, list[str]]:
    """Count every line of every crawl log in a 02 zip; also return the paths not counted, or only in part.

    Without crawl logs all counts are zero. BadInput when the zip itself is damaged.
    """
    tally = Tally()
    members = PackedLogs.from_claim(logs.claim).members
    packed = (item for item in logs.claim.items if members[item.file].startswith("logs/"))
    crawl_logs = [item for item in packed if layout.is_crawl_log(_plain(item))]
    ordered = in_order(crawl_logs)
    uncounted = {item.file.label for item in crawl_logs} - {item.file.label for item in ordered}
    for item in ordered:
        if not _add(state, logs, item, members[item.file], tally):
            uncounted.add(item.file.label)
    return tally.counts(), sorted(uncounted)


def _plain(item: Item) -> str:
    return layout.split_log_name(item.file.name)[0]


def _add(state: MarkerStore, logs: Evidence, item: Item, member: str, tally: Tally) -> bool:
    """Count a log as far as it can be read; return whether it could be read to its end."""
    with state.store.open(layout.marker_path(logs.claim.key)) as file:
        return loglines.read(logzip.open_member(file, member), tally.add, is_gzip=_plain(item).endswith(".gz"))
