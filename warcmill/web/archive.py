"""What the pages ask of the archive. Each request reads the versions that are current, and what is hidden then."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from warcmill.formats.urlkey import urlkey
from warcmill.stores import LocalStore, Store
from warcmill.versions import cdx, hidden, search, text
from warcmill.versions.lookup import open_version
from warcmill.versions.payloads import Payloads
from warcmill.versions.search import Answer, Query

WARCS = "warcs"


@dataclass(frozen=True)
class Archive:
    """The published indexes, and what is hidden in them."""

    state: LocalStore
    index: LocalStore
    store: Store

    def search(self, query: Query, skipped: int, marks: tuple[str, str]) -> Answer:
        """The best documents after those that are skipped. NotReady if no version is published."""
        return search.search(self.state, self.index, query, skipped=skipped, marks=marks)

    def shows(self, time: str, url: str) -> bool:
        """Whether the current CDX has this capture, and it is not hidden."""
        prefixes = hidden.read(self.state).prefixes()
        _, lookup = open_version(self.index, cdx.NAME)
        with closing(lookup):
            lines = lookup.captures(urlkey(url), time, time)
            return next(hidden.visible(lines, prefixes, set()), None) is not None

    def check_store(self) -> None:
        """Unavailable if the store is not there: pywb would answer as if nothing had been archived."""
        self.store.stat(WARCS)

    def versions(self) -> dict[str, int | None]:
        """The number of the current version of each data set; None if none is published."""
        current = {name: Payloads(self.index, name).current() for name in (cdx.NAME, text.NAME)}
        return {name: one.number if one else None for name, one in current.items()}
