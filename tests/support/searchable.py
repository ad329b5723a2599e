"""Indexed launches built by hand, with the CDX and the text index of them; without Luigi."""

from __future__ import annotations

from indexed import PLACE, Archive

from warcmill.index.text import text
from warcmill.launches.extracts import Extracts
from warcmill.launches.text_workers import Workers
from warcmill.model import FINAL, Launch
from warcmill.versions import fold
from warcmill.versions.fold import Folded
from warcmill.versions.text import Text


class Searchable(Archive):
    """A line of which launches are stored, and indexed by URL and by words."""

    workers: Workers

    def reindex(self, launch: Launch) -> None:
        super().reindex(launch)
        claim = text(self.state, self.store, Extracts(self.index), self.workers, launch, FINAL)
        self.state.publish(claim.key, claim)

    def fold(self, *, base: bool = False) -> Folded:
        fold.fold(self.state, self.index, Text(self.state, self.store, self.index, self.workers), PLACE)
        return super().fold(base=base)
