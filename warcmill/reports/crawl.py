"""The claim of reports.crawl, from a stage's stored logs: its figures, requests without a page, and what bounds of the
crawl have left out. Reads only."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import BinaryIO, Final

from warcmill import layout
from warcmill.formats.logs import bounds, unrendered
from warcmill.formats.logs.bounds import BoundCut
from warcmill.formats.logs.crawlreport import CrawlReport
from warcmill.launches import stored_logs
from warcmill.markers.claim import Claim
from warcmill.markers.facts.reports import DAMAGED_RESULT, LostRequest
from warcmill.markers.state import MarkerStore, rests_on
from warcmill.model import Json, Launch, Stage
from warcmill.stores import Store

WORD = "crawl-report"
MOST_LISTED: Final = 10_000  # requests
_LARGEST = 1 << 24  # bytes of a bounds report


def report(state: MarkerStore, store: Store, launch: Launch, stage: Stage) -> Claim:
    """Count the stored crawl logs of a stage, and return the claim of reports.crawl.

    NotReady without files.verified; Mismatch when the stored zip is no longer the verified one.
    """
    verified = state.require(layout.step("verify", launch, stage))
    counted, requests = CrawlReport(), _LostRequests()
    with state.scratch() as folder, stored_logs.opened(store, verified, folder) as logs:
        unread = logs.read_crawl_logs(counted.add)
        logs.read_logs("scope.log", counted.add_scope)
        logs.read_logs(layout.RESULTS_LOG, requests.add)
        cuts = bounds.read(logs.paper(f"reports/{bounds.REPORT}.txt", _LARGEST) or b"")
    found = counted.counts()
    tables = {"by_status": found.by_status, "by_mime": found.by_mime, "by_host_top": found.by_host_top}
    facts: dict[str, Json] = {name: dict(table) for name, table in {**tables, **counted.tables()}.items()}
    if left := unrendered.listed(counted.unrendered.counts, counted.unrendered.first):
        facts["unrendered"] = [{**one.json()} for one in left]
    return Claim(
        layout.step(WORD, launch, stage),
        rests_on(verified),
        counts={"lines": found.lines, "bytes": found.bytes, "unread": found.unread},
        facts={**facts, "unread": [*unread], **requests.facts(), **_left_out(cuts)},
    )


def _left_out(cuts: Iterable[BoundCut]) -> dict[str, Json]:
    """The facts of the stage that has a bounds report; none where no bound has left anything out."""
    found: list[Json] = [{**cut._asdict()} for cut in cuts]
    return {"bounds": found} if found else {}


class _LostRequests:
    """The requests that a stage's results.jsonl has no page of: they failed, were refused, stopped, or have expired."""

    def __init__(self) -> None:
        self._is_there, self._number = False, 0
        self._first: list[LostRequest] = []

    def add(self, stream: BinaryIO) -> None:
        """Add those of a log. A line that is not a result stands for one, as it may have been."""
        self._is_there = True
        for line in stream:
            try:
                result = json.loads(line)
                if result["kind"] not in ("notice", "purged"):
                    continue
                value = dict(result["value"])
                found = LostRequest(*(str(value.get(name, "")) for name in LostRequest._fields))
            except (ValueError, KeyError, TypeError, RecursionError):
                found = LostRequest("", "", "", DAMAGED_RESULT)
            self._number += 1
            if len(self._first) < MOST_LISTED:
                self._first.append(found)

    def facts(self) -> dict[str, Json]:
        """The facts of a stage that serves requests; none of another."""
        if not self._is_there:
            return {}
        return {"requests_lost": self._number, "requests_without_page": [one._asdict() for one in self._first]}
