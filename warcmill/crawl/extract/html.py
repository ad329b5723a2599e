"""Links of an HTML page, as a browser without scripts would follow and load them (WHATWG HTML). Pure.

They are read from the page's tree. Of pages that are large, or made so that their tree takes hours (`too_much`), they
are read from the tags, one after another, in linear time whatever the page is (13.2.5, without a tree).
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from msgspec import Struct
from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser, SelectolaxError

from warcmill.crawl.extract import embedded
from warcmill.crawl.extract.links import EMBED, LIMITS, LINK, SUBMIT, LinkCollector, LinkLimits, Outlinks, hop_of
from warcmill.crawl.policies.robots import PRODUCT
from warcmill.formats.text import charset

Attributes = Mapping[str, str | None]

_BASE = re.compile(r"<base[\s/]", re.IGNORECASE)
_LAZY = ("data-src", "data-original", "data-lazy-src", "data-srcset", "data-lazy-srcset", "data-bg")
_OTHERS = frozenset(["src", "srcset", "imagesrcset", "poster", "background", "style", *_LAZY])
_XLINK = "xlink:href"  # what SVG had before href, which wins (SVG 2, 16.1.6)
_ANY = _OTHERS | {"href", _XLINK, "content", "action", "data", "srcdoc"}
_AMP = ("amp-img", "amp-anim", "amp-audio", "amp-video", "amp-iframe")  # what an AMP page has instead
_EMBEDDED = frozenset(
    ["img", "script", "iframe", "frame", "embed", "source", "track", "audio", "video", "input", "image", *_AMP]
)
FRAMES = frozenset(["iframe/@src", "iframe/@data-src", "frame/@src", "amp-iframe/@src", "embed/@src", "object/@data"])
"""The contexts of links to pages that a page has inside it."""
_DRAWN = _EMBEDDED | {"use", "feImage", "feimage"}  # by their href; a tree has SVG's own letters
_TEMPLATE = re.compile(rb"<(/?)(template)(?=[\s/>])", re.IGNORECASE)  # a tree does not show what is inside
_candidate = re.compile(r"[\s,]*+([^\s,]\S*+)").match  # of a srcset (HTML, "parse a srcset attribute")
_descriptors = re.compile(r"(?:[^,(]++|\([^)]*+\)?+)*+").match  # up to a comma that is in no brackets
_WITH_TEXT = ("style", "script")
_IDS_WITH_TEXT = frozenset(
    node.tag_id for node in LexborHTMLParser("<style></style><script></script>").css("style, script")
)
_SCRIPT_KINDS = ("", "module", "text/javascript", "application/javascript", "text/ecmascript")
_ROBOTS = frozenset(["robots", PRODUCT])
_META_EMBEDS = frozenset(
    [f"og:{name}" for name in ("image", "image:url", "image:secure_url", "video", "video:url", "audio", "audio:url")]
    + ["twitter:image", "twitter:image:src", "msapplication-tileimage", "thumbnail"]
)  # fmt: skip

# The tree's work grows with the square of these: at the limits it is some 50 ms.
DEEPEST = 5  # pages in each other's `srcdoc`
FEW = 1_000  # tags: so few cannot take long, whatever they are
TAGS = 5_000  # opening tags: each may be inside all before it
ATTRIBUTES = 10_000  # of one tag, about: each is compared with all before it
REOPENED = 100_000  # elements: each formatting element may be opened anew in each later one (13.2.4.3)
_LONG = 4_096  # bytes between two ">"
_SEPARATORS = re.compile(rb"[\s/\"']+")
_FORMATTING = re.compile(rb"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)[\s/]", re.IGNORECASE)
_VALUE = r"""(?:"[^"]*+"|'[^']*+'|[^\s>"'][^\s>]*+)"""
_ATTRIBUTE = re.compile(rf"([^\s/>][^\s/>=]*+)(?:\s*+=\s*+({_VALUE})?)?")
_TAG = re.compile(
    r"<(?:!--(?:-?>|.*?(?:--!?>|\Z))|[!?/][^>]*+(?:>|\Z)"
    rf"|([A-Za-z][^\s/>]*+)((?:[\s/]++|[^\s/>][^\s/>=]*+(?:\s*+=\s*+{_VALUE}?)?)*+)(>|\Z))",
    re.DOTALL,
)
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ENDS = {
    name: re.compile(rf"</{name}[\s/>]", re.IGNORECASE)
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}


class Element(Protocol):
    """An element with a name, attributes, and a text inside: a node of a tree, or a tag."""

    @property
    def tag(self) -> str | None: ...
    @property
    def attributes(self) -> dict[str, str | None]: ...
    def text(self) -> str: ...


Telling = tuple[str, Attributes, Element]


def links(
    data: bytes, uri: str, content_type: str = "", limits: LinkLimits = LIMITS, *, scripts: bool = False
) -> Outlinks:
    """The links of a page; with `scripts` also what looks like a URL in a script."""
    name = charset.of_links(data, content_type)
    found = LinkCollector(uri, charset.of_queries(name), limits)
    base, elements = _read(data, name)
    if base:
        found.rebase(base)
    for tag, attributes, node in elements:
        _add(tag, attributes, node, found)
        if inside := attributes.get("srcdoc"):
            _add_inside(inside, found)
        if scripts and tag == "script":
            _add_guesses(node, found)
        if found.cut:
            break
    return found.all()


