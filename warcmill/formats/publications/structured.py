"""Publications that structured data of a page name: `citation_*`, Dublin Core, JSON-LD and microdata. Pure.

All of a page's JSON-LD is one graph: a node may stand for another by its `@id`. It is walked without recursion, within
bounds of depth and of number, as all of it may be hostile. Of microdata the items of schema.org are read (HTML, 5).
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace
from selectolax.lexbor import LexborHTMLParser, LexborNode

from warcmill.formats.harvested import NamedDocument
from warcmill.formats.publications import identifiers
from warcmill.formats.publications.identifiers import cleaned, texts

MOST_NAMED = 200  # documents of a page
_MOST_VALUES = 50  # of a field
_MOST_JSON = 1 << 20  # characters of a script
_MOST_NODES, _DEEPEST = 20_000, 60
_MOST_PROPERTIES, _FARTHEST = 5_000, 200  # of all items of a page; elements between a property and its item
_PUBLICATIONS = frozenset(
    {"AudioBook", "Audiobook", "Book", "BookSeries", "Chapter", "Collection", "ComicIssue", "Course",
     "CreativeWork", "DataDownload", "Dataset", "EBook", "Guide", "HowTo", "LearningResource", "Legislation",
     "LegislationObject", "Manuscript", "Map", "MediaObject", "Periodical", "Play", "Poster",
     "PublicationIssue", "PublicationVolume", "Quotation", "Report", "Review", "SheetMusic", "Syllabus",
     "Thesis"}
)  # fmt: skip
_KINDS_OF_PUBLICATIONS = ("Article", "DigitalDocument", "Posting")  # as the ends of types
_OF_A_PAGE = frozenset({"WebPage", "ItemPage", "AboutPage"})  # they count where they name a file
_FILE = re.compile(r"\.(?:pdf|epub|docx?|xlsx?|pptx?|od[tsp]|rtf)(?:[?#;/]|$)", re.IGNORECASE)
# A field of a document, by the names that carry it; the first name that has a value counts.
_META: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "citation": {
        "urls": ("citation_pdf_url", "citation_pdf", "citation_epub_url", "citation_fulltext_pdf_url"),
        "title": ("citation_title",),
        "authors": ("citation_author", "citation_authors", "citation_editor"),
        "publisher": (
            "citation_publisher", "citation_technical_report_institution", "citation_dissertation_institution",
        ),
        "date": ("citation_publication_date", "citation_date", "citation_online_date", "citation_year"),
        "isbn": ("citation_isbn",),
        "doi": ("citation_doi",),
    },
    "dc": {
        "urls": ("document_url", "identifier", "identifier.uri", "identifier.url", "hasformat", "relation.hasformat"),
        "title": ("title",),
        "authors": ("creator", "creators_name", "creator.personalname", "contributor.author", "contributor"),
        "publisher": ("publisher", "publisher.corporatename"),
        "date": ("issued", "date.issued", "date.published", "available", "date", "created", "date.created"),
        "isbn": ("identifier.isbn", "identifier", "source.isbn"),
        "doi": ("identifier.doi", "identifier", "identifier.uri", "relation.isversionof"),
    },
}  # fmt: skip
_NAMES = {name for fields in _META["citation"].values() for name in fields}
_WRAPPING = re.compile(r"\A\s*+(?://\s*+)?+(?:<!--|<!\[CDATA\[)|(?://)?+(?:-->|\]\]>)\s*+\Z")
_DC = re.compile(r"(?:dc|dcterms|dct|eprints)[.:_](.{1,60})")
_URLS = ("contentUrl", "downloadUrl", "encoding", "associatedMedia", "distribution", "workExample", "url", "@id")
_FILES_BY_NATURE = frozenset({"contentUrl", "downloadUrl"})
_IDENTIFIERS = ("isbn", "identifier", "doi", "sameAs", "@id", "url", "productID")


class StructuredData:
    """The structured data of one page, as they are found; `join` makes a link absolute."""

    def __init__(self, join: Callable[[str], str]) -> None:
        self._join = join
        self._meta: dict[str, dict[str, list[str]]] = {by: {} for by in _META}
        self._scripts = list[Any]()

    def add_meta(self, name: str, content: str) -> None:
        """Add a `meta`, by its name in lower case."""
        name = name.removeprefix("bepress_")
        if name in _NAMES:
            self._meta["citation"].setdefault(name, []).append(content)
        elif match := _DC.fullmatch(name):
            self._meta["dc"].setdefault(match[1], []).append(content)

    def add_json_ld(self, script: str) -> None:
        """Add a script; one that is not JSON, or too deep to be read, names nothing."""
        script = _WRAPPING.sub("", script[:_MOST_JSON]).strip().removesuffix(";")
        try:
            self._scripts.append(json.loads(script, strict=False))
        except (ValueError, RecursionError):
            return

    def named(self, microdata: LexborHTMLParser | None) -> tuple[NamedDocument, ...]:
        """All that the page names; `microdata`: its tree, where it has some."""
        found = [*self._of_meta(), *self._of_json_ld(), *(self._of_microdata(microdata) if microdata else ())]
        return tuple(dict.fromkeys(found))[:MOST_NAMED]

    def _of_meta(self) -> Iterator[NamedDocument]:
        for by, fields in _META.items():
            known = self._meta[by]
            if not known:
                continue
            got = {field: [known[name] for name in names if name in known] for field, names in fields.items()}
            first = {field: values[0] if values else [] for field, values in got.items()}
            urls, isbn, doi = ([one for values in got[field] for one in values] for field in ("urls", "isbn", "doi"))
            urls = [url for value in urls if (url := self._url(value, is_file=by == "citation"))]
            authors = first["authors"][0].split(";") if len(first["authors"]) == 1 else first["authors"]
            if made := _document(by, urls, first["title"], authors, first["publisher"], first["date"], isbn, doi):
                yield made

    def _url(self, value: str, *, is_file: bool) -> str:
        """The absolute URL of a value that is one, of a file: by its nature, or by its name."""
        value = value.strip()
        if not value or any(map(str.isspace, value)) or not (is_file or _FILE.search(value)):
            return ""
        return self._join(value)

    def _of_json_ld(self) -> Iterator[NamedDocument]:
        nodes = [*_nodes(self._scripts)]
        graph = dict[str, Mapping[str, Any]]()
        for node in nodes:
            if isinstance(name := node.get("@id"), str) and len(node) > 1:
                graph.setdefault(name, node)
        for node in nodes:
            types = [one.rpartition("/")[2].rpartition(":")[2] for one in _strings(node.get("@type"))]
            if any(map(_is_publication, types)) and (made := self._of_node(node, graph, types)):
                yield made

    def _of_node(
        self, node: Mapping[str, Any], graph: Mapping[str, Mapping[str, Any]], types: list[str]
    ) -> NamedDocument | None:
        urls = [
            url
            for key in _URLS
            for value in _addresses(node.get(key), graph)
            if (url := self._url(value[0], is_file=key in _FILES_BY_NATURE or value[1]))
        ]
        if not urls and not _OF_A_PAGE.isdisjoint(types):
            return None
        title = [*_strings(node.get("name")), *_strings(node.get("headline"))]
        authors = [*_names(node.get("author"), graph), *_names(node.get("creator"), graph)]
        publisher = [*_names(node.get("publisher"), graph), *_names(node.get("sourceOrganization"), graph)]
        dates = [date for key in ("datePublished", "dateCreated", "dateIssued") for date in _strings(node.get(key))]
        named = [value for key in _IDENTIFIERS for value in _identifiers(node.get(key))]
        return _document("jsonld", urls, title, authors, publisher, dates, named, named)

    def _of_microdata(self, tree: LexborHTMLParser) -> Iterator[NamedDocument]:
        items = dict[int, tuple[list[str], dict[str, list[str]]]]()
        for item in tree.css("[itemscope][itemtype]"):
            types = [one.rpartition("/")[2] for one in (item.attributes.get("itemtype") or "").split()[:_MOST_VALUES]]
            if len(items) < MOST_NAMED and any(map(_is_publication, types)):
                own = item.attributes.get("itemid")
                items[item.mem_id] = types, {"@id": [own]} if own else {}
        for node in tree.css("[itemprop]")[:_MOST_PROPERTIES]:
            if known := items.get(_item_of(node)):
                for name in (node.attributes.get("itemprop") or "").split()[:_MOST_VALUES]:
                    known[1].setdefault(name, []).append(_value(node))
        for types, properties in items.values():
            if made := self._of_node(properties, {}, types):
                yield replace(made, by="microdata")


def _is_publication(type_: str) -> bool:
    return type_ in _PUBLICATIONS or type_ in _OF_A_PAGE or type_.endswith(_KINDS_OF_PUBLICATIONS)


def _document(
    by: str, urls: Iterable[str], title: Iterable[str], authors: Iterable[str], publisher: Iterable[str],
    date: Iterable[str], isbn: Iterable[str], doi: Iterable[str],
) -> NamedDocument | None:  # fmt: skip
    """A document, from the values that its fields may have; None where no field has one."""
    name, house, when = (next(iter(texts(values)), "") for values in (title, publisher, date))
    numbers = dict.fromkeys(number for value in isbn if (number := identifiers.isbn_of(value)))
    names = dict.fromkeys(name for value in doi for name in identifiers.dois(value))
    made = NamedDocument(
        by, tuple(dict.fromkeys(urls))[:_MOST_VALUES], name, texts(authors)[:_MOST_VALUES], house, when,
        tuple(numbers)[:_MOST_VALUES], tuple(names)[:_MOST_VALUES],
    )  # fmt: skip
    return made if made != NamedDocument(by) else None


def _nodes(scripts: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """All objects of some values, those above first."""
    waiting, left = deque((script, 0) for script in scripts), _MOST_NODES
    while waiting and left:
        value, depth = waiting.popleft()
        left -= 1
        if isinstance(value, dict):
            yield value
        if depth < _DEEPEST:
            inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
            waiting.extend((one, depth + 1) for one in inside if isinstance(one, dict | list))


def _strings(value: Any) -> Iterator[str]:
    """The texts that a value is, or has in its list, or as the value of a text in a language."""
    for one in value[:_MOST_VALUES] if isinstance(value, list) else (value,):
        text = one.get("@value") if isinstance(one, dict) else one
        if isinstance(text, str):
            yield text
        elif isinstance(text, int) and not isinstance(text, bool):
            yield str(text)


def _names(value: Any, graph: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The names of people or organisations, which may be elsewhere in the graph."""
    for one in value[:_MOST_VALUES] if isinstance(value, list) else (value,):
        if isinstance(one, dict):
            known = graph.get(name, one) if isinstance(name := one.get("@id"), str) and "name" not in one else one
            yield from _strings(known.get("name"))
        elif isinstance(one, str):
            yield cleaned(str(graph[one].get("name", one))) if one in graph else one


