"""The facts of a page: its title, the documents that it names, and its links with the headings before them. Pure.

A page is decoded, and its links are joined with its base, as the crawler does it. Its tree is walked once, in order;
only elements whose name matters are looked at, by lexbor's numbers. Links that differ in nothing are kept once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

from ada_url import join_url
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, LexborNode, SelectolaxError

from warcmill.formats.harvested import NamedDocument, PageFacts, PageLink
from warcmill.formats.publications.identifiers import MOST, cleaned
from warcmill.formats.publications.structured import StructuredData
from warcmill.formats.text import charset

MOST_LINKS = 10_000
_MOST_TEXT = 4 << 20  # characters that are taken out of elements: they may be in each other
_LONGEST_URL = 4_096
_MOST_OG = 40
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_LINKING = {"a": "href", "area": "href", "iframe": "src", "embed": "src", "object": "data", "frame": "src"}
_ALL = (*_HEADINGS, *_LINKING, "title", "meta", "link", "base", "script")
_IDS = {
    node.tag_id: name
    for name in _ALL
    for node in LexborHTMLParser("<svg></svg>" + "".join(f"<{one}></{one}>" for one in _ALL)).css(name)[:1]
} | {LexborHTMLParser("<frameset><frame></frameset>").css("frame")[0].tag_id: "frame"}
_RELATIONS = frozenset(
    {"up", "alternate", "item", "collection", "cite-as", "enclosure", "describedby", "related", "chapter", "section"}
    | {"appendix", "contents", "next", "prev", "first", "last", "search"}
)
_has_other_scheme = re.compile(
    r"\s*+(?:javascript|mailto|tel|data|about|blob|sms|whatsapp|skype|android-app|ios-app|callto):", re.IGNORECASE
).match
# What the URL standard leaves as it is: such links need no parser. No "." begins a segment, and no ":" is in one.
_SEGMENT = r"(?:[A-Za-z0-9_~!$&()*+,;=@-]|%(?!2[eE]))(?:[A-Za-z0-9_.~!$&()*+,;=@-]|%(?!2[eE]))*+"
_is_plain = re.compile(rf"/?(?:{_SEGMENT}/)*+(?:{_SEGMENT})?+(?:\?[A-Za-z0-9_~!$&()*+,;=:@%/.?-]*+)?").fullmatch
_TEMPLATE = re.compile(rb"<(/?)(template)(?=[\s/>])", re.IGNORECASE)  # a tree does not show what is inside
_QUERY = re.compile(r"\?[^#]*")


def read(data: bytes, url: str, content_type: str = "") -> PageFacts:
    """The facts of a page; `content_type` is from its header. One that cannot be parsed has none."""
    codec = charset.of_links(data, content_type)
    raw = data if codec == charset.UTF8 else data.decode(codec, "replace").encode("utf-8", "replace")
    if b"<template" in raw or b"<TEMPLATE" in raw:
        raw = _TEMPLATE.sub(rb"<\1x-\2", raw)
    try:
        tree = LexborHTMLParser(raw, options=LexborDocumentOptions.WO_EVENTS)
    except (SelectolaxError, ValueError, RuntimeError):
        return PageFacts()
    page = _Page(url, charset.of_queries(codec))
    if tree.root:
        page.walk(tree.root)
    named = page.structured.named(tree if b"itemscope" in raw else None)
    return page.facts(named)


class _Page:
    """The facts of a page so far."""

    def __init__(self, url: str, codec: str) -> None:
        self._url, self._codec = url.partition("#")[0], codec
        self._rebase(url)
        self._title: str | None = None
        self._h1 = self._heading = self._canonical = ""
        self._has_base = False
        self._left = _MOST_TEXT
        self._links = dict[PageLink, None]()
        self._og = dict[str, str]()
        self._cut = 0
        self.structured = StructuredData(self.join)

    def _rebase(self, base: str) -> None:
        self._base, self._joined = base, dict[str, str]()
        self._folder = self._origin = ""
        self._folder = self._join("./").partition("?")[0]
        self._origin = "/".join(self._folder.split("/", 3)[:3])

    def walk(self, root: LexborNode) -> None:
        """Look at each element whose name matters."""
        others: dict[str, Callable[[LexborNode], None]] = {
            "title": self._on_title, "meta": self._on_meta, "link": self._on_link, "base": self._on_base,
            "script": self._on_script,
        }  # fmt: skip
        for node in root.traverse():
            number = node.tag_id
            if number not in _IDS:
                continue
            name = _IDS[number]
            if name in _LINKING:
                self._on_linking(name, node)
            elif name in _HEADINGS:
                self._heading = self._text(node)
                self._h1 = self._h1 or (self._heading if name == "h1" else "")
            else:
                others[name](node)

    def facts(self, named: tuple[NamedDocument, ...]) -> PageFacts:
        """All of it."""
        links = tuple(self._links)
        return PageFacts(self._title or "", self._h1, self._canonical, named, self._og, links, self._cut)

    def join(self, href: str) -> str:
        """The absolute URL of a link, without its fragment; '' of one that is not of the web."""
        href = href.partition("#")[0]
        found = self._joined.get(href)
        if found is None:
            found = self._joined[href] = self._join(href)
        return found

    def _join(self, href: str) -> str:
        if _is_plain(href) and href and href[0] != "?" and len(href) < _LONGEST_URL // 2:
            return f"{self._origin if href[0] == '/' else self._folder}{href}" if self._folder else ""
        if len(href) > _LONGEST_URL or _has_other_scheme(href):
            return ""
        if self._codec != charset.UTF8 and not href.isascii():
            href = _QUERY.sub(
                lambda query: quote(query[0].encode(self._codec, "xmlcharrefreplace"), "?=&+%;,/:@"), href
            )
        try:
            url = str(join_url(self._base, href)).partition("#")[0]
        except ValueError:
            return ""
        return url if url.startswith(("http://", "https://", "ftp://")) and len(url) <= _LONGEST_URL else ""

    def _written(self, query: re.Match[str]) -> str:
        """A query in the charset of the page, as browsers send it."""
        return quote(query[0].encode(self._codec, "xmlcharrefreplace"), "?=&+%;,/:@")

    def _text(self, node: LexborNode) -> str:
        if self._left <= 0:
            return ""
        text = node.text()
        self._left -= len(text)
        return cleaned(text)

    def _on_linking(self, name: str, node: LexborNode) -> None:
        attributes = node.attributes
        href = attributes.get(_LINKING[name])
        if href and href[0] != "#" and (url := self.join(href)) and url != self._url:
            text = self._text(node) if name == "a" else ""
            text = text or self._instead(name, node, attributes)
            self._add(PageLink(url, text, self._heading, cleaned(attributes.get("rel") or "", 60)))

    def _add(self, link: PageLink) -> None:
        if link in self._links:
            return
        if len(self._links) < MOST_LINKS:
            self._links[link] = None
        else:
            self._cut += 1

    def _instead(self, name: str, node: LexborNode, attributes: Mapping[str, str | None]) -> str:
        """The text of a link that has no words: of its picture, or of the link itself."""
        pictures = node.css("img[alt]")[:3] if name == "a" and node.child else ()
        words = [picture.attributes.get("alt") or "" for picture in pictures]
        own = (attributes.get(known) for known in ("aria-label", "title", "alt"))
        return next(filter(None, (cleaned(text or "") for text in (" ".join(words), *own))), "")

    def _on_title(self, node: LexborNode) -> None:
        if self._title is None and (node.parent is None or node.parent.tag != "svg"):
            self._title = self._text(node)

    def _on_meta(self, node: LexborNode) -> None:
        attributes = node.attributes
        content = attributes.get("content") or ""
        names = {attributes.get(own) or "" for own in ("name", "property")} if content else ()
        for name in sorted(filter(None, (one.strip().lower() for one in names))):
            if name.startswith(("og:", "article:", "book:")):
                if len(self._og) < _MOST_OG:
                    self._og.setdefault(cleaned(name, 60), cleaned(content))
            else:
                self.structured.add_meta(name, content[: 4 * MOST])

    def _on_link(self, node: LexborNode) -> None:
        attributes = node.attributes
        rel, href = attributes.get("rel"), attributes.get("href")
        if not rel or not href:
            return
        words = rel.lower().split()
        if "canonical" in words:
            self._canonical = self._canonical or self.join(href)
        elif not _RELATIONS.isdisjoint(words) and (url := self.join(href)):
            self._add(PageLink(url, cleaned(attributes.get("title") or ""), "", cleaned(rel.lower(), 60)))

    def _on_base(self, node: LexborNode) -> None:
        href = node.attributes.get("href")
        if href and not self._has_base:
            self._has_base = True
            if joined := self._join(href):
                self._rebase(joined)

    def _on_script(self, node: LexborNode) -> None:
        if (node.attributes.get("type") or "").strip().lower().partition(";")[0] == "application/ld+json":
            self.structured.add_json_ld(node.text())
