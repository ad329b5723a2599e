"""Lines of extracts of harvest built by hand, and segments of documents that are made of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warcmill.formats.harvested import (
    DocumentFacts,
    HarvestedRecord,
    NamedDocument,
    PageFacts,
    PageLink,
    RevisitFacts,
)
from warcmill.stores import sentinel
from warcmill.stores.file import FileStore
from warcmill.versions.documents import published, segment
from warcmill.versions.documents.entries import Entry
from warcmill.versions.documents.join import join
from warcmill.versions.documents.segment import JoinedCrawl
from warcmill.versions.inputs import ListedWarc
from warcmill.versions.publication import Published
from warcmill.versions.segments import Segment

TIME = "20261121081736"
PDF = "application/pdf"
Records = Sequence[HarvestedRecord]


def id_of(name: str) -> str:
    """The id of the body that a test calls so."""
    return hashlib.sha256(name.encode()).hexdigest()


def document(url: str, body: str = "", date: str = TIME, **facts: Any) -> HarvestedRecord:
    """A document; by default each URL has a body of its own."""
    name = body or url
    known = {"payload": f"sha1:{name}", "type": PDF, "size": len(name), **facts}
    return HarvestedRecord(url, date, 692, document=DocumentFacts(id_of(name), **known))


def revisit(url: str, body: str = "", date: str = TIME, **facts: Any) -> HarvestedRecord:
    """A revisit of a body, by its payload digest; without one, of what its URL had."""
    return HarvestedRecord(url, date, 700, revisit=RevisitFacts(f"sha1:{body}" if body else "", **facts))


def page(
    url: str, *links: tuple[str, ...], date: str = TIME, named: Sequence[NamedDocument] = (), **facts: Any
) -> HarvestedRecord:
    """A page; a link is its URL, its text and the heading before it."""
    return HarvestedRecord(
        url, date, 710, page=PageFacts(links=tuple(PageLink(*link) for link in links), named=tuple(named), **facts)
    )


class DocumentIndex:
    """An index root whose segments are made without a fold: `add` makes one of crawls."""

    def __init__(self, base: Path) -> None:
        sentinel.adopt({"index": base / "index"})
        self.index = FileStore("index", base / "index")
        self.segments: list[Segment] = []

    def add(self, **crawls: Records | None) -> Published:
        """Publish a segment of crawls by the names of their jobs; None for one that is gone."""
        with segment.writing(self.index) as writer:
            for job, records in crawls.items():
                writer.add(self._crawl(writer.folder, job, records))
            written = writer.written()
        self.segments.append(segment.commit(self.index, "versions/documents/000001-test", written))
        return self.published

    def _crawl(self, folder: Path, job: str, records: Records | None) -> JoinedCrawl:
        launch = f"{job}/20261121081735"
        if records is None:
            return JoinedCrawl(launch, (), (), set())
        digest = hashlib.sha512(repr(records).encode()).hexdigest()
        one = ListedWarc(f"{launch}/a.warc.gz", digest, 1)
        return JoinedCrawl(launch, (one,), join(folder, lambda: [(one.name, records)]), set())

    @property
    def published(self) -> Published:
        return Published(1, "versions/documents/000001-test", "", (), tuple(self.segments))

    def entries(self) -> dict[str, Entry]:
        """The entries by their first URL."""
        return {one.urls[0]: one for one in published.entries(self.index, self.published)}

    def entry(self, body: str) -> Entry:
        """The entry of a body."""
        found = published.entry(self.index, self.published, id_of(body))
        assert found, body
        return found


def entries(base: Path, records: Records) -> dict[str, Entry]:
    """The entries of one crawl, by their first URL."""
    made = DocumentIndex(base)
    made.add(job=records)
    return made.entries()


def shown(found: Mapping[str, Entry], field: str) -> dict[str, str]:
    """A field of each entry."""
    return {url: one.shown(field) for url, one in found.items()}


def why(entry: Entry, field: str) -> Iterator[tuple[str, str]]:
    """The candidates of a field that are not good, with the reason."""
    return ((one.value, one.why_not) for one in entry.fields[field] if one.why_not)
