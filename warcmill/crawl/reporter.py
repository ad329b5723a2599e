"""What a launch hears of its crawl, put into its figures and its logs."""

from __future__ import annotations

from collections import Counter

from warcmill.crawl import lines
from warcmill.crawl.books import Kept, Result
from warcmill.crawl.figures import Figures
from warcmill.crawl.logs import Logs
from warcmill.crawl.offers import Offers
from warcmill.crawl.policies.decision import Decision
from warcmill.crawl.uri import Uri, shown
from warcmill.formats.crawllog import CrawlRecord


class Reporter:
    """Counts what is durable, and logs what went wrong."""

    def __init__(self, figures: Figures, logs: Logs) -> None:
        self._figures, self._logs = figures, logs
        self.first_failure = ""
        self.policies_failed: Counter[str] = Counter()

    def kept(self, offers: Offers, result: Result, kept: Kept) -> None:
        """A result is durable."""
        offers.taken(result.found, kept.offered)
        if result.line:
            self._figures.add(result.line)

    def failed(self, line: CrawlRecord, why: str) -> None:
        """A URI got no answer, or was refused."""
        if line.status not in lines.REFUSED:
            self.first_failure = self.first_failure or f"{shown(line.uri)}: {why}"
        self._logs.nonfatal(line, why)

    def broke(self, line: CrawlRecord, trace: str) -> None:
        """A fault in Warcmill while a URI was visited."""
        self._logs.runtime(line, trace)
        self._logs.alert("SEVERE", f"a fault in Warcmill at {line.uri}; runtime-errors.log has its traceback")

    def policy_failed(self, name: str, uri: Uri, trace: str) -> None:
        """A policy of others failed; its first fault of a launch is logged whole, and all are counted."""
        self.policies_failed[name] += 1
        if self.policies_failed[name] == 1:
            self._logs.runtime(lines.of_failure(uri, lines.FAULT), trace)
            what = f"policy {name} failed at {shown(uri.uri)}, so it decided nothing there; the crawl continues"
            self._logs.alert("SEVERE", f"{what}. runtime-errors.log has its first traceback, summary.json their number")

    def judged(self, number: int, found: Decision, uri: Uri) -> None:
        """A policy rejected or deferred a link."""
        self._logs.judged(number, found, uri)

    def no_uri(self, via: str, why: str, text: str) -> None:
        """What a page links to is no URI."""
        self._logs.no_uri(via or "-", text, why)
