"""The figures of a launch, and of it alone how many documents and bytes it has brought: for its ceilings."""

from __future__ import annotations

from collections.abc import Iterable

from warcmill.crawl.statistics import Statistics
from warcmill.formats.crawllog import CrawlRecord


class Figures(Statistics):
    """Statistics that also count what this launch alone has fetched. What a fetch needs first is no document."""

    def __init__(self, seeds: Iterable[str] = ()) -> None:
        super().__init__(seeds)
        self.documents = self.bytes = 0

    def add(self, line: CrawlRecord) -> None:
        """Count a line of crawl.log."""
        super().add(line)
        is_needed_first = (line.hops or "").rstrip("R").endswith("P")  # an address, a robots.txt
        if (line.status or 0) > 0 and not is_needed_first:
            self.documents += 1
            self.bytes += line.content_size or 0
