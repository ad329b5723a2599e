"""Desks over entries built by hand: a state, an index and a store, and versions of `documents` that a test names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from warcmill.base import clock
from warcmill.documents import desk
from warcmill.documents.decided import DocumentDecision
from warcmill.documents.desk import Desk, DeskSources, PublishedEntries
from warcmill.formats.feed import Target
from warcmill.markers import decisions
from warcmill.markers.decisions import DOCUMENTS, RecordedDecision
from warcmill.stores import Store, sentinel
from warcmill.stores.file import FileStore
from warcmill.versions.documents.entries import Candidate, DocumentCapture, Entry
from warcmill.versions.documents.watching import WatchedTargets

NOW = clock.digits(datetime.now(UTC) - timedelta(hours=1))
PDF = "application/pdf"


def id_of(name: str) -> str:
    """The id of the body that a test calls so."""
    return hashlib.sha256(name.encode()).hexdigest()


def entry(name: str, *, url: str = "", seen: str = NOW, type_: str = PDF, more: Iterable[str] = (),
          version_of: str = "", **fields: str) -> Entry:  # fmt: skip
    """An entry with one candidate for each field, by its title also a bad one."""
    first = url or f"http://www.one.example/{name}.pdf"
    page = "http://www.one.example/"
    found = {key: (Candidate(value, "link", page, seen),) for key, value in fields.items()}
    if "title" in found:
        found["title"] += (
            Candidate("Download", "link", page, seen, "it names no document"),
            Candidate("H", "h1", page),
        )
    urls = (first, *more)
    captures = tuple(
        DocumentCapture(one, seen, "daily", "20161019234428", "daily/20161019234428/a.warc.gz", 700) for one in urls
    )
    return Entry(
        id_of(name), type_, 1_200_000, seen, urls, captures, f"{name}.pdf", fields=found,
        version_of=version_of and id_of(version_of),
    )  # fmt: skip


class DeskPlace:
    """The roots of a desk. `entries`: of the version; `version`: its name."""

    def __init__(self, base: Path, *entries: Entry) -> None:
        self.base, self.version = base, "v1"
        self.entries = {one.id: one for one in entries}
        self.before: dict[str, dict[str, Entry]] = {}
        self.watched: tuple[Target, ...] = ()
        roots = {"state": base / "state", "index": base / "index", "store": base / "store"}
        for path in roots.values():
            path.mkdir(parents=True, exist_ok=True)
        sentinel.adopt(roots)
        self.state, self.index = FileStore("state", roots["state"]), FileStore("index", roots["index"])

    def publish(self, *entries: Entry, gone: Iterable[str] = ()) -> None:
        """The next version: with other entries, and without some."""
        self.before[self.version] = dict(self.entries)
        self.entries |= {one.id: one for one in entries}
        for name in gone:
            del self.entries[id_of(name)]
        self.version = f"v{len(self.before) + 1}"

    def open_store(self) -> Store:
        return FileStore("store", self.base / "store")

    @property
    def sources(self) -> DeskSources:
        titles = repr(self.watched)
        return DeskSources(self.state, self.index, self._published, titles, lambda: WatchedTargets(self.watched))

    def _published(self) -> PublishedEntries | None:
        if not self.version:
            return None
        rows = [self.entries[name] for name in sorted(self.entries)]
        return PublishedEntries(self.version, lambda: iter(rows), self._changed)

    def _changed(self, name: str) -> Iterator[tuple[str, Entry | None]] | None:
        if name not in self.before:
            return None
        was = self.before[name]
        ids = sorted(was.keys() | self.entries.keys())
        return ((one, self.entries.get(one)) for one in ids if was.get(one) != self.entries.get(one))

    def opened(self) -> AbstractContextManager[Desk]:
        return desk.opened(self.sources)

    def decide(self, name: str, status: str = "", who: str = "anna", over: int | None = None,
               **fields: str | None) -> int:  # fmt: skip
        """Decide one document; return how many it changed."""
        with self.opened() as found:
            return found.decide(self.open_store, who, [DocumentDecision(id_of(name), status, fields)], over)

    def made(self) -> list[RecordedDecision]:
        return decisions.read(self.state, DOCUMENTS)

    def shown(self, name: str) -> dict[str, Any]:
        """A document as --json has it; {} if it is not shown."""
        with self.opened() as found:
            one = found.document(id_of(name))
            return one.json() if one else {}
