"""Indexed launches built by hand, with the CDX and the text index of them; without Luigi."""

from __future__ import annotations

from indexing.indexed import PLACE, Archive

from warcmill.extracts.extracts import Extracts
from warcmill.extracts.per_warc import LocalExtractor
from warcmill.extracts.text_workers import TextWorkers
from warcmill.index.text import text
from warcmill.model import FINAL, Launch
from warcmill.versions import fold
from warcmill.versions.fold import Folded
from warcmill.versions.text import Text


class Searchable(Archive):
    """A line of which launches are stored, and indexed by URL and by words."""

    workers: TextWorkers

    @property
    def making(self) -> LocalExtractor:
        return LocalExtractor(self.store, Extracts(self.index), self.workers)

    def reindex(self, launch: Launch) -> None:
        super().reindex(launch)
        claim = text(self.state, self.making, Extracts(self.index), launch, FINAL)
        self.state.publish(claim.key, claim)

    def fold(self, *, base: bool = False) -> Folded:
        fold.fold(self.state, lambda: self.store, self.index, Text(self.state, self.making, self.index), PLACE)
        return super().fold(base=base)