def texts(data: bytes, uri: str, content_type: str = "") -> dict[str, str]:
    """The text of each link that a person could follow, by its address: the first of several. A page whose tree would
    take long has none."""
    if too_much(data):
        return {}
    name = charset.of_links(data, content_type)
    found = LinkCollector(uri, charset.of_queries(name))
    base, elements = _from_tree(data, name)
    if base:
        found.rebase(base)
    by_address: dict[str, str] = {}
    for tag, attributes, node in elements:
        if tag in ("a", "area") and (href := attributes.get("href")) is not None:
            by_address.setdefault(found.join(href), node.text())
    return by_address


def _add_inside(page: str, found: LinkCollector, depth: int = 1) -> None:
    """Add the links of a page in `srcdoc`, and of pages in it. They have the base of the outer page, unless they name
    another."""
    outer = found.base
    base, elements = _from_tags(page.encode("utf-8", "replace"), charset.UTF8)  # many trees would take long
    if base:
        found.rebase(base)
    for tag, attributes, node in elements:
        _add(tag, attributes, node, found)
        if depth < DEEPEST and (inside := attributes.get("srcdoc")):
            _add_inside(inside, found, depth + 1)
        if found.cut:
            break
    if base:
        found.rebase(outer)


def _read(data: bytes, name: str) -> tuple[str | None, Iterable[Telling]]:
    """The base of a page, and its elements in order."""
    return _from_tags(data, name) if too_much(data) else _from_tree(data, name)


def _from_tree(data: bytes, name: str) -> tuple[str | None, Iterable[Telling]]:
    """The same from its tree."""
    raw = data if name == charset.UTF8 else data.decode(name, "replace").encode("utf-8", "replace")
    if b"<template" in raw.lower():
        raw = _TEMPLATE.sub(rb"<\1x-\2", raw)
    try:
        tree = LexborHTMLParser(raw, options=LexborDocumentOptions.WO_EVENTS)
    except (SelectolaxError, ValueError, RuntimeError):
        return "", ()
    elements = [
        (node.tag or "", attributes, node)
        for node in (tree.root.traverse() if tree.root else ())
        if ((attributes := node.attributes) and not _ANY.isdisjoint(attributes)) or node.tag_id in _IDS_WITH_TEXT
    ]
    return _base_of(elements), elements


def _from_tags(data: bytes, name: str) -> tuple[str | None, Iterable[Telling]]:
    """The same from the tags alone, one after another: all at once would be more than the page itself."""
    text = data.decode(name, "replace")
    return _base_of(_telling(tags(text))) if _BASE.search(text) else "", _telling(tags(text))


def _telling(elements: Iterable[Element]) -> Iterator[Telling]:
    """The elements that may have a link: by an attribute, or in their text. Most of a page have none."""
    return (
        (node.tag or "", attributes, node)
        for node in elements
        if not _ANY.isdisjoint(attributes := node.attributes) or node.tag in _WITH_TEXT
    )


def _base_of(elements: Iterable[Telling]) -> str | None:
    return next((own["href"] for tag, own, _ in elements if tag == "base" and "href" in own), "")


def _add_anchor(attributes: Attributes, found: LinkCollector) -> None:
    """Add what most links are."""
    rel = attributes.get("rel")
    name = _XLINK if _XLINK in attributes and "href" not in attributes else "href"
    found.add(attributes.get(name), LINK, f"a/@{name}", rel is not None and "nofollow" in rel.lower())
    if len(attributes) > 1 and not _OTHERS.isdisjoint(attributes):
        _add_others("a", attributes, found)


def _add(tag: str, attributes: Attributes, node: Element, found: LinkCollector) -> None:
    if tag == "a":
        _add_anchor(attributes, found)
        return
    if own := _OWN.get(tag):
        own(node, attributes, found)
    elif href := attributes.get("href"):
        found.add(href, EMBED if tag in _DRAWN else LINK, f"{tag}/@href")
    if _XLINK in attributes and "href" not in attributes:
        found.add(attributes[_XLINK], EMBED if tag in _DRAWN else LINK, f"{tag}/@{_XLINK}")
    if not _OTHERS.isdisjoint(attributes):
        _add_others(tag, attributes, found)


def _add_others(tag: str, attributes: Attributes, found: LinkCollector) -> None:
    """Add what any element may have besides its own."""
    for name, value in attributes.items():
        if not value or name not in _OTHERS or (name == "src" and tag not in _EMBEDDED):
            continue
        if name == "style" or (name == "data-bg" and "url(" in value):
            embedded.add_css(value, found, f"{tag}/@{name}")
        elif name.endswith("srcset"):
            _add_candidates(value, f"{tag}/@{name}", found)
        else:
            found.add(value, EMBED, f"{tag}/@{name}")


