"""The figures of a launch, and of it alone how many documents it has brought, and bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from warcmill.crawl.spending import is_document
from warcmill.crawl.statistics import Statistics
from warcmill.crawl.uri import shown
from warcmill.formats.crawllog import CrawlRecord
from warcmill.formats.crawlreport import is_cut


class Figures(Statistics):
    """Statistics that also count what this launch alone has fetched, and what limits cut of it, by the log's word. What
    a fetch needs first is no document."""

    def __init__(self, seeds: Iterable[str] = ()) -> None:
        super().__init__(seeds)
        self.documents = self.bytes = 0
        self.answers: Counter[str] = Counter()
        self.cut: Counter[str] = Counter()
        self.cut_first: dict[str, str] = {}

    def add(self, line: CrawlRecord) -> None:
        """Count a line of crawl.log."""
        super().add(line)
        for one in filter(is_cut, line.annotations):
            word, _, why = one.partition(":")
            self.cut[word] += 1
            self.cut_first.setdefault(word, f"{shown(line.uri)}: {why}" if why else shown(line.uri))
        if is_document(line):
            self.documents += 1
            self.answers[str(line.status)] += 1
            self.bytes += line.content_size or 0
