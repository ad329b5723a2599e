"""The candidates for each field of a document in one crawl: of the pages that link to it, and of the file itself. Pure.

A page is a better landing page if it names the document (citation_pdf_url, JSON-LD, `rel=up`); then if it has fewer
documents; then if more pages link to it; then if its URL is shorter.

The title that structured data have for the document is best; then the link's text on the landing page; the page's own
data, h1 and title, if it has one document; the title in the file, if its first page shows it, too; else the heading
before the link; then the same of other pages; the title in the file; the largest text of its first page; its name.
A text that two documents of one host share is not good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from warcmill.formats.harvested import DocumentFacts, NamedDocument, PageFacts
from warcmill.versions.documents import dates, texts
from warcmill.versions.documents.entries import Candidate

MOST = 12  # candidates for a field
PAGES = 8  # pages of a document that are looked at
NO_DATE, LATER, NO_PERSON = "not a date", "after the capture", "a user of a computer"
_USERS = frozenset(
    ("admin", "administrator", "user", "owner", "author", "unknown", "anonymous", "guest", "windows user")
)


class RankedCandidate(Struct, frozen=True, omit_defaults=True, array_like=True):
    """A candidate, with its rank in its field: the lowest is best."""

    rank: tuple[int, ...]
    candidate: Candidate


class LinkingPage(Struct, frozen=True):
    """A page that links to a document, in its newest capture that does. `links`: the text and the heading of each link.

    `named`: what its structured data have for the document. `is_named`: they name its file, or its response names the
    page. `documents`: how many documents it links to. `linked`: how many pages link to it.
    """

    url: str
    date: str
    facts: PageFacts
    documents: int
    linked: int
    links: tuple[tuple[str, str], ...] = ()
    named: tuple[NamedDocument, ...] = ()
    is_named: bool = False

    @property
    def rank(self) -> tuple[int, ...]:
        """Its rank among the pages of a document: the lowest is best."""
        return 0 if self.is_named else 1, self.documents, -self.linked, len(self.url)

    @property
    def data(self) -> Iterator[NamedDocument]:
        """Its data about itself, if they are of the document: it has no other."""
        return (one for one in self.facts.named if not one.urls and (self.documents <= 1 or self.is_named))


class CrawledDocument(Struct, frozen=True):
    """A document in one crawl: what its bytes say, None where a crawl has revisits alone; its first URL and time; and
    its pages, best first."""

    facts: DocumentFacts | None
    url: str
    date: str
    pages: Sequence[LinkingPage] = ()


def candidates(subject: CrawledDocument, is_shared: IsShared) -> dict[str, tuple[RankedCandidate, ...]]:
    """The candidates of each field that has any, best first. `is_shared`: if two documents of a host have a text."""
    found = {
        "landing_page_url": _landing(subject),
        "title": _titles(subject, is_shared),
        "publisher": _publishers(subject),
        "publication_date": _dates(subject),
        "authors": _authors(subject),
        "isbn": _identifiers(subject, "isbn"),
        "doi": _identifiers(subject, "doi"),
    }
    return {field: some for field, ranked in found.items() if (some := best(ranked))}


def best(ranked: Iterable[RankedCandidate]) -> tuple[RankedCandidate, ...]:
    """The best MOST; of two with one value the better. Those that are not good are behind all others."""
    found: dict[str, RankedCandidate] = {}
    for one in sorted(ranked, key=lambda one: (bool(one.candidate.why_not), one.rank, one.candidate.value)):
        found.setdefault(one.candidate.value, one)
    return tuple(found.values())[:MOST]


class TitleText(Struct, frozen=True):
    """A text that may be a title. In its `group` of sources, which is pages, properties or largest texts, no other
    document on the host of `url` may have it. `is_sure`: structured data or the URL have it for this document."""

    level: int
    page: int
    value: str
    by: str
    url: str
    date: str

    @property
    def is_sure(self) -> bool:
        return self.level == _NAMED or self.by == "filename"

    @property
    def group(self) -> str:
        return self.by if self.by in ("property", "largest") else "page"

    @property
    def text(self) -> str:
        """The text as it would be shown."""
        return texts.title_of_file(self.value) if self.by == "filename" else texts.clean(self.value)


IsShared = Callable[[TitleText], bool]
# The levels of titles, the best first; on other pages than the landing page _ELSEWHERE is added.
_NAMED, _LINK, _DATA, _H1, _TITLE, _AGREED, _HEADING = range(7)
_ELSEWHERE, _PROPERTY, _LARGEST, _WORD, _FILE = 7, 20, 21, 22, 23


def title_texts(subject: CrawledDocument) -> Iterator[TitleText]:
    """The texts by which a document may be called."""
    for number, page in enumerate(subject.pages):
        for level, value, by in _of_page(page):
            elsewhere = _ELSEWHERE if number and level not in (_NAMED, _WORD) else 0
            yield TitleText(level + elsewhere, number, value, by, page.url, page.date)
    url, date, name = subject.url, subject.date, ""
    if facts := subject.facts:
        for value in facts.properties.get("title", ()):
            level = _AGREED if _agree(value, facts.largest) else _PROPERTY
            yield TitleText(level, 0, value, "property", url, date)
        yield TitleText(_LARGEST, 0, facts.largest, "largest", url, date)
        name = facts.filename
    yield TitleText(_FILE, 0, texts.of_file(name, url), "filename", url, date)


def _of_page(page: LinkingPage) -> Iterator[tuple[int, str, str]]:
    """The texts of a page, each with its level on a landing page. A heading of one word is that of a section."""
    yield from ((_NAMED, named.title, named.by) for named in page.named)
    yield from ((_LINK, text, "link") for text, _ in page.links)
    yield from ((_DATA, named.title, named.by) for named in page.data)
    if page.documents > 1:
        for _, heading in page.links:
            yield _WORD if texts.is_word(heading) else _HEADING, heading, "heading"
        return
    yield _H1, page.facts.h1, "h1"
    yield _TITLE, page.facts.og.get("og:title", ""), "og"
    yield _TITLE, page.facts.title, "title"


def _agree(one: str, other: str) -> bool:
    """True if two texts of a file are one title, of several words."""
    short, long = sorted((texts.sharable(texts.plain(one)), texts.sharable(texts.plain(other))), key=len)
    return " " in short and short in long


def _titles(subject: CrawledDocument, is_shared: IsShared) -> Iterator[RankedCandidate]:
    for at, title in enumerate(title_texts(subject)):
        value = title.text
        why_not = "" if title.by == "filename" else texts.why_not(value)
        if not why_not and not title.is_sure and is_shared(title):
            why_not = texts.SHARED
        if value:
            yield RankedCandidate(
                (title.level, title.page, at), Candidate(value, title.by, title.url, title.date, why_not)
            )


def _landing(subject: CrawledDocument) -> Iterator[RankedCandidate]:
    for page in subject.pages:
        by = next((named.by for named in page.named), "up" if page.is_named else "link")
        yield RankedCandidate(page.rank, Candidate(page.url, by, page.url, page.date))


def _said(subject: CrawledDocument) -> Iterator[tuple[tuple[int, ...], LinkingPage, NamedDocument]]:
    """The structured data that are of the document: those that name it, then those of a landing page."""
    for number, page in enumerate(subject.pages):
        yield from (((0, number), page, named) for named in page.named)
        if not number:
            yield from (((1, number), page, named) for named in page.data)


def _publishers(subject: CrawledDocument) -> Iterator[RankedCandidate]:
    for rank, page, named in _said(subject):
        yield from _some(rank, (named.publisher,), named.by, page.url, page.date)
    yield from _of_file(subject, (2,), "publisher")
    for page in subject.pages[:1]:
        yield from _some((3,), (page.facts.og.get("og:site_name", ""),), "og", page.url, page.date)


def _dates(subject: CrawledDocument) -> Iterator[RankedCandidate]:
    found = [(rank, named.date, named.by, page.url, page.date) for rank, page, named in _said(subject)]
    for page in subject.pages[:1]:
        if page.documents <= 1:
            found += [((2,), page.facts.og.get("article:published_time", ""), "og", page.url, page.date)]
    if facts := subject.facts:
        made = facts.properties.get("date", ())
        found += [((3,), value, "property", subject.url, subject.date) for value in made[:1]]
        found.append(((4,), facts.modified, "modified", subject.url, subject.date))
    for rank, text, by, url, seen in found:
        if text.strip():
            value = dates.normal(text)
            digits = value.replace("-", "")
            why_not = NO_DATE if not value else LATER if digits > seen[: len(digits)] else ""
            yield RankedCandidate(rank, Candidate(value or texts.plain(text), by, url, seen, why_not))


def _authors(subject: CrawledDocument) -> Iterator[RankedCandidate]:
    for rank, page, named in _said(subject):
        yield from _some(rank, (_joined(named.authors),), named.by, page.url, page.date)
    for authors in (subject.facts.properties.get("authors", ()),) if subject.facts else ():
        value = _joined(authors)
        is_person = value.lower() not in _USERS and (" " in value or not value.isascii())
        yield from _some((2,), (value,), "property", subject.url, subject.date, "" if is_person else NO_PERSON)


def _joined(authors: Sequence[str]) -> str:
    return "; ".join(filter(None, map(texts.plain, dict.fromkeys(authors[:100]))))[: texts.LONGEST]


def _identifiers(subject: CrawledDocument, field: str) -> Iterator[RankedCandidate]:
    for rank, page, named in _said(subject):
        yield from _some(rank, getattr(named, field), named.by, page.url, page.date)
    if subject.facts:
        yield from _some((2,), getattr(subject.facts, field), "text", subject.url, subject.date)


def _of_file(subject: CrawledDocument, rank: tuple[int, ...], name: str) -> Iterator[RankedCandidate]:
    properties: Mapping[str, tuple[str, ...]] = subject.facts.properties if subject.facts else {}
    yield from _some(rank, properties.get(name, ()), "property", subject.url, subject.date)


def _some(
    rank: tuple[int, ...], values: Sequence[str], by: str, url: str, date: str, why_not: str = ""
) -> Iterator[RankedCandidate]:
    for at, value in enumerate(map(texts.plain, values[:MOST])):
        if value:
            yield RankedCandidate((*rank, at), Candidate(value, by, url, date, why_not))
