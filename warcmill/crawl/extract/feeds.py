"""Links of feeds (RSS 0.9 to 2.0, Atom, RFC 4287, and JSON), of sitemaps, and of robots.txt, which names them. Pure.

Sitemaps and their indexes (sitemaps.org) come as XML or gzip. XML may be broken: no parser stops at the first fault,
none expands entities.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from warcmill.crawl.extract.html import unescaped
from warcmill.crawl.extract.links import EMBED, LINK, MANIFEST, LinkCollector, Outlinks, hop_of
from warcmill.formats.text import charset
from warcmill.formats.warc.codings import Gzip

_FEED_ROOT = re.compile(rb"<(?:[\w.-]+:)?(?:rss|feed|rdf)[\s>]", re.IGNORECASE)
_ROOTS = ("rss", "feed", "rdf")
_TEXTS = {"link": LINK, "comments": LINK, "url": EMBED, "icon": EMBED, "logo": EMBED, "origlink": LINK, "uri": LINK}
_SOURCES = ("enclosure", "content", "thumbnail", "player", "image")  # by @url, @src or @href
_JSON = {"home_page_url": LINK, "url": LINK, "external_url": LINK, "next_url": LINK, "icon": EMBED, "image": EMBED}
_JSON |= {"favicon": EMBED, "banner_image": EMBED}

DECODED = 50 << 20  # bytes that a sitemap may have (sitemaps.org)
_SITEMAP_ROOT = re.compile(rb"<(?:[\w.-]+:)?(?:urlset|sitemapindex)[\s>]", re.IGNORECASE)
_ROBOTS = re.compile(r"(?:\A|[\r\n])[ \t]*sitemap[ \t]*:[ \t]*(\S+)", re.IGNORECASE)
_GZIP = b"\x1f\x8b"
_HOPS = {"loc": MANIFEST, "content_loc": EMBED, "thumbnail_loc": EMBED, "player_loc": EMBED}

# Every quantifier that could give characters back is possessive: hostile text takes linear time.
_ATTRIBUTE = re.compile(r"""(?<![\w:.-])([\w:.-]++)\s*+=\s*+(?:"([^"<]*)"|'([^'<]*)')""")
_TAG = re.compile(
    r"<(?:!--.*?(?:-->|\Z)|\?.*?(?:\?>|\Z)|([A-Za-z_][\w.:-]*+)([^<>]*+)>(?:\s*+<!\[CDATA\[(.*?)(?:\]\]>|\Z)|([^<]*+)))",
    re.DOTALL,
)
Tag = tuple[str, dict[str, str], str]


def is_feed(data: bytes) -> bool:
    """True if an XML document has the root of a feed."""
    return _FEED_ROOT.search(data[:4096]) is not None


def feed_links(data: bytes, uri: str, content_type: str = "") -> Outlinks:
    """The links of a feed: of its items, and what they embed."""
    found = LinkCollector(uri)
    text = charset.text(data, content_type)
    if text.lstrip()[:1] == "{":
        _json(text, found)
        return found.all()
    for name, attributes, content in tags(text):
        if found.cut:
            break
        if name in _ROOTS:
            found.rebase(attributes.get("xml:base", ""))
        elif name == "link" and "href" in attributes:
            _atom_link(attributes, found)
        elif name == "guid" and attributes.get("isPermaLink", "true") == "true":
            found.add(content if content.startswith("http") else "", LINK, name)
        elif name in _SOURCES:
            found.add(attributes.get("url") or attributes.get("src") or attributes.get("href"), EMBED, name)
        elif hop := _TEXTS.get(name):
            found.add(content, hop, name)
    return found.all()


def _atom_link(attributes: dict[str, str], found: LinkCollector) -> None:
    rel = attributes.get("rel", "alternate")
    hop = EMBED if rel == "enclosure" else hop_of(rel)
    if hop:
        found.add(attributes["href"], hop, "link/@href")


def _json(text: str, found: LinkCollector) -> None:
    try:
        feed = json.loads(text)
    except (ValueError, RecursionError):
        return
    items = feed.get("items") if isinstance(feed, dict) else None
    objects = [feed, *(items if isinstance(items, list) else [])]
    for one in objects:
        for name, value in one.items() if isinstance(one, dict) else ():
            if name in _JSON and isinstance(value, str):
                found.add(value, _JSON[name], name)
            elif name == "attachments" and isinstance(value, list):
                _attached(value, found)


def _attached(attachments: list[object], found: LinkCollector) -> None:
    for one in attachments:
        if isinstance(one, dict) and isinstance(url := one.get("url"), str):
            found.add(url, EMBED, "attachments")


def is_sitemap(data: bytes) -> bool:
    """True if an XML document has the root of a sitemap, or of an index of sitemaps."""
    return _SITEMAP_ROOT.search(data[:4096]) is not None


def is_packed(data: bytes) -> bool:
    """True if it is a gzip file, which may be a thousand times as large unpacked."""
    return data.startswith(_GZIP)


def unpacked(data: bytes, limit: int = DECODED) -> bytes:
    """The bytes of a sitemap that is a gzip file, up to the limit; others as they are."""
    if not is_packed(data):
        return data
    kept, length, step = [], 0, Gzip()
    for part in step.feed(data):
        kept.append(part)
        length += len(part)
        if length > limit:
            break
    return b"".join(kept)[:limit]


def sitemap_links(data: bytes, uri: str, content_type: str = "") -> Outlinks:
    """The links of a sitemap or of an index of them: pages, alternates, images and videos."""
    found, inside = LinkCollector(uri), ""
    whole = unpacked(data)
    found.is_whole = whole is data or len(whole) < DECODED
    for name, attributes, text in tags(charset.text(whole, content_type)):
        if found.cut:
            break
        if name in ("url", "sitemap", "image", "video"):
            inside = name
        elif name == "loc" and inside == "image":
            found.add(text, EMBED, "image/loc")
        elif hop := _HOPS.get(name):
            found.add(text, hop, name)
        elif name == "link":
            found.add(attributes.get("href"), LINK, "link/@href")
    return found.all()


def from_robots(data: bytes, uri: str) -> Outlinks:
    """The sitemaps that a robots.txt names (RFC 9309 leaves the line to sitemaps.org)."""
    found = LinkCollector(uri)
    for match in _ROBOTS.finditer(charset.text(data)):
        if found.cut:
            break
        found.add(match[1], MANIFEST, "robots.txt")
    return found.all()


def tags(text: str) -> Iterator[Tag]:
    """Yield each opening tag: its name without prefix in lower case, its attributes, and the text right after it."""
    for match in _TAG.finditer(text):
        name, rest, cdata, plain = match.groups("")
        if name:
            attributes = {key: unescaped(one or two) for key, one, two in _ATTRIBUTE.findall(rest)}
            yield name.rpartition(":")[2].lower(), attributes, (cdata or unescaped(plain)).strip()
