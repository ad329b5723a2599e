"""The figures of a launch, and of it alone how many documents it has brought, and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Self

from warcmill.crawl.policies.quotas import Spending
from warcmill.crawl.statistics import Statistics
from warcmill.crawl.uri import queue_of
from warcmill.formats.crawllog import CrawlRecord


class Figures(Statistics):
    """Statistics that also count what this launch alone has fetched. What a fetch needs first is no document.

    `spending` is for quotas, which a launch shares with the one that it continues.
    """

    def __init__(self, seeds: Iterable[str] = ()) -> None:
        super().__init__(seeds)
        self.documents = self.bytes = 0
        self.answers: Counter[str] = Counter()
        self.spending = Spending()

    def add(self, line: CrawlRecord, crawl: str = "") -> None:
        """Count a line of crawl.log."""
        super().add(line)
        is_needed_first = (line.hops or "").rstrip("R").endswith("P")  # an address, a robots.txt
        if (line.status or 0) > 0 and not is_needed_first:
            size = line.content_size or 0
            self.documents += 1
            self.answers[str(line.status)] += 1
            self.bytes += size
            self.spending.add_to((queue_of(line.uri), line.source or "", crawl), size, _seconds(line))

    def _json(self) -> dict[str, Any]:
        return {**super()._json(), "spending": self.spending.dump()}

    @classmethod
    def _from_json(cls, found: Mapping[str, Any]) -> Self:
        made = super()._from_json(found)
        made.spending = Spending.load(found.get("spending", ()))  # checkpoints of 1.0 have none
        return made


def _seconds(line: CrawlRecord) -> float:
    milliseconds = (line.fetched or "").partition("+")[2]
    return int(milliseconds) / 1000 if milliseconds.isdigit() else 0.0
