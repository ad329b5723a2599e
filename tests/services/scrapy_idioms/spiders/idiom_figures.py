"""Figures of a crawl as a file, whatever Scrapy it is."""

import json
from pathlib import Path

from scrapy.statscollectors import MemoryStatsCollector


class KeptFigures(MemoryStatsCollector):
    def __init__(self, crawler):
        super().__init__(crawler)
        self._folder = Path(crawler.settings.get("FIGURES", "."))

    def close_spider(self, *words, **more):
        super().close_spider(*words, **more)
        self._folder.mkdir(exist_ok=True)
        figures = {name: value for name, value in self._stats.items() if isinstance(value, int | float | str)}
        (self._folder / "figures.json").write_text(json.dumps(figures))
