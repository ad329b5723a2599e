"""The lines of an extract of harvest: documents, revisits and pages of one WARC, as they are written and read. Pure.

    {"date": "20261121081736", "document": {…}, "offset": 692, "url": "https://site.example/report.pdf"}
    {"date": …, "offset": …, "revisit": {…}, "url": …}
    {"date": …, "offset": …, "page": {…}, "url": …}

Lines are in the order of their records. Values of a default are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class DocumentFacts(Struct, frozen=True, omit_defaults=True):
    """A document as its bytes and its response have it. Nothing of it is judged.

    `id`: the SHA-256 of the decoded body, in hex. `payload`: the payload digest as the record has it, such as
    `sha1:…`. `type`: the media type that the bytes say. `declared`: that of the response. `size`: bytes of the
    decoded body. `properties`: those of the file: title, authors, subject, publisher, date, language, identifier.
    `largest`: the largest text of the first page. `isbn`, `doi`: those that the first three pages have, checked and
    normalised. `up`: the targets of `Link` headers with `rel=up`, absolute. `filename`: that of Content-Disposition.
    `modified`: the time of Last-Modified, 14 digits. `fault`: why the file could not be read, or not whole: encrypted,
    cut, too large.
    """

    id: str
    payload: str
    type: str
    size: int
    declared: str = ""
    properties: Mapping[str, tuple[str, ...]] = {}
    largest: str = ""
    isbn: tuple[str, ...] = ()
    doi: tuple[str, ...] = ()
    up: tuple[str, ...] = ()
    filename: str = ""
    modified: str = ""
    fault: str = ""


class RevisitFacts(Struct, frozen=True, omit_defaults=True):
    """A revisit that may be one of a document: `declared` is not the type of a page, a picture, a style or a script."""

    payload: str
    declared: str = ""
    refers_to: str = ""
    refers_to_date: str = ""


class PageLink(Struct, frozen=True, omit_defaults=True, array_like=True):
    """A link of a page: its absolute URL, its text, the heading before it, and its `rel`."""

    url: str
    text: str = ""
    heading: str = ""
    rel: str = ""


class NamedDocument(Struct, frozen=True, omit_defaults=True):
    """A publication that structured data of a page name: `citation_*`, DC, JSON-LD or microdata (`by`).

    `urls`: those of its files; empty where the data are of the page itself.
    """

    by: str
    urls: tuple[str, ...] = ()
    title: str = ""
    authors: tuple[str, ...] = ()
    publisher: str = ""
    date: str = ""
    isbn: tuple[str, ...] = ()
    doi: tuple[str, ...] = ()


class PageFacts(Struct, frozen=True, omit_defaults=True):
    """A page: its title, its first `h1`, its canonical URL, the publications that it names, and its
    links. `og`: its properties `og:…`, `article:…` and `book:…`, by their whole names.

    `cut`: the number of links beyond the bound, which are not kept.
    """

    title: str = ""
    h1: str = ""
    canonical: str = ""
    named: tuple[NamedDocument, ...] = ()
    og: Mapping[str, str] = {}
    links: tuple[PageLink, ...] = ()
    cut: int = 0


class HarvestedRecord(Struct, frozen=True, omit_defaults=True):
    """A line: exactly one of `document`, `revisit` and `page`. `date`: 14 digits. `warc`: its path in the store, ''
    in an extract, which any copy of the WARC may have."""

    url: str
    date: str
    offset: int
    document: DocumentFacts | None = None
    revisit: RevisitFacts | None = None
    page: PageFacts | None = None
    warc: str = ""