def _add_candidates(srcset: str, context: str, found: LinkCollector) -> None:
    at = 0
    while not found.cut and (match := _candidate(srcset, at)):
        url, at = match[1], match.end()
        if not url.endswith(",") and (descriptors := _descriptors(srcset, at)):
            at = descriptors.end()
        found.add(url.rstrip(","), EMBED, context)


def _add_guesses(node: Element, found: LinkCollector) -> None:
    if (node.attributes.get("type") or "").lower().strip() in _SCRIPT_KINDS:
        embedded.add_script(node.text() or "", found, "script")


def _link(_node: Element, attributes: Attributes, found: LinkCollector) -> None:
    if hop := hop_of(attributes.get("rel") or ""):
        found.add(attributes.get("href"), hop, "link/@href")


def _meta(_node: Element, attributes: Attributes, found: LinkCollector) -> None:
    content = attributes.get("content") or ""
    name = (attributes.get("property") or attributes.get("name") or "").lower()
    if (attributes.get("http-equiv") or "").lower() == "refresh":
        found.add_refresh(content, "meta/@content")
    elif name in _ROBOTS:
        found.close(content)
    elif name in _META_EMBEDS:
        found.add(content, EMBED, f"meta/@{name}")


def _form(_node: Element, attributes: Attributes, found: LinkCollector) -> None:
    if (attributes.get("method") or "get").lower() == "get":
        found.add(attributes.get("action"), SUBMIT, "form/@action")


def _object(_node: Element, attributes: Attributes, found: LinkCollector) -> None:
    found.add(attributes.get("data"), EMBED, "object/@data")


def _style(node: Element, _attributes: Attributes, found: LinkCollector) -> None:
    embedded.add_css(node.text() or "", found, "style")


def _script(node: Element, attributes: Attributes, found: LinkCollector) -> None:
    kind = (attributes.get("type") or "").lower().strip()
    if kind == "application/ld+json":
        embedded.add_json_ld(node.text() or "", found)
    elif kind == "speculationrules":
        _add_speculations(node.text() or "", found)


def _add_speculations(text: str, found: LinkCollector) -> None:
    """Add the pages that a browser may fetch ahead of time; those that a rule chooses are linked to anyway."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return
    rules = (
        [rule for some in read.values() if isinstance(some, list) for rule in some] if isinstance(read, dict) else []
    )
    for rule in rules:
        urls = rule.get("urls") if isinstance(rule, dict) else None
        for url in urls if isinstance(urls, list) else ():
            if isinstance(url, str):
                found.add(url, LINK, "script/speculationrules")


def _base(_node: Element, _attributes: Attributes, _found: LinkCollector) -> None:
    """It was read before all others."""


_OWN: dict[str, Callable[[Element, Attributes, LinkCollector], None]] = {
    "link": _link,
    "meta": _meta,
    "form": _form,
    "object": _object,
    "style": _style,
    "script": _script,
    "base": _base,
}


class Tag(Struct, frozen=True):
    """An opening tag, as the extractor of a tree's nodes reads it; `content` is the text of a script or style."""

    tag: str
    attributes: dict[str, str | None]
    content: str = ""

    def text(self) -> str:
        """The text inside."""
        return self.content


def too_much(page: bytes) -> bool:
    """True if the tree of a page could take long to build, or much memory."""
    tags = page.count(b"<")
    if tags > FEW:
        tags -= page.count(b"</")
    if tags > TAGS:
        return True
    if tags > FEW and tags * len(_FORMATTING.findall(page)) > REOPENED:
        return True
    if all(page.find(b">", at, at + _LONG) >= 0 for at in range(0, len(page) - _LONG, _LONG)):
        return False
    long = [part for part in page.split(b">") if len(part) > _LONG]
    return sum(len(_SEPARATORS.findall(part)) ** 2 for part in long) > ATTRIBUTES**2


def tags(page: str) -> Iterator[Tag]:
    """Yield the opening tags of a page."""
    at, in_picture = 0, False
    while match := _TAG.search(page, at):
        at = match.end()
        if in_picture and match[0][:5].lower() == "</svg":
            in_picture = False
        elif match[1] and match[3]:
            name, content = match[1].lower(), ""
            in_picture = in_picture or name == "svg"
            is_closed = in_picture and match[2].endswith("/")  # in a picture alone "/>" is an end (HTML, 13.2.6.5)
            if (end := _ENDS.get(name)) and not is_closed:
                closing = end.search(page, at)
                begin, at = at, closing.start() if closing else len(page)
                content = page[begin:at]
            yield Tag(name, _attributes(match[2]), content)


def _attributes(text: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for match in _ATTRIBUTE.finditer(text):
        value = match[2] or ""
        if value[:1] in ("'", '"'):
            value = value[1:-1]
        found.setdefault(match[1].lower(), unescaped(value))
    return found


def unescaped(text: str) -> str:
    """Return a text with its references resolved; a number too long to be a character's stays."""
    return _REFERENCE.sub(_unescaped, text) if "&" in text else text


def _unescaped(match: re.Match[str]) -> str:
    return html.unescape(match[0])
