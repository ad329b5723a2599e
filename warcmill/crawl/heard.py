"""What a crawl reports besides its results: what went wrong, for the logs of its launch."""

from __future__ import annotations

from typing import Protocol

from warcmill.crawl.policies.decision import Decision
from warcmill.crawl.uri import Uri
from warcmill.formats.crawllog import CrawlRecord


class Heard(Protocol):
    """Hears of what goes wrong while a launch crawls, each for the log that Heritrix has for it."""

    def failed(self, line: CrawlRecord, why: str) -> None:
        """A URI got no answer, or was refused (nonfatal-errors.log)."""
        ...

    def broke(self, line: CrawlRecord, trace: str) -> None:
        """A fault in Warcmill while a URI was visited (runtime-errors.log)."""
        ...

    def policy_failed(self, name: str, uri: Uri, trace: str) -> None:
        """A policy of others failed, so it decided nothing (runtime-errors.log)."""
        ...

    def judged(self, number: int, found: Decision, uri: Uri) -> None:
        """A policy, by its number in their order, rejected or deferred a link (scope.log)."""
        ...

    def no_uri(self, via: str, why: str, text: str) -> None:
        """What a page links to is no URI (uri-errors.log)."""
        ...
