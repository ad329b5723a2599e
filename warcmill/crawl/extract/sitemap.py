"""Links of sitemaps and their indexes, as XML or gzip, and of robots.txt, which names them (sitemaps.org)."""

from __future__ import annotations

import re

from warcmill.crawl.extract import charset
from warcmill.crawl.extract.links import EMBED, LINK, MANIFEST, Found, Links
from warcmill.crawl.extract.xml import tags
from warcmill.formats.warc.codings import Gzip

DECODED = 50 << 20  # bytes that a sitemap may have (sitemaps.org)
_ROOT = re.compile(rb"<(?:[\w.-]+:)?(?:urlset|sitemapindex)[\s>]", re.IGNORECASE)
_ROBOTS = re.compile(r"(?:\A|[\r\n])[ \t]*sitemap[ \t]*:[ \t]*(\S+)", re.IGNORECASE)
_GZIP = b"\x1f\x8b"
_HOPS = {"loc": MANIFEST, "content_loc": EMBED, "thumbnail_loc": EMBED, "player_loc": EMBED}


def is_sitemap(data: bytes) -> bool:
    """True if the root of an XML document is that of a sitemap, or of an index."""
    return _ROOT.search(data[:4096]) is not None


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


def links(data: bytes, uri: str, content_type: str = "") -> Found:
    """The links of a sitemap or of an index of them: pages, alternates, images and videos."""
    found, inside = Links(uri), ""
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


def from_robots(data: bytes, uri: str) -> Found:
    """The sitemaps that a robots.txt names (RFC 9309 leaves the line to sitemaps.org)."""
    found = Links(uri)
    for match in _ROBOTS.finditer(charset.text(data)):
        if found.cut:
            break
        found.add(match[1], MANIFEST, "robots.txt")
    return found.all()
