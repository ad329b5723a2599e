"""When a launch stops: nothing waits, it is asked to, or it has reached a ceiling."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from warcmill.crawl.figures import Figures


class End(StrEnum):
    """How a launch ended, as Heritrix's crawl-report says it."""

    EMPTY = "Finished"
    STOPPED = "Finished - Ended by operator"
    DOCUMENTS = "Finished - Maximum number of documents limit hit"
    DATA = "Finished - Maximum amount of data limit hit"
    TIME = "Finished - Timelimit hit"


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The most documents, bytes and seconds of a launch; 0: no ceiling."""

    documents: int = 0
    bytes: int = 0
    seconds: int = 0

    def reached(self, done: Figures, elapsed: float) -> End | None:
        """Which ceiling a launch has reached; None while it has none."""
        if self.documents and done.documents >= self.documents:
            return End.DOCUMENTS
        if self.bytes and done.bytes >= self.bytes:
            return End.DATA
        return End.TIME if self.seconds and elapsed >= self.seconds else None

    def room(self, done: Figures, under_way: int) -> int:
        """How many more URIs may be under way, so that not more documents than allowed are fetched."""
        return max(0, self.documents - done.documents - under_way) if self.documents else 1 << 30
