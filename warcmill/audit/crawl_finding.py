"""A finding about the crawl itself."""

from __future__ import annotations

from dataclasses import dataclass

from warcmill.model import Key, Stage


@dataclass(frozen=True, slots=True)
class CrawlFinding:
    """One finding. `stage` is None when it is about the whole launch."""

    stage: Stage | None
    kind: str
    name: str
    why: str
    redo: Key | None = None  # a step whose redo closes it after all