def _addresses(value: Any, graph: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    """The URLs that a value has, itself or in an object; and True if they are of a file by their nature."""
    for one in value[:_MOST_VALUES] if isinstance(value, list) else (value,):
        if isinstance(one, dict):
            name = one.get("@id")
            known = graph.get(name, one) if isinstance(name, str) and len(one) == 1 else one
            yield from ((url, True) for key in ("contentUrl", "downloadUrl") for url in _strings(known.get(key)))
            yield from ((url, False) for key in ("url", "@id") for url in _strings(known.get(key)))
        elif isinstance(one, str):
            yield one, False


def _identifiers(value: Any) -> Iterator[str]:
    """The values of identifiers, which may be objects with a `value`."""
    for one in value[:_MOST_VALUES] if isinstance(value, list) else (value,):
        if isinstance(one, dict):
            for key in ("value", "@value", "@id", "url", "name"):
                yield from _strings(one.get(key))
        else:
            yield from _strings(one)


def _item_of(node: LexborNode) -> int:
    """The number of the item that a property is of: the next one above it; 0 if that is too far."""
    above = node.parent
    for _ in range(_FARTHEST):
        if above is None:
            break
        if "itemscope" in above.attributes:
            return int(above.mem_id)
        above = above.parent
    return 0


_ATTRIBUTES = {
    "meta": "content", "a": "href", "area": "href", "link": "href", "img": "src", "audio": "src", "embed": "src",
    "iframe": "src", "source": "src", "video": "src", "object": "data", "data": "value", "meter": "value",
    "time": "datetime",
}  # fmt: skip


def _value(node: LexborNode) -> str:
    """The value of a property (HTML, 5.2.4); of an item inside: its name, or the URL of its file."""
    attributes = node.attributes
    if "itemscope" in attributes:
        for name in ("name", "contentUrl", "url"):
            inside = node.css_first(f"[itemprop~={name}]")
            if inside is not None:
                return _value(inside) if "itemscope" not in inside.attributes else ""
        return node.text()[: identifiers.MOST * 4]
    attribute = _ATTRIBUTES.get(node.tag or "", "content")
    value = attributes.get(attribute)
    return value if value is not None else node.text()[: identifiers.MOST * 4]
