"""The figures of a launch, and of it alone how many documents it has brought, and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from warcmill.crawl.spending import is_document
from warcmill.crawl.statistics import Statistics
from warcmill.formats.crawllog import CrawlRecord


class Figures(Statistics):
    """Statistics that also count what this launch alone has fetched. What a fetch needs first is no document."""

    def __init__(self, seeds: Iterable[str] = ()) -> None:
        super().__init__(seeds)
        self.documents = self.bytes = 0
        self.answers: Counter[str] = Counter()

    def add(self, line: CrawlRecord) -> None:
        """Count a line of crawl.log."""
        super().add(line)
        if is_document(line):
            self.documents += 1
            self.answers[str(line.status)] += 1
            self.bytes += line.content_size or 0
