"""Links of feeds (RSS 0.9 to 2.0, Atom, RFC 4287, and JSON), of sitemaps, and of robots.txt, which names them. Pure.

Sitemaps and their indexes (sitemaps.org) come as XML, or as text with a URL a line, and either may be a gzip file. A
text does not show that it is a sitemap: robots.txt, an index, or its name has to say so.
"""

from __future__ import annotations

import json
import re

from warcmill.crawl.extract import xml
from warcmill.crawl.extract.links import DECODED as UNPACKED
from warcmill.crawl.extract.links import EMBED, LIMITS, LINK, MANIFEST, LinkCollector, LinkLimits, Outlinks, hop_of
from warcmill.crawl.policies.scope import SITEMAP
from warcmill.formats.text import charset

_FEED_ROOT = re.compile(rb"<(?:[\w.-]+:)?(?:rss|feed|rdf)[\s>]", re.IGNORECASE)
_TEXTS = {"link": LINK, "comments": LINK, "url": EMBED, "icon": EMBED, "logo": EMBED, "origlink": LINK, "uri": LINK}
_SOURCES = ("enclosure", "content", "thumbnail", "player", "image")  # by @url, @src or @href
_JSON = {"home_page_url": LINK, "url": LINK, "external_url": LINK, "next_url": LINK, "icon": EMBED, "image": EMBED}
_JSON |= {"favicon": EMBED, "banner_image": EMBED}

DECODED = 50 << 20  # bytes that a sitemap may have (sitemaps.org)
_SITEMAP_ROOT = re.compile(rb"<(?:[\w.-]+:)?(?:urlset|sitemapindex)[\s>]", re.IGNORECASE)
_ROBOTS = re.compile(r"(?:\A|[\r\n])[ \t]*sitemap[ \t]*:[ \t]*(\S+)", re.IGNORECASE)
_lists_urls = re.compile(rb"(?:\s++|#[^\n]*+\n)*+https?://", re.IGNORECASE).match
_NAME = re.compile(r"/(?:[^/?]*sitemap[^/?]*|urllist)\.txt(?:\.gz)?(?:\?|$)", re.IGNORECASE)
_LINE = re.compile(r"[^\r\n]+")
_HOPS = {"loc": MANIFEST, "content_loc": EMBED, "thumbnail_loc": EMBED, "player_loc": EMBED}


def is_feed(data: bytes) -> bool:
    """True if what begins so has the root of a feed."""
    return _FEED_ROOT.search(data) is not None


def feed_links(data: bytes, uri: str, content_type: str = "", limits: LinkLimits = LIMITS) -> Outlinks:
    """The links of a feed: of its items, and what they embed."""
    found = LinkCollector(uri, limits=limits)
    text = charset.text(data, content_type)
    if text.lstrip()[:1] == "{":
        _json(text, found)
        return found.all()
    for name, attributes, content in xml.based(text, found):
        if found.cut:
            break
        if name == "link" and "href" in attributes:
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
    """True if what begins so has the root of a sitemap, or of an index of sitemaps."""
    return _SITEMAP_ROOT.search(data) is not None


def is_named(uri: str, payload: str) -> bool:
    """True if who named it, by its payload, or its own name says that it is a sitemap."""
    return SITEMAP in payload or _NAME.search(uri) is not None


def is_list(begin: bytes) -> bool:
    """True if what begins so lists URLs, as a sitemap in text does."""
    return _lists_urls(begin) is not None


def sitemap_links(data: bytes, uri: str, content_type: str = "", limits: LinkLimits = LIMITS) -> Outlinks:
    """The links of a sitemap or of an index of them: pages, alternates, images and videos."""
    found, inside, is_index = LinkCollector(uri, limits=limits), "", False
    most = max(DECODED, limits.decoded)
    whole = xml.unpacked(data, most)
    if whole is not data and len(whole) >= most:
        found.leave_out(UNPACKED)
    text = charset.text(whole, content_type)
    if is_list(xml.root(whole)):
        _add_lines(text, found)
        return found.all()
    for name, attributes, content in xml.tags(text):
        if found.cut:
            break
        if name in ("url", "sitemap", "image", "video"):
            inside = name
        elif name == "sitemapindex":
            is_index = True
        elif name == "loc" and inside == "image":
            found.add(content, EMBED, "image/loc")
        elif hop := _HOPS.get(name):
            found.add(content, hop, name)
        elif name == "link":
            found.add(attributes.get("href"), LINK, "link/@href")
    return _named(found.all()) if is_index else found.all()


def _add_lines(text: str, found: LinkCollector) -> None:
    for match in _LINE.finditer(text):
        if found.cut:
            break
        if (line := match[0].strip())[:4].lower() == "http":
            found.add(line, MANIFEST, "text")


def from_robots(data: bytes, uri: str, limits: LinkLimits = LIMITS) -> Outlinks:
    """The sitemaps that a robots.txt names (RFC 9309 leaves the line to sitemaps.org)."""
    found = LinkCollector(uri, limits=limits)
    for match in _ROBOTS.finditer(charset.text(data)):
        if found.cut:
            break
        found.add(match[1], MANIFEST, "robots.txt")
    return _named(found.all())


def _named(links: Outlinks) -> Outlinks:
    """The links, those to sitemaps named as such."""
    named = Outlinks(link._replace(payload="{" + SITEMAP + "}") if link.hop == MANIFEST else link for link in links)
    named.cut_by = links.cut_by
    return named
