"""The claim of reports.crawl, from a stage's stored logs: it stands alone, as each step of a chain. Reads only."""

from __future__ import annotations

from warcmill import layout
from warcmill.formats.logs.crawlreport import CrawlReport
from warcmill.launches import stored_logs
from warcmill.markers.claim import Claim
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import Json, Launch, Stage
from warcmill.stores import Store

WORD = "crawl-report"


def report(state: MarkerStore, store: Store, launch: Launch, stage: Stage) -> Claim:
    """Count the stored crawl logs of a stage, and return the claim of reports.crawl.

    NotReady without files.verified; Mismatch when the stored zip is no longer the verified one.
    """
    verified = state.require(layout.step("verify", launch, stage))
    counted = CrawlReport()
    with state.scratch() as folder, stored_logs.opened(store, verified, folder) as logs:
        unread = logs.read_crawl_logs(counted.add)
        logs.read_logs("scope.log", counted.add_scope)
    found = counted.counts()
    tables = {"by_status": found.by_status, "by_mime": found.by_mime, "by_host_top": found.by_host_top}
    facts: dict[str, Json] = {name: dict(table) for name, table in {**tables, **counted.tables()}.items()}
    return Claim(
        layout.step(WORD, launch, stage),
        rests_on(verified),
        counts={"lines": found.lines, "bytes": found.bytes, "unread": found.unread},
        facts={**facts, "unread": [*unread]},
    )
